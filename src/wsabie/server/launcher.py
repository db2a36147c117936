"""Start of the service: one socket, one or several processes, and a graceful stop."""

import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import scipy.linalg  # noqa: F401 - threadpoolctl limits only a BLAS that is loaded
import uvicorn
from starlette.types import ASGIApp
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from uvicorn.supervisors import Multiprocess

from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.folder.collection_file import can_write, is_collection
from wsabie.collection.search.query_parsing import load_label_knowledge
from wsabie.core.errors import BusyError, InputError, require
from wsabie.core.execution import call_after_parent
from wsabie.core.input_files import format_open_error
from wsabie.core.memory_budget import share_memory_budgets
from wsabie.server import connections, metrics, model_holder
from wsabie.server.access_control import LOOPBACK
from wsabie.server.app import make_app
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.model_holder import CollectionModelHolder, FolderModelHolder
from wsabie.server.service_context import ServiceContext
from wsabie.server.tokens import TokenFile

LOGGERS = ("asyncio", "uvicorn.error", "wsabie.serve")
_INTERVAL = 60.0  # seconds
_MAX_KEYS = 1000
_OPTIONS_VARIABLE = "WSABIE_SERVE"
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GRACE_SECONDS = 30  # seconds for running requests when the service is stopped
_KILL_DELAY = 5  # seconds after these, until a process that still runs is killed
_IDLE_SECONDS = 10.0  # seconds that a connection may stay without a complete request
_load_label_knowledge = cache(load_label_knowledge)  # files are read once in a process


class RepeatFilter(logging.Filter):
    """Filter that passes each kind of message once a minute; the next one tells how many were left out.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "no handles"})
    >>> repeats = RepeatFilter()
    >>> [repeats.filter(record) for _ in range(3)]
    [True, False, False]
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if a message is to be written."""
        key, now = _make_key(record), time.monotonic()
        since, count = self.counts.get(key, (now - _INTERVAL, 0))
        if now - since < _INTERVAL:
            self.counts[key] = since, count + 1
            return False
        if count:
            record.msg, record.args = f"{record.getMessage()} ({count:,} more like this since the last)", None
        if len(self.counts) >= _MAX_KEYS:
            self.counts.clear()
        self.counts[key] = now, 0
        return True


