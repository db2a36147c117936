"""Tokens: everything wants one, and nothing tells one."""

import hmac
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import start_service
from tests.server.security.conftest import (
    ASKING,
    OPEN_TO_ALL,
    READ_HEADERS,
    TOKENS,
    fetch_state,
    fill_path,
    list_operations,
    open_client,
)

from wsabie.collection.folder.collection import open_collection
from wsabie.core.errors import InputError
from wsabie.server import tokens as tokens_module
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token, TokenFile, create_token, find_caller, hash_token, read_tokens


def test_every_route_needs_a_token_before_reading_the_body(guarded: TestClient) -> None:
    n_read = 0

    def body() -> Iterator[bytes]:
        nonlocal n_read
        for _ in range(10):
            n_read += 1
            yield b"x" * 1000

    for method, path, _ in list_operations(guarded):
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "Basic dzp3"},
            {"cookie": "wsabie_token=x"},
        ):
            content = {} if method == "GET" else {"content": b"not even JSON"}
            answer = guarded.request(method, fill_path(path), headers=headers, **content)  # type: ignore[arg-type]
            assert (answer.status_code == 200) == (path in OPEN_TO_ALL), (method, path)
            if path not in OPEN_TO_ALL:
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
    assert guarded.get("/metrics").status_code == 401


async def _call_app(app: Any, scope: dict[str, Any], receive: Callable[[], Any]) -> int:
    status = 0

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


def test_body_is_not_read_without_a_token(folder: Path) -> None:
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
                status = asyncio.run(_call_app(app, scope, receive))
                assert (n_received > 0, status == 401) == (bodies, not bodies), path


def test_read_token_cannot_write(guarded: TestClient) -> None:
    state_before = fetch_state(guarded)
    paths = []
    for method, path, _ in list_operations(guarded):
        if method != "GET" and path not in ASKING:
            paths.append(path)
            assert guarded.request(method, fill_path(path), headers=READ_HEADERS, json={}).status_code in (403, 422), (
                path
            )
            for body in ({"decisions": [{"item": 1, "label": "red", "state": "rejected"}]}, {"kind": "scan"}, {}):
                assert guarded.request(method, fill_path(path), headers=READ_HEADERS, json=body).status_code in (
                    403,
                    422,
                ), path
    assert {"/api/v1/decisions", "/api/v1/undo", "/api/v1/jobs", "/api/v1/models/{model}/use"} <= set(paths)
    assert fetch_state(guarded) == state_before
    assert (
        guarded.post("/api/v1/undo", json={}, headers=READ_HEADERS).json()["detail"] == "the token of eve may only read"
    )


@pytest.mark.parametrize("token", ["", "w ", " w", "W", "w\t", "r,w", "w" * 10_000, "é", "null", hash_token("w")])
def test_malformed_tokens_are_refused(guarded: TestClient, token: str) -> None:
    for headers in ({"authorization": f"Bearer {token}".encode()}, {"cookie": f"wsabie_token={token}".encode()}):
        status = guarded.post("/api/v1/undo", json={}, headers=headers).status_code  # type: ignore[arg-type]
        assert status == 401 or token.strip() == "w", token


def test_tokens_in_query_parameters_are_ignored(guarded: TestClient) -> None:
    for name in ("token", "access_token", "wsabie_token", "authorization"):
        assert guarded.get("/api/v1/items", params={name: "w"}).status_code == 401
    assert guarded.get("/api/v1/items", headers={"cookie": "wsabie_token=r"}).status_code == 200


def test_token_expires_after_its_last_day(folder: Path) -> None:
    today = datetime.now(UTC).date()
    accept = {"decisions": [{"item": 1, "label": "red", "state": "accepted"}]}
    lasting = [Token(str(days), "write", today + timedelta(days), hash_token(str(days))) for days in (-1, 0, 1)]
    with open_collection(folder) as collection:
        for api in open_client(ServiceContext(ServiceLimits(), lasting, CollectionModelHolder(collection), collection)):
            for days, status in ((-1, 401), (0, 200), (1, 200)):
                for token_headers in ({"authorization": f"Bearer {days}"}, {"cookie": f"wsabie_token={days}"}):
                    answer = api.post("/api/v1/decisions", json=accept, headers=token_headers)
                    assert answer.status_code == status, (days, answer.text)
                    assert ("has expired" in answer.text) == (status == 401)


def test_token_comparison_takes_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: (compared.append((a, b)), real(a, b))[1])
    for secret, name in (("r", "eve"), ("w", "adam"), ("x", None)):
        compared.clear()
        caller = find_caller(secret, TOKENS)
        assert (caller.name if caller else None) == name
        assert compared == [(token.digest, hash_token(secret)) for token in TOKENS]  # hashes, and all of them


def test_token_file_is_private(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = create_token(file, "eve", "write")
    assert len(token) >= 43  # 256 bits
    assert file.stat().st_mode & 0o777 == 0o600
    assert token not in file.read_text()
    assert hash_token(token) in file.read_text()
    assert create_token(file, "adam", "read") != token
    assert file.stat().st_mode & 0o777 == 0o600
    for mode in (0o620, 0o602, 0o666):
        file.chmod(mode)
        with pytest.raises(InputError, match="chmod go-w"):
            read_tokens(file)
    with pytest.raises(InputError, match="make it: wsabie token"):
        read_tokens(tmp_path / "none")
    for name in ("a\tb", "a\nb\twrite\t-\t" + hash_token("x"), "", "x" * 101):
        with pytest.raises(InputError):
            create_token(file, name, "write")


def test_removed_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_tokens_appear_in_no_output_of_the_service(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token, wrong = create_token(file, "eve", "write"), "a-token-that-nobody-has"
    with start_service(folder, "--tokens", file) as (client, process):
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


def test_concurrently_created_tokens_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: create_token(tmp_path / "tokens", f"name {i}", "read"), range(16)))
    assert {token.name for token in read_tokens(tmp_path / "tokens")} == {f"name {i}" for i in range(16)}
