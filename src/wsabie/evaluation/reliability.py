"""Do predicted probabilities mean what they say?"""

from typing import Any, NamedTuple

import numpy as np


class ReliabilityBin(NamedTuple):
    """Pairs whose predicted probability lies in [low, high): mean prediction against the fraction that was
    right.
    """

    low: float
    high: float
    predicted: float
    observed: float
    weight: float


def reliability(
    probabilities: Any, outcomes: Any, *, weights: Any = None, bins: int = 10
) -> tuple[list[ReliabilityBin], float]:
    """Reliability table, and the expected calibration error: the weighted mean of |predicted - observed|.

    Parameters
    ----------
    probabilities, outcomes : (n,) float
    weights : (n,) float or None
    bins : int
        Of equal width; empty bins are left out.

    Examples
    --------
    >>> table, error = reliability([0.2, 0.2, 0.9], [0, 1, 1], bins=2)
    >>> [round(float(row.observed), 2) for row in table], round(error, 3)
    ([0.5, 1.0], 0.233)
    """
    p, hit = np.asarray(probabilities, np.float64), np.asarray(outcomes, np.float64)
    weight = np.ones(len(p)) if weights is None else np.asarray(weights, np.float64)
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    total = np.bincount(which, weight, minlength=bins)
    predicted = np.bincount(which, weight * p, minlength=bins)
    observed = np.bincount(which, weight * hit, minlength=bins)
    table = [
        ReliabilityBin(b / bins, (b + 1) / bins, predicted[b] / total[b], observed[b] / total[b], total[b])
        for b in np.flatnonzero(total)
    ]
    error = sum(row.weight * abs(row.predicted - row.observed) for row in table) / total.sum()
    return table, float(error)
