"""The pages as files: which are kept by browsers, which are not, and what is not among them."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.server.conftest import Client

from wsabie.server import problems
from wsabie.server.static_files import NOT_BUILT, PAGES, make_page_routes


@pytest.fixture
def built(tmp_path: Path) -> TestClient:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<p>page</p>")
    (tmp_path / "theme.js").write_text("1")
    (tmp_path / "assets" / "index-abc123.js").write_text("2")
    (tmp_path.parent / "secret.js").write_text("3")
    app = FastAPI(docs_url=None, redoc_url=None)
    problems.install_error_handlers(app)
    app.include_router(make_page_routes(tmp_path))
    return TestClient(app)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_the_same_revalidated_document(built: TestClient, path: str) -> None:
    first = built.get(path)
    assert (first.status_code, first.text) == (200, "<p>page</p>")
    assert first.headers["cache-control"] == "no-cache"
    again = built.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_etags_are_compared_as_http_defines(built: TestClient) -> None:
    tag = built.get("/theme.js").headers["etag"]
    inner = tag.strip('"')
    matching_tags = [tag, f"W/{tag}", f'"other", {tag}', f'"a,b",W/{tag} , "c"', " * ", "*"]
    other_tags = [
        "",
        '"other"',
        inner,
        f'"{inner}x"',
        f'"x{inner}"',
        f'"{inner},other"',
        f'"*", W/"{inner[1:]}"',
        '"*"',
    ]
    for header in matching_tags:
        assert built.get("/theme.js", headers={"if-none-match": header}).status_code == 304, header
    for header in other_tags:
        assert built.get("/theme.js", headers={"if-none-match": header}).status_code == 200, header
    lines = [("if-none-match", '"other"'), ("if-none-match", tag)]
    assert built.get("/theme.js", headers=lines).status_code == 304


def test_hashed_assets_are_immutable(built: TestClient) -> None:
    response = built.get("/assets/index-abc123.js")
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"].startswith("text/javascript")
    assert built.head("/assets/index-abc123.js").headers["content-length"] == "1"
    assert built.get("/theme.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/assets/..%2f..%2fsecret.js", "/assets/%2e%2e/secret.js", "/assets/other.js", "/secret.js", "/api/v1/no"]
)
def test_other_files_are_not_found(built: TestClient, path: str) -> None:
    answer = built.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == problems.MEDIA_TYPE


def test_browser_gets_a_page_for_unknown_addresses(client: Client) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = client().get("/galery", headers=browser)
    assert (answer.status_code, answer.text) == (404, problems.NO_PAGE)
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for path, headers in [("/api/v1/galery", browser), ("/galery", {"accept": "*/*"}), ("/assets/no.js", browser)]:
        refused = client().get(path, headers=headers)
        assert (refused.status_code, refused.headers["content-type"]) == (404, problems.MEDIA_TYPE), path
    assert client().post("/galery", headers=browser).headers["content-type"] == problems.MEDIA_TYPE


def test_missing_build_is_reported_on_a_page(tmp_path: Path) -> None:
    app = FastAPI(docs_url=None, redoc_url=None)
    problems.install_error_handlers(app)
    app.include_router(make_page_routes(tmp_path))
    api = TestClient(app)
    assert (api.get("/review").status_code, api.get("/review").text) == (404, NOT_BUILT)
    assert api.get("/favicon.svg").status_code == 404


def test_content_security_policy_allows_own_scripts_only(client: Client) -> None:
    answer = client().get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "'unsafe-inline'" not in answer.headers["content-security-policy"].split("style-src")[0]
    assert "/review" not in client().get("/openapi.json").json()["paths"]
