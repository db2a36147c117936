"""Errors in one form: RFC 9457 problem details, `application/problem+json`."""

import errno
import json
import logging
import math
import re
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import Send

from wsabie.collection.folder.collection import Collection, can_result_from_damage, check_database
from wsabie.core import errors
from wsabie.core.errors import WsabieError
from wsabie.core.json_conversion import JsonObject
from wsabie.core.message_references import format_references
from wsabie.storage.atomic_files import DiskFullError, WriteError

MEDIA_TYPE = "application/problem+json"
TITLES = {status.value: status.phrase for status in HTTPStatus} | {
    413: "Content Too Large",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}
"""Phrases of RFC 9110; those of `http` depend on the version of Python."""
NO_PAGE = Path(__file__).with_name("no_page.html").read_text(encoding="utf-8")
"""Page that a browser gets at an unknown address."""
_MAX_DETAIL = 2_000  # characters
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_STATUS: dict[type[errors.WsabieError], int] = {
    errors.UnknownLabelError: 404,
    errors.NotFoundError: 404,
    errors.BusyError: 503,
    errors.CollectionError: 503,
    DiskFullError: 507,
    WriteError: 403,
    errors.WsabieError: 422,
}
"""The first class that matches an error decides."""
_ROUTING_DETAILS = {
    404: "there is nothing at this address; /docs lists all requests",
    405: "this address takes other methods; the header Allow names them",
}
_STEP = re.compile(r"; [^;]*`([a-z_.]+)\([^`]*\)`[^;]*")
_PAGE_HINTS = {
    "free_words": "; press Prepare free words on the page Training",
    "collection.apply": "; press Suggest on the page Status",
    "collection.models": "; choose or train one on the page Training",
    "collection.scan": "; press Scan on the page Status",
    "collection.train": "; train one on the page Training",
}
"""Clauses for people with a browser, in place of those with a next step; no other step has a page."""
_CHECK_INTERVAL = 60.0  # seconds between two checks of the whole database
_log = logging.getLogger("wsabie.serve")


