"""Errors in one form: RFC 9457 problem details, `application/problem+json`."""

import errno
import json
import logging
import math
import time
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Send

from wsabie.base.errors import BusyError, CatalogueError, MissingError, UnknownLabelError, WsabieError
from wsabie.catalogue.collection import Collection, can_come_from_damage, check
from wsabie.features.decode import RejectedItem
from wsabie.storage.atomic import DiskFullError, UnwritableError

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The request cannot be understood",
    401: "A token is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "It came too slowly",
    409: "It conflicts with what is there",
    413: "Too large",
    415: "Nothing that can be read",
    416: "No such part",
    422: "The input is at fault",
    429: "Too many requests",
    500: "The service failed",
    503: "Not available",
    504: "It took too long",
    507: "The disk is full",
}
NO_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>No such page - wsabie</title>
<body style="font-family: system-ui, sans-serif; max-width: 34rem; margin: 4rem auto; padding: 0 1rem">
<main>
<h1>No such page</h1>
<p>There is nothing at this address. <a href="/">The first page</a> leads to all others.</p>
</main>
"""
"""What a browser is shown at an address that is no page."""
_LONGEST = 2_000  # characters
_PAUSE = 60.0  # seconds between two looks through the whole catalogue
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STATUS: dict[type[WsabieError], int] = {
    UnknownLabelError: 404,
    MissingError: 404,
    BusyError: 503,
    CatalogueError: 503,
    DiskFullError: 507,
    UnwritableError: 403,
    WsabieError: 422,
}
"""The first that an error is of counts."""
_OF_ROUTES = {
    404: "there is nothing at this address; /docs lists all that can be asked",
    405: "this address takes other methods; the header Allow names them",
}

_log = logging.getLogger("wsabie.serve")


class Problem(Exception):  # noqa: N818 - what the client is told, and no fault of the program
    """An answer that is an error: its status, one sentence, and headers."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    def response(self) -> Response:
        """As it is sent."""
        return Response(body(self.status, self.detail), self.status, self.headers, MEDIA_TYPE)

    async def send(self, send: Send) -> None:
        """Send it where no application is reached."""
        response = self.response()
        await send({"type": "http.response.start", "status": self.status, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": response.body})


class DamageCheck:
    """Damage of a catalogue, as far as it is known; a look through all of it at most once a minute.

    Attributes
    ----------
    due : float
        Earliest time of the next look.
    damage : WsabieError or None
        Result of the last one, or what a request met.
    """

    def __init__(self) -> None:
        self.due = 0.0
        self.damage: WsabieError | None = None

    def report(self, damage: WsabieError) -> None:
        """Take note of damage that a request met."""
        _log.error("%s", damage)
        self.damage = damage

    async def find(self, collection: Collection) -> WsabieError | None:
        """Return the damage, as far as the last look shows."""
        if time.monotonic() >= self.due:
            self.due = math.inf  # while it lasts
            try:
                await to_thread.run_sync(check, collection)
                self.damage = None
            except WsabieError as damage:
                self.report(damage)
            finally:
                self.due = time.monotonic() + _PAUSE
        return self.damage


def body(status: int, detail: str) -> bytes:
    """The document of an error.

    Examples
    --------
    >>> json.loads(body(404, "there is no item 7"))["title"]
    'Not found'
    """
    detail = detail[:_LONGEST]  # it may quote what was sent
    told = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status, "detail": detail}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")


def install(app: FastAPI) -> None:
    """Let every error of the application take this form."""
    app.state.damage_check = DamageCheck()
    app.add_exception_handler(Problem, _told)
    app.add_exception_handler(WsabieError, _of_input)
    app.add_exception_handler(RejectedItem, _of_item)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(OSError, _of_shortage)
    app.add_exception_handler(Exception, _of_fault)


def documented() -> dict[int | str, dict[str, Any]]:
    """How errors are described in the OpenAPI document, for every route."""
    schema = {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
    }
    return {
        status: {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in (400, 401, 403, 404, 405, 408, 409, 413, 415, 416, 422, 429, 503, 504, 507)
    }


async def _told(_: Request, error: Any) -> Any:
    return error.response()


async def _of_input(request: Request, error: Any) -> Response:
    if isinstance(error, CatalogueError):
        request.app.state.damage_check.report(error)
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    headers = {"retry-after": "2"} if isinstance(error, BusyError) else None
    return Problem(status, error.served or str(error), headers).response()


async def _of_item(_: Request, error: Any) -> Response:
    detail = f"{error.reason} ({error.detail})" if error.detail else error.reason
    return Problem(415, detail).response()


async def _of_validation(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    place, kind = first.get("loc", ()), first.get("type")
    if kind == "json_invalid":
        return Problem(422, f"body: this is no JSON (at character {place[-1]})").response()
    where = ".".join(str(part) for part in place)
    if kind == "extra_forbidden":
        said = "there is no such field; leave it out"
    elif kind in ("missing", "model_attributes_type", "dict_type") and place == ("body",):
        said = "send a JSON document, with the header Content-Type: application/json"
    elif "UploadFile" in first.get("msg", "") or (kind == "missing" and place[1:] in (("file",), ("text",))):
        said = f"send a form with this field, as in: curl -F {place[1]}={'WORDS' if place[1] == 'text' else '@FILE'}"
    else:
        said = first.get("msg", "not valid").removeprefix("Value error, ")
    return Problem(422, f"{where[:1000]}: {said}").response()


async def _of_http(request: Request, error: Any) -> Response:
    if error.status_code == 404 and _is_for_a_page(request):
        return HTMLResponse(NO_PAGE, 404)
    if getattr(error.__cause__, "errno", None) in _FULL:  # what is sent waits on disk if large
        return Problem(507, "there is no space left for what was sent; free some, and send it again").response()
    detail = _OF_ROUTES.get(error.status_code) if error.detail == HTTPStatus(error.status_code).phrase else None
    return Problem(error.status_code, detail or str(error.detail), dict(error.headers or {})).response()


async def _of_shortage(_: Request, error: Any) -> Response:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Problem(503, "too many files are open; try again in a moment", {"retry-after": "1"}).response()
    if error.errno in _FULL:
        return Problem(507, "there is no space left; free some, and try again").response()
    raise error


def _is_for_a_page(request: Request) -> bool:
    """Whether somebody opened this address in a browser: programs ask for other things, or for anything."""
    wanted = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    return wanted and not request.url.path.startswith("/api/")


async def _of_fault(request: Request, error: Exception) -> Response:
    collection = request.app.state.context.collection
    if collection is not None and can_come_from_damage(error):
        damage = await request.app.state.damage_check.find(collection)
        if damage is not None:
            return await _of_input(request, damage)
    _log.error("%a %a failed", request.method, request.url.path, exc_info=error)  # escaped: the line is not theirs
    return JSONResponse(json.loads(body(500, "an error in the service; its log says more")), 500, media_type=MEDIA_TYPE)
