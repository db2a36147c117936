"""Identification of the caller of a request by an access token."""

from datetime import UTC, datetime

from fastapi import Request
from fastapi.security.utils import get_authorization_scheme_param
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
        reason = "this token is not known, or its last day is over" if token else "give a token"
        raise Problem(401, f"{reason}: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
    return caller
