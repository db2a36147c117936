"""Where independent pieces of work run: here, or in a pool of processes. Results keep the order of the items."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Maps a picklable function over items, lazily, in order, holding only a few items at a time."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]: ...


class Serial:
    """Runs everything in this process.

    Examples
    --------
    >>> list(Serial().map(abs, [-1, 2]))
    [1, 2]
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return map(function, items)


class Processes:
    """A pool of `workers` spawned processes; at most `2 * workers` items are in flight.

    Spawn, not fork: the parent may hold threads (BLAS, training), and a fork would copy their locks.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        from concurrent.futures import Future, ProcessPoolExecutor
        from multiprocessing import get_context

        pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
