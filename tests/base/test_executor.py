"""Work in this process and in others gives the same, in order, a few items at a time."""

import operator
import os
import time

import pytest

from wsabie.base.errors import WsabieError
from wsabie.base.executor import Processes, Serial, WorkerError


def test_results_keep_the_order_of_the_items():
    for executor in (Serial(), Processes(2)):
        assert list(executor.map(abs, range(-9, 0))) == list(range(9, 0, -1))
        assert list(executor.map_with(operator.add, [7], ([i] for i in range(9)))) == [[7, i] for i in range(9)]


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_only_a_few_items_are_taken_ahead(executor):
    taken = []
    results = executor.map(abs, (taken.append(i) or i for i in range(100)))
    assert next(results) == 0
    assert len(taken) <= 4
    if hasattr(results, "close"):
        results.close()


@pytest.mark.parametrize("executor", [Serial(), Processes(1)])
def test_errors_come_out(executor):
    with pytest.raises(ZeroDivisionError):
        list(executor.map_with(divmod, 1, [1, 0]))


def test_a_worker_has_one_thread_and_a_killed_one_is_told():
    assert list(Processes(1).map(os.getenv, ["OMP_NUM_THREADS"])) == ["1"]
    with pytest.raises(WorkerError, match="killed, perhaps for want of memory; run again with fewer workers"):
        list(Processes(1).map(os._exit, [9]))
    assert issubclass(WorkerError, WsabieError)


def test_closing_early_does_not_wait_for_everything():
    begun = time.monotonic()
    results = Processes(1).map(time.sleep, [0.01] + [0.2] * 500)
    next(results)
    results.close()
    assert time.monotonic() - begun < 30
