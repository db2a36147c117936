"""Starting the service: one socket, one or several processes, and a stop that lets running requests finish."""

import gc
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from multiprocessing import connection, parent_process
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.types import ASGIApp

from wsabie.base.errors import BusyError, InputError
from wsabie.base.input_files import fault_text
from wsabie.base.memory_budget import shared_memory_file
from wsabie.catalogue.collection import Collection, is_collection, open_collection
from wsabie.catalogue.connection import may_write
from wsabie.catalogue.understanding import Meanings, meanings_in
from wsabie.faces.serve import kept_once, measured
from wsabie.faces.serve.app import make_app
from wsabie.faces.serve.connections import BACKLOG, Connections, connection_limit, limit_send_buffer, raise_handle_limit
from wsabie.faces.serve.context import Context
from wsabie.faces.serve.limits import LOOPBACK, Limits
from wsabie.faces.serve.log_limits import limit_log
from wsabie.faces.serve.served import CollectionModel, ServedModel
from wsabie.faces.serve.tokens import TokenFile

_GIVEN = "WSABIE_SERVE"
_FINISH = 30  # seconds that running requests have when the service is stopped
_MORE = 5  # seconds after these, until a process is ended that still runs
_IDLE = 10.0  # seconds that a connection may go without a request that is whole


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
        Processes, each with the features' part of the model in its own memory; labels are mapped, and in memory once.
    limits : Limits
    knowledge : tuple of str
        Files that know words, for search.
    """

    what: str
    host: str = "127.0.0.1"
    port: int = 8420
    tokens: str | None = None
    names: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    knowledge: tuple[str, ...] = ()

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
        if service.knowledge:
            raise InputError("--knowledge helps to search a collection, and a model is served; leave it out")
        return Context(service.limits, tokens, ServedModel(what))
    collection = open_collection(what, read_only=not may_write(what))
    return Context(service.limits, tokens, CollectionModel(collection), collection, _meanings(service.knowledge))


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
        limit_send_buffer(found)
        found.bind((service.host, service.port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        raise InputError(
            f"cannot listen on {service.host} port {service.port}: {fault_text(error)}; choose another with --host or "
            "--port"
        ) from error
    return found


def serve(service: Service, found: socket.socket, begins: Callable[[], None]) -> None:
    """Answer requests until the process is told to stop; `begins` is called when nothing stands against it."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from wsabie.faces.serve.strict_http import StrictHttpProtocol

    raise_handle_limit()
    most = connection_limit(service.limits.together, service.limits.connections)
    trial = context_of(service)  # what is wrong is told here, once, and not by each process
    if trial.collection is not None:
        trial.collection.close()
    begins()
    os.environ[_GIVEN] = json.dumps(asdict(service))
    config = uvicorn.Config(
        f"{__name__}:application",
        factory=True,
        http=StrictHttpProtocol,
        ws="none",
        backlog=min(BACKLOG, most // 2 + 1),  # what is accepted in one go does not push itself out
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_FINISH,
        workers=service.workers,
    )

    with shared_memory_file(), _check_catalogue(trial.collection):  # with jobs, which are processes of their own
        if service.workers == 1:
            uvicorn.Server(config).run(sockets=[found])
        else:
            with _folder_of("figures", measured.FOLDER), _folder_of("tables", kept_once.FOLDER):
                Multiprocess(config, sockets=[found]).run()


@contextmanager
def _check_catalogue(collection: Collection | None) -> Iterator[None]:
    """Refuse in the end a catalogue that somebody replaced, emptied or cut meanwhile."""
    try:
        yield
    finally:
        if collection is not None:
            open_collection(collection.folder, read_only=True).close()


@contextmanager
def _folder_of(what: str, variable: str) -> Iterator[None]:
    """A folder for all processes that are started meanwhile, which this variable names; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix=f"wsabie-{what}-") as folder:
        os.environ[variable] = folder
        try:
            yield
        finally:
            del os.environ[variable]


def application() -> ASGIApp:
    """The application of one process, from what its parent was told."""
    from wsabie.faces.serve.strict_http import StrictHttpProtocol

    given: dict[str, Any] = json.loads(os.environ[_GIVEN])
    limits = Limits(**given.pop("limits"))
    names, knowledge = tuple(given.pop("names")), tuple(given.pop("knowledge"))
    service = Service(**given, limits=limits, names=names, knowledge=knowledge)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    most = connection_limit(limits.together, limits.connections)
    StrictHttpProtocol.pool = Connections(most, limits.share, min(_IDLE, limits.seconds), limits.slowest)
    limit_log()
    _end_in_time()
    made = make_app(_context_when_free(service), service.hosts)
    _side_by_side()
    return made


def _context_when_free(service: Service) -> Context:
    """What the application holds; other processes go on while the database is busy."""
    # The server's own way to stop, to finish what it has begun to serve, would wait for a database without end.
    stops = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while True:
            try:
                return context_of(service)
            except BusyError:
                time.sleep(1)
    finally:
        for number, stop in stops.items():
            signal.signal(number, stop)


def _end_in_time() -> None:
    """Let the system end this process where it was told to stop and a request of it never ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_stop, signal.getsignal(number)))


def _stop(stop: Any, number: int, frame: FrameType | None) -> None:
    left = signal.alarm(_FINISH + _MORE)
    if left:  # it was told before
        signal.alarm(left)
    if callable(stop):
        stop(number, frame)


def _end_with_parent() -> None:
    """A parent that was killed cannot end its processes, which would keep the port."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _side_by_side() -> None:
    """Make this process one in which many small requests run at a time."""
    import scipy.linalg  # noqa: F401 - its own BLAS has to be loaded to be told
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threadpool_limits(1)  # threads of BLAS for each request would wait for each other: six times the processor time
    sys.setswitchinterval(0.0005)  # a thread that computes hands the interpreter over to the one that answers
    gc.collect()
    gc.freeze()  # what is loaded stays: to look through all of it again took a tenth of the time


@cache
def _meanings(files: tuple[str, ...]) -> Meanings | None:
    """What files know of words, read once in a process."""
    return meanings_in(*map(Path, files))