class Problem(Exception):  # noqa: N818 - an answer to the client, no fault of the program
    """Error answer: its status, one sentence, and headers."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    def build_response(self) -> Response:
        """Build the response to the client."""
        return Response(build_problem(self.status, self.detail), self.status, self.headers, MEDIA_TYPE)

    async def send(self, send: Send) -> None:
        """Send the response from a middleware."""
        response = self.build_response()
        await send({"type": "http.response.start", "status": self.status, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": response.body})


def build_problem(status: int, detail: str) -> bytes:
    """Build the JSON document of an error.

    Examples
    --------
    >>> json.loads(build_problem(404, "there is no item 7"))["title"]
    'Not Found'
    """
    detail = detail[:_MAX_DETAIL]  # it may quote the request
    document = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status, "detail": detail}
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


def install_error_handlers(app: FastAPI) -> None:
    """Install handlers that give every error of the application this form."""
    app.state.damage_check = DamageCheck()
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(errors.WsabieError, _answer_wsabie_error)
    app.add_exception_handler(errors.UnreadableItemError, _answer_unreadable_item)
    app.add_exception_handler(RequestValidationError, _answer_validation_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(OSError, _answer_os_error)
    app.add_exception_handler(Exception, _answer_bug)


def document_errors() -> dict[int | str, JsonObject]:
    """Describe the errors of every route for the OpenAPI document."""
    types = {"type": "string", "title": "string", "status": "integer", "detail": "string"}
    properties = {name: {"type": json_type} for name, json_type in types.items()}
    schema = {"type": "object", "required": list(types), "properties": properties}
    content = {MEDIA_TYPE: {"schema": schema}}
    statuses = (400, 401, 403, 404, 405, 408, 409, 413, 415, 416, 422, 429, 503, 504, 507)
    return {status: {"description": TITLES[status], "content": content} for status in statuses}


def name_pages(message: str) -> str:
    """Replace clauses that name a next step by the page for it; leave out those that have none.

    Examples
    --------
    >>> name_pages("the file changed; run: `collection.scan('photos')`")
    'the file changed; press Scan on the page Status'
    >>> name_pages("there is no label 'x'; run: `collection.apply('photos', free_words=True)`")
    "there is no label 'x'; press Prepare free words on the page Training"
    >>> name_pages("there is no model 7; `collection.models('photos')` lists them")
    'there is no model 7; choose or train one on the page Training'
    >>> name_pages("there is no item 7; `collection.status()` counts them")
    'there is no item 7'
    """
    return _STEP.sub(lambda step: _PAGE_HINTS.get("free_words" if "free_words" in step[0] else step[1], ""), message)


async def _answer_problem(_: Request, error: Any) -> Any:
    return error.build_response()


async def _answer_wsabie_error(request: Request, error: Any) -> Response:
    if isinstance(error, errors.CollectionError):
        request.app.state.damage_check.report(error)
    status = next(status for error_type, status in _STATUS.items() if isinstance(error, error_type))
    headers = {"retry-after": "2"} if isinstance(error, errors.BusyError) else None
    return Problem(status, name_pages(error.web_message or str(error)), headers).build_response()


async def _answer_unreadable_item(_: Request, error: Any) -> Response:
    detail = f"{error.reason} ({error.detail})" if error.detail else error.reason
    return Problem(415, detail).build_response()


async def _answer_validation_error(_: Request, error: Any) -> Response:
    details = error.errors()[0]
    location, error_type = details.get("loc", ()), details.get("type")
    if error_type == "json_invalid":
        return Problem(422, f"body: this is not JSON (at character {location[-1]})").build_response()
    where = ".".join(str(part) for part in location)
    if error_type in ("extra_forbidden", "unexpected_keyword_argument"):
        reason = "unknown field; leave it out"
    elif error_type in ("missing", "model_attributes_type", "dict_type") and location == ("body",):
        reason = "send a JSON document, with the header Content-Type: application/json"
    elif "UploadFile" in details.get("msg", "") or (error_type == "missing" and location[1:] in (("file",), ("text",))):
        content = "WORDS" if location[1] == "text" else "@FILE"
        reason = f"send a form with this field, as in: curl -F {location[1]}={content}"
    else:
        reason = details.get("msg", "not valid").removeprefix("Value error, ")
    return Problem(422, f"{where[:1000]}: {reason}").build_response()


async def _answer_http_error(request: Request, error: Any) -> Response:
    if error.status_code == 404 and _is_page_request(request):
        return HTMLResponse(NO_PAGE, 404)
    if getattr(error.__cause__, "errno", None) in _DISK_FULL_ERRORS:  # large uploads are spooled to disk
        return Problem(507, "there is no space left for what was sent; free some, and send it again").build_response()
    detail = _ROUTING_DETAILS.get(error.status_code) if error.detail == HTTPStatus(error.status_code).phrase else None
    return Problem(error.status_code, detail or str(error.detail), dict(error.headers or {})).build_response()


async def _answer_os_error(_: Request, error: Any) -> Response:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Problem(503, "too many files are open; try again in a moment", {"retry-after": "1"}).build_response()
    if error.errno in _DISK_FULL_ERRORS:
        return Problem(507, "there is no space left; free some, and try again").build_response()
    raise error


def _is_page_request(request: Request) -> bool:
    """Return True if a browser opens this address as a page; programs do not ask for HTML."""
    asks_for_html = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    return asks_for_html and not request.url.path.startswith("/api/")


async def _answer_bug(request: Request, error: Exception) -> Response:
    collection = request.app.state.context.collection
    if collection is not None and can_result_from_damage(error):
        damage = await request.app.state.damage_check.find(collection)
        if damage is not None:
            return await _answer_wsabie_error(request, damage)
    # escaped: clients must not forge lines of the log
    _log.error("%a %a failed", request.method, request.url.path, exc_info=error)
    return Problem(500, "an error in the service; its log says more").build_response()


class DamageCheck:
    """Known damage of a database, which is checked at most once a minute.

    Attributes
    ----------
    due : float
        Earliest time of the next check.
    damage : WsabieError or None
        Result of the last check, or damage that a request met.
    """

    def __init__(self) -> None:
        self.due = 0.0
        self.damage: WsabieError | None = None

    def report(self, damage: WsabieError) -> None:
        """Note damage that a request met."""
        _log.error("%s", format_references(str(damage)))
        self.damage = damage

    async def find(self, collection: Collection) -> WsabieError | None:
        """Return the damage that the last check found; check again if that was a while ago."""
        if time.monotonic() >= self.due:
            self.due = math.inf  # until this check has ended
            try:
                await to_thread.run_sync(check_database, collection)
                self.damage = None
            except WsabieError as damage:
                self.report(damage)
            finally:
                self.due = time.monotonic() + _CHECK_INTERVAL
        return self.damage
