"""Where independent pieces of work run: here, or in a pool of processes. Results keep the order of the items."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wsabie.base.errors import WsabieError
from wsabie.base.memory_budget import shared_memory_file

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_log = logging.getLogger("wsabie")


class Executor(Protocol):
    """Maps a picklable function over items, lazily, in order, holding only a few items at a time."""

    @property
    def standing(self) -> bool:
        """Whether workers stay from one map to the next, so that short maps are worth handing out."""
        ...

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]: ...

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        """The results of `function(shared, item)`; `shared` travels to each worker only once."""
        ...


class WorkerError(WsabieError):
    """A worker process ended before its work was done."""


class Serial:
    """Runs everything in this process.

    Examples
    --------
    >>> list(Serial().map(abs, [-1, 2]))
    [1, 2]
    >>> list(Serial().map_with(pow, 2, [3, 4]))
    [8, 16]
    """

    standing = False

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return map(function, items)

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        return (function(shared, item) for item in items)


class Processes:
    """A pool of `workers` spawned processes; at most `2 * workers` items are in flight.

    Work begins in this process, and goes on in the pool after the item with which it has taken about as long as a
    worker takes to begin: a few items never start one, and need not travel. Spawn, not fork: the parent may hold
    threads (BLAS, training), and a fork would copy their locks. A script that uses it needs the usual
    `if __name__ == "__main__":`. Linear algebra in a worker runs on one thread, so that `workers` processes use
    `workers` cores.

    Parameters
    ----------
    workers : int
    after : float
        Seconds of work that are done here first.

    Raises
    ------
    WorkerError
        While results are taken: a worker was killed, for example for want of memory. (What kills this process while
        work begins here is told by nobody.)
    """

    standing = False

    def __init__(self, workers: int, after: float = 1.0) -> None:
        self.workers = workers
        self.after = after

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self._run(function, function, items, None)

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        return self._run(partial(function, shared), partial(_call_with_shared, function), items, shared)

    def _run(
        self, here: Callable[[Item], Result], there: Callable[[Item], Result], items: Iterable[Item], shared: Any
    ) -> Iterator[Result]:
        items = iter(items)
        yield from self._begun(here, items)
        with shared_memory_file():  # workers together hold what one process may hold
            try:
                pool = self._open_pool(shared)
            except OSError as error:  # their locks need shared memory
                _log.warning("no worker processes can be started (%s): this process does it all", error)
                yield from map(here, items)
                return
            yield from self._pooled(pool, there, items)

    def _begun(self, function: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
        """The results of the first items, as a worker would have them."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        spent = 0.0
        for item in items if self.after > 0 else ():
            started = time.perf_counter()
            with threadpool_limits(1):
                result = function(item)
            spent += time.perf_counter() - started
            yield result
            if spent >= self.after:
                return

    def _open_pool(self, shared: Any) -> "ProcessPoolExecutor":
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        spawn = get_context("spawn")
        return ProcessPoolExecutor(self.workers, mp_context=spawn, initializer=_begin_worker, initargs=(shared,))

    def _pooled(
        self, pool: "ProcessPoolExecutor", function: Callable[[Item], Result], items: Iterator[Item]
    ) -> Iterator[Result]:
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise WorkerError(
                f"one of {self.workers} worker processes was killed, perhaps for want of memory; "
                "run again with fewer workers"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_shared: Any = None  # in a worker: what its pool gave to all items


def _begin_worker(shared: Any) -> None:
    global _shared
    _shared = shared
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compute_on_one_thread()


def compute_on_one_thread() -> None:
    """Linear algebra of this process, a worker, from now on."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))  # for libraries that are loaded later
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for those that are loaded already


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers, and they would wait for work for ever."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _call_with_shared(function: Callable[[Any, Item], Result], item: Item) -> Result:
    return function(_shared, item)
