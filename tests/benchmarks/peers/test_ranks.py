"""Ranks with ties against counting all orders."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.peers.ranks import dense, hits, measure, places, reciprocal_ranks


def over_all_orders(scores, true, value):
    """Mean of value(rank) over all orders of the labels that sort the scores."""
    orders = [o for o in itertools.permutations(range(len(scores))) if all(np.diff([scores[i] for i in o]) <= 0)]
    return np.mean([value(order.index(true) + 1) for order in orders])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5), st.data())
def test_expected_over_ties(scores, data):
    true = data.draw(st.integers(0, len(scores) - 1))
    n_above, tied = places(np.array([scores]), np.array([true]), len(scores))
    assert reciprocal_ranks(n_above, tied)[0] == pytest.approx(over_all_orders(scores, true, lambda r: 1 / r))
    for k in (1, 2):
        assert hits(n_above, tied, k)[0] == pytest.approx(over_all_orders(scores, true, lambda r, k=k: r <= k))


def test_labels_left_out_share_the_last_places():
    scores = dense([[3, 1]], [[2.0, 1.0]], 5)
    figures = measure(lambda lo, hi: scores, np.array([0]), 5)
    assert figures == {"MRR": round((1 / 3 + 1 / 4 + 1 / 5) / 3, 5), "p@1": 0.0, "hit@10": 1.0}


def test_blocks_cover_all_rows_once():
    y = np.arange(1300) % 7
    spans = []

    def scores(lo, hi):
        spans.append((lo, hi))
        return np.eye(7)[y[lo:hi]]

    assert measure(scores, y, 7)["MRR"] == 1.0
    assert spans == [(0, 512), (512, 1024), (1024, 1300)]


def test_a_constant_scorer_is_at_chance():
    assert measure(lambda lo, hi: np.zeros((hi - lo, 100)), np.arange(100), 100)["p@1"] == 0.01


def test_nan_and_wrong_shapes_are_errors():
    with pytest.raises(ValueError, match="NaN"):
        measure(lambda lo, hi: np.full((1, 2), np.nan), np.array([0]), 2)
    with pytest.raises(ValueError, match="shape"):
        measure(lambda lo, hi: np.zeros((1, 3)), np.array([0]), 2)
