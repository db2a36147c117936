"""Nearest mean: the definition, sparse and dense, storage, scikit-learn's checks, and a public set."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

import wsabie
from strategies import sparse_rows
from votes import labels
from wsabie.models.base import feature_matrix

EXPECTED_TO_FAIL = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}


def normalise(table: np.ndarray) -> np.ndarray:
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_scores_are_cosines_with_mean_unit_rows(seed: int, is_sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    train, rows = (sparse_rows(n, 9, 0.5, rng) for n in (20, 7))
    Y = labels(20, 5, rng)
    block_bytes, feature_matrix.BLOCK_BYTES = feature_matrix.BLOCK_BYTES, 200
    try:
        model = wsabie.NearestMean(scaling=None).fit(*((train, Y) if is_sparse else (train.toarray(), Y)))
        scores = model.scores(rows if is_sparse else rows.toarray())
        ids, best_scores = model.rank(rows if is_sparse else rows.toarray(), 3)
    finally:
        feature_matrix.BLOCK_BYTES = block_bytes
    truth = np.asarray((Y > 0).todense(), float) if sp.issparse(Y) else model._build_truth(Y, 20).toarray() > 0
    means = normalise(truth.T.astype(float) @ normalise(train.toarray()))
    np.testing.assert_allclose(scores, normalise(rows.toarray()) @ means.T, atol=2e-6)
    np.testing.assert_allclose(best_scores, -np.sort(-scores, axis=1)[:, :3], atol=0)
    assert np.array_equal(np.take_along_axis(scores, ids, axis=1), best_scores)


def test_empty_labels_and_zero_rows_score_zero() -> None:
    model = wsabie.NearestMean(scaling=None).fit(np.eye(2), np.array([0, 1]), label_names=["a", "b", "c"])
    assert model.scores(np.array([[0.0, 0.0], [1.0, 0.0]])).tolist() == [[0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray])
def test_loaded_model_gives_the_same_bits(tmp_path: Path, form: type) -> None:
    X = form(np.random.default_rng(0).random((30, 8)))
    model = wsabie.NearestMean().fit(X, [f"label {i % 4}" for i in range(30)])
    model.save(tmp_path / "m")
    assert np.array_equal(wsabie.load(tmp_path / "m").scores(X), model.scores(X))


def test_scikit_learn_checks_pass() -> None:
    results = check_estimator(wsabie.NearestMean(), on_skip=None, on_fail=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= set(EXPECTED_TO_FAIL)


@pytest.mark.data
def test_bibtex_is_ranked(data_dir: Path) -> None:
    train, test = (
        wsabie.open_source(data_dir / "bibtex_mulan" / f"bibtex-{side}.arff.gz") for side in ("train", "test")
    )
    model = wsabie.NearestMean().fit(train.X, train.Y, label_names=train.label_names)
    figures = wsabie.evaluate_scores([(0, model.scores(test.X))], test.Y).means
    assert figures["p@1"] == pytest.approx(0.6, abs=0.02)
    assert figures["MAP"] == pytest.approx(0.6, abs=0.02)
