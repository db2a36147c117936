"""Baselines against manual values: label shares, and cosines with the mean of each label's rows."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import wsabie
from strategies import sparse_rows
from votes import labels
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.models.base import feature_matrix
from wsabie.models.baselines import Popularity

NAMES = ["sky", "sea", "sand", "sun"]
ROWS = [["sky", "sea"], ["sky"], ["sky", "sea", "sand"], ["sand"]]
X = np.eye(4, dtype=np.float32)
Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [1, -1, 0, 0], [1, 1, 1, 0], [0, 0, 1, -1]], np.int8))

FAILED_POPULARITY_CHECKS = {
    "check_n_features_in_after_fitting": "the message names the model in words of its own",
    "check_dtype_object": "something that is not a number is an InputError, which is a ValueError, not a TypeError",
}
"""Checks of scikit-learn that the baselines do not pass, and why."""


def fit_model() -> Popularity:
    return Popularity().fit(X, Y, label_names=NAMES)


def test_scores_are_shares_of_rows_without_negatives() -> None:
    assert fit_model().scores(X[:2]).tolist() == [[0.75, 0.5, 0.5, 0.0]] * 2


def test_every_form_of_labels_gives_the_same_model() -> None:
    by_names = Popularity().fit(X, ROWS)
    by_matrix = Popularity().fit(X, (Y > 0).astype(int).toarray(), label_names=NAMES)
    assert list(by_names.vocabulary_) == NAMES[:3]  # nobody carries the fourth
    assert by_names.share_.tolist() == by_matrix.share_.tolist()[:3] == fit_model().share_.tolist()[:3]
    by_number = Popularity().fit(X, np.array([0, 0, 2, 0]))
    assert by_number.share_.tolist() == [0.75, 0.0, 0.25]


def test_rank_breaks_ties_by_id_and_pads() -> None:
    ids, scores = fit_model().rank(X[:1], k=6)
    assert ids.dtype == np.int64
    assert scores.dtype == np.float32
    assert ids.tolist() == [[0, 1, 2, 3, -1, -1]]
    assert scores.tolist() == [[0.75, 0.5, 0.5, 0.0, -np.inf, -np.inf]]


def test_rank_respects_candidates_and_exclusions() -> None:
    model = fit_model()
    exclude = sp.csr_matrix(np.array([[0, 1, 0, 0], [0, 0, 0, 0]], np.int8))
    by_name, _ = model.rank(X[:2], k=2, candidates=["sea", "sand", "sea"], exclude=exclude)
    by_number, _ = model.rank(X[:2], k=2, candidates=[1, 2], exclude=exclude)
    assert by_name.tolist() == by_number.tolist() == [[2, -1], [1, 2]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans())
def test_rank_follows_the_scores_in_any_blocks(seed: int, k: int, excluding: bool) -> None:
    rng = np.random.default_rng(seed)
    labels = (rng.random((12, 7)) < 0.3).astype(np.int8)
    labels[0, 0] = 1
    model = Popularity().fit(np.ones((12, 2)), labels)
    exclude = sp.csr_matrix((rng.random((12, 7)) < 0.4).astype(np.int8)) if excluding else None
    block_bytes, feature_matrix.BLOCK_BYTES = feature_matrix.BLOCK_BYTES, 100
    try:
        ids, scores = model.rank(np.ones((12, 2)), k, exclude=exclude)
    finally:
        feature_matrix.BLOCK_BYTES = block_bytes
    expected = model.scores(np.ones((12, 2)))
    if exclude is not None:
        expected[exclude.toarray() != 0] = -np.inf
    for row in range(12):
        order = [y for y in np.lexsort((np.arange(7), -expected[row])) if np.isfinite(expected[row, y])][:k]
        assert ids[row].tolist() == order + [-1] * (k - len(order))
        assert scores[row, : len(order)].tolist() == expected[row, order].tolist()


def test_annotate_returns_names_and_score_returns_map() -> None:
    model = fit_model()
    assert model.annotate(X[:1], k=2) == [[("sky", 0.75), ("sea", 0.5)]]
    # ranks: sky 1; sea and sand share places 2 and 3, so either is right at 2 or at 3: (1/2 + 1/3) / 2 for one alone
    assert model.score(X[:1], [["sand"]]) == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert model.score(X[:2], [["sky"], ["a label of no training row"]]) == pytest.approx(1.0)


def test_scikit_learn_conventions_hold() -> None:
    assert clone(Popularity()).get_params() == {}
    checks = check_estimator(Popularity(), on_skip=None, on_fail=None)
    failed = {check["check_name"] for check in checks if check["status"] == "failed"}
    assert failed <= set(FAILED_POPULARITY_CHECKS)
    assert sum(check["status"] == "passed" for check in checks) > 30


def test_memory_is_one_number_per_label() -> None:
    assert fit_model().n_bytes == 4 * 4


def test_errors_explain_the_cause() -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        Popularity().scores(X)
    with pytest.raises(InputError, match="no row has a label"):
        Popularity().fit(X, sp.csr_matrix((4, 2)))
    with pytest.raises(InputError, match="5 features"):
        fit_model().rank(np.ones((1, 5)))
    with pytest.raises(InputError, match="k is 0"):
        fit_model().rank(X, k=0)
    with pytest.raises(UnknownLabelError, match="did you mean 'sand'"):
        fit_model().rank(X, candidates=["sandd"])
    with pytest.raises(InputError, match="names only, or numbers only"):
        fit_model().rank(X, candidates=["sea", 2])
    with pytest.raises(InputError, match="no label number 9"):
        fit_model().rank(X, candidates=[9])
    for candidates in (np.array(1), np.array(1.5), np.empty((3, 0), int), np.empty((0, 3), int), [[]], [[0, 1]]):
        with pytest.raises(InputError, match=r"the labels are ndarray|labels are names or whole numbers"):
            fit_model().rank(X, candidates=candidates)
    with pytest.raises(InputError, match="exclude has 1 rows"):
        fit_model().rank(X, exclude=sp.csr_matrix((1, 4)))


FAILED_MEAN_CHECKS = {
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
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= set(FAILED_MEAN_CHECKS)


@pytest.mark.data
def test_bibtex_is_ranked(data_dir: Path) -> None:
    train, test = (
        wsabie.open_source(data_dir / "bibtex_mulan" / f"bibtex-{side}.arff.gz") for side in ("train", "test")
    )
    model = wsabie.NearestMean().fit(train.X, train.Y, label_names=train.label_names)
    figures = wsabie.evaluate_scores([(0, model.scores(test.X))], test.Y).means
    assert figures["p@1"] == pytest.approx(0.6, abs=0.02)
    assert figures["MAP"] == pytest.approx(0.6, abs=0.02)
