"""Work shared out over threads: all of it, once, and errors come back."""

import threading

import numpy as np
import pytest

from wsabie.training.kernel_threads import KernelThreads


@pytest.mark.parametrize("n", [1, 2, 5])
def test_each_runs_once_per_thread(n: int) -> None:
    thread_ids: list[int] = []
    lock = threading.Lock()

    def work(t: int) -> None:
        with lock:
            thread_ids.append(t)

    with KernelThreads(n) as threads:
        threads.run_each(work)
        threads.run_each(work)
    assert sorted(thread_ids) == sorted([*range(n)] * 2)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("items", [0, 1, 63, 64, 4096, 30_000])
def test_split_covers_all_items_once(n: int, items: int) -> None:
    counts = np.zeros(items, int)

    def work(lo: int, hi: int) -> None:
        assert hi - lo <= 4096  # Ctrl-C is served in between
        counts[lo:hi] += 1

    with KernelThreads(n) as threads:
        threads.split(work, items)
    assert (counts == 1).all()


@pytest.mark.parametrize("guilty", [0, 2])
def test_an_error_in_any_thread_is_raised(guilty: int) -> None:
    def work(t: int) -> None:
        if t == guilty:
            raise ZeroDivisionError

    with KernelThreads(3) as threads, pytest.raises(ZeroDivisionError):
        threads.run_each(work)
