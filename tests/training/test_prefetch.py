"""Reading ahead: every row once an epoch, again every epoch; two items at most, errors come through, threads end."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.training.prefetch import plan_blocks, prefetch


@given(st.integers(0, 50), st.integers(1, 3000), st.integers(1, 700), st.integers(0, 9), st.integers(1, 64))
def test_every_row_comes_once(lo: int, n: int, block: int, epoch: int, chunk: int) -> None:
    plan = plan_blocks(lo, lo + n, block, 0, epoch, chunk)
    rows = np.concatenate([np.arange(a, b) for spans in plan for a, b in spans])
    assert np.array_equal(np.sort(rows), np.arange(lo, lo + n))
    sizes = [sum(b - a for a, b in spans) for spans in plan]
    assert len(sizes) == -(-n // block)
    assert max(sizes) <= block + 2 * chunk
    assert all(b < c for spans in plan for (_, b), (c, _) in pairwise(spans))  # ascending, and merged where they meet


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    plans = [plan_blocks(0, 10_000, 1000, seed, epoch, 10) for seed in (0, 1) for epoch in (0, 1)]
    assert all(a != b for a, b in pairwise(plans))
    assert plan_blocks(0, 10_000, 1000, 1, 1, 10) == plans[-1]
    firsts = np.array([spans[0][0] for spans in plans[0]])
    assert firsts.max() < 2000  # a block has chunks from everywhere


def test_two_items_are_there_and_no_more() -> None:
    alive, most = set(), 0

    class Block:
        def __init__(self, number: int) -> None:
            nonlocal most
            alive.add(number)
            most = max(most, len(alive))
            self.number = number

        def __del__(self) -> None:
            alive.discard(self.number)

    for block in prefetch(Block(i) for i in range(9)):
        time.sleep(0.002)
        assert block.number in alive
    assert most == 2


def test_the_next_item_is_made_meanwhile() -> None:
    thread_ids: list[int] = []

    def items() -> Iterator[int]:
        for i in range(3):
            thread_ids.append(threading.get_ident())
            yield i

    for i in prefetch(items()):
        deadline = time.monotonic() + 5
        while len(thread_ids) < min(i + 2, 3) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(thread_ids) == min(i + 2, 3)
    assert threading.get_ident() not in thread_ids


def test_an_error_comes_through_and_the_thread_ends() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    n_threads = threading.active_count()
    with pytest.raises(OSError, match="disk"):
        list(prefetch(items()))
    assert threading.active_count() == n_threads
    for _ in prefetch(iter(range(100))):
        break
    deadline = time.monotonic() + 5
    while threading.active_count() > n_threads and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == n_threads
