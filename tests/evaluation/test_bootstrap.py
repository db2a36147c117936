"""Bootstrap: known standard errors, coverage of the truth, groups, pairs, missing values and seeds."""

import numpy as np
import pytest

from wsabie.core.errors import InputError
from wsabie.evaluation import bootstrap as module
from wsabie.evaluation.bootstrap import Interval, bootstrap_all, paired_bootstrap


def bootstrap(values, **options) -> Interval:
    return bootstrap_all({"": values}, **options)[""]


def test_the_interval_is_the_normal_one_for_many_rows():
    values = np.random.default_rng(0).normal(size=2000)
    mean, low, high = bootstrap(values, resamples=4000)
    error = values.std() / np.sqrt(2000)
    assert mean == pytest.approx(values.mean())
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.06)


def test_it_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    intervals = [bootstrap(rng.random(80), resamples=300, confidence=0.8, seed=i) for i in range(300)]
    covered = np.mean([low <= 0.5 <= high for _, low, high in intervals])
    assert abs(covered - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 300)


def test_same_seed_same_bits_and_another_seed_another_interval():
    values = np.random.default_rng(0).random(50)
    assert bootstrap(values, seed=5) == bootstrap(values, seed=5)
    assert bootstrap(values, seed=5) != bootstrap(values, seed=6)


def test_blocks_of_resamples_change_nothing(monkeypatch):
    values = np.random.default_rng(0).random(50)
    intervals = bootstrap(values)
    monkeypatch.setattr(module, "_DRAWS_PER_BLOCK", 120)
    np.testing.assert_allclose(bootstrap(values), intervals, rtol=1e-12)


def test_groups_of_copies_are_as_wide_as_one_row_each():
    values = np.random.default_rng(2).normal(size=200)
    once = bootstrap(values, resamples=3000)
    copies = bootstrap(np.repeat(values, 9), groups=np.repeat(np.arange(200), 9), resamples=3000)
    naive = bootstrap(np.repeat(values, 9), resamples=3000)
    assert copies.high - copies.low == pytest.approx(once.high - once.low, rel=0.08)
    assert (naive.high - naive.low) * 3 == pytest.approx(once.high - once.low, rel=0.1)


def test_nan_rows_are_left_out_and_metrics_share_resamples():
    values = np.array([0.0, np.nan, 1.0, 1.0])
    intervals = bootstrap_all({"a": values, "b": [1.0, 1.0, 1.0, 1.0]})
    assert intervals["a"].mean == pytest.approx(2 / 3)
    assert intervals["b"] == (1, 1, 1)


def test_a_paired_difference_is_narrower_than_two_intervals():
    rng = np.random.default_rng(3)
    a = rng.random(300)
    b = a - 0.01 + 0.01 * rng.normal(size=300)
    difference = paired_bootstrap(a, b)
    assert difference.ahead == 1
    assert difference.low < 0.01 < difference.high < bootstrap(a).high - bootstrap(a).low
    assert paired_bootstrap(b, a).mean == pytest.approx(-difference.mean)


def test_equal_models_are_ahead_half_the_time():
    assert paired_bootstrap([1.0, 2.0], [1.0, 2.0]) == (0, 0, 0, 0.5)


@pytest.mark.parametrize("values", [[], [np.nan]])
def test_values_that_cannot_be_resampled_are_refused(values):
    with pytest.raises(InputError, match="nothing to resample"):
        bootstrap(values)
