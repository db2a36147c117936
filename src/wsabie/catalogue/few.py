"""What is made of files and kept in memory: the last few things, by what tells them from others."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Few(Generic[T]):
    """The last few things that were made, by their keys; of many who ask first, one makes it and the others wait.

    Examples
    --------
    >>> few = Few[str](2)
    >>> [few.get(key, lambda: 2 * key) for key in "abc"]
    ['aa', 'bb', 'cc']
    >>> few.get("c", lambda: "made anew"), few.get("a", lambda: "made anew")
    ('cc', 'made anew')
    """

    def __init__(self, most: int) -> None:
        self._most, self._there, self._making = most, dict[Any, T](), threading.Lock()

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """What is kept under a key, made where nothing is."""
        found = self._there.get(key)
        if found is not None:
            return found
        with self._making:
            found = self._there.get(key)
            if found is None:
                found = make()
                while len(self._there) >= self._most:
                    del self._there[next(iter(self._there))]
                self._there[key] = found
        return found
