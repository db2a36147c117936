"""Requests, tokens and services that the tests of security share."""

import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from tests.server.conftest import run_service

from wsabie.collection.folder.collection import open_collection
from wsabie.server.access_control import LOOPBACK
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Token, hash_token

OUTSIDE_TEXT = "what lies beside the collection"
READ_HEADERS, WRITE_HEADERS = {"authorization": "Bearer r"}, {"authorization": "Bearer w"}
TOKENS = [Token("eve", "read", None, hash_token("r")), Token("adam", "write", None, hash_token("w"))]
OPEN_TO_ALL = {"/api/v1/health"}
ASKING = {"/api/v1/annotate/rows", "/api/v1/annotate/picture", "/api/v1/annotate/text", "/api/v1/explain/picture"}
ASKING |= {"/api/v1/search/picture"}

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
        yield from open_client(ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection))


@pytest.fixture
def guarded(folder: Path) -> Iterator[TestClient]:
    """With a token that may read and one that may write."""
    with open_collection(folder) as collection:
        yield from open_client(ServiceContext(ServiceLimits(), TOKENS, CollectionModelHolder(collection), collection))


def open_client(context: ServiceContext) -> Iterator[TestClient]:
    app = make_app(context, LOOPBACK)
    with TestClient(app, raise_server_exceptions=False, base_url="http://localhost", follow_redirects=False) as client:
        yield client


def list_operations(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of all that can be asked."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def fill_path(path: str, **values: str) -> str:
    """A path with its places filled: what is given, or else 1."""
    return re.sub(r"{(\w+)(:path)?}", lambda place: values.get(place[1], "1"), path)


def is_text(schema: dict[str, Any]) -> bool:
    kinds = [schema, *schema.get("anyOf", ())]
    return any(kind.get("type") == "string" and "enum" not in kind and "const" not in kind for kind in kinds)


def fetch_state(client: TestClient) -> tuple[Any, ...]:
    """Responses that nobody may change without leave."""
    parts = ("collection", "vocabulary", "journal", "jobs", "models")
    return tuple(client.get(f"/api/v1/{part}", headers=READ_HEADERS).json() for part in parts)


# ---- raw requests, since clients mend what they send


def send_bytes(address: str | httpx.URL, content: bytes, seconds: float = 10) -> bytes:
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


def make_request_line(method: str, target: str, *headers: str) -> bytes:
    return "\r\n".join(
        [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    ).encode()


@pytest.fixture(scope="module")
def service(trained_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.URL]:
    """The address of a running service, with a secret beside its collection."""
    place = tmp_path_factory.mktemp("raw")
    shutil.copytree(trained_collection, place / "photos")
    (place / "secret.txt").write_text(OUTSIDE_TEXT)
    with run_service(place / "photos") as client:
        yield client.base_url
