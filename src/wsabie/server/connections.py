"""Open connections of a process: strict HTTP/1.1, their limit, and which of them are closed.

A process without free file handles can accept nobody, and open neither its database nor a picture. So there are fewer
connections than handles; a new connection replaces the one that has been idle for longest. Once a second, connections
are closed that have been idle for too long or whose client does not read its answer.

uvicorn 0.54 closes neither a connection without a request nor one whose answer nobody reads, and h11 0.16 takes LF
alone as the end of a line.
"""

import asyncio
import fcntl
import resource
import socket
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer, blank_line_regex
from uvicorn.protocols.http.h11_impl import H11Protocol

from wsabie.core.errors import InputError
from wsabie.server.limits.slots import WINDOW, SlotPool, get_caller_address
from wsabie.server.problems import MEDIA_TYPE, build_problem

BACKLOG = 100
"""Connections that may wait to be accepted; they are accepted in one go before any of them is closed."""
_MAX_CONNECTIONS = 1000
_MIN_CONNECTIONS = 16
_MAX_HANDLES = 65_536
_TYPICAL_OPEN_FILES = 64
_SEND_BUFFER = 64 << 10
_MAX_HEAD, _MAX_LINES = 64 << 10, 100
_NO_REQUEST = "malformed HTTP/1.1 request, or a head of more than 64 kB or 100 lines; correct it"
_REASONS = {400: b"Bad Request", 503: b"Service Unavailable"}


class ConnectionTable:
    """The open connections of one process.

    Parameters
    ----------
    max_connections : int
    share : float
        Share of the connections for each address.
    idle_seconds : float
        Longest time without a complete request that is being answered.
    min_rate : float
        Lowest rate at which a client has to read its answer, in bytes a second.
    """

    def __init__(self, max_connections: int, share: float, idle_seconds: float, min_rate: float) -> None:
        self.slots, self.seconds, self.rate = SlotPool(max_connections, share), idle_seconds, min_rate
        # since when so many bytes wait for the client
        self.open: dict[StrictHttpProtocol, tuple[float, int] | None] = {}
        self.idle: dict[StrictHttpProtocol, float] = {}  # since when; the longest first
        self.timer: asyncio.TimerHandle | None = None

    def add(self, connection: "StrictHttpProtocol") -> bool:
        """Add a new connection; return False if it has to be refused, since all others are busy."""
        caller = connection.caller
        if not self.slots.acquire(caller):
            has_share = self.slots.has_share(caller)
            rivals = (rival for rival in self.idle if not has_share or rival.caller == caller)
            oldest = next((rival for rival in rivals if not rival.transport.get_write_buffer_size()), None)
            if oldest is None:
                return False
            self.close(oldest)
            if not self.slots.acquire(caller):
                return False
        self.open[connection] = None
        self.mark_idle(connection)
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(1, self.sweep)
        return True

    def remove(self, connection: "StrictHttpProtocol") -> None:
        """Remove a connection that is closed or about to be."""
        self.idle.pop(connection, None)
        if connection in self.open:
            del self.open[connection]
            self.slots.release(connection.caller)

    def close(self, connection: "StrictHttpProtocol") -> None:
        """Close a connection at once, even if data still waits to be sent."""
        self.remove(connection)
        connection.transport.abort()

    def mark_idle(self, connection: "StrictHttpProtocol") -> None:
        """Note that a connection is idle from now on."""
        if connection in self.open:
            self.idle.pop(connection, None)
            self.idle[connection] = asyncio.get_running_loop().time()

    def mark_busy(self, connection: "StrictHttpProtocol") -> None:
        """Note that a request of the connection is being answered."""
        self.idle.pop(connection, None)

    def progress(self, connection: "StrictHttpProtocol") -> None:
        """Note that a client has read a good part of its answer."""
        if connection in self.open:
            self.open[connection] = None

    def sweep(self) -> None:
        """Close connections that are idle for too long or read too slowly, and schedule the next sweep."""
        now = asyncio.get_running_loop().time()
        for connection in [idle for idle in self.idle if idle.transport.get_write_buffer_size()]:
            self.mark_idle(connection)  # its client still reads the answer
        late = [connection for connection, since in self.idle.items() if now - since > self.seconds]
        for connection in [*late, *[connection for connection in self.open if self._is_stuck(connection, now)]]:
            self.close(connection)
        self.timer = asyncio.get_running_loop().call_later(1, self.sweep) if self.open else None

    def _is_stuck(self, connection: "StrictHttpProtocol", now: float) -> bool:
        waiting, snapshot = _unread_bytes(connection.transport), self.open[connection]
        if not waiting:
            self.open[connection] = None
        elif snapshot is None or snapshot[1] - waiting >= self.rate * WINDOW:
            self.open[connection] = now, waiting
        elif now - snapshot[0] > WINDOW:
            return True
        return False


