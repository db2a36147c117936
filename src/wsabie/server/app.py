"""The application: routes behind limits, errors in one form, and security headers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wsabie.collection.jobs.queue import JobRunner
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import count_available_cores
from wsabie.core.version import VERSION
from wsabie.server.access_control import AuthenticationMiddleware, SameOriginCheck, get_caller_name
from wsabie.server.limits.request_limits import BodyLimit, RateLimit, RequestStages
from wsabie.server.metrics import MetricsMiddleware
from wsabie.server.problems import DamageCheck, document_errors, install_error_handlers
from wsabie.server.routes import collection, items, labels, maps, model, review
from wsabie.server.routing import API, Context, Reader, refuse_unknown_parameters
from wsabie.server.service_context import ServiceContext
from wsabie.server.static_files import make_page_routes

_COLLECTION_ROUTERS = [items.router, labels.router, review.router, items.search_router, maps.router, collection.router]
_service_router = APIRouter(tags=["service"], dependencies=[Depends(refuse_unknown_parameters)])
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


def make_app(context: ServiceContext, hosts: tuple[str, ...] = ()) -> ASGIApp:
    """Return the whole service as an ASGI application.

    Parameters
    ----------
    context : ServiceContext
    hosts : tuple of str
        Host names that requests may give; (): any.
    """
    limits, api = context.limits, make_api(has_collection=context.collection is not None)
    api.state.context = context
    stages = RequestStages(BodyLimit(api, limits.body), limits, get_caller_name)
    authentication = AuthenticationMiddleware(stages, context)
    outer = SameOriginCheck(RateLimit(authentication, limits.rate, limits.burst), hosts)
    layers = MetricsMiddleware(_HeadersMiddleware(outer), context.metrics)

    async def lead_request(scope: Scope, receive: Receive, send: Send) -> None:
        await (layers if scope["type"] == "http" else api)(scope, receive, send)  # else a process starts or ends

    return lead_request


class _Api(FastAPI):
    """Application that describes its records without the sections of their docstrings."""

    def openapi(self) -> JsonObject:
        document = super().openapi()
        for schema in document["components"]["schemas"].values():
            if "description" in schema:
                schema["description"] = schema["description"].partition("\n\nAttributes\n")[0]
        return document


def make_api(*, has_collection: bool) -> FastAPI:
    """Return the routes of a service; `app.state.context` is to be set before the first request."""
    app = _Api(
        title="wsabie",
        version=VERSION,
        summary="Annotate and search a collection by joint embeddings.",
        responses=document_errors(),
        lifespan=_lifespan,
        generate_unique_id_function=lambda route: route.name,
        openapi_url=None,  # below, as strict as all others
        docs_url=None,  # the pages have their own, since this one would come from another site
        redoc_url=None,
        redirect_slashes=False,  # it would lead to whatever name was asked for
    )
    install_error_handlers(app)
    routers = _COLLECTION_ROUTERS if has_collection else (model.names,)
    for router in (model.router, *routers, _service_router, make_page_routes()):
        app.include_router(router)
    return app


@_service_router.get(f"{API}/health")
async def get_health(request: Request, context: Context) -> dict[str, str]:
    """Answer, unless the database of the collection is known to be damaged."""
    check: DamageCheck = request.app.state.damage_check
    if context.collection is not None and check.damage and (damage := await check.find(context.collection)):
        raise damage
    return {"status": "ok"}


@_service_router.get("/openapi.json", include_in_schema=False)
async def get_document(request: Request) -> JSONResponse:
    """Return the OpenAPI document."""
    return JSONResponse(request.app.openapi())


@_service_router.get("/metrics", response_class=Response)
def get_metrics(context: Context, _: Reader) -> Response:
    """Return the metrics in the format of Prometheus."""
    page, media_type = context.metrics.page()
    return Response(page, media_type=media_type)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    # Work is done by threads that let go of the interpreter in compiled code; more than these only wait for each other.
    anyio.to_thread.current_default_thread_limiter().total_tokens = 2 * count_available_cores() + 2
    collection = app.state.context.collection
    runner = None if collection is None or collection.read_only else JobRunner(collection.folder)
    yield
    if runner is not None:
        runner.close()
    if collection is not None:
        collection.close()


class _HeadersMiddleware:
    """Middleware that adds the security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)
