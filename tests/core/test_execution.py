"""Executors give the same results; errors, kills and interrupts of workers end the work."""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from wsabie.core.errors import WsabieError
from wsabie.core.execution import ProcessExecutor, SerialExecutor, WorkerError, run_in_threads


def test_results_keep_the_order_of_the_items():
    for executor in (SerialExecutor(), ProcessExecutor(2), ProcessExecutor(2, local_seconds=0)):
        assert list(executor.map(abs, range(-9, 0))) == list(range(9, 0, -1))
        assert list(executor.map_with(operator.add, [7], ([i] for i in range(9)))) == [[7, i] for i in range(9)]


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(2), ProcessExecutor(2, local_seconds=0)])
def test_only_a_few_items_are_taken_ahead(executor):
    items = []
    results = executor.map(abs, (items.append(i) or i for i in range(100)))
    assert next(results) == 0
    assert len(items) <= 4
    if hasattr(results, "close"):
        results.close()


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(1), ProcessExecutor(1, local_seconds=0)])
def test_errors_come_out(executor):
    with pytest.raises(ZeroDivisionError):
        list(executor.map_with(divmod, 1, [1, 0]))


def test_worker_has_one_thread_and_a_killed_one_is_reported():
    assert list(ProcessExecutor(1, local_seconds=0).map(os.getenv, ["OMP_NUM_THREADS"])) == ["1"]
    with pytest.raises(WorkerError, match="killed, perhaps for want of memory; run again with fewer workers"):
        list(ProcessExecutor(1, local_seconds=0).map(os._exit, [9]))
    assert issubclass(WorkerError, WsabieError)


def test_closing_early_does_not_wait_for_everything():
    start_time = time.monotonic()
    results = ProcessExecutor(1, local_seconds=0).map(time.sleep, [0.01] + [0.2] * 500)
    next(results)
    results.close()
    assert time.monotonic() - start_time < 30


SCRIPT = """
import os, sys, time
import numpy as np
from threadpoolctl import threadpool_info
from wsabie.core.execution import ProcessExecutor

def threads(shared, item):
    return max(library["num_threads"] for library in threadpool_info())

def wait(shared, item):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece
    time.sleep(100)

if __name__ == "__main__":
    executor = ProcessExecutor(2, local_seconds=float(sys.argv[2]))
    print(list(executor.map_with(globals()[sys.argv[1]], np.ones(3), range(4))))
"""


def start(folder: Path, job: str, delay: float = 0, **environment: str) -> "subprocess.Popen[str]":
    (folder / "job.py").write_text(SCRIPT)
    command = [sys.executable, folder / "job.py", job, str(delay)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def test_work_begins_here_and_goes_on_in_processes_after_a_while():
    parent = os.getpid()
    assert set(ProcessExecutor(2, local_seconds=60).map(_process, range(20))) == {parent}
    process_ids = list(ProcessExecutor(2, local_seconds=0.1).map(_process, range(20)))
    n_local = process_ids.count(parent)
    assert n_local in (1, 2)
    assert process_ids[:n_local] == [parent] * n_local


def _process(item: int) -> int:
    time.sleep(0.06)
    return os.getpid()


def test_libraries_that_come_with_the_shared_arrays_have_one_thread_too(tmp_path):
    """They are loaded before a worker could say so in its environment."""
    process = start(tmp_path, "threads", OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert process.communicate(timeout=60)[0] == "[1, 1, 1, 1]\n"
    parent = start(tmp_path, "threads", 60, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert parent.communicate(timeout=60)[0] == "[1, 1, 1, 1]\n", "and so it has where work begins"


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    process = start(tmp_path, "wait")
    workers = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    try:
        remaining_output, _ = process.communicate(
            timeout=20
        )  # ends when nobody holds the other end: parent and workers are gone
        assert (remaining_output, process.returncode) == ("", -signal.SIGKILL)
    except subprocess.TimeoutExpired:
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        pytest.fail("the workers live on")


def test_where_no_process_can_be_started_this_one_does_it_all(monkeypatch, caplog):
    def refuse(*_, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)
    assert list(ProcessExecutor(2, local_seconds=0).map(operator.neg, range(5))) == [0, -1, -2, -3, -4]
    assert "this process does it all" in caplog.text


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
