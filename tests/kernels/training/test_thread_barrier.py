"""Threads meet: nobody goes on before everybody has come, and what was written before is seen after."""

import faulthandler
import re
from collections.abc import Iterator

import numba
import numpy as np
import pytest

from wsabie.kernels.compiler import FLAGS
from wsabie.kernels.training.deterministic_loop import wait_for_threads
from wsabie.training.kernel_threads import KernelThreads

ROUNDS = 1000


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """Whoever waits for ever ends the tests, and says where."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@numba.njit(**FLAGS)
def compare_notes(counts, t, notes, observed):
    """Each round every thread writes the round's number, meets, reads all notes and meets again."""
    for turn in range(1, ROUNDS + 1):
        notes[t, 0] = turn
        if not wait_for_threads(counts, t):
            return
        for u in range(len(notes)):
            if notes[u, 0] != turn:
                observed[t, 0] += 1
        if not wait_for_threads(counts, t):
            return


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_everybody_sees_every_note(n: int) -> None:
    """Eight threads are more than some machines have cores."""
    notes, wrong = np.zeros((2, n, 16), np.int64)
    with KernelThreads(n) as threads:
        for _ in range(3):
            threads.run_each(lambda t: compare_notes(threads.counts, t, notes, wrong))
    assert (notes[:, 0] == ROUNDS).all()
    assert not wrong.any()
    np.testing.assert_array_equal(threads.counts[:-1, 0], 3 * 2 * ROUNDS)


def test_the_plain_function_meets_too() -> None:
    notes, wrong = np.zeros((2, 2, 16), np.int64)
    with KernelThreads(2) as threads:
        threads.run_each(lambda t: plain_notes(threads.counts, t, notes, wrong))
    assert not wrong.any()


def plain_notes(counts, t, notes, wrong):
    """The same, interpreted."""
    for turn in range(1, 20):
        notes[t, 0] = turn
        wait_for_threads.py_func(counts, t)
        wrong[t, 0] += (notes[:, 0] != turn).sum()
        wait_for_threads.py_func(counts, t)


def test_stopped_threads_leave_and_are_counted() -> None:
    counts = np.zeros((3, 16), np.int64)
    counts[1, 0] = 7
    assert all(wait_for_threads(counts, 0) for _ in range(7))
    counts[-1, 0] = 1
    assert not wait_for_threads(counts, 0)  # alone, and nobody would come
    assert not wait_for_threads(counts, 1)
    assert counts[:, 0].tolist() == [8, 8, 1]


@pytest.mark.parametrize("guilty", [0, 1, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_in_one_thread_frees_the_others(guilty: int, error: type[BaseException]) -> None:
    notes, wrong = np.zeros((2, 3, 16), np.int64)

    def work(t: int) -> None:
        if t == guilty:
            raise error
        compare_notes(threads.counts, t, notes, wrong)

    with KernelThreads(3) as threads, pytest.raises(error):
        threads.run_each(work)
    assert (notes[:, 0] <= 1).all(), "nobody goes into the second round"


def test_counters_are_read_and_written_as_the_language_of_the_compiler_has_it() -> None:
    """An x86 forgives a plain load; ARM does not."""
    compare_notes(np.zeros((2, 16), np.int64), 0, *np.zeros((2, 1, 16), np.int64))
    code = "".join(wait_for_threads.inspect_llvm().values())
    assert re.search(r"load atomic i64, .* acquire", code)
    assert re.search(r"store atomic i64 .* release", code)
