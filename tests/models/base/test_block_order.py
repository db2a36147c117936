"""Order of blocks: every row once an epoch, in another order every epoch."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wsabie.models.base.training_rows import plan_blocks


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
