"""Routers, and what routes take: known parameters, the caller, an open collection."""

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from wsabie.collection.folder.collection import Collection
from wsabie.core.json_conversion import JsonObject
from wsabie.server.access_control import identify_caller
from wsabie.server.limits.request_limits import SAFE
from wsabie.server.problems import Problem
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Caller, Role

PathId: TypeAlias = Annotated[int, Path(ge=1, lt=2**63)]
_bearer = HTTPBearer(auto_error=False, description="A token that `wsabie token` made")
API = "/api/v1"
_NAME = re.compile(r"[\w.-]{1,100}")
_PART_NAMES = {"query": "parameter", "body": "field"}


# Dependencies that never block are asynchronous: FastAPI sends plain functions to a thread, six of them a request.
async def get_context(request: Request) -> ServiceContext:
    """Return the context of the application."""
    context: ServiceContext = request.app.state.context
    return context


Context: TypeAlias = Annotated[ServiceContext, Depends(get_context)]


async def require_reader(
    request: Request, context: Context, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
) -> Caller:
    """Return the caller; refuse a request without a token where tokens are needed."""
    return identify_caller(request, context)


Reader: TypeAlias = Annotated[Caller, Depends(require_reader)]


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
        raise Problem(422, f"k is {k:,} and may be at most {context.limits.k:,}; ask for fewer")
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
        raise Problem(422, "body: this request has none; leave it out")


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


def _format_refusal(part: Literal["query", "body"], name: str, names: list[str]) -> str:
    if name in names:
        return f"{part}.{name}: it is there more than once; give it once"
    if not _NAME.fullmatch(name):  # for example, a file is sent instead of a form
        return f"{part}: a {_PART_NAMES[part]} has a name of {len(name):,} characters; known here: {', '.join(names)}"
    similar = get_close_matches(name, names, 1)
    remedy = f"did you mean {similar[0]}?" if similar else f"known here: {', '.join(names) or 'none'}"
    return f"{part}.{name}: unknown {_PART_NAMES[part]}; {remedy}"
