"""Hostile bodies of requests: too long, too slow, compressed, or of many small values."""

import gzip
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from tests.server.hostile_content.conftest import MEGABYTE, MOST_WORK, PATIENCE, Watched, make_small_png
from tests.server.test_model_service import make_png_chunk


def _connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 80), 20)


def _make_chunk(size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"x" * size)


@pytest.mark.parametrize("path", ["/api/v1/search/picture", "/api/v1/decisions", "/api/v1/annotate/text"])
def test_body_without_a_length_is_refused_at_the_limit(watched: Watched, path: str) -> None:
    """100 megabytes in chunks, of which 4 are allowed."""
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    head = head.replace("Host: a", "Host: localhost")
    if "picture" in path or "text" in path:
        head = head.replace("application/json", "multipart/form-data; boundary=b")
    memory_before, answer = watched.begin(), b""
    with _connect(watched.client) as to:
        to.sendall(head.encode())
        if "json" not in head:
            start = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
            to.sendall(b"%x\r\n%s\r\n" % (len(start), start))
        to.setblocking(False)
        piece, n_sent = _make_chunk(MEGABYTE), 0
        for _ in range(100):
            to.settimeout(PATIENCE)
            to.sendall(piece)
            n_sent += 1
            to.settimeout(0.001)
            try:
                answer += to.recv(65536)
                break
            except OSError:
                pass
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:100]
    assert n_sent < 60  # it is told while it is sent
    assert watched.more_since(memory_before) < 40 * MEGABYTE


def test_body_with_too_large_a_length_is_refused_unread(watched: Watched) -> None:
    with _connect(watched.client) as to:
        to.sendall(b"POST /api/v1/search/picture HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert to.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_connection_of_a_refused_body_is_closed(impatient_service: httpx.Client) -> None:
    until, closed = time.monotonic() + PATIENCE, False
    with _connect(impatient_service) as to:
        to.sendall(b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        while not closed and time.monotonic() < until:
            try:
                to.sendall(b"x")
                time.sleep(0.05)
            except OSError:
                closed = True
    assert closed


UNDO = b"POST /api/v1/undo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
FORM = b"POST /api/v1/search/picture HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


SLOW_STARTS = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
    UNDO + b"Content-Length: 999\r\n\r\n{",
    UNDO + b"Transfer-Encoding: chunked\r\n\r\n3e7\r\n",
    FORM + b"Content-Length: 999\r\n\r\n" + PART,
)


def _send_slowly(client: httpx.Client, first_bytes: bytes) -> tuple[bool, bytes]:
    """Send a byte now and then, and never an end; return if the service closed the connection, and its answer."""
    until, answer, closed = time.monotonic() + PATIENCE, b"", False
    with _connect(client) as to:
        to.sendall(first_bytes)
        to.settimeout(0.2)
        while not closed and time.monotonic() < until:
            try:
                piece = to.recv(65536)
                answer += piece
                closed = not piece
            except TimeoutError:
                try:
                    to.sendall(b" " if first_bytes else b"")
                except OSError:
                    closed = True
            except OSError:
                closed = True
    return closed, answer


def test_slow_senders_lose_their_connection(impatient_service: httpx.Client) -> None:
    """The time for a request is 3 seconds here."""
    with ThreadPoolExecutor(len(SLOW_STARTS)) as threads:
        outcomes = list(threads.map(lambda first_bytes: _send_slowly(impatient_service, first_bytes), SLOW_STARTS))
    for first_bytes, (closed, answer) in zip(SLOW_STARTS, outcomes, strict=True):
        assert closed, first_bytes
        assert not answer or answer.startswith(b"HTTP/1.1 408 "), first_bytes
    assert impatient_service.get("/api/v1/health").status_code == 200


def test_compressed_bodies_are_refused(watched: Watched) -> None:
    content = gzip.compress(bytes(200 * MEGABYTE))
    memory_before = watched.begin()
    for encoding in ("gzip", "deflate", "br", "gzip, gzip"):
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        refused = watched.client.post("/api/v1/decisions", content=content, headers=headers)
        assert refused.status_code == 415, encoding
        assert refused.headers["content-type"] == "application/problem+json"
    assert watched.more_since(memory_before) < 20 * MEGABYTE


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 90_000,
        b'{"a":' * 90_000,
        b"[" * 90_000 + b"]" * 90_000,
        b'{"entry":' + b"9" * 1_000_000 + b"}",
        b'{"entry":' + b"9" * 4000 + b"}",
        b'{"entry":1e' + b"9" * 10_000 + b"}",
        b'{"entry":-' + b"0" * 100_000 + b"}",
        b'{"entry":1,"entry":"' + b"\\u0000" * 1000 + b'"}',
        b'{"' + b"k" * 1_000_000 + b'":1}',
        b'{"entry":"\\ud800"}',
        b"\xff\xfe{\0}\0",
        b'{"entry":"' + b"\xff" * 1000 + b'"}',
        b"NaN",
        b"",
    ],
)
def test_hostile_json_is_refused(watched: Watched, content: bytes) -> None:
    memory_before = watched.begin()
    refused = watched.client.post("/api/v1/undo", content=content, headers={"content-type": "application/json"})
    assert refused.status_code in (400, 422), refused.text[:200]
    assert len(refused.content) < 10_000  # it is not sent back
    assert watched.more_since(memory_before) < 100 * MEGABYTE
    assert watched.work_since() < MOST_WORK


@pytest.mark.parametrize(
    ("piece", "status"),
    [
        (b"{},", 413),
        (b"[],", 413),
        (b'{"dense":[]},', 413),
        (b"[[[[[[[[[[", 413),
        (b"0,", 422),
        (b'"ab",', 422),
        (b'"{",', 413),
    ],
)
def test_json_of_many_small_values_is_refused(watched: Watched, piece: bytes, status: int) -> None:
    content = b'{"rows":[' + piece * (3 * MEGABYTE // len(piece)) + b"{}]}"
    memory_before = watched.begin()
    headers = {"content-type": "application/json"}
    refused = watched.client.post("/api/v1/annotate/rows", content=content, headers=headers)
    assert refused.status_code == status
    assert watched.more_since(memory_before) < (20 if status == 413 else 100) * MEGABYTE


def test_value_limit_excludes_uploaded_pictures(api: TestClient) -> None:
    many = b'{"rows":[{"dense":[' + b"0," * 5_000_001 + b"0]}]}"
    refused = api.post("/api/v1/annotate/rows", content=many, headers={"content-type": "application/json"})
    assert refused.status_code == 413
    assert "more than 5,000,000 values" in refused.json()["detail"]
    picture = make_small_png(make_png_chunk(b"teXt", b"{[," * 200_000))
    assert api.post("/api/v1/search/picture", files={"file": picture}).status_code == 200


def test_forms_of_many_parts_are_refused(watched: Watched) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    headers = {"content-type": "multipart/form-data; boundary=b"}
    refused = watched.client.post("/api/v1/search/picture", content=part * 30_000 + b"--b--\r\n", headers=headers)
    assert refused.status_code == 400
    long = b"--b\r\nContent-Disposition: form-data; name=" + b"a" * 2 * MEGABYTE + b"\r\n\r\nx\r\n--b--\r\n"
    assert watched.client.post("/api/v1/search/picture", content=long, headers=headers).status_code in (400, 422)