def _make_key(record: logging.LogRecord) -> tuple[object, ...]:
    """Message without its details, and the position of the error in the code."""
    error, _, trace = record.exc_info or (None, None, None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    position = trace and (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return record.name, str(record.msg).partition("\n")[0][:80], error, position


@dataclass(frozen=True)
class ServiceOptions:
    """Options of the service.

    Attributes
    ----------
    folder : str
        Folder of a collection or of a model.
    host : str
    port : int
        0: any free port.
    tokens : str or None
        File of access tokens.
    names : tuple of str
        Host names of the service, beside `host`.
    workers : int
        Processes. They share the label table of the model in memory, and the feature table too if it is large.
    limits : ServiceLimits
    knowledge : tuple of str
        Files of word knowledge, for search.
    """

    folder: str
    host: str = "127.0.0.1"
    port: int = 8420
    tokens: str | None = None
    names: tuple[str, ...] = ()
    workers: int = 1
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    knowledge: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the service."""
        return self.host in LOOPBACK

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names that requests may give; (): any, since tokens control the access."""
        return (*LOOPBACK, *self.names) if self.is_local else self.names


def make_context(service: ServiceOptions) -> ServiceContext:
    """Open the collection or model and build the context of the application.

    Raises
    ------
    WsabieError
        There is no model, the token file is wrong, or there is none although other machines can reach the service.
    """
    if service.tokens is None and not service.is_local:
        fact = f"others could reach {service.host}, so the service needs tokens there"
        raise InputError(f"{fact}; make one with `wsabie token FILE NAME`, and give --tokens FILE")
    tokens = None if service.tokens is None else TokenFile(Path(service.tokens))
    folder = Path(service.folder)
    if not is_collection(folder):
        require(not service.knowledge, "--knowledge helps to search a collection, and a model is served; leave it out")
        return ServiceContext(service.limits, tokens, FolderModelHolder(folder))
    collection = open_collection(folder, read_only=not can_write(folder))
    knowledge = _load_label_knowledge(*map(Path, service.knowledge))
    return ServiceContext(service.limits, tokens, CollectionModelHolder(collection), collection, knowledge)


def open_socket(service: ServiceOptions) -> socket.socket:
    """Open the socket that requests come to.

    Raises
    ------
    InputError
        The address is taken, not of this machine, or not allowed.
    """
    family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only if the protocol is named; otherwise each answer waits 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        connections.limit_send_buffer(listener)
        listener.bind((service.host, service.port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        fault = f"cannot listen on {service.host} port {service.port}: {format_open_error(error)}"
        raise InputError(f"{fault}; choose another with --host or --port") from error
    return listener


def run_service(service: ServiceOptions, listener: socket.socket, on_start: Callable[[], None]) -> None:
    """Answer requests until the process is stopped; call `on_start` as soon as all checks have passed."""
    connections.raise_handle_limit()
    max_connections = connections.choose_connection_limit(service.limits.max_concurrent, service.limits.connections)
    context = make_context(service)  # reports an error once, here, and not from each process
    if context.collection is not None:
        context.collection.close()
    on_start()
    os.environ[_OPTIONS_VARIABLE] = msgspec.json.encode(service).decode()
    config = uvicorn.Config(
        f"{__name__}:{make_application.__name__}",
        factory=True,
        http=connections.StrictHttpProtocol,
        ws="none",
        # connections accepted in one go do not displace each other
        backlog=min(connections.BACKLOG, max_connections // 2 + 1),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        workers=service.workers,
    )

    with share_memory_budgets(), _check_database(context.collection):  # shared with jobs, which are processes too
        if service.workers == 1:
            uvicorn.Server(config).run(sockets=[listener])
        else:
            figures = _share_folder("figures", metrics.FOLDER_VARIABLE)
            with figures, _share_folder("tables", model_holder.TABLES_VARIABLE):
                Multiprocess(config, sockets=[listener]).run()


@contextmanager
def _check_database(collection: Collection | None) -> Iterator[None]:
    """Raise at the end if the database was replaced, emptied or cut meanwhile."""
    try:
        yield
    finally:
        if collection is not None:
            open_collection(collection.folder, read_only=True).close()


@contextmanager
def _share_folder(purpose: str, variable: str) -> Iterator[None]:
    """Share a temporary folder with all processes started meanwhile, by an environment variable."""
    with tempfile.TemporaryDirectory(prefix=f"wsabie-{purpose}-") as folder:
        os.environ[variable] = folder
        try:
            yield
        finally:
            del os.environ[variable]


def make_application() -> ASGIApp:
    """Build the application of one process from the options of its parent."""
    service = msgspec.json.decode(os.environ[_OPTIONS_VARIABLE], type=ServiceOptions)
    limits = service.limits
    call_after_parent(partial(os.kill, os.getpid(), signal.SIGTERM))  # it would keep the port
    max_connections = connections.choose_connection_limit(limits.max_concurrent, limits.connections)
    connections.StrictHttpProtocol.pool = connections.ConnectionTable(
        max_connections, limits.share, min(_IDLE_SECONDS, limits.seconds), limits.min_rate
    )
    repeats = RepeatFilter()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(repeats)
    for signal_number in _STOP_SIGNALS:
        signal.signal(signal_number, partial(_stop, signal.getsignal(signal_number)))
    application = make_app(_wait_for_context(service), service.hosts)
    _tune_for_concurrency()
    return application


def _wait_for_context(service: ServiceOptions) -> ServiceContext:
    """Build the context, and try again as long as the database is busy."""
    # The server's own signal handlers would wait for the database without end.
    handlers = {signal_number: signal.signal(signal_number, signal.SIG_DFL) for signal_number in _STOP_SIGNALS}
    try:
        while True:
            try:
                return make_context(service)
            except BusyError:
                time.sleep(1)
    finally:
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)


def _stop(handler: Any, signal_number: int, frame: FrameType | None) -> None:
    """Handle a stop signal, and let the system end this process if a request still runs long afterwards."""
    seconds_left = signal.alarm(_GRACE_SECONDS + _KILL_DELAY)
    if seconds_left:  # an earlier signal set the alarm
        signal.alarm(seconds_left)
    if callable(handler):
        handler(signal_number, frame)


def _tune_for_concurrency() -> None:
    """Tune this process for many small requests at a time."""
    threadpool_limits(1)  # threads of BLAS for each request would wait for each other: six times the processor time
    sys.setswitchinterval(0.0005)  # a thread that computes hands the interpreter over to the one that answers
    gc.collect()
    gc.freeze()  # loaded objects stay: scanning them again took a tenth of the time
