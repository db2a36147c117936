"""Metrics of ranks: formulas, ties as all orders of them, chance for a constant scorer, errors of means."""

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.evaluation.bootstrap import bootstrap
from wsabie.evaluation.quadruplets import compute_rank_metrics, summarise_values
from wsabie.evaluation.score_evaluation import evaluate_scores


def test_formulas():
    values = compute_rank_metrics(np.array([1, 2, 10, 11]))
    assert values["p@1"].tolist() == [1, 0, 0, 0]
    assert values["p@10"].tolist() == [1 / 10, 1 / 10, 1 / 10, 0]
    assert values["MAP"].tolist() == [1, 1 / 2, 1 / 10, 1 / 11]
    assert values["rank"].tolist() == [1, 2, 10, 11]


@pytest.mark.parametrize(("first", "others"), [(1, 0), (1, 4), (3, 1), (2, 30)])
def test_ties_are_the_mean_over_the_places(first, others):
    values = compute_rank_metrics(np.array([first]), (1, 3, 10), tied=np.array([others]))
    every = compute_rank_metrics(np.arange(first, first + others + 1), (1, 3, 10))
    for name, value in values.items():
        np.testing.assert_allclose(value, every[name].mean(), rtol=1e-12)


def test_a_million_equal_pairs_are_chance():
    values = compute_rank_metrics([1], tied=[10**6 - 1])
    np.testing.assert_allclose(values["MAP"], (1 / np.arange(1, 10**6 + 1)).sum() / 10**6, rtol=1e-12)
    np.testing.assert_allclose(values["p@10"], 1e-6, rtol=1e-12)


def test_the_same_as_the_metrics_of_annotation():
    rng = np.random.default_rng(0)
    scores, y = rng.integers(0, 6, (50, 20)).astype(np.float32), rng.integers(0, 20, 50)
    own = scores[np.arange(50), y][:, None]
    ours = compute_rank_metrics(1 + (scores > own).sum(1), (1, 5), tied=(scores == own).sum(1) - 1)
    theirs = evaluate_scores([(0, scores)], y, ks=(1, 5)).per_row
    for name in ("p@1", "p@5", "MAP"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)


def test_the_error_is_that_of_the_bootstrap():
    values = compute_rank_metrics(np.random.default_rng(0).geometric(0.2, 400))
    error = summarise_values(values)["MAP"].error
    low_high = bootstrap(values["MAP"], resamples=4000, confidence=0.6827)
    assert error == pytest.approx((low_high.high - low_high.low) / 2, rel=0.08)
    assert error == pytest.approx(values["MAP"].std(ddof=1) / np.sqrt(400))


def test_rows_of_one_group_do_not_make_the_mean_surer():
    ranks = np.random.default_rng(1).geometric(0.2, 50)
    alone, repeated = compute_rank_metrics(ranks), compute_rank_metrics(np.repeat(ranks, 20))
    groups = np.repeat(np.arange(50), 20)
    assert summarise_values(repeated, groups)["MAP"] == pytest.approx(summarise_values(alone)["MAP"])
    assert summarise_values(repeated)["MAP"].error < summarise_values(alone)["MAP"].error / 4


def test_one_row_has_no_error():
    assert summarise_values(compute_rank_metrics([3]))["rank"] == (3, 0)


@pytest.mark.parametrize("ranks", [[], [0], [1.5], [[1]]])
def test_what_is_no_rank_is_refused(ranks):
    with pytest.raises(InputError, match="whole numbers from 1"):
        compute_rank_metrics(ranks)


def test_other_bad_arguments():
    with pytest.raises(InputError, match="p@0"):
        compute_rank_metrics([1], ks=(0,))
    with pytest.raises(InputError, match="2 ranks"):
        compute_rank_metrics([1, 1], tied=[0])
    with pytest.raises(InputError, match="1 groups for 2 rows"):
        summarise_values(compute_rank_metrics([1, 1]), groups=[0])
