"""Dependencies of the routes: context, caller, collection, and limits of parameters."""

from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from wsabie.collection.folder.collection import Collection
from wsabie.server.authentication import identify_caller
from wsabie.server.problems import Problem
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import Caller, Role

PathId: TypeAlias = Annotated[int, Path(ge=1, lt=2**63)]
_bearer = HTTPBearer(auto_error=False, description="A token that `wsabie token` made")


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
        raise Problem(422, f"k is {k:,} and at most {context.limits.k:,} are given; ask for fewer")
    return k


def limit_results(default: int, max_results: int | None = None) -> Any:
    """Return the dependency for a parameter `k`: the number of results, which the service limits."""

    async def check(
        context: Context, k: Annotated[int, Query(ge=1, le=max_results, description="Results, at most.")] = default
    ) -> int:
        return check_result_count(k, context)

    return Depends(check)
