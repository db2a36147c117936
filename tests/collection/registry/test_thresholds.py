"""Thresholds that keep a promised precision: small cases by hand, and simulated collections."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from wsabie.collection.registry.thresholds import (
    ERROR,
    MIN_LABEL_SUGGESTIONS,
    HoldoutSuggestions,
    PrecisionCurve,
    PrecisionSteps,
    compute_lower_bound,
    count_independent,
    load_holdout_suggestions,
    save_holdout_suggestions,
)


def find_lowest_probability(
    p: np.ndarray, right: np.ndarray, precision: float, *, items: np.ndarray | None = None, error: float = ERROR
) -> float | None:
    suggestions = HoldoutSuggestions(np.zeros(len(p), np.int64), p, right, items)
    return PrecisionSteps(suggestions, error).find_probability(precision)


def test_too_few_suggestions_give_no_threshold() -> None:
    p, right = np.linspace(1, 0.96, 5), np.ones(5, np.int64)
    assert find_lowest_probability(p, right, 0.46) == 0.96  # the first test, of 3: .1^(1/3) = .464
    assert find_lowest_probability(p, right, 0.8) is None


@pytest.mark.parametrize(("hits", "n"), [(1, 3), (45, 45), (190, 200), (5, 900)])
def test_lower_bound_equals_the_binomial_test(hits: int, n: int) -> None:
    bound = compute_lower_bound(hits, n, 0.1)
    assert binom.sf(hits - 1, n, bound) == pytest.approx(0.1)
    assert compute_lower_bound(0, n, 0.1) == 0


def test_tests_end_at_the_first_failure() -> None:
    """All are right but for one among the first 25: .1^(1/25) = .912 is promised without it, .853 with it."""
    p, right = np.linspace(1, 0.5, 124), np.ones(124, np.int64)
    assert find_lowest_probability(p, right, 0.912) == 0.5
    assert find_lowest_probability(p, right, 0.913) is None
    right[3] = 0
    bound = float(compute_lower_bound(24, 25, ERROR))
    assert bound == pytest.approx(0.853, abs=1e-3)
    assert find_lowest_probability(p, right, bound - 1e-3) == 0.5
    assert find_lowest_probability(p, right, bound + 1e-3) is None


def test_tests_start_at_several_sizes() -> None:
    """One wrong suggestion refutes .95 at the first 25, but not at the first 125, with half of the error."""
    p, right = np.linspace(1, 0.5, 400), np.ones(400, np.int64)
    right[3] = 0
    assert compute_lower_bound(24, 25, ERROR / 2) < 0.95 < compute_lower_bound(124, 125, ERROR / 2)
    assert find_lowest_probability(p, right, 0.95) == 0.5


def test_equal_probabilities_stay_together() -> None:
    p, right = np.repeat([0.9, 0.8], 30), np.repeat([1, 0], 30)
    assert find_lowest_probability(p, right, 0.9) == 0.9
    assert find_lowest_probability(np.full(60, 0.9), right, 0.9) is None


def test_correlated_suggestions_of_an_item_count_once() -> None:
    items = np.repeat(np.arange(12), 10)
    assert count_independent(items)[-1] == pytest.approx(12)
    p, right = np.linspace(1, 0.5, 120), np.ones(120, np.int64)
    assert find_lowest_probability(p, right, 0.9) == 0.5
    assert find_lowest_probability(p, right, 0.9, items=items) is None


def test_frequent_labels_have_thresholds_of_their_own() -> None:
    draw = np.random.default_rng(0)
    labels, p = (40 * draw.random(15000) ** 4).astype(np.int64), np.round(draw.random(15000), 2)
    holdout = HoldoutSuggestions(labels, p, (draw.random(15000) < p ** (0.2 + labels)).astype(np.int64))
    thresholds = PrecisionCurve(holdout).find_threshold(0.7)
    frequent = [label for label in range(40) if (labels == label).sum() >= MIN_LABEL_SUGGESTIONS]
    own = {
        label: find_lowest_probability(
            p[labels == label], holdout.right[labels == label], 0.7, error=0.2 * ERROR / len(frequent)
        )
        for label in frequent
    }
    assert thresholds.common == find_lowest_probability(p, holdout.right, 0.7, error=0.8 * ERROR)
    assert thresholds.by_label == {
        label: threshold for label, threshold in own.items() if threshold is not None and threshold < thresholds.common
    }
    assert 0 < len(thresholds.by_label) < len(frequent) < 40


@pytest.mark.parametrize("go_together", [False, True])
@pytest.mark.parametrize("precision", [0.6, 0.85])
def test_promised_precision_holds_in_nine_of_ten_draws(precision: float, go_together: bool) -> None:
    """Of 300 collections with 500 held-out items and up to 10 suggestions each, whose chances are known."""
    draw = np.random.default_rng(0)
    n_said = n_kept = 0
    population, chances = _draw_suggestions(draw, 20_000, go_together)
    for _ in range(300):
        holdout, _ = _draw_suggestions(draw, 500, go_together)
        threshold = PrecisionCurve(holdout).find_threshold(precision)
        if threshold.common is not None:
            n_said += 1
            limits = threshold.by_column(np.arange(5))(population.labels)
            n_kept += chances[population.probabilities >= limits].mean() >= precision
    assert n_said > 200
    assert n_kept >= 0.9 * n_said


@pytest.mark.parametrize("go_together", [False, True])
def test_unreachable_precision_is_promised_in_one_of_ten_draws(go_together: bool) -> None:
    """Nine of ten suggestions are right whatever their probability, and slightly more are asked for."""
    draw = np.random.default_rng(0)
    n_said = 0
    for _ in range(500):
        items = np.repeat(np.arange(300), 2)
        right = (draw.random(300)[items] if go_together else draw.random(600)) < 0.9
        p = draw.random(600)
        n_said += find_lowest_probability(p, right.astype(np.int64), 0.9001, items=items) is not None
    assert 0 < n_said <= 0.1 * 500


def _draw_suggestions(
    draw: np.random.Generator, n_items: int, go_together: bool
) -> tuple[HoldoutSuggestions, np.ndarray]:
    """Return suggestions that are less often right than their probabilities say, and their chances."""
    items = np.repeat(np.arange(n_items), draw.integers(1, 11, n_items))
    quality = draw.random(n_items)[items] if go_together else draw.random(len(items))
    p = np.clip(quality + 0.02 * draw.random(len(items)), 0, 1)
    chance = quality**0.3
    right = (draw.random(n_items)[items] if go_together else draw.random(len(items))) < chance
    return HoldoutSuggestions(draw.integers(0, 5, len(items)), p, right.astype(np.int64), items), chance


def test_suggestions_are_saved_with_and_without_items(tmp_path: Path) -> None:
    columns = np.array([3, 4]), np.array([0.5, 0.25]), np.array([1, 0])
    for items in (None, np.array([7, 7])):
        save_holdout_suggestions(tmp_path, HoldoutSuggestions(*columns, items))
        loaded = load_holdout_suggestions(tmp_path)
        assert [None if column is None else column.tolist() for column in loaded] == [
            [3, 4], [0.5, 0.25], [1, 0], None if items is None else [7, 7]
        ]  # fmt: skip
