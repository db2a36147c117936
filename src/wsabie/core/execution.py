"""Execution of independent work, here, in threads or in processes, with the progress that it reports.

Executors keep the order of results. The command line and the service implement `Progress`, everything else only
calls it.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from wsabie.core.errors import WsabieError
from wsabie.core.memory_budget import share_memory_budgets


class Stage(Protocol):
    """One running stage: `advance` by items done, with figures worth showing beside the bar."""

    def advance(self, n: int = 1, **figures: float) -> None: ...


class Progress(Protocol):
    """Opens a stage; `total` in `unit`s (None when unknown)."""

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]: ...


class SilentProgress:
    """Progress that reports nothing; the default.

    Examples
    --------
    >>> with SilentProgress().stage("reading", 3, "pictures") as stage:
    ...     stage.advance(3)
    """

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Stage]:
        yield self

    def advance(self, n: int = 1, **figures: float) -> None:
        return None


SILENT = SilentProgress()


Item = TypeVar("Item")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

DEVICE_VARIABLE = "WSABIE_DEVICE"
"""Environment variable with the device of image encoders, which processes inherit; unset: cpu."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_log = logging.getLogger("wsabie")
_shared: Any = None  # in a worker: what its pool gave to all items


class Executor(Protocol):
    """Maps a picklable function over items, lazily, in order, holding only a few items at a time."""

    has_persistent_workers: bool
    """True if workers stay from one map to the next, so that short maps are worth handing out."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results of `function(item)`, in the order of the items.

        Parameters
        ----------
        function : callable
            Picklable.
        items : iterable
            Taken as results are, a few in advance.

        Yields
        ------
        object
        """
        return self.map_with(call, function, items)

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        """Yield the results of `function(shared, item)`; `shared` travels to each worker only once.

        Parameters
        ----------
        function : callable
            Picklable; gets `shared` and an item.
        shared : object
            Picklable; the same for all items.
        items : iterable
            Taken as results are, a few in advance.

        Yields
        ------
        object
            In the order of the items.
        """
        ...


class WorkerError(WsabieError):
    """Worker process that ended before its work was done."""


class SerialExecutor(Executor):
    """Executor that runs everything in this process.

    Examples
    --------
    >>> list(SerialExecutor().map(abs, [-1, 2]))
    [1, 2]
    >>> list(SerialExecutor().map_with(pow, 2, [3, 4]))
    [8, 16]
    """

    has_persistent_workers = False

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        return (function(shared, item) for item in items)


class ProcessExecutor(Executor):
    """Pool of `workers` spawned processes; at most `2 * workers` items are in flight.

    Work begins in this process. It continues in the pool once an item has taken about as long as a worker
    takes to start, so a few items never start one and need not travel. Spawn, not fork: the parent may hold
    threads (BLAS, training), and a fork would copy their locks. A script that uses it needs the usual
    `if __name__ == "__main__":`. Linear algebra in a worker runs on one thread, so that `workers` processes use
    `workers` cores.

    Parameters
    ----------
    workers : int
    local_seconds : float
        Seconds of work that are done here first.

    Raises
    ------
    WorkerError
        While results are taken: a worker was killed, for example for want of memory. (What kills this process while
        work begins here is not reported.)
    """

    has_persistent_workers = False

    def __init__(self, workers: int, local_seconds: float = 1.0) -> None:
        self.workers = workers
        self.local_seconds = local_seconds

    def map_with(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]
    ) -> Iterator[Result]:
        local_function, items = partial(function, shared), iter(items)
        yield from self._run_first_items(local_function, items)
        from concurrent.futures import Future, ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        with share_memory_budgets():  # workers together hold what one process may hold
            try:
                pool = ProcessPoolExecutor(self.workers, get_context("spawn"), _begin_worker, (shared,))
            except OSError as error:  # their locks need shared memory
                _log.warning("no worker processes can be started (%s): this process does it all", error)
                yield from map(local_function, items)
                return
            pool_function, futures = partial(_call_with_shared, function), deque[Future[Result]]()
            try:
                for item in items:
                    futures.append(pool.submit(pool_function, item))
                    if len(futures) >= 2 * self.workers:
                        yield futures.popleft().result()
                while futures:
                    yield futures.popleft().result()
            except BrokenProcessPool as error:
                problem = f"one of {self.workers} worker processes was killed, perhaps for want of memory"
                raise WorkerError(f"{problem}; run again with fewer workers") from error
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _run_first_items(self, function: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
        """Yield the results of the first items, computed on one BLAS thread as a worker would."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        spent = 0.0
        for item in items if self.local_seconds > 0 else ():
            started = time.perf_counter()
            with threadpool_limits(1):
                result = function(item)
            spent += time.perf_counter() - started
            yield result
            if spent >= self.local_seconds:
                return


class SharedContext(AbstractContextManager[None]):
    """Context that nested blocks and threads share: the first opens it, and the last closes it."""

    def __init__(self, open_context: Callable[[], AbstractContextManager[object]]) -> None:
        self._open, self._lock, self._users, self._stack = open_context, threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._stack.enter_context(self._open())
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._stack.close()


def _begin_worker(shared: object) -> None:
    global _shared
    _shared = shared
    call_after_parent(partial(os._exit, 1))  # it would wait for work for ever
    disable_blas_threads()


def disable_blas_threads() -> None:
    """Limit linear algebra to one thread for the rest of this process."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))  # for libraries that are loaded later
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # for those that are loaded already


def call_after_parent(end: Callable[[], object]) -> None:
    """Call `end` in a thread when the parent of this process is killed."""
    from multiprocessing import connection, parent_process

    def wait_for_parent() -> None:
        if (parent := parent_process()) is not None:
            connection.wait([parent.sentinel])
            end()

    threading.Thread(target=wait_for_parent, daemon=True).start()


def call(function: Callable[[Item], Result], item: Item) -> Result:
    """Return function(item), for `map_with` where nothing but the function is shared."""
    return function(item)


def _call_with_shared(function: Callable[[Any, Item], Result], item: Item) -> Result:
    return function(_shared, item)


def run_in_ranges(work: Callable[[int, int], object], n: int, step: int, threads: int) -> None:
    """Run `work(lo, hi)` for ranges of `step` that cover 0 to n; see `run_in_threads`."""
    run_in_threads(lambda lo: work(lo, min(lo + step, n)), range(0, n, step), threads)


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
