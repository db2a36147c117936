"""Work shared by threads."""

import threading

import pytest

from wsabie.core.execution import run_in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_done_once(threads):
    items, lock = [], threading.Lock()

    def work(item):
        with lock:
            items.append(item)

    run_in_threads(work, range(20), threads)
    assert sorted(items) == list(range(20))


def test_two_threads_work_at_the_same_time():
    barrier, places = threading.Barrier(2, timeout=10), []
    run_in_threads(lambda item: places.append(barrier.wait()), range(2), 2)
    assert sorted(places) == [0, 1]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_is_raised(threads):
    def work(item):
        if item == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        run_in_threads(work, range(5), threads)
