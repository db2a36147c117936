"""Thread pool for work that releases the GIL."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def run_in_threads(work: Callable[[Item], object], items: Sequence[Item], threads: int) -> None:
    """Call work(item) for every item, `threads` at once; the first error is raised.

    Examples
    --------
    >>> seen = []
    >>> run_in_threads(seen.append, range(3), threads=2)
    >>> sorted(seen)
    [0, 1, 2]
    """
    if threads == 1 or len(items) < 2:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="wsabie") as pool:
        for _ in pool.map(work, items):
            pass
