"""The law of the rank estimate: by hand, against sums written out, against simulation, and its known values."""

import math

import numpy as np
import pytest

from papers.runs.rank_law import (
    compute_exact_law,
    compute_harmonic_numbers,
    compute_standard_errors,
    compute_unlimited_estimate,
    measure_law,
)


def written_out(n: int, k: int, T: int) -> tuple[float, float, float, float]:
    p, H = k / n, [sum(1 / j for j in range(1, r + 1)) for r in range(n + 1)]
    chances = [(1 - p) ** (i - 1) * p for i in range(1, T + 1)]
    missed = 1 - sum(chances)
    return (
        missed,
        sum(i * c for i, c in enumerate(chances, 1)) + T * missed,
        sum(n // i * c for i, c in enumerate(chances, 1)),
        sum(H[n // i] * c for i, c in enumerate(chances, 1)),
    )


@pytest.mark.parametrize(("n", "k", "T"), [(9, 1, 9), (9, 4, 9), (20, 3, 5), (7, 7, 7), (5, 1, 1)])
def test_the_law_is_its_definition(n: int, k: int, T: int) -> None:
    assert compute_exact_law(n, k, T) == pytest.approx(written_out(n, k, T), abs=1e-12)


def test_two_negatives_by_hand() -> None:
    """A label of two violates: N = 1 (1/2, estimate 2), N = 2 (1/4, estimate 1), none (1/4)."""
    law = compute_exact_law(2, 1)
    assert law == pytest.approx((1 / 4, 1 * 1 / 2 + 2 * 1 / 2, 2 / 2 + 1 / 4, 1.5 / 2 + 1 / 4))


@pytest.mark.parametrize(
    ("k", "uncut", "loss", "missed"),
    [
        (1, 9.7, 1.188, 0.368),
        (2, 18.0, 1.839, 0.135),
        (5, 40.4, 2.763, 0.007),
        (10, 73.8, 3.455, 0.0),
        (100, 510, 5.743, 0),
    ],
)
def test_known_values_at_the_labels_of_imagenet(k: int, uncut: float, loss: float, missed: float) -> None:
    law = compute_exact_law(15_951, k)
    assert compute_unlimited_estimate(15_951, k) == pytest.approx(uncut, rel=0.006)
    assert (law.loss, law.no_update) == pytest.approx((loss, missed), abs=6e-4)


def test_remark_2_bounds_the_draws() -> None:
    for k in range(1, 500):
        assert compute_exact_law(499, k).draws <= min(499 / k, 499) + 1e-9


def test_remark_1_the_loss_is_at_least_that_of_the_rank() -> None:
    L = compute_harmonic_numbers(499)
    assert all(compute_exact_law(499, k).loss >= L[k] - 1e-12 for k in range(1, 500))


@pytest.mark.parametrize(("n", "k", "trials"), [(60, 1, None), (60, 7, None), (200, 2, 20), (33, 33, None)])
def test_the_sampler_of_training_follows_the_law(n: int, k: int, trials: int | None) -> None:
    exact = compute_exact_law(n, k, trials)
    measured, pairs = measure_law(n, k, trials, seed=3)
    assert pairs == 20_000
    square = compute_exact_law(n, k, trials, power=2)
    errors = np.sqrt(np.maximum(np.array(square) - np.array(exact) ** 2, 0) / pairs)
    errors[0] = math.sqrt(exact.no_update * (1 - exact.no_update) / pairs)
    assert np.all(np.abs(np.array(measured) - np.array(exact)) <= 4 * errors + 1e-5)


def test_standard_errors_shrink_with_the_root_of_the_pairs() -> None:
    few, many = compute_standard_errors(100, 20, 100), compute_standard_errors(100, 20, 10_000)
    assert few == pytest.approx(10 * np.array(many))
    assert few.draws == pytest.approx(math.sqrt((1 - 0.2) / 0.2**2 / 100), rel=1e-4)


def test_a_logarithm_in_place_of_the_loss() -> None:
    """E[log floor] of 15,952 labels at ranks 1, 2, 5, 10 and 100, worked out elsewhere."""
    n = 15_951
    logs = np.log(np.maximum(np.arange(n + 1), 1))
    law_losses = [compute_exact_law(n, k, losses=logs).loss for k in (1, 2, 5, 10, 100)]
    assert law_losses == pytest.approx([0.673, 1.170, 2.081, 2.824, 5.161], abs=0.0006)
