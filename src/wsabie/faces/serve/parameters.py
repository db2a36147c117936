"""Refuses parameters that no route has: a word that is misspelt would change nothing, and nobody would be told."""

from collections import Counter
from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant

from wsabie.faces.serve.context import context_of, identify
from wsabie.faces.serve.problems import Problem


async def refuse_unknown(request: Request) -> None:
    """Refuse a request whose address has a parameter that its route does not know, or one twice."""
    if not request.scope["query_string"]:
        return
    known = _query_names(request.scope["route"].dependant)
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known or count > 1:
            identify(request, await context_of(request))  # strangers are told nothing else
            raise Problem(422, _refusal(name, known))


def _query_names(route: Dependant) -> list[str]:
    """Names of the parameters of a route and of all that it depends on."""
    own = [field.alias for field in route.query_params]
    return own + [name for one in route.dependencies for name in _query_names(one)]


def _refusal(name: str, known: list[str]) -> str:
    if name in known:
        return f"query.{name}: it is there more than once; give it once"
    near = get_close_matches(name, known, 1)
    remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known) or 'none'}"
    return f"query.{name[:100]}: there is no such parameter; {remedy}"
