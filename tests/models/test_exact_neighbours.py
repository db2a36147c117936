"""Exact nearest neighbours: hand-worked votes, brute force, and the figure on real data."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import check_estimator

from strategies import sparse_rows
from votes import by_brute_force, labels
from wsabie.core.errors import InputError
from wsabie.models.base import feature_matrix
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.storage.rejects import Rejects

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.booleans())
def test_votes_equal_brute_force_in_any_blocks(seed: int, k: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    train = sparse_rows(20, 9, 0.5, rng)
    rows = sparse_rows(7, 9, 0.5, rng)
    if not sparse:
        train, rows = train.toarray(), rows.toarray()
    Y = labels(20, 5, rng)
    block_bytes, feature_matrix.BLOCK_BYTES = feature_matrix.BLOCK_BYTES, 200
    try:
        votes = NearestNeighbours(k, scaling=None).fit(train, Y).scores(rows)
    finally:
        feature_matrix.BLOCK_BYTES = block_bytes
    assert votes.dtype == np.float32
    np.testing.assert_allclose(votes, by_brute_force(train, Y, rows, k), atol=2e-6)


def test_neighbours_equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    train, rows = rng.standard_normal((200, 8)), rng.standard_normal((15, 8))
    model = NearestNeighbours(6, scaling=None).fit(train, np.arange(200) % 7)
    ids, cosines = model.neighbours(rows)
    distances, expected = NearestNeighbors(n_neighbors=6, metric="cosine").fit(train).kneighbors(rows)
    assert ids.tolist() == expected.tolist()
    np.testing.assert_allclose(1 - cosines, distances, atol=1e-6)


def test_counts_are_scaled_before_comparison() -> None:
    # column 0 is in every row, so that column 1, of one row only, weighs more after idf
    train = sp.csr_matrix(np.array([[5.0, 0, 1], [5, 1, 0], [5, 0, 1]], np.float32))
    rows = sp.csr_matrix(np.array([[1.0, 1, 0]], np.float32))
    Y = [["a"], ["b"], ["c"]]
    idf = np.log(4 / (1 + np.array([3, 1, 2]))) + 1
    scaled = np.log1p(train.toarray()) * idf
    counts = np.log1p(rows.toarray()) * idf
    cosine = (scaled[1] @ counts[0]) / np.linalg.norm(scaled[1]) / np.linalg.norm(counts[0])
    model = NearestNeighbours(1).fit(train, Y)
    assert model.annotate(rows, k=1) == [[("b", pytest.approx(cosine, abs=1e-6))]]


def test_power_of_votes_is_that_by_which_training_rows_rank_best_without_themselves(tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    train, rows = X[:600], X[600:]
    model = NearestNeighbours(50, power="auto").fit(train, y[:600])
    rights: dict[float, int] = Counter()
    for row, power in product(range(0, 600, 6), (1.0, 2.0, 4.0, 8.0, 16.0)):
        others = np.arange(600) != row
        fitted = NearestNeighbours(50, power=power).fit(train[others], y[:600][others])
        rights[power] += fitted.predict(train[[row]])[0] == y[row]
    assert rights[model.power_] == max(rights.values()) > rights[1.0]
    assert model.score(rows, y[600:]) > NearestNeighbours(50).fit(train, y[:600]).score(rows, y[600:]) + 0.03
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(NearestNeighbours.load(tmp_path / "model").scores(rows), model.scores(rows))


@pytest.mark.parametrize("power", [0, -1.0, np.inf, "most", True])
def test_invalid_powers_are_refused(power: Any) -> None:
    with pytest.raises(InputError, match="power is"):
        NearestNeighbours(power=power).fit(np.eye(2), [["a"], ["b"]])


def test_zero_and_far_rows_do_not_vote() -> None:
    model = NearestNeighbours(2, scaling=None).fit(np.array([[1.0, 0], [-1, 0]]), [["east"], ["west"]])
    assert model.scores(np.array([[0.0, 0], [2, 0]])).tolist() == [[0, 0], [1, 0]]


def test_fewer_training_rows_than_neighbours_are_accepted() -> None:
    model = NearestNeighbours(50, scaling=None).fit(np.eye(2), [["a"], ["b"]])
    assert model.scores(np.eye(2)).tolist() == [[1, 0], [0, 1]]
    assert model.neighbours(np.eye(2)[:1], k=3)[0].tolist() == [[0, 1, -1]]


def test_memory_is_the_training_set() -> None:
    X = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]], np.float32))
    model = NearestNeighbours(1, scaling=None).fit(X, [["a"], ["a", "b"]])
    indices = [model.train_.indptr.nbytes, model.targets_.indptr.nbytes, 4 * 3, 4 * 3]
    assert model.n_bytes == 4 * 3 + 4 * 3 + sum(indices)


def test_scikit_learn_conventions_hold() -> None:
    assert clone(NearestNeighbours(7, scaling=None)).get_params() == {"k": 7, "power": 1.0, "scaling": None}
    checks = check_estimator(NearestNeighbours(), on_skip=None, on_fail=None)
    failed = {check["check_name"] for check in checks if check["status"] == "failed"}
    assert failed <= set(EXPECTED_TO_FAIL)


@pytest.mark.parametrize("k", [0, -3, 2.5, True, None])
def test_invalid_numbers_of_neighbours_are_refused(k: Any) -> None:
    with pytest.raises(InputError, match="whole number above 0"):
        NearestNeighbours(k).fit(np.eye(2), [["a"], ["b"]])


@pytest.mark.data
def test_corel5k_map_is_reached(data_dir: Path) -> None:
    from wsabie.io.formats.mulan import read_mulan

    folder = data_dir / "corel5k_mulan"
    train = read_mulan(folder / "Corel5k-train-sparse.arff", rejects=Rejects())
    test = read_mulan(folder / "Corel5k-test-sparse.arff", rejects=Rejects())
    model = NearestNeighbours(20).fit(train.X, train.Y, label_names=train.label_names)
    assert model.score(test.X, test.Y) == pytest.approx(0.330, abs=0.005)
