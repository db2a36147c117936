"""Metrics: hand-worked values, brute force over all orders of ties, chance for a constant scorer, scikit-
learn as oracle.
"""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.label_lists import build_exclusion_lists, list_positives, remove_excluded
from wsabie.evaluation import metrics
from wsabie.evaluation.metrics import PositiveRanks
from wsabie.evaluation.positive_ranks import rank_scores

KS = (1, 2, 3, 5)


def ranks(scores, Y, exclude=None) -> PositiveRanks:
    scores = np.asarray(scores, np.float64)
    excluded = build_exclusion_lists(exclude, *scores.shape)
    return rank_scores(
        scores, remove_excluded(list_positives(np.asarray(Y), scores.shape[1]), excluded, scores.shape[1]), excluded
    )


def values(positive_ranks: PositiveRanks) -> dict:
    return {
        **{f"p@{k}": metrics.precision_at(positive_ranks, k)[0] for k in KS},
        **{f"recall@{k}": metrics.recall_at(positive_ranks, k)[0] for k in KS},
        **{f"hit@{k}": metrics.hit_at(positive_ranks, k)[0] for k in KS},
        **{f"ndcg@{k}": metrics.ndcg_at(positive_ranks, k)[0] for k in KS},
        "MAP": metrics.average_precision(positive_ranks)[0],
        "MRR": metrics.first_reciprocal_rank(positive_ranks)[0],
        "AUC": metrics.auc(positive_ranks)[0],
    }


def of_order(relevant) -> dict:
    """The textbook definitions for one complete order without ties."""
    relevant = np.asarray(relevant, float)
    n, right = len(relevant), relevant.sum()
    places = np.flatnonzero(relevant) + 1
    gain = relevant / np.log2(np.arange(2, n + 2))
    ideal = np.sort(relevant)[::-1] / np.log2(np.arange(2, n + 2))
    pairs = [(i < j) for i in np.flatnonzero(relevant) for j in np.flatnonzero(relevant == 0)]
    return {
        **{f"p@{k}": relevant[:k].sum() / k for k in KS},
        **{f"recall@{k}": relevant[:k].sum() / right for k in KS},
        **{f"hit@{k}": float(relevant[:k].any()) for k in KS},
        **{f"ndcg@{k}": gain[:k].sum() / ideal[:k].sum() for k in KS},
        "MAP": np.mean([relevant[:place].sum() / place for place in places]),
        "MRR": 1 / places[0],
        "AUC": np.mean(pairs) if pairs else np.nan,
    }


def test_a_row_worked_by_hand():
    figures = values(ranks([[0.9, 0.8, 0.7, 0.6, 0.5]], [[0, 1, 0, 1, 0]]))
    assert figures["p@1"] == 0
    assert figures["p@2"] == pytest.approx(1 / 2)
    assert figures["p@5"] == pytest.approx(2 / 5)
    assert figures["recall@3"] == pytest.approx(1 / 2)
    assert figures["MAP"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert figures["MRR"] == pytest.approx(1 / 2)
    assert figures["AUC"] == pytest.approx((2 + 1) / 6)
    assert figures["ndcg@5"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3)))


