"""Dependencies of the routes: context, caller, limits of parameters, and refusal of unknown ones.

A misspelt parameter or field is refused, since it would be ignored silently otherwise.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import ASGIApp, Receive, Scope, Send

from wsabie.collection.db import journal
from wsabie.collection.folder.collection import Collection
from wsabie.collection.search.text_search import LabelKnowledge
from wsabie.core.json_conversion import JsonObject
from wsabie.server.metrics import Metrics
from wsabie.server.model_holder import ModelHolder
from wsabie.server.problems import Problem
from wsabie.server.request_limits import SAFE, ServiceLimits
from wsabie.server.slots import get_caller_address
from wsabie.server.tokens import Caller, Role, Token, find_caller

API = "/api/v1"
LOCAL = Caller(journal.LOCAL, "write")
COOKIE = "wsabie_token"
"""Cookie in which the pages keep a token: a browser loads the pictures of a page without its headers."""
_CALLER_KEY = "wsabie.caller"
_NAME = re.compile(r"[\w.-]{1,100}")
_PART_NAMES = {"query": "parameter", "body": "field"}

PathId: TypeAlias = Annotated[int, Path(ge=1, lt=2**63)]


@dataclass
class ServiceContext:
    """State that the application shares between requests.

    Attributes
    ----------
    limits : ServiceLimits
    tokens : iterable of Token or None
        None: everybody may do everything; only for a service on the loopback address.
    model : ModelHolder
    collection : Collection or None
    label_knowledge : LabelKnowledge or None
        Word knowledge from files, for searching its labels.
    metrics : Metrics
    day : date
        Latest date so far: a clock that is set back makes no token valid again.
    """

    limits: ServiceLimits
    tokens: Iterable[Token] | None
    model: ModelHolder
    collection: Collection | None = None
    label_knowledge: LabelKnowledge | None = None
    metrics: Metrics = field(default_factory=Metrics)
    day: date = date.min


# Dependencies that never block are asynchronous: FastAPI sends plain functions to a thread, six of them a request.
async def get_context(request: Request) -> ServiceContext:
    """Return the context of the application."""
    context: ServiceContext = request.app.state.context
    return context


Context: TypeAlias = Annotated[ServiceContext, Depends(get_context)]
_bearer = HTTPBearer(auto_error=False, description="A token that `wsabie token` made")


async def require_reader(
    request: Request, context: Context, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
) -> Caller:
    """Return the caller; refuse a request without a token where tokens are needed."""
    return identify_caller(request, context)


Reader: TypeAlias = Annotated[Caller, Depends(require_reader)]


class AuthenticationMiddleware:
    """Middleware that identifies the caller and refuses bodies without a token before reading them."""

    def __init__(self, app: ASGIApp, context: ServiceContext) -> None:
        self.app, self.context = app, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.context.tokens is not None:
            try:
                scope[_CALLER_KEY] = identify_caller(Request(scope), self.context)
            except Problem as problem:
                if scope["method"] not in SAFE:  # else the route says so, if it wants a token
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


async def require_writer(context: Context, caller: Reader) -> Caller:
    """Return the caller; refuse tokens that may only read, and all callers of a read-only collection."""
    if get_role(caller, context) == "write":
        return caller
    if caller.role == "read":
        raise Problem(403, f"the token of {caller.name} may only read")
    raise Problem(403, "the collection is read-only here: it can only be looked at")


def get_role(caller: Caller, context: ServiceContext) -> Role:
    """Return the role of a caller for the collection."""
    is_open = context.collection is None or not context.collection.read_only
    return caller.role if is_open else "read"


async def open_collection(context: Context) -> Collection:
    """Return the collection; refuse the request if only a model is served."""
    if context.collection is None:
        raise Problem(404, "a model is served here and no collection; run: wsabie serve COLLECTION")
    return context.collection


OpenCollection: TypeAlias = Annotated[Collection, Depends(open_collection)]
Writer: TypeAlias = Annotated[Caller, Depends(require_writer)]


def check_result_count(k: int, context: ServiceContext) -> int:
    """Return `k` if the limits of the service allow so many results."""
    if k > context.limits.k:
        raise Problem(422, f"k is {k:,} and at most {context.limits.k:,} are given; ask for fewer")
    return k


def limit_results(default: int, max_results: int | None = None) -> Any:
    """Return the dependency for a parameter `k`: the number of results, which the service limits."""

    async def check(
        context: Context, k: Annotated[int, Query(ge=1, le=max_results, description="Results, at most.")] = default
    ) -> int:
        return check_result_count(k, context)

    return Depends(check)


def make_router(tag: str, prefix: str = API) -> APIRouter:
    """Return a router whose routes take a caller with a token, known parameters, JSON without double keys."""
    dependencies = [Depends(refuse_unknown_parameters), Depends(require_reader)]
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute, dependencies=dependencies)


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a request with an unknown or repeated parameter or form field."""
    route: Dependant = request.scope["route"].dependant
    if request.scope["query_string"]:
        await _refuse_names(request, "query", _query_names(route), request.query_params.multi_items())
    if request.method in SAFE:
        return
    if any(isinstance(field.field_info, Form) for field in route.body_params):
        names = [field.alias for field in route.body_params]
        await _refuse_names(request, "body", names, (await request.form()).multi_items())
    elif not route.body_params and (await request.body()).strip() not in (b"", b"{}"):
        raise Problem(422, "body: nothing is taken here; leave it out")


class StrictRoute(APIRoute):
    """Route that refuses JSON objects with a repeated key, since all but one value would be lost."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_build_unique_dict)


def _build_unique_dict(pairs: list[tuple[str, Any]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise HTTPException(422, _format_refusal("body", name, [name]))
    return fields


async def _refuse_names(
    request: Request, location: Literal["query", "body"], known_names: list[str], items: Iterable[tuple[str, Any]]
) -> None:
    for name, count in Counter(name for name, _ in items).items():
        if name not in known_names or count > 1:
            identify_caller(request, await get_context(request))  # callers without a token learn nothing else
            raise Problem(422, _format_refusal(location, name, known_names))


def _query_names(route: Dependant) -> list[str]:
    """Return the query parameters of a route and of its dependencies."""
    fields = [getattr(field.field_info.annotation, "model_fields", [field.alias]) for field in route.query_params]
    return [*chain(*fields, *map(_query_names, route.dependencies))]


def _format_refusal(place: Literal["query", "body"], name: str, names: list[str]) -> str:
    if name in names:
        return f"{place}.{name}: it is there more than once; give it once"
    if not _NAME.fullmatch(name):  # for example, a file is sent instead of a form
        return f"{place}: a {_PART_NAMES[place]} has a name of {len(name):,} characters; known here: {', '.join(names)}"
    similar = get_close_matches(name, names, 1)
    remedy = f"did you mean {similar[0]}?" if similar else f"known here: {', '.join(names) or 'none'}"
    return f"{place}.{name}: there is no such {_PART_NAMES[place]}; {remedy}"
