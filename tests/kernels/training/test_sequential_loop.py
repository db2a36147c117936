"""One pass of Algorithm 1 equals the twin on everything that can be drawn, and keeps what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings

from passes import assert_same, fast_sequential, slow
from strategies import Problem, problems
from wsabie.kernels.training.warp import DRAWS, REJECTED, SKIPPED, UPDATES, VISITED


@settings(max_examples=60)
@given(problems())
def test_sparse_rows_equal_the_twin(problem: Problem) -> None:
    assert_same(fast_sequential(problem), slow(problem, block=False))


@settings(max_examples=40)
@given(problems(sparse=False))
def test_dense_rows_equal_the_twin(problem: Problem) -> None:
    assert_same(fast_sequential(problem), slow(problem, block=False))


@given(problems())
def test_promises_of_a_pass(problem: Problem) -> None:
    """Draws are capped, every pair is counted, nothing is NaN, padding stays zero, no row is too long."""
    out, config = fast_sequential(problem), problem.config
    pairs = len(problem.targets.labels)
    assert out.counters[VISITED] == pairs
    assert out.counters[UPDATES] + out.counters[SKIPPED] <= pairs
    cap = 2 * min(config.max_sampled, len(problem.space.labels)) + 10
    assert out.counters[DRAWS] + out.counters[REJECTED] <= pairs * cap
    for table in (out.features, out.labels):
        assert np.isfinite(table).all()
        assert not table[:, problem.space.dim :].any()
        assert (np.linalg.norm(table, axis=1) <= config.max_norm_rows * (1 + 1e-5)).all()
    if config.learning_rate_bias == 0:
        assert np.array_equal(out.bias, problem.space.bias)


@given(problems())
def test_same_bits_again(problem: Problem) -> None:
    first, second = fast_sequential(problem), fast_sequential(problem)
    assert np.array_equal(first.features, second.features)
    assert np.array_equal(first.labels, second.labels)


@settings(max_examples=15)
@given(problems())
def test_dense_and_sparse_rows_give_the_same_model(problem: Problem) -> None:
    problem = problem._replace(config=problem.config._replace(decay_rows=np.float32(1)))  # dense rows decay whole
    X = problem.X.toarray()
    dense = fast_sequential(problem._replace(X=X, inputs=np.ascontiguousarray(X)))
    sparse = fast_sequential(problem)
    np.testing.assert_array_equal(dense.counters, sparse.counters)
    np.testing.assert_allclose(dense.features, sparse.features, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(dense.labels, sparse.labels, rtol=1e-3, atol=1e-5)


@given(problems())
def test_two_halves_are_one_pass(problem: Problem) -> None:
    """The random numbers belong to the pair: where a pass is cut changes nothing (rows move in between)."""
    half = len(problem.order) // 2
    first = fast_sequential(problem._replace(order=problem.order[:half]))
    space = problem.space.copy()
    space.features[:], space.labels[:], space.bias[:] = first.features, first.labels, first.bias
    second = fast_sequential(problem._replace(space=space, order=problem.order[half:]))
    single_pass = fast_sequential(problem)
    assert np.array_equal(first.counters + second.counters, single_pass.counters)
    if problem.config.max_norm_rows == np.inf:
        assert np.array_equal(second.features, single_pass.features)
        assert np.array_equal(second.labels, single_pass.labels)
    assert first.loss + second.loss == pytest.approx(single_pass.loss, rel=1e-3, abs=1e-4)
