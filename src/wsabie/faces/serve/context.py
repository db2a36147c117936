"""What every route may ask of the service: its limits, who calls, and what is served."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, TypeAlias

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import ASGIApp, Receive, Scope, Send

from wsabie.catalogue import journal
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.understanding import Meanings
from wsabie.faces.serve.callers import address_of
from wsabie.faces.serve.limits import SAFE, Limits
from wsabie.faces.serve.measured import Figures
from wsabie.faces.serve.problems import Problem
from wsabie.faces.serve.served import Served
from wsabie.faces.serve.tokens import Caller, Role, Token, caller_of

API = "/api/v1"
LOCAL = Caller(journal.LOCAL, "write")
_CALLER = "wsabie.caller"
COOKIE = "wsabie_token"
"""Where the pages keep a token, since pictures in a page are asked for without headers."""


@dataclass
class Context:
    """What the application holds.

    Attributes
    ----------
    limits : Limits
    tokens : iterable of Token or None
        None: everybody may do everything; only for a service on the loopback address.
    model : Served
    collection : Collection or None
    meanings : Meanings or None
        What files know of its labels.
    figures : Figures
    day : date
        The latest that was seen: a clock that is set back makes no token valid again.
    """

    limits: Limits
    tokens: Iterable[Token] | None
    model: Served
    collection: Collection | None = None
    meanings: Meanings | None = None
    figures: Figures = field(default_factory=Figures)
    day: date = date.min


# What decides nothing by waiting is asynchronous: a plain function would be sent to a thread, six of them a request.
async def context_of(request: Request) -> Context:
    """The one of the application."""
    return _context(request)


_bearer = HTTPBearer(auto_error=False, description="A token that `wsabie token` made")


async def reader(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
) -> Caller:
    """Who asks; refused without a token where tokens are needed."""
    return identify(request, _context(request))


class Known:
    """Finds out who calls, and refuses what is sent without a token before any of it is read."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self.app, self.context = app, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.context.tokens is not None:
            try:
                scope[_CALLER] = identify(Request(scope), self.context)
            except Problem as refused:
                if scope["method"] not in SAFE:  # else the route says so, if it wants a token
                    await refused.send(send)
                    return
        await self.app(scope, receive, send)


def caller_name(scope: Scope) -> str:
    """Return what tells the caller of a request from others: the token's name, or else the address."""
    caller: Caller | None = scope.get(_CALLER)
    return address_of(scope.get("client")) if caller is None else caller.name


def identify(request: Request, context: Context) -> Caller:
    """Return who sends a request.

    Raises
    ------
    Problem
        A token is needed, and there is none that is known (401).
    """
    tokens = context.tokens
    if tokens is None:
        return LOCAL
    if _CALLER in request.scope:
        return request.scope[_CALLER]  # type: ignore[no-any-return]
    context.day = max(context.day, datetime.now(UTC).date())
    scheme, given = get_authorization_scheme_param(request.headers.get("authorization"))
    token = given if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    caller = caller_of(token, tokens, context.day) if token else None
    if caller is None:
        said = "this token is not known, or its last day is over" if token else "give a token"
        raise Problem(401, f"{said}: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
    return caller


async def writer(request: Request, caller: Annotated[Caller, Depends(reader)]) -> Caller:
    """Who changes something; refused with a token that may only read, and where nobody may write."""
    if role_of(caller, _context(request)) == "write":
        return caller
    if caller.role == "read":
        raise Problem(403, f"the token of {caller.name} may only read")
    raise Problem(403, "the collection is read-only here: it can only be looked at")


def role_of(caller: Caller, context: Context) -> Role:
    """Return what a caller may do with the collection."""
    is_open = context.collection is None or not context.collection.read_only
    return caller.role if is_open else "read"


async def open_collection(request: Request) -> Collection:
    """The collection; refused where a model alone is served."""
    found = _context(request).collection
    if found is None:
        raise Problem(404, "a model is served here and no collection; run: wsabie serve COLLECTION")
    return found


Open: TypeAlias = Annotated[Collection, Depends(open_collection)]
The: TypeAlias = Annotated[Context, Depends(context_of)]
Reader: TypeAlias = Annotated[Caller, Depends(reader)]
Writer: TypeAlias = Annotated[Caller, Depends(writer)]


def within(k: int, context: Context) -> int:
    """So many answers, if that is allowed."""
    if k > context.limits.k:
        raise Problem(422, f"k is {k:,} and at most {context.limits.k:,} are given; ask for fewer")
    return k


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context
