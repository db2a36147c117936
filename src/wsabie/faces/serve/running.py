"""Starting the service: one socket, one or several processes, and a stop that lets running requests finish."""

import json
import os
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import is_collection, open_collection
from wsabie.faces.serve.app import make_app
from wsabie.faces.serve.context import Context
from wsabie.faces.serve.limits import LOOPBACK, Limits
from wsabie.faces.serve.served import CollectionModel, ServedModel
from wsabie.faces.serve.tokens import TokenFile

_GIVEN = "WSABIE_SERVE"
_FINISH = 30  # seconds that running requests have when the service is stopped


@dataclass(frozen=True)
class Service:
    """What is to be served, and how.

    Attributes
    ----------
    what : str
        Folder of a collection or of a model.
    host : str
    port : int
        0: one that is free.
    tokens : str or None
        File of those who may ask.
    names : tuple of str
        By which it is asked for, beside `host`.
    workers : int
        Processes; the model is mapped, and in memory once.
    limits : Limits
    """

    what: str
    host: str = "127.0.0.1"
    port: int = 8420
    tokens: str | None = None
    names: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)

    @property
    def local(self) -> bool:
        """Whether only this machine can ask."""
        return self.host in LOOPBACK

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that requests may give; (): any, where tokens say who may ask."""
        return (*LOOPBACK, *self.names) if self.local else self.names


def context_of(service: Service) -> Context:
    """What the application holds.

    Raises
    ------
    WsabieError
        There is no model, a file of tokens is wrong, or there is none where others can ask.
    """
    if service.tokens is None and not service.local:
        raise InputError(
            f"others could reach {service.host}, so the service wants tokens there; make one with "
            "`wsabie token FILE NAME`, and give --tokens FILE"
        )
    tokens = None if service.tokens is None else TokenFile(Path(service.tokens))
    what = Path(service.what)
    if not is_collection(what):
        return Context(service.limits, tokens, ServedModel(what))
    collection = open_collection(what)
    return Context(service.limits, tokens, CollectionModel(collection), collection)


def listening(service: Service) -> socket.socket:
    """The socket that requests come to.

    Raises
    ------
    InputError
        The address is taken, not of this machine, or not allowed.
    """
    family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the protocol is told: without, each answer waits 40 ms for an ACK.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((service.host, service.port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {service.host} port {service.port}: {reason}; choose another with --host or --port"
        ) from error
    return found


def serve(service: Service, found: socket.socket) -> None:
    """Answer requests until the process is told to stop."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from wsabie.faces.serve.hurried import Hurried

    context_of(service)  # what is wrong is told here, once, and not by each process
    os.environ[_GIVEN] = json.dumps(asdict(service))
    config = uvicorn.Config(
        f"{__name__}:application",
        factory=True,
        http=Hurried,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_FINISH,
        workers=service.workers,
        h11_max_incomplete_event_size=64 << 10,
    )

    if service.workers == 1:
        uvicorn.Server(config).run(sockets=[found])
    else:
        Multiprocess(config, sockets=[found]).run()


def application() -> ASGIApp:
    """The application of one process, from what its parent was told."""
    from wsabie.faces.serve.hurried import Hurried

    given: dict[str, Any] = json.loads(os.environ[_GIVEN])
    limits, names = Limits(**given.pop("limits")), tuple(given.pop("names"))
    service = Service(**given, limits=limits, names=names)
    Hurried.seconds = limits.seconds
    return make_app(context_of(service), service.hosts)
