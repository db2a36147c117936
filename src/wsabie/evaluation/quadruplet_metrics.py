"""Metrics of the three tasks of Mesnil et al. 2014, section 6.2: the rank of the true answer.

Image annotation ranks the K labels of a picture, part-object labelling the K^2 pairs of labels of two pictures, triplet
the K labels of one picture given the label of the other. Each row has one true answer, so that MAP is the mean of
1 / rank and p@k at most 1 / k. Ranks count from 1 (the paper's p@k counts from 0, its MAP from 1).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError


class MeanEstimate(NamedTuple):
    """A mean over rows with its standard error (0 for one row or equal rows)."""

    mean: float
    error: float


def compute_rank_metrics(ranks: Any, ks: Sequence[int] = (1, 10), *, tied: Any = None) -> dict[str, Float64]:
    """Compute p@k, MAP and rank of each row, for `summarise_values` and the functions of `bootstrap`.

    Parameters
    ----------
    ranks : (n,) ints
        1 + number of candidates that score higher than the true one.
    ks : sequence of int
    tied : (n,) ints or None
        Number of other candidates with the same score; None: no ties. A metric is then its mean over the places that
        the true one may take among them, so that a constant scorer gets exactly chance.

    Returns
    -------
    dict
        "p@k" for each k, "MAP", "rank": (n,) float64 each.

    Raises
    ------
    InputError
        There is no rank, one is below 1, a k is below 1, or there are not as many ties as ranks.

    Examples
    --------
    >>> values = compute_rank_metrics([1, 4], ks=(1, 2))
    >>> {name: value.tolist() for name, value in values.items()}
    {'p@1': [1.0, 0.0], 'p@2': [0.5, 0.0], 'MAP': [1.0, 0.25], 'rank': [1.0, 4.0]}
    """
    first, group = _check_ranks(ranks, tied)
    for k in ks:
        if k < 1:
            raise InputError(f"p@{k} is asked for but lists have 1 place or more; choose another k")
    values: dict[str, Float64] = {f"p@{k}": np.clip(k + 1 - first, 0, group) / group / k for k in ks}
    return {**values, "MAP": _compute_mean_reciprocal(first, group), "rank": first + (group - 1) / 2}


def summarise_values(values: dict[str, Float64], groups: Any = None) -> dict[str, MeanEstimate]:
    """Compute means over rows with standard errors.

    Parameters
    ----------
    values : dict of (n,) float
        Result of `compute_rank_metrics`.
    groups : (n,) array or None
        Groups of similar rows, such as quadruplets of one relation: the error is then that of a ratio over resampled
        groups (Cochran 1977, section 6.4). None: every row is its own group.

    Examples
    --------
    >>> summarise_values(compute_rank_metrics([1, 2] * 50))["MAP"]
    MeanEstimate(mean=0.75, error=0.0251...)
    """
    group_of_row = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    return {name: _estimate_mean(np.asarray(value, np.float64), group_of_row) for name, value in values.items()}


def _estimate_mean(values: Float64, groups: Int64 | None) -> MeanEstimate:
    if groups is None:
        groups = np.arange(len(values))
    if len(groups) != len(values):
        raise InputError(f"there are {len(groups)} groups for {len(values)} rows; give one per row")
    mean = float(values.mean())
    deviations = np.bincount(groups, values - mean)
    n = len(deviations)
    return MeanEstimate(mean, float(np.sqrt((deviations @ deviations) * n / max(n - 1, 1))) / len(values))


def _check_ranks(ranks: Any, tied: Any) -> tuple[Int64, Int64]:
    """Validate ranks and ties; return the first place and the number of places of each true answer."""
    first = np.asarray(ranks)
    n_tied = np.zeros(first.shape, np.int64) if tied is None else np.asarray(tied)
    if first.ndim != 1 or not len(first) or first.dtype.kind not in "iu" or first.min() < 1:
        raise InputError("ranks are whole numbers from 1, one for each row; count those that score higher and add 1")
    if n_tied.shape != first.shape or n_tied.dtype.kind not in "iu" or n_tied.min() < 0:
        raise InputError(
            f"ties are {n_tied.shape} but there are {len(first)} ranks; give whole numbers from 0, one each"
        )
    return first.astype(np.int64), n_tied.astype(np.int64) + 1


def _compute_mean_reciprocal(first: Int64, group: Int64) -> Float64:
    """Return the mean of 1 / r over r = first .. first + group - 1, by the digamma function for ties."""
    values = 1.0 / first
    tied = group > 1
    if tied.any():
        from scipy.special import digamma

        values[tied] = (digamma(first[tied] + group[tied]) - digamma(first[tied])) / group[tied]
    return values
