"""Refuses parameters and fields that no route has: a misspelt one would change nothing, and nobody would be told."""

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from difflib import get_close_matches
from typing import Any, Literal

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute
from starlette.responses import Response

from wsabie.faces.serve.context import context_of, identify
from wsabie.faces.serve.limits import SAFE
from wsabie.faces.serve.problems import Problem

_NAME = re.compile(r"[\w.-]{1,100}")
_CALLED = {"query": "parameter", "body": "field"}


async def refuse_unknown(request: Request) -> None:
    """Refuse a request with a parameter or a field of a form that its route does not know, or one twice."""
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
    """A route that refuses JSON in which an object has a key twice, of which all but one would be lost."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise HTTPException(422, _refusal("body", name, [name]))
    return fields


async def _refuse_names(
    request: Request, place: Literal["query", "body"], known: list[str], items: Iterable[tuple[str, Any]]
) -> None:
    for name, count in Counter(name for name, _ in items).items():
        if name not in known or count > 1:
            identify(request, await context_of(request))  # strangers are told nothing else
            raise Problem(422, _refusal(place, name, known))


def _query_names(route: Dependant) -> list[str]:
    """Names of the parameters of a route and of all that it depends on."""
    own = [field.alias for field in route.query_params]
    return own + [name for one in route.dependencies for name in _query_names(one)]


def _refusal(place: Literal["query", "body"], name: str, known: list[str]) -> str:
    if name in known:
        return f"{place}.{name}: it is there more than once; give it once"
    if not _NAME.fullmatch(name):  # as where a file is sent instead of a form
        return f"{place}: a {_CALLED[place]} has a name of {len(name):,} characters; known here: {', '.join(known)}"
    near = get_close_matches(name, known, 1)
    remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'none'}"
    return f"{place}.{name}: there is no such {_CALLED[place]}; {remedy}"
