"""Headers of requests and answers, other methods, the log."""

import logging
import re
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import pytest
from PIL import Image
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import Client, run_service
from tests.server.security.conftest import READ_HEADERS, WRITE_HEADERS, make_request_line, send_bytes

from wsabie.collection.folder.collection import open_collection
from wsabie.collection.scan.scanner import scan_collection
from wsabie.server.access_control import _parse_host


def test_every_response_has_security_headers(guarded: TestClient, folder: Path) -> None:
    etag = guarded.get("/api/v1/items/1/thumbnail", headers=READ_HEADERS).headers["etag"]
    answers = {
        "page": guarded.get("/"),
        "script": guarded.get("/theme.js"),
        "json": guarded.get("/api/v1/items", headers=READ_HEADERS),
        "file": guarded.get("/api/v1/items/1/file", headers=READ_HEADERS),
        "part of a file": guarded.get("/api/v1/items/1/file", headers=READ_HEADERS | {"range": "bytes=0-3"}),
        "bad part": guarded.get("/api/v1/items/1/file", headers=READ_HEADERS | {"range": "bytes=x"}),
        "thumbnail": guarded.get("/api/v1/items/1/thumbnail", headers=READ_HEADERS),
        "not modified": guarded.get("/api/v1/items/1/thumbnail", headers=READ_HEADERS | {"if-none-match": etag}),
        "heat": guarded.get("/api/v1/items/1/heat?label=red", headers=READ_HEADERS),
        "figures": guarded.get("/metrics", headers=READ_HEADERS),
        "no token": guarded.get("/api/v1/items"),
        "no token to send": guarded.post("/api/v1/undo", json={}),
        "not found": guarded.get("/nothing"),
        "wrong method": guarded.request("TRACE", "/api/v1/items", headers=WRITE_HEADERS),
        "wrong input": guarded.get("/api/v1/items?k=0", headers=READ_HEADERS),
        "too large": guarded.post("/api/v1/undo", headers=WRITE_HEADERS | {"content-length": "9" * 12}),
        "other site": guarded.post("/api/v1/undo", json={}, headers=WRITE_HEADERS | {"origin": "http://evil.example"}),
        "other name": guarded.get("/", headers={"host": "evil.example"}),
    }
    for case, answer in answers.items():
        headers = answer.headers
        assert headers["x-content-type-options"] == "nosniff", case
        assert headers["x-frame-options"] == "DENY", case
        assert headers["cross-origin-resource-policy"] == "same-origin", case
        assert headers["cross-origin-opener-policy"] == "same-origin", case
        assert headers["referrer-policy"] == "same-origin", case
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        if "file" in case:
            assert policy == {"default-src": "'none'", "sandbox": ""}, case
        else:
            assert policy["default-src"] == "'self'", case
            assert (policy["object-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'none'",) * 3, case
            assert "script-src" not in policy, case  # 'self', without anything inline
        assert "server" not in headers, case
        assert not any(name.startswith("access-control-") for name in headers), case
    assert answers["too large"].status_code == 413
    assert answers["wrong method"].status_code == 405
    assert answers["no token to send"].status_code == 401
    assert [answers[case].status_code for case in ("other site", "other name")] == [403, 403]


NAMES = [
    'a"b.tif',
    "a\r\nX-Evil: 1.tif",
    "ü \U0001f600.tif",
    "a;filename=b.html;.tif",
    "a\\b.tif",
    "%0d%0aX-Evil: 1.tif",
]


def test_file_names_cannot_leave_their_header(folder: Path) -> None:
    out = BytesIO()
    for number, name in enumerate(NAMES):
        out.seek(0)
        Image.new("RGB", (8, 8), (1, 2, number)).save(out, "TIFF")
        (folder / name).write_bytes(out.getvalue())
    with open_collection(folder) as collection:
        assert scan_collection(collection, by="eve").new == len(NAMES)
    with run_service(folder) as client:
        items = client.get("/api/v1/items?sort=added_at&descending=true").json()["items"][: len(NAMES)]
        assert {item["path"] for item in items} == set(NAMES)
        heads = [
            send_bytes(client.base_url, make_request_line("GET", f"/api/v1/items/{item['id']}/file")) for item in items
        ]
    for head in heads:
        fields = [field.partition(b": ") for field in head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
        headers = {key.lower(): value for key, _, value in fields}
        assert b"x-evil" not in headers
        assert head.startswith(b"HTTP/1.1 200")
        assert headers[b"content-type"] == b"application/octet-stream"
        assert re.fullmatch(rb"attachment; filename(\*=utf-8'')?[!-~]+", headers[b"content-disposition"])
        assert headers[b"content-disposition"].count(b";") == 1
        assert headers[b"content-disposition"].count(b'"') in (0, 2)


def test_error_responses_do_not_repeat_the_host(api: TestClient) -> None:
    for path in ("/api/v1/items/", "/review/", "/evil.example/", "/api/v1//items"):
        answer = api.get(path, headers={"host": "localhost", "x-forwarded-host": "evil.example"})
        assert answer.status_code == 404, path
        assert "location" not in answer.headers
        assert "http" not in answer.text


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n"
        + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(100))
        + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: localhost\r\nCookie: wsabie_token=abc\r\n\r\n",
    ],
)
def test_malformed_request_lines_are_refused(service: httpx.URL, request_line: bytes) -> None:
    answers = send_bytes(service, request_line, seconds=1)
    status = answers[9:12]
    assert status in (b"", b"200", b"400", b"403", b"404", b"405", b"422"), answers[:300]
    assert b"wsabie_token" not in answers


def test_web_sockets_and_other_methods_are_refused(api: TestClient) -> None:
    for headers in ({}, {"host": "evil.example"}, {"origin": "http://evil.example"}):
        with pytest.raises(WebSocketDisconnect), api.websocket_connect("/api/v1/jobs/1/events", headers=headers):
            pass
    for method in ("TRACE", "PUT", "DELETE", "PATCH", "PROPFIND", "EVIL"):
        assert api.request(method, "/api/v1/items").status_code == 405


def test_metrics_are_labelled_by_route_and_known_method(api: TestClient) -> None:
    for method in ("GET", "EVIL", 'A"B', "X" * 500, "TRACE"):
        api.request(method, '/api/v1/labels?prefix="} 1%0aforged 1')
        api.request(method, '/nothing"} 1%0aforged{x="')
    page = api.get("/metrics").text
    assert "forged" not in page
    assert set(re.findall(r'method="([^"]*)"', page)) <= {"GET", "any"}


def test_log_lines_cannot_be_forged(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("wsabie.models.joint_embedding.estimator.Wsabie.neighbours", fails)
    with caplog.at_level(logging.ERROR, "wsabie.serve"):
        answer = client().get("/api/v1/labels/a%0dERROR: forged%1b[31m/neighbours")
    assert (answer.status_code, "broken" in answer.text) == (500, False)
    messages = [record.getMessage() for record in caplog.records if record.name == "wsabie.serve"]
    assert len(messages) == 1
    assert messages[0].isprintable()
    assert "forged" in messages[0]


def test_host_header_has_a_name() -> None:
    assert [_parse_host(host) for host in ("localhost:8000", "[::1]:80", "a@b")] == ["localhost", "::1", ""]
