"""The application: routes behind limits, errors in one form, and headers that keep pages to themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import Depends, FastAPI, Response
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie import __version__
from wsabie.base.machine import available_cores
from wsabie.catalogue.job_process import Runner
from wsabie.faces.serve import (
    annotation_routes,
    collection_routes,
    item_routes,
    label_routes,
    map_routes,
    model_routes,
    review_routes,
    search_routes,
)
from wsabie.faces.serve.context import API, Context, Known, Reader, The, caller_name
from wsabie.faces.serve.limits import Body, OwnSite, Rate
from wsabie.faces.serve.measured import Measured
from wsabie.faces.serve.parameters import refuse_unknown
from wsabie.faces.serve.problems import DamageCheck, documented, install
from wsabie.faces.serve.stages import Stages
from wsabie.faces.serve.static_files import pages

_OF_COLLECTION = (
    item_routes.router,
    label_routes.router,
    review_routes.router,
    annotation_routes.router,
    search_routes.router,
    map_routes.router,
    collection_routes.router,
)
_STRICT = [Depends(refuse_unknown)]  # pages have words of their own in their addresses
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": b"default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    b"object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


def make_app(context: Context, hosts: tuple[str, ...] = ()) -> ASGIApp:
    """The whole service as an ASGI application.

    Parameters
    ----------
    context : Context
    hosts : tuple of str
        Names by which it may be asked for; (): any.
    """
    limits, app = context.limits, Body(_routes(context), context.limits.body)
    stages = Stages(app, limits.together, limits.seconds, limits.share, limits.slowest, caller_name)
    outer = OwnSite(Rate(Known(stages, context), limits.rate, limits.burst), hosts)
    return Measured(_Headers(outer), context.figures)


def _routes(context: Context) -> FastAPI:
    app = FastAPI(
        title="wsabie",
        version=__version__,
        summary="Annotate and search a collection by joint embeddings.",
        responses=documented(),
        lifespan=_lifespan,
        openapi_url=None,  # below, as strict as all others
        docs_url=None,  # the pages have their own, since this one would come from another site
        redoc_url=None,
        redirect_slashes=False,  # it would lead to whatever name was asked for
    )
    app.state.context = context
    install(app)
    own = (model_routes.names,) if context.collection is None else _OF_COLLECTION
    for router in (model_routes.router, *own):
        app.include_router(router, dependencies=_STRICT)

    @app.get(f"{API}/health", tags=["service"], dependencies=_STRICT)
    async def health() -> dict[str, str]:
        """Whether it answers, and its catalogue is not known to be damaged."""
        known: DamageCheck = app.state.damage_check
        if context.collection is not None and known.damage and (damage := await known.find(context.collection)):
            raise damage
        return {"status": "ok"}

    @app.get("/openapi.json", include_in_schema=False, dependencies=_STRICT)
    async def document() -> JSONResponse:
        return JSONResponse(app.openapi())

    @app.get("/metrics", tags=["service"], response_class=Response, dependencies=_STRICT)
    def metrics(the: The, _: Reader) -> Any:
        """Figures for Prometheus."""
        page, kind = the.figures.page()
        return Response(page, media_type=kind)

    app.include_router(pages())
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    # Work is done by threads that let go of the interpreter in compiled code; more than these only wait for each other.
    anyio.to_thread.current_default_thread_limiter().total_tokens = 2 * available_cores() + 2
    at = app.state.context.collection
    runner = None if at is None or at.read_only else Runner(at.folder)
    yield
    if runner is not None:
        runner.close()
    if at is not None:
        at.close()


class _Headers:
    """Puts the same headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((n, v) for n, v in _HEADERS.items() if n not in there)]
            await send(message)

        await self.app(scope, receive, headed if scope["type"] == "http" else send)
