"""Preparation of the next item in a thread while the one before is in use."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, each made in a thread while the one before is in use; at most two exist at once.

    Examples
    --------
    >>> list(prefetch(range(3)))
    [0, 1, 2]
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="wsabie-reads") as pool:
        future = pool.submit(next, iterator, _END)
        while (item := future.result()) is not _END:
            future = pool.submit(next, iterator, _END)
            yield item
