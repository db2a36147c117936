"""How a deterministic pass is cut: by pairs alone, never by threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import make_block, make_space
from strategies import label_rows, seeds
from wsabie.training.loops import PAIRS_PER_BLOCK, _Plan
from wsabie.training.targets import RowBlock, build_targets


@given(seeds, st.integers(1, 900), st.sampled_from([0.0, 0.05, 0.9]))
def test_blocks_hold_about_256_pairs_and_every_visit_once(seed: int, n: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    targets = build_targets(label_rows(n, 40, rate, 0, rng), None, "mean")
    block = RowBlock(np.zeros((n, 30), np.float32), targets)
    order = rng.permutation(len(targets.rows))
    plans = [_Plan(make_space(), block, order, threads) for threads in (1, 3)]
    blocks = [list(plan.blocks()) for plan in plans]
    assert np.array_equal(np.concatenate([b.order for b in blocks[0]]), order)
    sizes = np.array([b.firsts[-1] for b in blocks[0]])
    assert sizes.sum() == len(targets.labels)
    assert (sizes <= PAIRS_PER_BLOCK + 8).all()
    assert len(sizes) <= -(-len(targets.labels) // PAIRS_PER_BLOCK)
    for one, other in zip(*blocks, strict=True):
        assert np.array_equal(one.order, other.order)
        assert np.array_equal(one.firsts, other.firsts)
        assert len(one.queries) == len(one.directions) == len(one.moved) == len(one.order)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_owners_share_the_features_by_their_load(dense: bool, threads: int) -> None:
    block, space = make_block(300, dense), make_space()
    plan = _Plan(space, block, np.arange(len(block.targets.rows)), threads)
    bounds = plan.work[0].bounds
    assert len(plan.work) == threads
    assert (bounds[0], bounds[-1], len(bounds)) == (0, space.n_features, threads + 1)
    assert (np.diff(bounds) >= 0).all()
    load = np.full(30, 300) if dense else np.bincount(block.inputs.indices, minlength=30)
    shares = [load[lo:hi].sum() for lo, hi in itertools.pairwise(bounds)]
    assert max(shares) <= load.sum() / threads + load.max()
