"""Percentile bootstrap of a mean over rows, or of a difference between two models on the same rows.

Rows are drawn with replacement (Efron 1979), or whole groups of rows if the rows of a group are alike. A row with NaN
in a metric does not count for its mean, in every resample.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError

_DRAWS_PER_BLOCK = 4_000_000
"""Draws held in memory at once."""


class Interval(NamedTuple):
    """A mean with its interval."""

    mean: float
    low: float
    high: float


class PairedDifference(NamedTuple):
    """Mean of a - b with its interval, and the fraction of resamples with a ahead (ties count half)."""

    mean: float
    low: float
    high: float
    ahead: float


def bootstrap_all(
    per_row: Mapping[str, npt.ArrayLike],
    *,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Compute percentile intervals of the means of metrics of the same rows, from the same resamples.

    Parameters
    ----------
    per_row : dict of str to (n_rows,) float
        NaN: the row does not count.
    groups : (n_rows,) array or None
        Draw whole groups; None: every row is its own group.
    resamples : int
    confidence : float
        Between 0 and 1.
    seed : int

    Raises
    ------
    InputError
        No value is a number.

    Examples
    --------
    >>> mean, low, high = bootstrap_all({"hit": [0.0, 1.0] * 50})["hit"]
    >>> mean, 0.38 < low < 0.42, 0.58 < high < 0.62
    (0.5, True, True)
    """
    _, intervals = _resample(per_row, groups, resamples, confidence, seed)
    return dict(zip(per_row, intervals, strict=True))


def paired_bootstrap(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference:
    """Compare two models' means on the same rows, resampled together.

    Parameters are those of `bootstrap_all`; a and b must belong to the same rows in the same order.

    Examples
    --------
    >>> paired_bootstrap([0.5, 1.0, 0.7], [0.4, 0.9, 0.6]).ahead
    1.0
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    means, (interval,) = _resample({"": a - b}, groups, resamples, confidence, seed)
    return PairedDifference(*interval, float(np.mean(means > 0) + np.mean(means == 0) / 2))


def _resample(
    per_row: Mapping[str, npt.ArrayLike], groups: npt.ArrayLike | None, resamples: int, confidence: float, seed: int
) -> tuple[Float64, list[Interval]]:
    """Return the means of every metric in every resample, (resamples, n_metrics), and their intervals."""
    sums, sizes = _sum_by_unit(per_row, groups)
    if not len(sums) or (sizes.sum(axis=0) == 0).any():
        raise InputError("there is nothing to resample: a metric has no row with a number")
    means = np.empty((resamples, sums.shape[1]))
    start = 0
    for counts in _draw_counts(len(sums), resamples, seed):
        weight = counts @ sizes
        with np.errstate(invalid="ignore"):  # a resample without a single defined row has no mean
            means[start : start + len(counts)] = (counts @ sums) / weight
        start += len(counts)
    low, high = np.nanquantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    observed = sums.sum(axis=0) / sizes.sum(axis=0)
    return means, list(map(Interval, observed.tolist(), low.tolist(), high.tolist()))


def _sum_by_unit(per_row: Mapping[str, npt.ArrayLike], groups: npt.ArrayLike | None) -> tuple[Float64, Float64]:
    """Return sum and number of the defined values per unit of drawing, (n_units, n_metrics) each."""
    # Sums of single-precision values in doubles do not depend on their order, which a library's threads choose.
    values = np.stack([np.asarray(v, np.float32).ravel() for v in per_row.values()], axis=1).astype(np.float64)
    is_number = ~np.isnan(values)
    values = np.where(is_number, values, 0.0)
    if groups is None:
        return values, is_number.astype(np.float64)
    names, unit = np.unique(np.asarray(groups), return_inverse=True)
    sums, sizes = np.zeros((2, len(names), values.shape[1]))
    np.add.at(sums, unit, values)
    np.add.at(sizes, unit, is_number)
    return sums, sizes


def _draw_counts(n: int, resamples: int, seed: int) -> Iterator[Float64]:
    """Yield the number of times that each unit is drawn, (b, n) for blocks of resamples."""
    rng = np.random.default_rng(seed)
    block = max(1, _DRAWS_PER_BLOCK // n)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        choices: Int64 = rng.integers(n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(choices.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
