"""Threads over kernels that release the GIL, in short pieces, so that progress and Ctrl-C are served in between."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np

_FEW = 64  # items that are done before another thread would have started


class Threads:
    """A pool of n - 1 threads; the calling thread is the n-th. Use as a context manager.

    `counts` are those of the meetings inside a kernel (`wsabie.kernels.barrier`), (n + 1, 16) int64, a cache line each.
    After an error nobody meets any more.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.counts = np.zeros((n + 1, 16), np.int64)
        self._pool = ThreadPoolExecutor(n - 1, thread_name_prefix="wsabie") if n > 1 else None

    def each(self, work: Callable[[int], None]) -> None:
        """work(0) .. work(n - 1), each in a thread of its own and all at once, so that they may wait for each other."""
        try:
            running = [self._pool.submit(self._one, work, t) for t in range(1, self.n)] if self._pool else []
            work(0)
            for future in running:
                future.result()
        except BaseException:
            self._dismiss()
            raise

    def _one(self, work: Callable[[int], None], t: int) -> None:
        try:
            work(t)
        except BaseException:
            self._dismiss()
            raise

    def _dismiss(self) -> None:
        self.counts[-1, 0] = 1

    def split(self, work: Callable[[int, int], None], n_items: int) -> None:
        """work(lo, hi) over equal parts of 0..n_items, in pieces of at most 4,096 items per thread."""
        if n_items < _FEW:
            work(0, n_items)
            return
        step = 4096 * self.n
        for start in range(0, n_items, step):
            stop = min(n_items, start + step)
            bounds = np.linspace(start, stop, self.n + 1).astype(int)
            self.each(lambda t, b=bounds: work(int(b[t]), int(b[t + 1])))  # type: ignore[misc]

    def __enter__(self) -> "Threads":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)
