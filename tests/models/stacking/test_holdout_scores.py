"""Held-out scores: folds, and nDCG of a pool."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import wsabie
from wsabie.models.stacking import holdout_scores
from wsabie.models.stacking.holdout_scores import FOLDS, HoldoutScores, iterate_folds, score_fold


def draw_truth(n: int, n_labels: int, rng: np.random.Generator) -> sp.csr_matrix:
    truth = rng.random((n, n_labels)) < 0.2
    truth[np.arange(n), rng.integers(0, n_labels, n)] = True
    return sp.csr_matrix(truth)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_ndcg_of_a_full_pool_equals_the_evaluation(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    truth = draw_truth(8, 9, rng)
    scores = [rng.standard_normal((8, 9)).astype(np.float32) for _ in range(2)]
    weights = np.array([1.0, 0.5])
    expected = wsabie.evaluate_scores([(0, scores[0] + scores[1] / 2)], truth.astype(np.float32), ks=(k,))
    ndcg = HoldoutScores.from_scores(scores, truth).compute_ndcg(weights, k)
    np.testing.assert_allclose(ndcg, expected.per_row[f"ndcg@{k}"], atol=1e-6)


def test_pool_holds_the_best_labels_of_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdout_scores, "POOL_SIZE", 1)
    scores = [np.array([[3.0, 2, 1, 0]], np.float32), np.array([[0.0, 1, 2, 3]], np.float32)]
    pool = HoldoutScores.from_scores(scores, sp.csr_matrix([[False, True, False, True]]))
    assert pool.scores.tolist() == [[[3, 0]], [[0, 3]]]
    assert pool.positives.tolist() == [[False, True]]
    assert pool.n_positives.tolist() == [2]


def test_parts_with_other_pool_sizes_are_joined() -> None:
    rng = np.random.default_rng(0)
    truths = [draw_truth(8, n, rng) for n in (9, 4)]
    parts = [
        HoldoutScores.from_scores([rng.standard_normal(truth.shape).astype(np.float32)], truth) for truth in truths
    ]
    joined = HoldoutScores.join(parts).compute_ndcg(np.ones(1), 5)
    expected = np.concatenate([part.compute_ndcg(np.ones(1), 5) for part in parts])
    np.testing.assert_allclose(joined, expected)


def test_small_data_are_fully_cross_validated_by_group() -> None:
    truth = sp.csr_matrix(np.eye(4, dtype=bool)[np.arange(40) % 4])
    groups = [f"g{i // 2}" if i < 10 else None for i in range(40)]
    folds = list(iterate_folds(truth, groups, seed=1))
    assert np.sort(np.concatenate([holdout for _, holdout in folds])).tolist() == list(range(40))
    for train, holdout in folds:
        assert not set(train) & set(holdout)
        assert {groups[row] for row in holdout} & {groups[row] for row in train} <= {None}


def test_folds_have_their_share_of_each_label() -> None:
    truth = sp.csr_matrix(np.eye(3, dtype=bool)[np.repeat(np.arange(3), 10)])
    for _, holdout in iterate_folds(truth, None, seed=0):
        assert np.asarray(truth[holdout].sum(axis=0)).ravel().tolist() == [2, 2, 2]


def test_tenth_of_many_rows_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdout_scores, "FEW_ROWS", 100)
    truth = sp.csr_matrix(np.eye(2, dtype=bool)[np.arange(300) % 2])
    ((train, holdout),) = iterate_folds(truth, None, seed=0)
    assert (len(train), len(holdout)) == (270, 30)
    monkeypatch.setattr(holdout_scores, "MAX_ROWS", 10)
    ((_, holdout),) = iterate_folds(truth, None, seed=0)
    assert len(holdout) == 10


def test_labels_of_only_held_out_rows_do_not_count() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 6))
    Y = sp.csr_matrix(np.eye(21, dtype=np.float32)[[*range(20), *[20] * 20]])  # 20 labels of one row
    names = [f"label {i}" for i in range(21)]
    folds = list(iterate_folds(Y > 0, None, 0))
    parts = [score_fold([wsabie.NearestMean()], X, Y, fold, label_names=names) for fold in folds]
    assert [part.n_positives.tolist() for part in parts if part] == [[1] * 4] * FOLDS
    model = wsabie.NearestMean()
    assert score_fold([model], X, Y, (np.arange(20, 40), np.arange(20)), label_names=names) is None
    assert not hasattr(model, "vocabulary_")  # nothing was trained for nothing


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.5, 0.9])
def test_stated_share_is_held_out_once(share: float) -> None:
    truth = sp.csr_matrix(np.eye(2, dtype=bool)[np.arange(300) % 2])
    ((train, holdout),) = iterate_folds(truth, None, seed=0, share=share)
    assert len(holdout) == pytest.approx(300 * share, abs=1)
    assert np.sort(np.concatenate([train, holdout])).tolist() == list(range(300))
    assert truth[holdout].sum(axis=0).ravel() == pytest.approx(150 * share, abs=1)
