"""Requests that another service would take: from other sites, with words that nobody knows, for parts of files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h11
import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from tests.server.security.conftest import fill_path, list_operations

from databases import copied
from wsabie.collection.folder.collection import open_collection
from wsabie.server.access_control import LOOPBACK
from wsabie.server.app import make_api, make_app
from wsabie.server.connections import StrictConnection
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext

PICTURE = "/api/v1/items/1/file"
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def api(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    place = tmp_path_factory.mktemp("strict") / "photos"
    with copied(trained_collection, place) as folder, open_collection(folder) as collection:
        app = make_app(ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection), LOOPBACK)
        with TestClient(app, raise_server_exceptions=False, base_url="http://localhost") as client:
            yield client


def assert_problem(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status


# ---- other sites


def make_fetch_headers(site: str, mode: str, place: str) -> dict[str, str]:
    return {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": place}


def test_every_copy_of_a_site_header_counts(api: TestClient) -> None:
    for name, own_value, foreign_value in (
        ("sec-fetch-site", "none", "cross-site"),
        ("origin", "http://localhost", "http://other.example"),
    ):
        assert api.get("/api/v1/items", headers=[(name, own_value), (name, own_value)]).status_code == 200
        assert api.get("/api/v1/items", headers=[(name, own_value), (name, foreign_value)]).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "new-word"])
def test_other_site_may_only_open_pages(api: TestClient, site: str) -> None:
    for mode, place in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("navigate", "document")):
        opens = (mode, place) == ("navigate", "document")
        headers = make_fetch_headers(site, mode, place)
        for path in ("/", "/review?label=red", "/theme.js"):
            assert (api.get(path, headers=headers).status_code == 200) == opens, (mode, path)
        for path in (PICTURE, "/api/v1/jobs/1/events", "/api/v1/health", "/metrics", "/openapi.json"):
            for method in ("GET", "HEAD", "OPTIONS", "POST"):
                answer = api.request(method, path, headers=headers)
                assert answer.status_code == 403, (method, path)
    assert api.post("/", headers=make_fetch_headers(site, "navigate", "document")).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "http://[", ""])
def test_other_origin_is_refused(api: TestClient, origin: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        assert api.request(method, PICTURE, headers={"origin": origin}).status_code == 403
    assert_problem(api.get(PICTURE, headers={"origin": origin}), 403)


def test_own_pages_and_programs_are_answered(api: TestClient) -> None:
    own_headers = [make_fetch_headers(site, "cors", "empty") for site in ("same-origin", "none")]
    for headers in ({}, {"origin": "http://localhost"}, *own_headers):
        assert api.get(PICTURE, headers=headers).status_code == 200, headers


# ---- parameters


def test_unknown_parameters_are_refused(api: TestClient) -> None:
    n_requests = 0
    for method, path, _ in list_operations(api):
        answer = api.request(method, fill_path(path), params={"nonsense": "1"})
        if method == "GET":
            assert_problem(answer, 422)
            assert "query.nonsense: unknown parameter" in answer.json()["detail"], path
        assert answer.status_code >= 400, path
        n_requests += 1
    assert n_requests > 40
    assert "did you mean label?" in api.get("/api/v1/items?lable=red").json()["detail"]
    assert "known here: none" in api.get("/api/v1/health?x=1").json()["detail"]
    assert_problem(api.get("/metrics?x"), 422)


def test_repeated_parameter_is_refused(api: TestClient) -> None:
    assert "more than once" in api.get("/api/v1/items?k=1&k=2").json()["detail"]
    assert api.get("/api/v1/items?k=1").status_code == 200


# ---- bodies


def assert_refused(answer: httpx.Response, *words: str) -> None:
    assert_problem(answer, 422)
    assert all(word in answer.json()["detail"] for word in words), answer.json()


def test_unknown_fields_are_refused(api: TestClient) -> None:
    kinds = set()
    for method, path, operation in list_operations(api):
        kind = next(iter(operation.get("requestBody", {"content": {"": None}})["content"]))
        kinds.add(kind)
        if kind == "application/json":
            twice = b'{"nonsense": 1, "nonsense": 2}'
            assert_refused(api.request(method, fill_path(path), content=twice, headers=JSON), "body.nonsense: it is")
        elif "form" in kind:
            fields = {"nonsense": b"1", "file": b"1", "text": b"1"}
            form: dict[str, Any] = {"files": fields} if "data" in kind else {"data": fields}
            assert_refused(api.request(method, fill_path(path), **form), "body.", "unknown field")
        elif method != "GET":
            assert_refused(api.request(method, fill_path(path), json={"nonsense": 1}), "this request has none")
    assert kinds == {"", "application/json", "multipart/form-data", "application/x-www-form-urlencoded"}


def test_invalid_fields_are_named(api: TestClient) -> None:
    text, picture = "/api/v1/annotate/text", "/api/v1/search/picture"
    assert_refused(api.post("/api/v1/undo", json={"entri": 1}), "body.entri: unknown field")
    nested = b'{"decisions": [{"item": 1, "label": "a", "state": null, "label": "b"}]}'
    assert_refused(api.post("/api/v1/decisions", content=nested, headers=JSON), "body.label: it is there more than")
    misspelt = {"decisions": [{"item": 1, "label": "a", "state": None, "regoin": ""}]}
    assert_refused(api.post("/api/v1/decisions", json=misspelt), "body.decisions.0.regoin: unknown field")
    assert_refused(api.post(text, data={"text": "a", "txet": "b"}), "body.txet:", "did you mean text?")
    assert_refused(api.post(text, data={"text": ["a", "b"]}), "body.text: it is there more than once")
    two = [("file", b"1"), ("file", b"2")]
    assert_refused(api.post(picture, files=two), "body.file: it is there more than once")
    assert_refused(api.post("/api/v1/models/1/use", json={"id": 2}), "this request has none")
    assert api.post("/api/v1/jobs/1/stop", json={}).status_code == 404


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (("/undo", {}), "body: send a JSON document, with the header Content-Type: application/json"),
        (("/decisions", {"content": b'{"decisions": []}'}), "body: send a JSON document"),
        (("/decisions", {"content": b'{"decisions": ', "headers": JSON}), "body: this is not JSON (at character 14)"),
        (
            ("/search/picture", {"content": b"\xff\xd8"}),
            "body.file: send a form with this field, as in: curl -F file=@",
        ),
        (("/search/picture", {"data": {"file": "dog"}}), "body.file: send a form with this field"),
        (("/search/picture", {"content": bytes(range(128, 256)), "headers": FORM}), "body: a field has a name of "),
        (("/annotate/text", {"content": b"dog"}), "body.text: send a form with this field, as in: curl -F text=WORDS"),
    ],
)
def test_wrong_content_types_are_refused(api: TestClient, sent: tuple[str, Any], detail: str) -> None:
    path, options = sent
    answer = api.post(f"/api/v1{path}", **options)
    assert_problem(answer, 422)
    assert answer.json()["detail"].startswith(detail)


def test_unknown_addresses_and_methods_are_reported(api: TestClient) -> None:
    assert_problem(api.get("/api/v1/nothing"), 404)
    assert "/docs lists all" in api.get("/api/v1/nothing").json()["detail"]
    answer = api.delete("/api/v1/items")
    assert_problem(answer, 405)
    assert answer.headers["allow"] == "GET"
    assert "the header Allow" in answer.json()["detail"]
    assert_problem(api.get("/openapi.json?x=1"), 422)


def test_page_addresses_take_any_parameters(api: TestClient) -> None:
    assert api.get("/review?label=red&own=1&own=2").status_code == 200
    version = api.get("/api/v1/items/1").json()["hash"][:12]
    assert api.get(f"/api/v1/items/1/thumbnail?size=256&v={version}").status_code == 200


# ---- heads and bodies

POST, NEXT = b"POST / HTTP/1.1\r\nHost: a\r\n", b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
BLANK = b"\n\n{\r\n\r\n\n\r\n\n"


def parse_requests(sent: bytes, step: int) -> list[bytes]:
    """Targets of the requests that are in what is sent in pieces of this size, and the bodies that are not empty."""
    connection, parts = StrictConnection(), []
    for start in range(0, len(sent), step):
        connection.receive_data(sent[start : start + step])
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if event is h11.PAUSED:
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            elif isinstance(event, h11.Request):
                parts += [event.target, b""]
            elif isinstance(event, h11.Data):
                parts[-1] += event.data
    return [part for part in parts if part]


@pytest.mark.parametrize("step", [1, 7, 20_000])
def test_line_endings_in_bodies_are_accepted(step: int) -> None:
    body = BLANK * step
    n = len(body)
    for sent in (
        POST + b"Content-Length: %d\r\n\r\n%s" % (n, body),
        CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (n, body),
        CHUNKED + b"1;a=b\r\n\n\r\n%x\r\n%s\r\n0\r\nX: y\r\n\r\n" % (n - 1, body[1:]),
    ):
        assert parse_requests(sent + NEXT + NEXT[:-9], step) == [b"/", body, b"/next"]


@pytest.mark.parametrize("step", [1, 7, 20_000])
@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\r\nHost: a\n\r\n", b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n", b"\n" + NEXT, b"\r\n" + NEXT,
        POST + b"X: a\r\n b\r\n\r\n", POST + b"X: y\r\n" * 100 + b"\r\n",
        CHUNKED + b"0\r\n\n", CHUNKED + b"0\r\nX: y\n\r\n", CHUNKED + b"0\nX: y\r\n\r\n",
        CHUNKED + b"1\n\n\r\n0\r\n\r\n", CHUNKED + b"0\r\nX: y\r\n z\r\n\r\n", CHUNKED + b"1\r\n\n\n0\r\n\r\n",
        POST + b"Content-Length: 2\r\n\r\n\n\nGET / HTTP/1.1\nHost: a\n\n",
    ],
)  # fmt: skip
def test_malformed_line_endings_are_refused(sent: bytes, step: int) -> None:
    with pytest.raises(h11.RemoteProtocolError):
        parse_requests(sent, step)


# ---- parts of files

SIZE = "bytes */"


@pytest.mark.parametrize(
    ("byte_range", "status"),
    [
        ("bytes=0-3", 206), ("bytes=-3", 206), ("bytes=5-", 206), ("bytes=0-0,2-3", 206), ("BYTES=0-3", 206),
        ("bytes=0-999999999", 206), ("bytes=-999999999", 206), ("items=0-3", 200), ("nonsense", 200),
        ("bytes=", 400), ("bytes=x", 400), ("bytes=-", 400), ("bytes=3-1", 400), ("bytes=0-3,", 400),
        ("bytes=+1-3", 400), ("bytes=" + "9" * 5000 + "-", 400), ("bytes=0-3,x", 400),
        ("bytes=999999999-", 416), ("bytes=-0", 416), ("bytes=0-3,2-5", 416), ("bytes=0-3,0-3", 416),
        ("bytes=" + ",".join(f"{2 * i}-{2 * i}" for i in range(17)), 416), ("bytes=" + "0-," * 2000 + "0-", 416),
    ],
)  # fmt: skip
def test_byte_ranges_are_served(api: TestClient, byte_range: str, status: int) -> None:
    for path in (PICTURE, "/api/v1/items/1/thumbnail", "/theme.js"):
        answer = api.get(path, headers={"range": byte_range})
        size = len(api.get(path).content)
        if status >= 400:
            assert_problem(answer, status)
        assert answer.status_code == status, path
        assert (answer.headers.get("content-range", "").startswith(SIZE)) == (status == 416)
        assert len(answer.content) <= size + 1000


def test_two_range_headers_are_refused(api: TestClient) -> None:
    assert_problem(api.get(PICTURE, headers=[("range", "bytes=0-3"), ("range", "bytes=5-6")]), 400)


def test_if_range_of_a_changed_file_sends_the_whole_file(api: TestClient) -> None:
    for path in (PICTURE, "/api/v1/items/1/thumbnail", "/theme.js"):
        complete = api.get(path)
        for value in ("bytes=0-3", "bytes=999999999-", "bytes=3-1"):
            for validator in ('"old"', f"W/{complete.headers['etag']}", "Mon, 01 Jan 2001 00:00:00 GMT"):
                answer = api.get(path, headers={"range": value, "if-range": validator})
                assert (answer.status_code, answer.content) == (200, complete.content), (path, value)
        for validator in (complete.headers["etag"], complete.headers["last-modified"]):
            assert api.get(path, headers={"range": "bytes=0-3", "if-range": validator}).content == complete.content[:4]
            assert_problem(api.get(path, headers={"range": "bytes=999999999-", "if-range": validator}), 416)


@pytest.mark.parametrize("has_collection", [True, False])
def test_the_document_describes_records_in_sentences(has_collection: bool) -> None:
    schemas = make_api(has_collection=has_collection).openapi()["components"]["schemas"]
    assert not [name for name, schema in schemas.items() if "---" in schema.get("description", "")]
