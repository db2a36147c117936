"""The ranking loss L(k) as an array, and how long to look for a violator (conventions 1 and 2)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError

LossName = Literal["warp", "auc"]
RankWeight = Literal["precision", "mean_rank", "top1"] | Sequence[float]
AUTO_TRIALS = 1000


def rank_losses(rank_weight: RankWeight, n_labels: int) -> Float32:
    """L(k) = sum of the first k rank weights, for k = 0 .. n_labels ([W] eq. 2; Usunier et al. 2009).

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
