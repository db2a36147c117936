"""Propensity-scored precision: the formulas worked by hand, and the definition of the Extreme Classification page."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.evaluation.bootstrap import bootstrap_all
from wsabie.evaluation.metrics import compute_propensities
from wsabie.evaluation.score_evaluation import evaluate_scores

KS = (1, 3, 5)


def test_propensities_worked_by_hand():
    constant = (np.log(100) - 1) * 2.5**0.55
    expected = [1 / (1 + constant * (n + 1.5) ** -0.55) for n in (0, 7, 100)]
    np.testing.assert_allclose(compute_propensities(np.array([0, 7, 100]), 100), expected)
    wikipedia = 1 / (1 + (np.log(100) - 1) * 1.4**0.5 * 7.4**-0.5)
    assert compute_propensities(np.array([7]), 100, a=0.5, b=0.4) == pytest.approx(wikipedia)


def test_a_row_worked_by_hand():
    p = np.array([0.5, 0.25, 0.2, 1.0])
    Y = csr_matrix([[1, 1, 0, 0], [0, 0, 1, 1]])
    scores = np.array([[4.0, 2, 3, 1], [4, 1, 3, 2]])
    means = evaluate_scores([(0, scores)], Y, ks=(1, 2, 3), propensities=p).means
    assert means["psp@1"] == pytest.approx((2 + 0) / (4 + 5))
    assert means["psp@2"] == pytest.approx((2 + 5) / (6 + 6))
    assert means["psp@3"] == pytest.approx((6 + 6) / (6 + 6))


def test_ties_count_as_in_a_random_order():
    p = np.array([0.5, 0.25, 1.0])
    means = evaluate_scores([(0, np.zeros((1, 3)))], csr_matrix([[1, 1, 0]]), ks=(1, 2), propensities=p).means
    assert means["psp@1"] == pytest.approx((2 + 4) / 3 / 4)
    assert means["psp@2"] == pytest.approx((2 + 4) * 2 / 3 / 6)


def compute_by_the_page(scores, Y, p):
    """P@k, nDCG@k and PSP@k as the page defines them, row by row, of rows with a label."""
    figures = {}
    for k in KS:
        precision, gain, weighted, best = [], [], [], []
        for row_scores, labels in zip(scores, Y.toarray(), strict=True):
            if not labels.any():
                continue
            hits = labels[np.argsort(-row_scores)[:k]]
            inverse = (labels / p)[np.argsort(-row_scores)[:k]]
            precision.append(hits.sum() / k)
            discounts = 1 / np.log(np.arange(2, k + 2))
            gain.append(hits @ discounts / discounts[: min(k, labels.sum())].sum())
            weighted.append(inverse.sum() / k)
            best.append(np.sort(labels / p)[::-1][:k].sum() / k)
        figures |= {f"p@{k}": np.mean(precision), f"ndcg@{k}": np.mean(gain)}
        figures |= {f"psp@{k}": np.mean(weighted) / np.mean(best)}
    return figures


def test_figures_are_those_of_the_page_whatever_the_blocks():
    rng = np.random.default_rng(0)
    scores, Y = rng.normal(size=(60, 30)), csr_matrix((rng.random((60, 30)) < 0.1).astype(np.int8))
    assert not np.diff(Y.indptr).all()
    p = compute_propensities(rng.integers(0, 200, 30), 200)
    expected = compute_by_the_page(scores, Y, p)
    for size in (60, 7):
        blocks = ((lo, scores[lo : lo + size]) for lo in range(0, 60, size))
        evaluation = evaluate_scores(blocks, Y, ks=KS, propensities=p)
        assert {name: evaluation.means[name] for name in expected} == pytest.approx(expected)
    perfect = evaluate_scores([(0, Y.toarray() / p)], Y, ks=KS, propensities=p)
    assert [perfect.means[f"psp@{k}"] for k in KS] == pytest.approx([1, 1, 1])
    assert evaluation.ceilings["psp@3"] == 1
    interval = bootstrap_all({"psp@3": evaluation.per_row["psp@3"]})["psp@3"]
    assert interval.mean == pytest.approx(expected["psp@3"])


def test_equal_propensities_count_hits_among_the_possible_ones():
    rng = np.random.default_rng(1)
    scores, Y = rng.normal(size=(20, 8)), csr_matrix((rng.random((20, 8)) < 0.4).astype(np.int8))
    evaluation = evaluate_scores([(0, scores)], Y, ks=(3,), propensities=np.full(8, 0.3))
    assert evaluation.means["psp@3"] == pytest.approx(evaluation.means["p@3"] / evaluation.ceilings["p@3"])


def test_excluded_labels_are_neither_hits_nor_possible():
    p = np.array([0.5, 0.1, 1.0])
    options = {"ks": (1,), "propensities": p, "exclude": csr_matrix([[0, 1, 0]])}
    assert evaluate_scores([(0, np.array([[2.0, 3, 1]]))], csr_matrix([[1, 1, 0]]), **options).means["psp@1"] == 1


@pytest.mark.parametrize("p", [[0.5], [0.5, 0.0], [0.5, 1.5], [0.5, np.nan], [1, 1]])
def test_impossible_propensities_are_named(p):
    with pytest.raises(InputError, match="give each label a number above 0 and at most 1"):
        evaluate_scores([(0, np.array([[1.0, 2.0]]))], np.array([0]), ks=(1,), propensities=np.array(p))


@pytest.mark.parametrize(
    ("counts", "n_rows", "options", "message"),
    [
        ([1], 2, {}, "give 3 rows"),
        ([1], 9, {"a": 0}, "a, b above 0"),
        ([10], 9, {}, "one number from 0 to 9 each"),
        ([-1], 9, {}, "one number from 0 to 9 each"),
        ([[1]], 9, {}, "one number from 0 to 9 each"),
    ],
)
def test_impossible_counts_are_named(counts, n_rows, options, message):
    with pytest.raises(InputError, match=message):
        compute_propensities(np.array(counts), n_rows, **options)
