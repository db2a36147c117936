"""Refuses parameters that no route has: a word that is misspelt would change nothing, and nobody would be told."""

from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.dependencies.utils import get_dependant, get_flat_dependant

from wsabie.faces.serve.context import context_of, identify
from wsabie.faces.serve.problems import Problem


async def refuse_unknown(request: Request) -> None:
    """Refuse a request whose address has a parameter that its route does not know, or one twice."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    known, given = (
        _names(route.path_format, route.endpoint),
        Counter(name for name, _ in request.query_params.multi_items()),
    )
    for name, count in given.items():
        if name not in known or count > 1:
            context = await context_of(request)
            identify(request, context)  # strangers are told nothing else
            raise Problem(422, _refusal(name, known))


@cache
def _names(path: str, endpoint: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters of a route, those of what it depends on included."""
    flat = get_flat_dependant(get_dependant(path=path, call=endpoint))
    return tuple(sorted(field.alias for field in flat.query_params))


def _refusal(name: str, known: tuple[str, ...]) -> str:
    if name in known:
        return f"query.{name}: it is given more than once; give it once"
    near = get_close_matches(name, known, 1)
    remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'none'}"
    return f"query.{name[:100]}: there is no such parameter; {remedy}"
