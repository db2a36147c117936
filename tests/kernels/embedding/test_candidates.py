"""Labels with a weight per feature, alone and beside points: passes equal their twin, scaled rows keep lengths."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passes import assert_same, fast_block, fast_owpc, fast_sequential, slow, slow_owpc
from strategies import Problem, make_step_config, problems, seeds, weighted
from wsabie.kernels.embedding import candidates
from wsabie.kernels.embedding.candidates import DenseQuery, SparseQuery, WeightLabels

WIDTH = (None,)


@numba.njit
def step(labels: Any, config: Any, y: int, q: Any, weight: Any, width: Any) -> Any:
    old_score = candidates.score_label(labels, q, y, width)
    candidates.update_label(labels, config, y, q, weight, width)
    candidates.clip_norm(labels, config, y, width)
    return old_score, candidates.score_label(labels, q, y, width)


@settings(max_examples=30)
@given(problems(), seeds)
def test_weights_equal_the_twin(problem: Problem, seed: int) -> None:
    problem = weighted(problem, with_embedding=False, rng=np.random.default_rng(seed))
    assert_same(fast_sequential(problem), slow(problem, block=False))
    assert_same(fast_block(problem), slow(problem, block=True))


@settings(max_examples=15)
@given(problems(sparse=False), seeds)
def test_dense_rows_equal_the_twin(problem: Problem, seed: int) -> None:
    problem = weighted(problem, with_embedding=False, rng=np.random.default_rng(seed))
    assert_same(fast_sequential(problem), slow(problem, block=False))


@settings(max_examples=20)
@given(problems(), seeds)
def test_both_equal_the_twin(problem: Problem, seed: int) -> None:
    assume(problem.space.similarity == "dot")  # the others would be compiled too
    problem = weighted(problem, with_embedding=True, rng=np.random.default_rng(seed))
    assert_same(fast_sequential(problem), slow(problem, block=False))
    assert_same(fast_block(problem), slow(problem, block=True))


@settings(max_examples=20)
@given(problems(), seeds)
def test_exact_ranks_equal_the_twin(problem: Problem, seed: int) -> None:
    """OWPC: all violators at once, for points and for weights."""
    assume(problem.space.similarity == "dot")
    problem = problem._replace(config=problem.config._replace(logistic=False))
    assert_same(fast_owpc(problem), slow_owpc(problem))
    problem = weighted(problem, with_embedding=False, rng=np.random.default_rng(seed))
    assert_same(fast_owpc(problem), slow_owpc(problem))


@settings(max_examples=20)
@given(problems(), seeds, st.data())
def test_owners_change_no_bit(problem: Problem, seed: int, data: st.DataObject) -> None:
    problem = weighted(problem, with_embedding=False, rng=np.random.default_rng(seed))
    d = problem.space.n_features
    cut = data.draw(st.integers(0, d))
    single_owner, shared = fast_block(problem, [0, d]), fast_block(problem, [0, cut, d])
    assert np.array_equal(single_owner.weights, shared.weights)
    assert np.array_equal(single_owner.counters, shared.counters)


def labels_of(n_labels: int, d: int) -> WeightLabels:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((n_labels, d)).astype(np.float32)
    unit_scale = np.ones(n_labels, np.float32)
    return WeightLabels(table, unit_scale, np.einsum("ij,ij->i", table, table), np.zeros(n_labels, np.float32))


@pytest.mark.parametrize("dense", [False, True])
def test_a_step_by_hand(dense: bool) -> None:
    """w += step * x: the score rises by step * |x|^2."""
    x = np.float32([2, 0, -1])
    q = DenseQuery(x) if dense else SparseQuery(np.int32([0, 2]), np.float32([2, -1]))
    labels = labels_of(2, 3)
    w = labels.table[1].copy()
    old_score, new_score = step(labels, make_step_config(2, learning_rate_weights=0.5), 1, q, np.float32(3), WIDTH)
    assert old_score == pytest.approx(float(w @ x), rel=1e-5)
    assert new_score == pytest.approx(old_score + 1.5 * 5, rel=1e-5)
    np.testing.assert_allclose(labels.table[1], w + 1.5 * x, rtol=1e-6)
    assert labels.norm2[1] == pytest.approx(float(labels.table[1] @ labels.table[1]), rel=1e-5)


def test_lengths_are_carried_through_decay_and_limit() -> None:
    """A thousand steps: the scaled row is as long as the carried figure says, and never longer than the limit."""
    labels, rng = labels_of(1, 40), np.random.default_rng(1)
    config = make_step_config(1, learning_rate_weights=0.3, decay_weights=0.95, max_norm_weights=2.0)
    for _ in range(1000):
        indices = np.sort(rng.choice(40, 5, replace=False)).astype(np.int32)
        q = SparseQuery(indices, rng.standard_normal(5).astype(np.float32))
        step(labels, config, 0, q, np.float32(rng.choice([-1, 1])), WIDTH)
        length = float(np.linalg.norm(labels.table[0].astype(float) * labels.scale[0]))
        assert length <= 2.0 * (1 + 1e-3)
        assert length**2 == pytest.approx(float(labels.norm2[0]), rel=1e-2, abs=1e-3)
    assert labels.scale[0] >= 1e-6
    assert labels.scale[0] < 1


def test_a_scale_that_would_vanish_is_multiplied_into_its_row() -> None:
    labels = labels_of(1, 4)
    config = make_step_config(1, learning_rate_weights=0.0, decay_weights=0.1)
    expected, q = labels.table[0].astype(float), SparseQuery(np.int32([1]), np.float32([1]))
    for _ in range(12):
        step(labels, config, 0, q, np.float32(1), WIDTH)
        expected *= float(np.float32(0.1))
        np.testing.assert_allclose(labels.table[0].astype(float) * labels.scale[0], expected, rtol=1e-4)
    assert labels.scale[0] > 1e-7