def test_ties_worked_by_hand():
    """One positive among three equal scores below one better label: ranks 2, 3 and 4 with chance 1/3 each."""
    figures = values(ranks([[2, 1, 1, 1]], [[0, 1, 0, 0]]))
    assert figures["MAP"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert figures["MRR"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert figures["p@3"] == pytest.approx(2 / 3 / 3)
    assert figures["AUC"] == pytest.approx((0 + 0.5 + 0.5) / 3)


def test_two_positives_among_four_equal_scores():
    """Six equally likely placements of two positives; average precision by listing them."""
    placements = [(i, j) for i in range(1, 5) for j in range(i + 1, 5)]
    figures = values(ranks([[1, 1, 1, 1]], [[1, 0, 0, 1]]))
    assert figures["MAP"] == pytest.approx(np.mean([(1 / i + 2 / j) / 2 for i, j in placements]))
    assert figures["MRR"] == pytest.approx(np.mean([1 / i for i, _ in placements]))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_expected_values_equal_the_mean_over_all_orders_of_ties(row):
    scores, relevant = np.array([s for s, _ in row]), np.array([r for _, r in row])
    if not relevant.any():
        relevant[0] = True
    orders = [np.array(p) for p in permutations(range(len(row)))]
    orders = [p for p in orders if (np.diff(scores[p]) <= 0).all()]
    figures = values(ranks([scores], [relevant.astype(int)]))
    every = [of_order(relevant[p]) for p in orders]
    for name, value in figures.items():
        assert value == pytest.approx(np.mean([order_figures[name] for order_figures in every]), nan_ok=True), name


@pytest.mark.parametrize(("n_labels", "right"), [(7, 1), (7, 3), (50, 2), (1000, 5), (4, 4)])
def test_a_constant_scorer_gets_exactly_chance(n_labels, right):
    Y = np.zeros((1, n_labels), int)
    Y[0, :right] = 1
    figures = values(ranks(np.zeros((1, n_labels)), Y))
    for k in KS:
        k_seen = min(k, n_labels)
        assert figures[f"p@{k}"] == pytest.approx(right / n_labels * k_seen / k, rel=1e-12)
        assert figures[f"recall@{k}"] == pytest.approx(k_seen / n_labels, rel=1e-12)
    assert np.isnan(figures["AUC"]) if right == n_labels else figures["AUC"] == pytest.approx(0.5, rel=1e-12)
    harmonic = np.sum(1 / np.arange(1, n_labels + 1))
    q = (right - 1) / (n_labels - 1)
    assert figures["MAP"] == pytest.approx(q + (1 - q) * harmonic / n_labels, rel=1e-12)


def test_chance_of_average_precision_agrees_with_drawn_orders():
    rng = np.random.default_rng(0)
    relevant = np.arange(40) < 6
    precisions = np.array([of_order(rng.permutation(relevant))["MAP"] for _ in range(4000)])
    expected = metrics.average_precision(ranks(np.zeros((1, 40)), [relevant.astype(int)]))[0]
    assert abs(precisions.mean() - expected) < 4 * precisions.std() / np.sqrt(len(precisions))


def test_scikit_learn_agrees_where_nothing_is_tied():
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    rng = np.random.default_rng(1)
    scores, Y = rng.normal(size=(30, 40)), (rng.random((30, 40)) < 0.15).astype(int)
    Y[:, 0] = 1
    positive_ranks = ranks(scores, Y)
    for i in range(30):
        assert metrics.average_precision(positive_ranks)[i] == pytest.approx(average_precision_score(Y[i], scores[i]))
        assert metrics.auc(positive_ranks)[i] == pytest.approx(roc_auc_score(Y[i], scores[i]))
        assert metrics.ndcg_at(positive_ranks, 5)[i] == pytest.approx(ndcg_score(Y[[i]], scores[[i]], k=5))


def test_scikit_learn_agrees_on_tied_auc_and_ndcg():
    """These two average over ties as we do; its average precision treats ties in another way."""
    from sklearn.metrics import ndcg_score, roc_auc_score

    rng = np.random.default_rng(2)
    scores, Y = rng.integers(0, 4, size=(30, 20)).astype(float), (rng.random((30, 20)) < 0.3).astype(int)
    Y[:, 0], Y[:, 1] = 1, 0
    positive_ranks = ranks(scores, Y)
    for i in range(30):
        assert metrics.auc(positive_ranks)[i] == pytest.approx(roc_auc_score(Y[i], scores[i]))
        assert metrics.ndcg_at(positive_ranks, 7)[i] == pytest.approx(ndcg_score(Y[[i]], scores[[i]], k=7))


def test_rows_without_positives_are_nan_and_explicit_negatives_are_not_positives():
    positive_ranks = ranks([[1, 2], [2, 1]], [[-1, 0], [-1, 1]])
    assert np.isnan(metrics.average_precision(positive_ranks)[0])
    assert metrics.average_precision(positive_ranks)[1] == pytest.approx(1 / 2)
    assert np.isnan(metrics.first_reciprocal_rank(positive_ranks)[0])


def test_excluded_labels_leave_candidates_and_positives():
    scores, Y, exclude = [[4, 3, 2, 1]], [[1, 0, 1, 0]], np.array([[1, 1, 0, 0]])
    assert metrics.average_precision(ranks(scores, Y, exclude))[0] == pytest.approx(1)
    assert metrics.auc(ranks(scores, Y, exclude))[0] == pytest.approx(1)


def test_duplicating_a_row_changes_no_mean_and_label_order_is_irrelevant():
    rng = np.random.default_rng(3)
    scores, Y = rng.integers(0, 5, size=(6, 12)), (rng.random((6, 12)) < 0.4).astype(int)
    Y[:, 3] = 1
    order = rng.permutation(12)
    for metric in (metrics.average_precision, metrics.auc, metrics.first_reciprocal_rank):
        once = metric(ranks(scores, Y))
        np.testing.assert_allclose(metric(ranks(np.repeat(scores, 2, 0), np.repeat(Y, 2, 0))), np.repeat(once, 2))
        np.testing.assert_allclose(metric(ranks(scores[:, order], Y[:, order])), once)
