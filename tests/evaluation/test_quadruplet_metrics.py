"""Metrics of ranks: formulas, ties as all orders of them; chance for a constant scorer."""

import numpy as np
import pytest

from wsabie.evaluation.quadruplets import compute_rank_metrics
from wsabie.evaluation.score_evaluation import evaluate_scores


def test_formulas():
    values = compute_rank_metrics(np.array([1, 2, 10, 11]))
    assert values["p@1"].tolist() == [1, 0, 0, 0]
    assert values["p@10"].tolist() == [1 / 10, 1 / 10, 1 / 10, 0]
    assert values["MAP"].tolist() == [1, 1 / 2, 1 / 10, 1 / 11]
    assert values["rank"].tolist() == [1, 2, 10, 11]


@pytest.mark.parametrize(("first", "n_tied"), [(1, 0), (1, 4), (3, 1), (2, 30)])
def test_ties_are_the_mean_over_the_places(first, n_tied):
    values = compute_rank_metrics(np.array([first]), (1, 3, 10), tied=np.array([n_tied]))
    every = compute_rank_metrics(np.arange(first, first + n_tied + 1), (1, 3, 10))
    for name, value in values.items():
        np.testing.assert_allclose(value, every[name].mean(), rtol=1e-12)


def test_a_million_equal_pairs_are_chance():
    values = compute_rank_metrics([1], tied=[10**6 - 1])
    np.testing.assert_allclose(values["MAP"], (1 / np.arange(1, 10**6 + 1)).sum() / 10**6, rtol=1e-12)
    np.testing.assert_allclose(values["p@10"], 1e-6, rtol=1e-12)


def test_the_same_as_the_metrics_of_annotation():
    rng = np.random.default_rng(0)
    scores, y = rng.integers(0, 6, (50, 20)).astype(np.float32), rng.integers(0, 20, 50)
    true_scores = scores[np.arange(50), y][:, None]
    ours = compute_rank_metrics(1 + (scores > true_scores).sum(1), (1, 5), tied=(scores == true_scores).sum(1) - 1)
    theirs = evaluate_scores([(0, scores)], y, ks=(1, 5)).per_row
    for name in ("p@1", "p@5", "MAP"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)
