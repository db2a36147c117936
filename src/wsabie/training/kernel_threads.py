"""Threads for kernels that release the GIL, in short pieces that let progress and Ctrl-C through.

A thread pool of `concurrent.futures` does not survive Ctrl-C: an interrupt within its locks leaves one locked, and the
program hangs. At a thousand pieces a second this happens to users. Queues that are written in C have no such moment.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from wsabie.kernels.simd.thread_counters import allocate_counters

_MIN_PARALLEL_ITEMS = 64  # fewer items are done before another thread would have started

_Work = Callable[[int], None]
_Results = SimpleQueue[BaseException | None]


class KernelThreads:
    """Pool of n - 1 threads; the calling thread is the n-th. Use it as a context manager.

    `counts` are the counters of barriers inside a kernel. After an error no thread waits at a barrier any more.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.counts = allocate_counters(n)
        self._tasks = [SimpleQueue[tuple[_Work, _Results] | None]() for _ in range(1, n)]
        self._threads = [threading.Thread(target=self._run_tasks, args=(t,), daemon=True) for t in range(1, n)]
        for thread in self._threads:
            thread.start()

    def run_each(self, work: _Work) -> None:
        """Run work(0) .. work(n - 1) at once, each in its own thread, so that they may wait for each other."""
        results = _Results()
        try:
            for tasks in self._tasks:
                tasks.put((work, results))
            work(0)
            errors = [results.get() for _ in self._tasks]
        except BaseException:
            self._cancel_meetings()
            raise
        for error in errors:
            if error is not None:
                raise error

    def _run_tasks(self, t: int) -> None:
        while (task := self._tasks[t - 1].get()) is not None:
            work, results = task
            error = None
            try:
                work(t)
            except BaseException as fault:
                self._cancel_meetings()
                error = fault
            results.put(error)

    def _cancel_meetings(self) -> None:
        self.counts[-1, 0] = 1

    def split(self, work: Callable[[int, int], None], n_items: int) -> None:
        """Run work(lo, hi) over equal parts of 0..n_items, in pieces of at most 4,096 items per thread."""
        if n_items < _MIN_PARALLEL_ITEMS:
            work(0, n_items)
            return
        step = 4096 * self.n
        for start in range(0, n_items, step):
            bounds = np.linspace(start, min(n_items, start + step), self.n + 1).astype(int)
            self.run_each(lambda t, b=bounds: work(int(b[t]), int(b[t + 1])))  # type: ignore[misc]

    def __enter__(self) -> "KernelThreads":
        return self

    def __exit__(self, *_: object) -> None:
        for tasks in self._tasks:
            tasks.put(None)
        for thread in self._threads:
            thread.join()
