"""The ranking loss L(k) as an array, and how long to look for a violator (conventions 1 and 2)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError

LossName = Literal["warp", "auc", "owpc", "k-os"]
ORDER_STATISTIC = (5, 10)
"""Of "k-os" where none is given: the fifth highest of ten positives."""
Surrogate = Literal["hinge", "logistic"]
RankWeight = Literal["precision", "mean_rank", "top1"] | Sequence[float]
AUTO_TRIALS = 1000
MOST_POSITIVES = 100


def rank_losses(rank_weight: RankWeight, n_labels: int) -> Float32:
    """L(k) = sum of the first k rank weights, for k = 0 .. n_labels ([W] eq. 4; Usunier et al. 2009).

    Parameters
    ----------
    rank_weight : {"precision", "mean_rank", "top1"} or array
        1/j (the top of the list counts most), 1/(n_labels - 1) (mean rank), 1 for the first rank only, or any
        non-increasing non-negative numbers, the last of which holds for all ranks after it.

    Examples
    --------
    >>> rank_losses("precision", 3).tolist()
    [0.0, 1.0, 1.5, 1.8333333730697632]
    >>> rank_losses([1, 0.5], 4).tolist()
    [0.0, 1.0, 1.5, 2.0, 2.5]
    """
    weights = _rank_weights(rank_weight, n_labels)
    return np.concatenate([[0.0], np.cumsum(weights)]).astype(np.float32)


def _rank_weights(rank_weight: RankWeight, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if isinstance(rank_weight, str):
        named = {
            "precision": 1.0 / np.arange(1, n + 1),
            "mean_rank": np.full(n, 1.0 / max(n - 1, 1)),
            "top1": np.eye(1, n).ravel(),
        }
        if rank_weight not in named:
            raise InputError(f"rank_weight is {rank_weight!r}; choose one of {', '.join(named)}, or an array")
        return named[rank_weight]
    try:
        given = np.asarray(rank_weight, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if (
        given.ndim != 1
        or not len(given)
        or not np.all(np.isfinite(given))
        or np.any(given < 0)
        or np.any(np.diff(given) > 0)
    ):
        raise InputError("rank_weight must be a non-empty list of non-negative numbers that never increase")
    return np.concatenate([given, np.full(max(n - len(given), 0), given[-1])])[:n]


def trials(loss: LossName, max_trials: int | Literal["auto"] | None, n_labels: int) -> int:
    """How many negatives to draw at most: 1 for "auc", all for None (Algorithm 1), else the number; "auto" is 1,000."""
    if loss == "auc":
        return 1
    if max_trials is None:
        return n_labels
    return min(AUTO_TRIALS, n_labels) if max_trials == "auto" else int(max_trials)


def losses_for(loss: LossName, rank_weight: RankWeight, n_labels: int) -> Float32:
    """L(k) of the named loss: "auc" has no weight, every violator counts 1 ([W] section 3; convention 1)."""
    if loss == "auc":
        return np.ones(n_labels + 1, np.float32)
    return rank_losses(rank_weight, n_labels)


def places_of(loss: LossName, order_statistic: Sequence[int] | Sequence[float] | None) -> tuple[float, ...]:
    """Which of some drawn positives is ranked: summed chances of the highest, the second, ... (Weston et al. 2013).

    Parameters
    ----------
    loss : str
        Another than "k-os" ranks the pair's own positive: (1,).
    order_statistic : (k, n), n chances or None
        Always the k-th highest of n (None: the fifth of ten); or the highest, the second ... of n with these chances.

    Raises
    ------
    InputError
        No place, a negative chance, or more than 100 positives.

    Examples
    --------
    >>> places_of("k-os", (2, 3)), places_of("k-os", [0.5, 0.25, 0.25]), places_of("warp", (2, 3))
    ((0.0, 1.0, 1.0), (0.5, 0.75, 1.0), (1.0,))
    """
    if loss != "k-os":
        return (1.0,)
    order_statistic = ORDER_STATISTIC if order_statistic is None else order_statistic
    try:
        given = np.asarray(order_statistic, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    whole = given.shape == (2,) and all(isinstance(v, (int, np.integer)) for v in order_statistic)
    if whole and 1 <= given[0] <= given[1] <= MOST_POSITIVES and given[1] > 1:
        given = np.eye(1, int(given[1]), int(given[0]) - 1).ravel()
    elif whole or given.ndim != 1 or not 2 <= len(given) <= MOST_POSITIVES or not _chances(given):
        raise InputError(
            f"order_statistic is {order_statistic!r}; give (k, n) for the k-th highest of n positives, 1 <= k <= n <= "
            f"{MOST_POSITIVES} and n > 1, or n chances"
        )
    return tuple(float(c) for c in np.cumsum(given) / given.sum())


def _chances(given: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return bool(np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0)
