"""What is read from a whole catalogue and kept in memory until the journal grows."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import Connection

from wsabie.catalogue.journal import last

T = TypeVar("T")
Stamp = tuple[int, int | None]


class Remembered(Generic[T]):
    """Keeps what `read` gave for the last few catalogues, as long as nothing changes in them.

    Parameters
    ----------
    read : callable
        Reads it.
    most : int
        Catalogues that are remembered, at most.
    """

    def __init__(self, read: Callable[[Connection], T], most: int = 4) -> None:
        self._read, self._most = read, most
        self._kept: dict[str, tuple[Stamp, T]] = {}
        self._lock = threading.Lock()  # many ask at once when something has changed

    def __call__(self, connection: Connection) -> T:
        """What is there now; whoever asks must leave it as it is."""
        key, stamp = str(connection.engine.url), last(connection)
        with self._lock:
            there = self._kept.get(key)
            if there is not None and there[0] == stamp and stamp[1] is not None:
                return there[1]
            found = self._read(connection)
            if len(self._kept) >= self._most:
                self._kept.clear()
            self._kept[key] = (stamp, found)
            return found
