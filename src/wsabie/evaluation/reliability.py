"""Reliability of predicted probabilities."""

from typing import Any, NamedTuple

import numpy as np


class ReliabilityBin(NamedTuple):
    """Pairs with a predicted probability in [low, high): mean prediction and fraction of right outcomes."""

    low: float
    high: float
    predicted: float
    observed: float
    weight: float


def compute_reliability(
    probabilities: Any, outcomes: Any, *, weights: Any = None, bins: int = 10
) -> tuple[list[ReliabilityBin], float]:
    """Compute the reliability table and the expected calibration error.

    The error is the weighted mean of |predicted - observed|.

    Parameters
    ----------
    probabilities, outcomes : (n,) float
    weights : (n,) float or None
    bins : int
        Of equal width; empty bins are left out.

    Examples
    --------
    >>> table, error = compute_reliability([0.2, 0.2, 0.9], [0, 1, 1], bins=2)
    >>> [round(float(row.observed), 2) for row in table], round(error, 3)
    ([0.5, 1.0], 0.233)
    """
    p, hit = np.asarray(probabilities, np.float64), np.asarray(outcomes, np.float64)
    weight = np.ones(len(p)) if weights is None else np.asarray(weights, np.float64)
    bin_of_pair = np.minimum((p * bins).astype(np.int64), bins - 1)
    total = np.bincount(bin_of_pair, weight, minlength=bins)
    predicted = np.bincount(bin_of_pair, weight * p, minlength=bins)
    observed = np.bincount(bin_of_pair, weight * hit, minlength=bins)
    table = [
        ReliabilityBin(b / bins, (b + 1) / bins, predicted[b] / total[b], observed[b] / total[b], total[b])
        for b in np.flatnonzero(total)
    ]
    error = sum(row.weight * abs(row.predicted - row.observed) for row in table) / total.sum()
    return table, float(error)
