"""Open connections of a process: how many there may be, and which of them are closed.

A process that has no file handle left can accept nobody, and open neither its database nor a picture. So there are
fewer connections than handles; a new one takes the place of the one that has been idle for longest. Once a second those
are closed that have been idle for too long, and those whose client does not read what is sent to it.
"""

import asyncio
import fcntl
import resource
import socket
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from wsabie.base.errors import InputError
from wsabie.faces.serve.places import WINDOW, Places

BACKLOG = 100
"""Connections that wait to be accepted, and are accepted in one go before any of them is closed."""
_MOST = 1000
_FEWEST = 16
_HANDLES = 65_536
_USUAL_FILES = 64
_SEND_BUFFER = 64 << 10


class Connection(Protocol):
    """An open connection of one client."""

    caller: str
    transport: asyncio.Transport


class Connections:
    """The open connections of one process.

    Parameters
    ----------
    most : int
    share : float
        Of these, for each address.
    seconds : float
        That a connection may be idle: without a request that is whole, or is being answered.
    rate : float
        Bytes a second that a client has to read, at least, of what waits for it.
    """

    def __init__(self, most: int, share: float, seconds: float, rate: float) -> None:
        self.places, self.seconds, self.rate = Places(most, share), seconds, rate
        self.open: dict[Connection, tuple[float, int] | None] = {}  # since when so many bytes wait for the client
        self.idle: dict[Connection, float] = {}  # since when; the longest first
        self.timer: asyncio.TimerHandle | None = None

    def add(self, connection: Connection) -> bool:
        """Take a new connection in; False: it has to be refused, since all others are at work."""
        caller = connection.caller
        if not self.places.take(caller):
            own = self.places.has_share(caller)
            rivals = (one for one in self.idle if not own or one.caller == caller)
            oldest = next((one for one in rivals if not one.transport.get_write_buffer_size()), None)
            if oldest is None:
                return False
            self.close(oldest)
            if not self.places.take(caller):
                return False
        self.open[connection] = None
        self.rest(connection)
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(1, self.sweep)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection, which is closed or about to be."""
        self.idle.pop(connection, None)
        if connection in self.open:
            del self.open[connection]
            self.places.leave(connection.caller)

    def close(self, connection: Connection) -> None:
        """Close a connection at once, whatever was to be sent yet."""
        self.remove(connection)
        connection.transport.abort()

    def rest(self, connection: Connection) -> None:
        """Note that nothing is done for a connection from now on."""
        if connection in self.open:
            self.idle.pop(connection, None)
            self.idle[connection] = asyncio.get_running_loop().time()

    def wake(self, connection: Connection) -> None:
        """Note that a request of it is at work."""
        self.idle.pop(connection, None)

    def progress(self, connection: Connection) -> None:
        """Note that a client has read a good part of what waited for it."""
        if connection in self.open:
            self.open[connection] = None

    def sweep(self) -> None:
        """Close connections that are idle for too long or read too slowly, and look again in a second."""
        now = asyncio.get_running_loop().time()
        for one in [one for one in self.idle if one.transport.get_write_buffer_size()]:
            self.rest(one)  # its client still reads the answer
        late = [one for one, since in self.idle.items() if now - since > self.seconds]
        for connection in [*late, *[one for one in self.open if self._is_stuck(one, now)]]:
            self.close(connection)
        self.timer = asyncio.get_running_loop().call_later(1, self.sweep) if self.open else None

    def _is_stuck(self, connection: Connection, now: float) -> bool:
        waiting, mark = _unread_bytes(connection.transport), self.open[connection]
        if not waiting:
            self.open[connection] = None
        elif mark is None or mark[1] - waiting >= self.rate * WINDOW:
            self.open[connection] = now, waiting
        elif now - mark[0] > WINDOW:
            return True
        return False


def _unread_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not taken yet; 0 where the system holds all of them."""
    waiting = transport.get_write_buffer_size()
    if waiting:
        with suppress(OSError):  # a system that does not say: its buffer is small (`limit_send_buffer`)
            held = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
            waiting += int.from_bytes(held, sys.byteorder)
    return waiting


def limit_send_buffer(listener: socket.socket) -> None:
    """Keep the system's buffers of connections small where it does not say how full they are."""
    if sys.platform != "linux":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


def raise_handle_limit() -> None:
    """Let this process and its children open as many files as they may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _HANDLES if hard == resource.RLIM_INFINITY else min(hard, _HANDLES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems take fewer than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def connection_limit(together: int, requested: int | None = None) -> int:
    """Return how many connections a process may have open.

    Handles for its database, models, pictures and connections that are just being accepted are set aside.

    Parameters
    ----------
    together : int
        Requests in one stage.
    requested : int or None
        None: as many as there are handles for, and at most 1,000.

    Raises
    ------
    InputError
        There are handles for too few.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    handles = _HANDLES if soft == resource.RLIM_INFINITY else soft
    reserve = BACKLOG + min(4 * together, handles // 4)
    most = handles - _count_open_files() - reserve
    if most < max(_FEWEST, requested or 0):
        need = handles - most + max(_FEWEST, requested or 0)
        raise InputError(
            f"{handles} files may be open, too few for {requested or _FEWEST} connections; run first: ulimit -n {need}"
        )
    return requested or min(most, _MOST)


def _count_open_files() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:  # a container without /proc
        return _USUAL_FILES
