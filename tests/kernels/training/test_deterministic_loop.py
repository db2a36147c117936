"""The block-synchronous pass equals its twin, for any number of owners with the same bits."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passes import assert_same, fast_block, fast_sequential, slow
from strategies import (
    Problem,
    label_rows,
    make_problem,
    make_step_config,
    problems,
    random_space,
    sparse_rows,
    with_free_vectors,
)
from wsabie.embedding import tables
from wsabie.kernels.training.warp import SKIPPED, VISITED


@settings(max_examples=60)
@given(problems())
def test_sparse_rows_equal_the_twin(problem: Problem) -> None:
    assert_same(fast_block(problem), slow(problem, block=True))


@settings(max_examples=40)
@given(problems(sparse=False))
def test_dense_rows_equal_the_twin(problem: Problem) -> None:
    assert_same(fast_block(problem), slow(problem, block=True))


@given(problems(), st.data())
def test_owners_change_no_bit(problem: Problem, data: st.DataObject) -> None:
    d = problem.space.n_features
    cuts = sorted(data.draw(st.lists(st.integers(0, d), min_size=1, max_size=3)))
    single_owner, shared = fast_block(problem), fast_block(problem, [0, *cuts, d])
    for name in ("features", "labels", "bias", "counters"):
        assert np.array_equal(getattr(single_owner, name), getattr(shared, name))


@given(problems(), st.integers(1, 13), st.integers(0, 12))
def test_tiles_change_no_bit(problem: Problem, tile: int, cut: int) -> None:
    d = problem.space.n_features
    untiled, tiled = fast_block(problem), fast_block(problem, [0, min(cut, d), d], tile)
    for name in ("features", "labels", "bias", "counters"):
        assert np.array_equal(getattr(untiled, name), getattr(tiled, name))


@settings(max_examples=40)
@given(problems(), st.integers(1, 3))
def test_free_vectors_equal_the_twin_for_any_number_of_owners(problem: Problem, owners: int) -> None:
    """Their owner is their number modulo the owners, not a range of features."""
    problem = with_free_vectors(problem)
    bounds = [0] * owners + [problem.space.n_features]
    assert_same(fast_block(problem, bounds), slow(problem, block=True))


@given(problems())
def test_a_block_of_one_pair_is_one_step_of_the_plain_loop(problem: Problem) -> None:
    """Then nothing is stale: the two loops differ by the order of projections alone."""
    single = problem.order[np.diff(problem.targets.starts)[problem.order] == 1][:1]
    assume(len(single))
    config = problem.config._replace(max_norm_rows=np.float32(np.inf))
    problem = problem._replace(config=config, order=single)
    assert_same(fast_block(problem), fast_sequential(problem))


@given(problems())
def test_nothing_moves_without_a_step(problem: Problem) -> None:
    """Weight 0 everywhere: every pair is skipped and counted, every bit stays."""
    targets = problem.targets._replace(weights=np.zeros_like(problem.targets.weights))
    out = fast_block(problem._replace(targets=targets))
    assert out.counters[SKIPPED] == out.counters[VISITED] == len(targets.labels)
    assert np.array_equal(out.features, problem.space.features)
    assert np.array_equal(out.labels, problem.space.labels)
    assert out.loss == 0


@pytest.mark.parametrize("cuts", [[], [100], [63, 65, 200]])
@pytest.mark.parametrize("tile", [1, 50, 64, 1000])
def test_tiles_and_owners_cut_the_lines_of_marks_anywhere(cuts: list[int], tile: int) -> None:
    """300 features are five lines of flags: each row that moved is projected once, by its owner, and forgotten."""
    rng = np.random.default_rng(0)
    X, Y = sparse_rows(20, 300, 0.3, rng), label_rows(20, 12, 0.1, 0.1, rng)
    problem = make_problem(random_space(300, 12, "dot", rng), X, Y, make_step_config(12, max_norm_rows=0.9))
    tables.clip_row_norms(problem.space.features, 0.9)
    untiled, cut = fast_block(problem), fast_block(problem, [0, *cuts, 300], tile)
    assert_same(cut, slow(problem, block=True))
    assert np.array_equal(untiled.features, cut.features)
    assert np.linalg.norm(cut.features[64:], axis=1).max() > 0.9 * (1 - 1e-6)


@pytest.mark.parametrize("tile", [None, 1000])
def test_marks_of_many_features_are_found_by_the_non_zeros(tile: int | None) -> None:
    """5,000 features are 79 lines of marks, and three rows have some 30 non-zeros."""
    rng = np.random.default_rng(0)
    X, Y = sparse_rows(3, 5000, 0.002, rng), label_rows(3, 12, 0.1, 0, rng)
    problem = make_problem(random_space(5000, 12, "dot", rng), X, Y, make_step_config(12, max_norm_rows=0.5))
    tables.clip_row_norms(problem.space.features, 0.5)
    outcome = fast_block(problem, [0, 1234, 5000], tile)
    assert_same(outcome, slow(problem, block=True))
    touched = X.indices[np.repeat(np.diff(problem.targets.starts) > 0, np.diff(X.indptr))]
    lengths = np.linalg.norm(outcome.features, axis=1)
    assert (lengths[touched] > 0.5 * (1 - 1e-6)).sum() > 1
    assert lengths.max() <= 0.5 * (1 + 1e-6)
