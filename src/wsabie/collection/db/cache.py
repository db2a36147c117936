"""Thread-safe caches of the last few values read from files or from a collection's database."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache, cached
from sqlalchemy import Connection

from wsabie.collection.db.journal import read_last_ids

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
        cache: LRUCache[Hashable, T] = LRUCache(max_size)

        @cached(cache, key=lambda key, make: key, condition=threading.Condition())
        def get(key: Hashable, make: Callable[[], T]) -> T:
            """Return the value of a key; compute it with `make` if it is missing."""
            return make()

        self.get = get


class DatabaseCache(Generic[T]):
    """Cache of what `load` returned for the last database, valid until the database changes.

    Parameters
    ----------
    load : callable
        Reads the value.
    """

    def __init__(self, load: Callable[[Connection], T]) -> None:
        self._load, self._values = load, FileCache[T](1)

    def __call__(self, connection: Connection) -> T:
        """Return the current value; callers must not modify it."""
        entry, change = read_last_ids(connection)
        if change is None:  # a database without changes may be a new one at the same address
            return self._load(connection)
        return self._values.get((str(connection.engine.url), entry, change), lambda: self._load(connection))
