"""Access to the service: the caller of a request by its token, and the site that a request comes from.

Plain ASGI layers, so that a request is refused before any of it is read.
"""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.security.utils import get_authorization_scheme_param
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from wsabie.collection.db import journal
from wsabie.server.limits.request_limits import SAFE
from wsabie.server.limits.slots import get_caller_address
from wsabie.server.problems import Problem
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Caller, find_caller

LOCAL = Caller(journal.LOCAL, "write")
COOKIE = "wsabie_token"
"""Cookie in which the pages keep a token: a browser loads the pictures of a page without its headers."""
_CALLER_KEY = "wsabie.caller"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NON_PAGES = ("/metrics", "/openapi.json")


class AuthenticationMiddleware:
    """Middleware that identifies the caller and refuses bodies without a token before reading them."""

    def __init__(self, app: ASGIApp, context: ServiceContext) -> None:
        self.app, self.context = app, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.context.tokens is not None:
            try:
                scope[_CALLER_KEY] = identify_caller(Request(scope), self.context)
            except Problem as problem:
                if scope["method"] not in SAFE:  # else the route refuses it, if it needs a token
                    await problem.send(send)
                    return
        await self.app(scope, receive, send)


def get_caller_name(scope: Scope) -> str:
    """Return the name of the caller of a request: the token's name, or else the address."""
    caller: Caller | None = scope.get(_CALLER_KEY)
    return get_caller_address(scope.get("client")) if caller is None else caller.name


def identify_caller(request: Request, context: ServiceContext) -> Caller:
    """Return the caller of a request.

    Raises
    ------
    Problem
        A token is needed, and the request has no valid one (401).
    """
    tokens = context.tokens
    if tokens is None:
        return LOCAL
    if _CALLER_KEY in request.scope:
        return request.scope[_CALLER_KEY]  # type: ignore[no-any-return]
    context.day = max(context.day, datetime.now(UTC).date())
    scheme, credentials = get_authorization_scheme_param(request.headers.get("authorization"))
    token = credentials if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    caller = find_caller(token, tokens, context.day) if token else None
    if caller is None:
        reason = "this token is unknown or has expired" if token else "give a token"
        raise Problem(401, f"{reason}: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
    return caller


class SameOriginCheck:
    """Middleware that refuses requests that other web sites make a browser send.

    A page elsewhere can send requests to a service on this machine: by a form, as a picture, or by giving its own name
    this machine's address. So the requested host must be ours, and requests must come from our own pages or from no
    page at all; a link elsewhere may open a page of ours.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope)
        await (self.app(scope, receive, send) if problem is None else problem.send(send))

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts and _parse_host(host) not in self.hosts:
            return Problem(403, "this name is not one of the service; use its own, or start it with --allowed-host")
        foreign = any(origin.lower().partition("://")[2] != host.lower() for origin in headers.getlist("origin"))
        sites = set(headers.getlist("sec-fetch-site")) - {"same-origin", "none"}
        if foreign or (sites and not _is_page_request(scope, headers)):
            return Problem(403, "another web site may not ask or change anything here; use the service's own pages")
        return None


def _is_page_request(scope: Scope, headers: Headers) -> bool:
    """Return True if the browser follows a link and shows a page of ours in place of the other site."""
    mode, destination = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
    inner = scope["path"].startswith("/api/") or scope["path"] in _NON_PAGES
    return scope.get("method") in ("GET", "HEAD") and (mode, destination) == ("navigate", "document") and not inner


def _parse_host(host: str) -> str:
    """Return the name in a Host header, without its port."""
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.username is not None else (parts.hostname or "")
    except ValueError:
        return ""
