"""Attacks on the service: who may ask, which addresses are refused, and from where.

Hostile files and bodies are in `test_hostile_content.py`.
"""

import base64
import hmac
import json
import logging
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from PIL import Image
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import Client, draw_picture, emoji, running, started

from wsabie.collection.folder.collection import open_collection
from wsabie.collection.items.item_files import find_item_file, open_item_file
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError
from wsabie.server import tokens as tokens_module
from wsabie.server.app import make_app
from wsabie.server.dependencies import ServiceContext
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.request_limits import LOOPBACK, ServiceLimits
from wsabie.server.tokens import Token, TokenFile, compute_digest, create_token, find_caller, read_tokens

OUTSIDE_TEXT = "what lies beside the collection"
READ_HEADERS, WRITE_HEADERS = {"authorization": "Bearer r"}, {"authorization": "Bearer w"}
TOKENS = [Token("eve", "read", None, compute_digest("r")), Token("adam", "write", None, compute_digest("w"))]
OPEN_TO_ALL = {"/api/v1/health"}
ASKING = {"/api/v1/annotate/rows", "/api/v1/annotate/picture", "/api/v1/annotate/text", "/api/v1/explain/picture"}
ASKING |= {"/api/v1/search/picture"}
"""What is posted and changes nothing."""

OUTWARD = [
    "../../../../../../../../etc/passwd", "..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "..\\..\\..\\..\\etc\\passwd", "..%5c..%5csecret.txt",
    "....//....//....//etc/passwd", "/etc/passwd", "//etc/passwd", "file:///etc/passwd", "../secret.txt", "secret.txt",
    "..%252f..%252fsecret.txt", "..%c0%af..%c0%afsecret.txt", ".wsabie/collection.json", "a\0b", "../secret.txt\0.png",
    "x" * 4000,
]  # fmt: skip
QUERIES = [
    "' OR '1'='1", "'; DROP TABLE items; --", '") UNION SELECT digest FROM tokens --', '"', "%", "_", "\\",
    "%' ESCAPE '", "red* OR green", "NEAR(red green)", "name:red", '"red', "red AND (", "-", "$(id)", "`id`", "{{7*7}}",
    "${jndi:ldap://x}", "%s%n%x", "\r\nSet-Cookie: a=b", "\x1b[31m", "\u202ered", "\ufeff", "\U0001f600", "\uffff",
    "\0", "=cmd|' /C calc'!A0", "<img src=x onerror=alert(1)>", "NaN", "1e999", "-1", "9" * 400, "null", "[]", "{}",
]  # fmt: skip


@pytest.fixture
def api(folder: Path) -> Iterator[TestClient]:
    with open_collection(folder) as collection:
        yield from _client(ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection))


@pytest.fixture
def guarded(folder: Path) -> Iterator[TestClient]:
    """With a token that may read and one that may write."""
    with open_collection(folder) as collection:
        yield from _client(ServiceContext(ServiceLimits(), TOKENS, CollectionModelHolder(collection), collection))


def _client(context: ServiceContext) -> Iterator[TestClient]:
    app = make_app(context, LOOPBACK)
    with TestClient(app, raise_server_exceptions=False, base_url="http://localhost", follow_redirects=False) as client:
        yield client


