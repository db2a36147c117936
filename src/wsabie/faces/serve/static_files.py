"""The pages: files that `make web` built, handed out as they are.

Names of files under assets/ carry a hash of their content, so that browsers may keep them for ever; the rest is asked
for again each time, and answered with 304 where it is the same.
"""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import NotModifiedResponse

from wsabie.faces.serve.kept_copies import check_range, keeps
from wsabie.faces.serve.problems import Problem

FOLDER = Path(__file__).parent / "static"
PAGES = ("/", "/review", "/labels", "/search", "/map", "/training", "/status", "/docs")
"""Addresses of pages: all are the same document, which looks at its address."""
_OTHERS = ("favicon.svg", "theme.js")
_KEPT = "public, max-age=31536000, immutable"
_ASKED_AGAIN = "no-cache"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
NOT_BUILT = "The pages have not been built; run `make web` in the source tree, or use the API under /api/v1.\n"


def pages(folder: Path = FOLDER) -> APIRouter:
    """Routes of the pages.

    Parameters
    ----------
    folder : Path
        What the build wrote. Where it is missing, every page says so in one sentence.

    Examples
    --------
    >>> [route.path for route in pages().routes][:2]
    ['/', '/review']
    """
    router = APIRouter(include_in_schema=False)
    names = {file.name for file in (folder / "assets").glob("*") if file.is_file()}

    def page(request: Request) -> Response:
        index = folder / "index.html"
        if not index.is_file():
            return PlainTextResponse(NOT_BUILT, 404)
        return _file(index, request, _ASKED_AGAIN)

    def asset(name: str, request: Request) -> Response:
        if name not in names:  # which also keeps every other path out
            raise Problem(404, f"there is no file {name} among the pages")
        return _file(folder / "assets" / name, request, _KEPT)

    def other(request: Request) -> Response:
        file = folder / request.url.path.lstrip("/")
        if not file.is_file():
            raise Problem(404, "the pages have not been built")
        return _file(file, request, _ASKED_AGAIN)

    for path in PAGES:
        router.add_api_route(path, page, methods=["GET", "HEAD"])
    for name in _OTHERS:
        router.add_api_route(f"/{name}", other, methods=["GET", "HEAD"])
    router.add_api_route("/assets/{name}", asset, methods=["GET", "HEAD"])
    return router


def _file(path: Path, request: Request, kept: str) -> Response:
    headers = {"cache-control": kept}
    there = path.stat()
    response: Any = FileResponse(path, headers=headers, media_type=_TYPES.get(path.suffix), stat_result=there)
    if keeps(request, response.headers["etag"]):
        return NotModifiedResponse(response.headers)
    check_range(request, response)
    return response  # type: ignore[no-any-return]
