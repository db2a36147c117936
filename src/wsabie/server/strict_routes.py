"""Routes that refuse unknown and repeated parameters and fields, so that none is ignored silently."""

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute

from wsabie.core.json_conversion import JsonObject
from wsabie.server.authentication import identify_caller
from wsabie.server.dependencies import get_context, require_reader
from wsabie.server.limits.request_limits import SAFE
from wsabie.server.problems import Problem

API = "/api/v1"
_NAME = re.compile(r"[\w.-]{1,100}")
_PART_NAMES = {"query": "parameter", "body": "field"}


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


def _format_refusal(part: Literal["query", "body"], name: str, names: list[str]) -> str:
    if name in names:
        return f"{part}.{name}: it is there more than once; give it once"
    if not _NAME.fullmatch(name):  # for example, a file is sent instead of a form
        return f"{part}: a {_PART_NAMES[part]} has a name of {len(name):,} characters; known here: {', '.join(names)}"
    similar = get_close_matches(name, names, 1)
    remedy = f"did you mean {similar[0]}?" if similar else f"known here: {', '.join(names) or 'none'}"
    return f"{part}.{name}: there is no such {_PART_NAMES[part]}; {remedy}"
