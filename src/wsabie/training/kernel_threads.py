"""Threads for kernels that release the GIL, in short pieces that let progress and Ctrl-C through."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_MIN_PARALLEL_ITEMS = 64  # fewer items are done before another thread would have started


class KernelThreads:
    """Pool of n - 1 threads; the calling thread is the n-th. Use it as a context manager.

    `counts` are the counters of barriers inside a kernel (`wsabie.kernels.training.deterministic_loop`), (n + 1, 16)
    int64, one cache line each. After an error no thread waits at a barrier any more.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.counts = np.zeros((n + 1, 16), np.int64)
        self._pool = ThreadPoolExecutor(n - 1, thread_name_prefix="wsabie") if n > 1 else None

    def run_each(self, work: Callable[[int], None]) -> None:
        """Run work(0) .. work(n - 1) at once, each in its own thread, so that they may wait for each other."""
        try:
            running = [self._pool.submit(self._run_work, work, t) for t in range(1, self.n)] if self._pool else []
            work(0)
            for future in running:
                future.result()
        except BaseException:
            self._cancel_meetings()
            raise

    def _run_work(self, work: Callable[[int], None], t: int) -> None:
        try:
            work(t)
        except BaseException:
            self._cancel_meetings()
            raise

    def _cancel_meetings(self) -> None:
        self.counts[-1, 0] = 1

    def split(self, work: Callable[[int, int], None], n_items: int) -> None:
        """Run work(lo, hi) over equal parts of 0..n_items, in pieces of at most 4,096 items per thread."""
        if n_items < _MIN_PARALLEL_ITEMS:
            work(0, n_items)
            return
        step = 4096 * self.n
        for start in range(0, n_items, step):
            stop = min(n_items, start + step)
            bounds = np.linspace(start, stop, self.n + 1).astype(int)
            self.run_each(lambda t, b=bounds: work(int(b[t]), int(b[t + 1])))  # type: ignore[misc]

    def __enter__(self) -> "KernelThreads":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)