def _unread_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not taken yet; 0 where the system holds all of them."""
    waiting = transport.get_write_buffer_size()
    if waiting:
        with suppress(OSError):  # a system that cannot tell: its buffer is small (`limit_send_buffer`)
            buffered = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
            waiting += int.from_bytes(buffered, sys.byteorder)
    return waiting


def limit_send_buffer(listener: socket.socket) -> None:
    """Keep the send buffers of the system small if it cannot tell how full they are."""
    if sys.platform != "linux":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


def raise_handle_limit() -> None:
    """Let this process and its children open as many files as they may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MAX_HANDLES if hard == resource.RLIM_INFINITY else min(hard, _MAX_HANDLES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(OSError, ValueError):  # some systems take fewer than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def choose_connection_limit(max_concurrent: int, requested: int | None = None) -> int:
    """Return the number of connections that a process may have open.

    Handles for its database, models, pictures and connections that are just being accepted are set aside.

    Parameters
    ----------
    max_concurrent : int
        Requests in one stage.
    requested : int or None
        None: as many as there are handles for, and at most 1,000.

    Raises
    ------
    InputError
        There are too few handles.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    handles = _MAX_HANDLES if soft == resource.RLIM_INFINITY else soft
    reserve = BACKLOG + min(4 * max_concurrent, handles // 4)
    limit = handles - _count_open_files() - reserve
    if limit < max(_MIN_CONNECTIONS, requested or 0):
        needed = handles - limit + max(_MIN_CONNECTIONS, requested or 0)
        fact = f"{handles} files may be open, too few for {requested or _MIN_CONNECTIONS} connections"
        raise InputError(f"{fact}; run first: ulimit -n {needed}")
    return requested or min(limit, _MAX_CONNECTIONS)


def _count_open_files() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:  # a container without /proc
        return _TYPICAL_OPEN_FILES


class StrictHttpProtocol(H11Protocol):
    """Protocol of one connection of the service.

    Attributes
    ----------
    pool : ConnectionTable
        All connections of this process; it closes idle and slow ones.
    caller : str
        Address that counts for shares.
    """

    pool: ConnectionTable

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = StrictConnection()
        self.caller = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection into the pool, or refuse it."""
        super().connection_made(transport)
        self.caller = get_caller_address(self.client)
        if not self.pool.add(self):
            transport.write(self._answer(503, "too many connections at once; try again in a moment"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Handle what the client sends."""
        super().data_received(data)
        self._note_work()

    def resume_writing(self) -> None:
        """Go on writing, now that the client has read most of its answer."""
        super().resume_writing()
        self.pool.progress(self)

    def on_response_complete(self) -> None:
        """End a request; the next one may have arrived already."""
        self.pool.mark_idle(self)
        super().on_response_complete()
        self._note_work()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, and close the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the unfinished request gets no other answer
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(self._answer(400, _NO_REQUEST))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the pool."""
        super().connection_lost(exc)
        self.pool.remove(self)

    def _note_work(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.pool.mark_busy(self)

    def _answer(self, status: int, detail: str) -> bytes:
        """Return the bytes of an answer that needs no application."""
        document = build_problem(status, detail)
        headers = [
            ("content-type", MEDIA_TYPE),
            ("content-length", str(len(document))),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ]
        response = h11.Response(status_code=status, headers=headers, reason=_REASONS[status])
        events = (response, h11.Data(data=document), h11.EndOfMessage())
        return b"".join(self.conn.send(event) or b"" for event in events)


class StrictConnection(h11.Connection):
    """Server side of a connection that refuses ambiguous requests."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, _MAX_HEAD)
        self._receive_buffer = _StrictBuffer()

    def next_event(self) -> Any:
        """Return the next event; see `h11.Connection.next_event`."""
        event = super().next_event()
        if isinstance(event, h11.Request) and not _is_plain(event):
            raise h11.RemoteProtocolError("ambiguous request")
        return event


class _StrictBuffer(ReceiveBuffer):
    """Receive buffer whose heads and trailers end as HTTP says, for everybody in between too."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        data = self._data
        if not data.startswith(b"\r\n"):  # no lines at all, as after most bodies in chunks
            blank = blank_line_regex.search(data, self._multiple_lines_search)
            if data.startswith(b"\n") or (blank and not _has_plain_lines(data[: blank.end()])):
                raise h11.RemoteProtocolError("malformed line ending or continued line")
        return super().maybe_extract_lines()


def _has_plain_lines(head: bytearray) -> bool:
    """Return True if the lines of a head are few, end with CR LF, and none continues another."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n", _MAX_LINES)
    return len(head) <= _MAX_HEAD and not any(b"\n" in line or line.startswith((b" ", b"\t")) for line in lines)


def _is_plain(request: h11.Request) -> bool:
    names = [name for name, _ in request.headers]
    chunked = b"transfer-encoding" in names
    target = request.target.startswith(b"/") or (request.target == b"*" and request.method == b"OPTIONS")
    versions = (b"1.1",) if chunked else (b"1.0", b"1.1")
    has_two_lengths = chunked and b"content-length" in names
    return target and request.http_version in versions and not has_two_lengths
