"""Static files of the web application, as `make web` built them.

Names of files under assets/ carry a hash of their content, so that browsers may cache them for ever. Browsers ask for
other files again each time, and get 304 if they are unchanged.
"""

from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import NotModifiedResponse

from wsabie.server.problems import Problem
from wsabie.server.request_headers import check_range, has_current_copy

STATIC_FOLDER = Path(__file__).parent / "static"
PAGES = ("/", "/review", "/labels", "/search", "/map", "/training", "/status", "/docs")
"""Addresses of pages; all serve the same document, which routes by its address."""
_ROOT_FILES = ("favicon.svg", "theme.js")
_IMMUTABLE = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
NOT_BUILT = "The pages have not been built; run `make web` in the source tree, or use the API under /api/v1.\n"


def make_page_routes(folder: Path = STATIC_FOLDER) -> APIRouter:
    """Make the routes of the pages.

    Parameters
    ----------
    folder : Path
        Output of the build. If it is missing, every page says so in one sentence.

    Examples
    --------
    >>> [route.path for route in make_page_routes().routes][:2]
    ['/', '/review']
    """
    router = APIRouter(include_in_schema=False)
    names = {file.name for file in (folder / "assets").glob("*") if file.is_file()}

    def page(request: Request) -> Response:
        index = folder / "index.html"
        return _file(index, request, _REVALIDATE) if index.is_file() else PlainTextResponse(NOT_BUILT, 404)

    def asset(name: str, request: Request) -> Response:
        if name not in names:  # which also keeps every other path out
            raise Problem(404, f"there is no file {name} among the pages")
        return _file(folder / "assets" / name, request, _IMMUTABLE)

    def root_file(request: Request) -> Response:
        file = folder / request.url.path.lstrip("/")
        if not file.is_file():
            raise Problem(404, "the pages have not been built")
        return _file(file, request, _REVALIDATE)

    for path in PAGES:
        router.add_api_route(path, page, methods=["GET", "HEAD"])
    for name in _ROOT_FILES:
        router.add_api_route(f"/{name}", root_file, methods=["GET", "HEAD"])
    router.add_api_route("/assets/{name}", asset, methods=["GET", "HEAD"])
    return router


def _file(path: Path, request: Request, cache_control: str) -> Response:
    headers = {"cache-control": cache_control}
    file_status = path.stat()
    response = FileResponse(path, headers=headers, media_type=_TYPES.get(path.suffix), stat_result=file_status)
    if has_current_copy(request, response.headers["etag"]):
        return NotModifiedResponse(response.headers)
    check_range(request, response)
    return response
