"""The tree of random projections: a naive twin, balance, the exact neighbours at depth 0, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from strategies import sparse_rows
from votes import by_brute_force, labels
from wsabie.core.errors import InputError
from wsabie.models.base import feature_matrix
from wsabie.models.base.feature_matrix import convert_to_matrix
from wsabie.models.base.row_scaling import scale_to_unit
from wsabie.models.nearest_neighbours import (
    ApproximateNeighbours,
    NearestNeighbours,
    _compute_bounds,
    choose_tree_depth,
)

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


def task(seed: int, sparse: bool, n: int = 33) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    train, rows = sparse_rows(n, 9, 0.5, rng), sparse_rows(7, 9, 0.5, rng)
    Y = labels(n, 5, rng)
    return (train, Y, rows) if sparse else (train.toarray(), Y, rows.toarray())


def find_naive_leaf(train: Any, row: Any, numbers: list[int], directions: Any, depth: int, node: int = 0) -> list[int]:
    """Training rows of the leaf that a row comes to: one node after the other, in float64."""
    if depth == 0:
        return numbers
    projected = [float(train[i] @ directions[node]) for i in numbers]
    order = sorted(range(len(numbers)), key=lambda j: (projected[j], numbers[j]))
    half = len(numbers) // 2
    median = (projected[order[half - 1]] + projected[order[half]]) / 2
    right = row @ directions[node] > median
    side = order[half:] if right else order[:half]
    return find_naive_leaf(
        train, row, sorted(numbers[j] for j in side), directions, depth - 1, 2 * node + (2 if right else 1)
    )


def scale_to_unit_length(M: Any) -> Any:
    M = np.asarray(M.toarray() if sp.issparse(M) else M, np.float64)
    return M / np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.integers(1, 12), st.booleans())
def test_scores_equal_those_of_the_naive_tree(seed: int, depth: int, k: int, sparse: bool) -> None:
    train, Y, rows = task(seed, sparse)
    block_bytes, feature_matrix.BLOCK_BYTES = feature_matrix.BLOCK_BYTES, 200
    try:
        model = ApproximateNeighbours(depth, k, scaling=None, seed=seed).fit(train, Y)
        tree_scores = model.scores(rows)
    finally:
        feature_matrix.BLOCK_BYTES = block_bytes
    for i, row in enumerate(scale_to_unit_length(rows)):
        leaf = find_naive_leaf(
            scale_to_unit_length(train), row, list(range(33)), model.directions_.astype(np.float64), depth
        )
        expected = by_brute_force(train[leaf], Y[leaf], rows[[i]], k)[0]
        np.testing.assert_allclose(tree_scores[i], expected, atol=2e-6)


@pytest.mark.parametrize("sparse", [True, False])
def test_depth_zero_is_exact(sparse: bool) -> None:
    train, Y, rows = task(3, sparse)
    exact = NearestNeighbours(7).fit(abs(train), Y)
    same = ApproximateNeighbours(0, 7).fit(abs(train), Y)
    assert np.array_equal(exact.scores(abs(rows)), same.scores(abs(rows)))
    for a, b in zip(exact.neighbours(abs(rows)), same.neighbours(abs(rows)), strict=True):
        assert np.array_equal(a, b)


@given(st.integers(1, 70), st.integers(0, 6), st.booleans(), st.booleans())
def test_leaves_are_balanced_and_hold_every_row_once(n: int, depth: int, sparse: bool, equal: bool) -> None:
    train, Y, _ = task(n, sparse, n)
    if equal:
        train = train[np.zeros(n, int)]
    if 2**depth > n:
        with pytest.raises(InputError, match=f"more leaves than the {n} training rows; choose a depth of at most"):
            ApproximateNeighbours(depth).fit(train, Y)
        return
    model = ApproximateNeighbours(depth, scaling=None).fit(train, Y)
    unit_rows = scale_to_unit(model.scaling_(model._check_rows(train)))
    leaf_sizes = np.bincount(model._grow_tree(convert_to_matrix(unit_rows, train.shape[1])), minlength=2**depth)
    assert len(leaf_sizes) == 2**depth
    assert leaf_sizes.max() - leaf_sizes.min() <= 1
    assert sorted(model.order_) == list(range(n))


def test_training_row_reaches_its_own_leaf() -> None:
    rng = np.random.default_rng(0)
    for train in (rng.standard_normal((300, 20)), sparse_rows(300, 40, 0.3, rng)):
        model = ApproximateNeighbours(4, 1, scaling=None).fit(train, np.arange(300) % 7)
        assert np.array_equal(model.leaves(train)[model.order_], np.sort(model.leaves(train)))
        ids, cosines = model.neighbours(train)
        np.testing.assert_allclose(cosines[:, 0][np.diff(sp.csr_matrix(train).indptr) > 0], 1, atol=1e-6)
        assert (ids[:, 0] == np.arange(300)).mean() > 0.95  # but for equal rows


def test_small_leaf_votes_with_all_its_rows() -> None:
    model = ApproximateNeighbours(1, 5, scaling=None).fit(np.eye(4), [["a"], ["b"], ["c"], ["d"]])
    ids, cosines = model.neighbours(np.eye(4))
    assert (ids[:, 2:] == -1).all()
    assert np.isneginf(cosines[:, 2:]).all()
    assert model.scores(np.eye(4)).tolist() == np.eye(4).tolist()


def test_seed_determines_the_tree_and_memory_includes_it() -> None:
    train, Y, rows = task(5, True)
    first, same, third = (ApproximateNeighbours(2, scaling=None, seed=seed).fit(train, Y) for seed in (1, 1, 2))
    assert np.array_equal(first.scores(rows), same.scores(rows))
    assert not np.array_equal(first.directions_, third.directions_)
    tree = 3 * (4 * 9 + 8) + 8 * 33 + 4 * (4 * 9 + 1)
    rows_and_labels = 8 * train.nnz + 8 * (Y > 0).nnz + first.targets_.indptr.nbytes
    assert first.n_bytes == tree + rows_and_labels


def test_auto_depth_follows_the_paper_for_many_rows() -> None:
    assert choose_tree_depth(1) == 0
    for n in (839_310, 2_518_604, 9_861_293):
        assert 20_000 / 2**0.5 <= n / 2 ** choose_tree_depth(n) <= 20_000 * 2**0.5
    assert ApproximateNeighbours().fit(np.random.default_rng(0).random((900, 3)), np.arange(900) % 3).depth_ == 3


def test_scikit_learn_conventions_hold() -> None:
    params = {"depth": 2, "k": 7, "scaling": None, "seed": 3}
    assert clone(ApproximateNeighbours(**params)).get_params() == params
    checks = check_estimator(ApproximateNeighbours(), on_skip=None, on_fail=None)
    failed = {check["check_name"] for check in checks if check["status"] == "failed"}
    assert failed <= set(EXPECTED_TO_FAIL)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": -1}, 'choose "auto" or a whole number from 0'),
        ({"depth": True}, 'choose "auto" or a whole number from 0'),
        ({"depth": "deep"}, 'choose "auto" or a whole number from 0'),
        ({"k": 0}, "whole number above 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
    ],
)
def test_invalid_parameters_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ApproximateNeighbours(**wrong).fit(np.eye(2), [["a"], ["b"]])


def test_nodes_are_halved() -> None:
    assert _compute_bounds(7, 2).tolist() == [0, 1, 3, 5, 7]
