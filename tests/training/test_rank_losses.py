"""L(k) and the number of trials, by formula."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.training.rank_losses import build_losses, compute_order_chances, compute_rank_losses
from wsabie.training.samplers import resolve_max_sampled


def test_the_slides_example_of_two_rankings() -> None:
    """True labels at ranks 1 and 101 (0 and 100 above them) cost less than both at 50 and 52 (49 and 51)."""
    L = compute_rank_losses("precision", 200)
    assert L[0] + L[100] == pytest.approx(sum(1 / j for j in range(1, 101)), rel=1e-6)
    assert L[0] + L[100] == pytest.approx(5.187, abs=5e-4)
    assert L[49] + L[51] == pytest.approx(8.998, abs=5e-4)
    mean = compute_rank_losses("mean_rank", 200)
    assert mean[0] + mean[100] == pytest.approx(mean[49] + mean[51], rel=1e-6)


@given(st.integers(2, 500))
def test_named_losses_are_their_formulas(n: int) -> None:
    k = np.arange(n + 1)
    np.testing.assert_allclose(compute_rank_losses("mean_rank", n), k / (n - 1), rtol=1e-6)
    np.testing.assert_allclose(compute_rank_losses("top1", n), np.minimum(k, 1), rtol=1e-6)
    harmonic = [math.fsum(1 / j for j in range(1, i + 1)) for i in k]
    np.testing.assert_allclose(compute_rank_losses("precision", n), harmonic, rtol=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(1, 12))
def test_given_weights_are_summed_and_the_last_one_goes_on(weights: list[float], n: int) -> None:
    weights = sorted(weights, reverse=True)
    longer = [*weights, *[weights[-1]] * n][:n]
    np.testing.assert_allclose(
        compute_rank_losses(weights, n), [math.fsum(longer[:k]) for k in range(n + 1)], 1e-5, 1e-30
    )


@pytest.mark.parametrize("wrong", ["recall", [], [1, 2], [-1], [np.nan], [[1.0]], 3, None, ["a"]])
def test_weights_that_cannot_be_used(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^rank_weight "):
        compute_rank_losses(wrong, 5)  # type: ignore[arg-type]


def test_auc_has_no_weight_and_one_trial() -> None:
    assert build_losses("auc", "precision", 9).tolist() == [1] * 10
    assert resolve_max_sampled("auc", "auto", 9) == 1


@pytest.mark.parametrize(
    ("given_trials", "n_labels", "expected"),
    [(None, 50_000, 50_000), ("auto", 50_000, 1000), ("auto", 20, 20), (7, 50_000, 7)],
)
def test_trials(given_trials: object, n_labels: int, expected: int) -> None:
    assert resolve_max_sampled("warp", given_trials, n_labels) == expected  # type: ignore[arg-type]


def test_places_of_an_order_statistic() -> None:
    """The k-th highest of n, or given chances summed up; other losses rank the pair's own label."""
    assert compute_order_chances("k-os", (1, 3)) == (1.0, 1.0, 1.0)
    assert compute_order_chances("k-os", (3, 3)) == (0.0, 0.0, 1.0)
    assert compute_order_chances("k-os", [1.0, 1.0, 2.0]) == (0.25, 0.5, 1.0)
    assert compute_order_chances("k-os", None) == (0.0,) * 4 + (1.0,) * 6
    assert compute_order_chances("warp", "anything") == (1.0,)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [(0, 3), (4, 3), (1, 1), (1, 1000), [0.5], [-1.0, 2.0], [0.0, 0.0], "ab", 3])
def test_what_is_no_order_statistic_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="order_statistic is"):
        compute_order_chances("k-os", value)  # type: ignore[arg-type]
