"""Thread-safe caches of the last few values read from files or from a catalogue."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from wsabie.collection.db.journal import read_last_numbers

T = TypeVar("T")


class FileCache(Generic[T]):
    """Cache of the last few values; concurrent requests for a missing key compute it once.

    Examples
    --------
    >>> cache = FileCache[str](2)
    >>> [cache.get(key, lambda: 2 * key) for key in "abc"]
    ['aa', 'bb', 'cc']
    >>> cache.get("c", lambda: "new"), cache.get("a", lambda: "new")
    ('cc', 'new')
    """

    def __init__(self, max_size: int) -> None:
        self._max_size, self._values, self._lock = max_size, dict[Any, T](), threading.Lock()

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """Return the value of a key; compute it with `make` if it is missing."""
        value = self._values.get(key)
        if value is not None:
            return value
        with self._lock:
            value = self._values.get(key)
            if value is None:
                value = make()
                while len(self._values) >= self._max_size:
                    del self._values[next(iter(self._values))]
                self._values[key] = value
        return value


CatalogueStamp = tuple[int, int | None]


class CatalogueCache(Generic[T]):
    """Cache of what `load` returned for the last few catalogues, valid until the catalogue changes.

    Parameters
    ----------
    load : callable
        Reads the value.
    max_size : int
        Largest number of catalogues in the cache.
    """

    def __init__(self, load: Callable[[Connection], T], max_size: int = 4) -> None:
        self._load, self._max_size = load, max_size
        self._entries: dict[str, tuple[CatalogueStamp, T]] = {}
        self._lock = threading.Lock()  # many threads ask at once after a change

    def __call__(self, connection: Connection) -> T:
        """Return the current value; callers must not modify it."""
        key, stamp = str(connection.engine.url), read_last_numbers(connection)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] == stamp and stamp[1] is not None:
                return entry[1]
            value = self._load(connection)
            if len(self._entries) >= self._max_size:
                self._entries.clear()
            self._entries[key] = (stamp, value)
            return value