def operations(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of all that can be asked."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def filled(path: str, **values: str) -> str:
    """A path with its places filled: what is given, or else 1."""
    return re.sub(r"{(\w+)(:path)?}", lambda place: values.get(place[1], "1"), path)


def is_text(schema: dict[str, Any]) -> bool:
    kinds = [schema, *schema.get("anyOf", ())]
    return any(kind.get("type") == "string" and "enum" not in kind and "const" not in kind for kind in kinds)


def state_of(client: TestClient) -> tuple[Any, ...]:
    """Responses that nobody may change without leave."""
    parts = ("collection", "vocabulary", "journal", "jobs", "models")
    return tuple(client.get(f"/api/v1/{part}", headers=READ_HEADERS).json() for part in parts)


# ---- raw requests, since clients mend what they send


def sent(address: str | httpx.URL, content: bytes, seconds: float = 10) -> bytes:
    """All that is answered to some bytes."""
    url = httpx.URL(str(address))
    with socket.create_connection((url.host, url.port or 80), seconds) as to:
        to.sendall(content)
        answer = b""
        try:
            while piece := to.recv(65536):
                answer += piece
        except OSError:  # it waits for more, or has closed before all was read
            pass
        return answer


def line(method: str, target: str, *headers: str) -> bytes:
    return "\r\n".join(
        [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    ).encode()


@pytest.fixture(scope="module")
def service(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.URL]:
    """The address of a running service, with a secret beside its collection."""
    place = tmp_path_factory.mktemp("raw")
    shutil.copytree(trained_collection, place / "photos")
    (place / "secret.txt").write_text(OUTSIDE_TEXT)
    with running(place / "photos") as client:
        yield client.base_url


# ---- paths


@pytest.mark.parametrize("outward", OUTWARD)
def test_no_path_leads_out(service: httpx.URL, outward: str) -> None:
    target = re.sub(r"[^!-~]", lambda sign: f"%{ord(sign[0]):02x}", outward)
    for place in (
        "/",
        "/assets/",
        "/api/v1/items/",
        "/api/v1/items/1/file/",
        "/api/v1/items/1/thumbnail/",
        "/api/v1/jobs/",
    ):
        for end in ("", "/file", "/thumbnail"):
            answer = sent(service, line("GET", place + target + end))
            assert answer[9:12] in (b"400", b"404", b"405", b"422"), (target, answer[:200])
            assert OUTSIDE_TEXT.encode() not in answer
            assert b"root:" not in answer


def test_no_parameter_leads_out_or_into_the_database(api: TestClient, tmp_path: Path) -> None:
    """Every text that can be asked with, with every text of the lists."""
    (tmp_path / "secret.txt").write_text(OUTSIDE_TEXT)
    state_before, n_requests = state_of(api), 0
    for method, path, operation in operations(api):
        if method != "GET":
            continue
        texts = [parameter for parameter in operation.get("parameters", ()) if is_text(parameter["schema"])]
        needed = {
            parameter["name"]: "1"
            for parameter in operation.get("parameters", ())
            if parameter.get("required") and parameter["in"] == "query"
        }
        for parameter in texts:
            for text in OUTWARD + QUERIES:
                if parameter["in"] == "path":
                    answer = api.get(
                        filled(path, **{parameter["name"]: httpx.URL("x", params={"x": text}).query.decode()[2:]})
                    )
                else:
                    answer = api.get(filled(path), params=needed | {parameter["name"]: text})
                n_requests += 1
                assert answer.status_code < 500, (path, parameter["name"], text, answer.text)
                assert OUTSIDE_TEXT not in answer.text
                assert "root:" not in answer.text
                assert "set-cookie" not in answer.headers
    assert n_requests > 500
    assert state_of(api) == state_before


def test_signs_of_patterns_stand_for_themselves(api: TestClient) -> None:
    for text in ("%", "_", "re%", "r_d", "\\", "red%' OR '1'='1", "*", "?"):
        assert api.get("/api/v1/items", params={"words": text}).json()["items"] == [], text
        assert api.get("/api/v1/labels", params={"prefix": text}).json()["labels"] == [], text
        assert api.get("/api/v1/vocabulary", params={"contains": text}).json()["total"] == 0, text
        assert api.get("/api/v1/items", params={"folder": text}).json()["items"] == [], text


CURSORS = [
    ["path", "' OR 1=1 --", 1], ["path); DROP TABLE items; --", "a", 1],
    ["path", {"$gt": ""}, 1], ["path", "a", "1 OR 1=1"],
    ["path", "a", -1], ["path", "a", 10**30], ["path", "a\0", 1], ["path", "\ud800", 1], ["added_at", float("nan"), 1],
    [[]],
    {"sort": "path"}, None, "path", [["path"] * 3] * 3,
]  # fmt: skip


def test_cursors_are_taken_for_what_they_are(api: TestClient) -> None:
    state_before = state_of(api)
    for fields in CURSORS:
        cursor = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        answer = api.get("/api/v1/items", params={"cursor": cursor})
        assert answer.status_code in (200, 422), answer.text
        for item in answer.json().get("items", ()):  # those behind a text that no path is
            assert item["path"] > fields[1]  # type: ignore[index, operator]
    assert state_of(api) == state_before


def test_names_of_labels_are_data(api: TestClient) -> None:
    names = [
        "Robert'); DROP TABLE labels;--",
        "a\r\nSet-Cookie: b=c",
        "<img src=x onerror=alert(1)>",
        "%",
        "../../x",
        "\u202egnp",
    ]
    body = {"decisions": [{"item": 1, "label": name, "state": "accepted"} for name in names]}
    assert api.post("/api/v1/decisions", json=body).json()["added"] == len(names)
    labels = api.get("/api/v1/items/1").json()["labels"]
    assert set(labels) >= {" ".join(name.split()).strip("\u202e") for name in names}  # without line breaks and turns
    for name in names:
        answer = api.get("/api/v1/items", params={"label": name})
        assert [item["id"] for item in answer.json()["items"]] == [1], name
        assert answer.headers["content-type"] == "application/json"
    assert api.get("/api/v1/collection").json()["labels"] == 4 + len(names)


def test_jobs_take_no_texts(api: TestClient) -> None:
    for options in ({"tags": "../../etc/passwd"}, {"features": "onnx:/etc/passwd"}, {"full": ["x"]}, {"x": None}):
        assert api.post("/api/v1/jobs", json={"kind": "train", "options": options}).status_code == 422


# ---- links


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "private.png").write_bytes(draw_picture("red", 19))
    return place


def refused_everywhere(api: TestClient, item: int) -> None:
    for view in ("file", "thumbnail", "thumbnail?size=1024", "heat?label=red", "annotate?region=0,0,9,9"):
        refused = api.get(f"/api/v1/items/{item}/{view}")
        assert refused.status_code == 422, view
        assert "leads out of" in refused.json()["detail"]


def test_a_link_that_was_made_after_the_scan_is_not_followed(api: TestClient, folder: Path, outside: Path) -> None:
    first, second = api.get("/api/v1/items?k=2").json()["items"]
    api.get(f"/api/v1/items/{second['id']}/thumbnail")  # which is kept, and not shown any more
    for item in (first, second):
        (folder / item["path"]).unlink()
        (folder / item["path"]).symlink_to(outside / "private.png")
        refused_everywhere(api, item["id"])


def test_a_folder_that_became_a_link_is_not_followed(api: TestClient, folder: Path, outside: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    place = item["path"].rpartition("/")[0]
    shutil.move(folder / place, outside / "moved")
    (folder / place).symlink_to(outside / "moved")
    assert (folder / item["path"]).is_file()
    refused_everywhere(api, item["id"])


def test_a_scan_takes_no_links_that_lead_out(folder: Path, outside: Path) -> None:
    (folder / "one.png").symlink_to(outside / "private.png")
    (folder / "all").symlink_to(outside)
    (folder / "up").symlink_to("..")
    (folder / "loop.png").symlink_to("loop.png")
    with open_collection(folder) as collection:
        assert scan_collection(collection, by="eve").new == 0


def test_a_file_that_becomes_a_link_while_it_is_opened(
    folder: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look at its path and the opening of it; in the second case and back again."""
    with open_collection(folder) as collection:
        item_file, back = find_item_file(collection, 1), False
        content, real_open = item_file.path.read_bytes(), os.open

        def swapped(path: Path, flags: int) -> int:
            path.unlink()
            path.symlink_to(outside / "private.png")
            handle = real_open(path, flags)
            if back:
                path.unlink()
                path.write_bytes(content)
            return handle

        for turn in (False, True):
            back = turn
            monkeypatch.setattr("wsabie.collection.items.item_files.os.open", swapped)
            with pytest.raises(InputError, match="leads out of"):
                open_item_file(item_file)
            monkeypatch.undo()
            item_file.path.unlink()
            item_file.path.write_bytes(content)
        with open_item_file(item_file) as stream:
            item_file.path.unlink()
            assert stream.read() == content


def test_a_pipe_in_place_of_a_file_holds_nobody_up(api: TestClient, folder: Path) -> None:
    item = api.get("/api/v1/items?k=1").json()["items"][0]
    (folder / item["path"]).unlink()
    os.mkfifo(folder / item["path"])
    for view in ("file", "thumbnail", "heat?label=red"):
        assert api.get(f"/api/v1/items/{item['id']}/{view}").status_code == 422


def test_files_are_closed_when_they_were_sent(api: TestClient) -> None:
    def open_files() -> list[str]:
        targets = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return [str(path) for path in targets if path.suffix in (".png", ".webp")]

    for ask in ("file", "thumbnail", "heat?label=red", "file", "annotate?region=0,0,9,9"):
        assert api.get(f"/api/v1/items/1/{ask}").status_code in (200, 422), ask  # colours have no heat map
    part = api.get("/api/v1/items/1/file", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"\x89PNG")
    assert open_files() == []


# ---- headers of answers


def test_every_answer_keeps_pages_to_themselves(guarded: TestClient, folder: Path) -> None:
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


def test_names_of_files_cannot_leave_their_header(folder: Path) -> None:
    out = BytesIO()
    for number, name in enumerate(NAMES):
        out.seek(0)
        Image.new("RGB", (8, 8), (1, 2, number)).save(out, "TIFF")
        (folder / name).write_bytes(out.getvalue())
    with open_collection(folder) as collection:
        assert scan_collection(collection, by="eve").new == len(NAMES)
    with running(folder) as client:
        items = client.get("/api/v1/items?sort=added_at&descending=true").json()["items"][: len(NAMES)]
        assert {item["path"] for item in items} == set(NAMES)
        heads = [sent(client.base_url, line("GET", f"/api/v1/items/{item['id']}/file")) for item in items]
    for head in heads:
        fields = [field.partition(b": ") for field in head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
        headers = {key.lower(): value for key, _, value in fields}
        assert b"x-evil" not in headers
        assert head.startswith(b"HTTP/1.1 200")
        assert headers[b"content-type"] == b"application/octet-stream"
        assert re.fullmatch(rb"attachment; filename(\*=utf-8'')?[!-~]+", headers[b"content-disposition"])
        assert headers[b"content-disposition"].count(b";") == 1
        assert headers[b"content-disposition"].count(b'"') in (0, 2)


def test_nothing_is_said_of_the_name_that_was_asked_for(api: TestClient) -> None:
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
def test_requests_that_are_none_are_refused(service: httpx.URL, request_line: bytes) -> None:
    answers = sent(service, request_line, seconds=1)
    status = answers[9:12]
    assert status in (b"", b"200", b"400", b"403", b"404", b"405", b"422"), answers[:300]
    assert b"wsabie_token" not in answers


def test_web_sockets_and_other_methods(api: TestClient) -> None:
    for headers in ({}, {"host": "evil.example"}, {"origin": "http://evil.example"}):
        with pytest.raises(WebSocketDisconnect), api.websocket_connect("/api/v1/jobs/1/events", headers=headers):
            pass
    for method in ("TRACE", "PUT", "DELETE", "PATCH", "PROPFIND", "EVIL"):
        assert api.request(method, "/api/v1/items").status_code == 405


def test_figures_are_named_by_routes_and_known_methods(api: TestClient) -> None:
    for method in ("GET", "EVIL", 'A"B', "X" * 500, "TRACE"):
        api.request(method, '/api/v1/labels?prefix="} 1%0aforged 1')
        api.request(method, '/nothing"} 1%0aforged{x="')
    page = api.get("/metrics").text
    assert "forged" not in page
    assert set(re.findall(r'method="([^"]*)"', page)) <= {"GET", "any"}


def test_lines_of_the_log_are_the_services_own(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("wsabie.models.wsabie.estimator.Wsabie.neighbours", fails)
    with caplog.at_level(logging.ERROR, "wsabie.serve"):
        answer = client().get("/api/v1/labels/a%0dERROR: forged%1b[31m/neighbours")
    assert (answer.status_code, "broken" in answer.text) == (500, False)
    messages = [record.getMessage() for record in caplog.records if record.name == "wsabie.serve"]
    assert len(messages) == 1
    assert messages[0].isprintable()
    assert "forged" in messages[0]


# ---- tokens


def test_everything_wants_a_token_before_anything_is_read(guarded: TestClient) -> None:
    n_read = 0

    def body() -> Iterator[bytes]:
        nonlocal n_read
        for _ in range(10):
            n_read += 1
            yield b"x" * 1000

    for method, path, _ in operations(guarded):
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "Basic dzp3"},
            {"cookie": "wsabie_token=x"},
        ):
            content = {} if method == "GET" else {"content": b"not even JSON"}
            answer = guarded.request(method, filled(path), headers=headers, **content)  # type: ignore[arg-type]
            assert (answer.status_code == 200) == (path in OPEN_TO_ALL), (method, path)
            if path not in OPEN_TO_ALL:
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
    assert guarded.get("/metrics").status_code == 401


async def _answer(app: Any, scope: dict[str, Any], receive: Callable[[], Any]) -> int:
    status = 0

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


def test_without_a_token_no_body_is_read(folder: Path) -> None:
    import asyncio

    n_received = 0

    async def receive() -> dict[str, object]:
        nonlocal n_received
        n_received += 1
        return {"type": "http.request", "body": b"x" * 1000, "more_body": n_received < 50}

    with open_collection(folder) as collection:
        app = make_app(ServiceContext(ServiceLimits(), TOKENS, CollectionModelHolder(collection), collection))
        for path, kind in (
            ("/api/v1/search/picture", b"multipart/form-data; boundary=x"),
            ("/api/v1/decisions", b"application/json"),
        ):
            for token_header, bodies in ((b"Bearer wrong", False), (b"Bearer w", True)):
                n_received = 0
                headers = [(b"host", b"localhost"), (b"authorization", token_header), (b"content-type", kind)]
                scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
                         "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80), "scheme": "http",
                         "root_path": "", "http_version": "1.1"}  # fmt: skip
                status = asyncio.run(_answer(app, scope, receive))
                assert (n_received > 0, status == 401) == (bodies, not bodies), path


def test_what_a_token_to_read_may_not_do(guarded: TestClient) -> None:
    state_before = state_of(guarded)
    paths = []
    for method, path, _ in operations(guarded):
        if method != "GET" and path not in ASKING:
            paths.append(path)
            assert guarded.request(method, filled(path), headers=READ_HEADERS, json={}).status_code in (403, 422), path
            for body in ({"decisions": [{"item": 1, "label": "red", "state": "rejected"}]}, {"kind": "scan"}, {}):
                assert guarded.request(method, filled(path), headers=READ_HEADERS, json=body).status_code in (
                    403,
                    422,
                ), path
    assert {"/api/v1/decisions", "/api/v1/undo", "/api/v1/jobs", "/api/v1/models/{model}/use"} <= set(paths)
    assert state_of(guarded) == state_before
    assert (
        guarded.post("/api/v1/undo", json={}, headers=READ_HEADERS).json()["detail"] == "the token of eve may only read"
    )


@pytest.mark.parametrize("token", ["", "w ", " w", "W", "w\t", "r,w", "w" * 10_000, "é", "null", compute_digest("w")])
def test_tokens_that_are_none(guarded: TestClient, token: str) -> None:
    for headers in ({"authorization": f"Bearer {token}".encode()}, {"cookie": f"wsabie_token={token}".encode()}):
        status = guarded.post("/api/v1/undo", json={}, headers=headers).status_code  # type: ignore[arg-type]
        assert status == 401 or token.strip() == "w", token


def test_addresses_hold_no_tokens(guarded: TestClient) -> None:
    for name in ("token", "access_token", "wsabie_token", "authorization"):
        assert guarded.get("/api/v1/items", params={name: "w"}).status_code == 401
    assert guarded.get("/api/v1/items", headers={"cookie": "wsabie_token=r"}).status_code == 200


def test_a_token_ends_with_its_last_day(folder: Path) -> None:
    today = datetime.now(UTC).date()
    accept = {"decisions": [{"item": 1, "label": "red", "state": "accepted"}]}
    lasting = [Token(str(days), "write", today + timedelta(days), compute_digest(str(days))) for days in (-1, 0, 1)]
    with open_collection(folder) as collection:
        for api in _client(ServiceContext(ServiceLimits(), lasting, CollectionModelHolder(collection), collection)):
            for days, status in ((-1, 401), (0, 200), (1, 200)):
                for token_headers in ({"authorization": f"Bearer {days}"}, {"cookie": f"wsabie_token={days}"}):
                    answer = api.post("/api/v1/decisions", json=accept, headers=token_headers)
                    assert answer.status_code == status, (days, answer.text)
                    assert ("its last day is over" in answer.text) == (status == 401)


def test_comparing_tokens_takes_as_long_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: (compared.append((a, b)), real(a, b))[1])
    for secret, name in (("r", "eve"), ("w", "adam"), ("x", None)):
        compared.clear()
        caller = find_caller(secret, TOKENS)
        assert (caller.name if caller else None) == name
        assert compared == [(token.digest, compute_digest(secret)) for token in TOKENS]  # hashes, and all of them


def test_the_file_of_tokens_is_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = create_token(file, "eve", "write")
    assert len(token) >= 43  # 256 bits
    assert file.stat().st_mode & 0o777 == 0o600
    assert token not in file.read_text()
    assert compute_digest(token) in file.read_text()
    assert create_token(file, "adam", "read") != token
    assert file.stat().st_mode & 0o777 == 0o600
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        with pytest.raises(InputError, match="chmod go-w"):
            read_tokens(file)
    with pytest.raises(InputError, match="make it: wsabie token"):
        read_tokens(tmp_path / "none")
    for name in ("a\tb", "a\nb\twrite\t-\t" + compute_digest("x"), "", "x" * 101):
        with pytest.raises(InputError):
            create_token(file, name, "write")


def test_a_token_that_is_taken_away_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "_CHECK_INTERVAL", 0.0)
    file = tmp_path / "tokens"
    token = create_token(file, "eve", "write")
    tokens = TokenFile(file)
    assert find_caller(token, tokens) is not None
    other_token = create_token(file, "adam", "read")
    assert find_caller(other_token, tokens) is not None
    file.write_text("".join(line for line in file.read_text().splitlines(True) if not line.startswith("eve")))
    assert find_caller(token, tokens) is None
    assert find_caller(other_token, tokens) is not None
    file.chmod(0o666)
    file.write_text(file.read_text() + "x")
    assert list(tokens) == []  # nobody, rather than anybody
    file.unlink()
    assert list(tokens) == []


def test_tokens_are_not_in_what_the_service_says(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token, wrong = create_token(file, "eve", "write"), "a-token-that-nobody-has"
    with started(folder, "--tokens", file) as (client, process):
        for secret in (token, wrong):
            answers = [client.get("/api/v1/items", headers={"authorization": f"Bearer {secret}"})]
            answers += [client.get("/api/v1/items", headers={"cookie": f"wsabie_token={secret}"})]
            answers += [client.post("/api/v1/decisions", content=b"{", headers={"authorization": f"Bearer {secret}"})]
            answers += [
                client.get("/openapi.json"),
                client.get("/metrics", headers={"authorization": f"Bearer {secret}"}),
            ]
            for answer in answers:
                assert secret not in answer.text + str(answer.headers)
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()
        assert token.encode() not in command
        process.terminate()
        assert process.stderr is not None
        log_text = process.stderr.read()
    assert token not in log_text
    assert wrong not in log_text
    for path in folder.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path


# ---- other sites


def test_other_sites_change_nothing(api: TestClient) -> None:
    state_before, n_requests = state_of(api), 0
    headers: tuple[dict[str, str], ...] = (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://evil.example", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},
        {"host": "localhost.evil.example", "origin": "http://localhost.evil.example"},
    )
    for method, path, _ in operations(api):
        for site_headers in headers:
            if method != "GET" or "host" in site_headers:
                n_requests += 1
                answer = api.request(method, filled(path), headers=site_headers, json={} if method != "GET" else None)
                assert answer.status_code == 403, (method, path, site_headers)
    assert n_requests > 100
    assert state_of(api) == state_before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]
)
def test_what_a_form_can_send_is_no_json(api: TestClient, kind: str | None) -> None:
    state_before = state_of(api)
    body = json.dumps({"decisions": [{"item": 1, "label": "red", "state": "rejected"}]})
    for path in ("decisions", "undo", "jobs", "suggestions/accept"):
        headers = {} if kind is None else {"content-type": kind}
        assert api.post(f"/api/v1/{path}", content=body, headers=headers).status_code == 422
    assert state_of(api) == state_before
    assert emoji(1)  # the pictures of the sample are there


def test_tokens_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: create_token(tmp_path / "tokens", f"name {i}", "read"), range(16)))
    assert {token.name for token in read_tokens(tmp_path / "tokens")} == {f"name {i}" for i in range(16)}
