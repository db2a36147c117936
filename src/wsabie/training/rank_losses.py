"""Rank weights, and their sums L(k), the loss at rank k; `kernels/training/warp.py` estimates ranks."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError, require

LossName = Literal["warp", "auc", "owpc", "k-os"]
ORDER_STATISTIC = (5, 10)
"""Default of "k-os": the fifth highest of ten positives."""
Surrogate = Literal["hinge", "logistic"]
RankWeight = Literal["precision", "mean_rank", "top1"] | Sequence[float]
MAX_POSITIVES = 100


def compute_rank_losses(rank_weight: RankWeight, n_labels: int) -> Float32:
    """Compute L(k), the sum of the first k rank weights, for k = 0 .. n_labels.

    See Usunier et al. 2009, and Weston et al. 2010, equation 4.

    Parameters
    ----------
    rank_weight : {"precision", "mean_rank", "top1"} or array
        1/j (the top of the list counts most), 1/(n_labels - 1) (mean rank), 1 for the first rank only, or any
        non-increasing non-negative numbers, the last of which holds for all ranks after it.

    Examples
    --------
    >>> compute_rank_losses("precision", 3).tolist()
    [0.0, 1.0, 1.5, 1.8333333730697632]
    >>> compute_rank_losses([1, 0.5], 4).tolist()
    [0.0, 1.0, 1.5, 2.0, 2.5]
    """
    weights = _build_rank_weights(rank_weight, n_labels)
    return np.concatenate([[0.0], np.cumsum(weights)]).astype(np.float32)


def _build_rank_weights(rank_weight: RankWeight, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if isinstance(rank_weight, str):
        presets = {
            "precision": 1.0 / np.arange(1, n + 1),
            "mean_rank": np.full(n, 1.0 / max(n - 1, 1)),
            "top1": np.eye(1, n).ravel(),
        }
        if rank_weight not in presets:
            raise InputError(f"rank_weight is {rank_weight!r}; choose one of {', '.join(presets)}, or an array")
        return presets[rank_weight]
    try:
        weights = np.asarray(rank_weight, np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    is_list = weights.ndim == 1 and len(weights) > 0 and bool(np.isfinite(weights).all())
    is_falling = is_list and bool((weights >= 0).all() and (np.diff(weights) <= 0).all())
    require(is_falling, "rank_weight must be a non-empty list of non-negative numbers that never increase")
    return np.concatenate([weights, np.full(max(n - len(weights), 0), weights[-1])])[:n]


def build_losses(loss: LossName, rank_weight: RankWeight, n_labels: int) -> Float32:
    """Build L(k) of a loss; for "auc" every violator counts 1 (Weston et al. 2010, section 3)."""
    if loss == "auc":
        return np.ones(n_labels + 1, np.float32)
    return compute_rank_losses(rank_weight, n_labels)


def compute_order_chances(loss: LossName, order_statistic: Sequence[int] | Sequence[float] | None) -> tuple[float, ...]:
    """Compute cumulative chances of the highest, second, ... drawn positive (Weston et al. 2013).

    Parameters
    ----------
    loss : str
        All losses but "k-os" rank the positive of the pair: (1,).
    order_statistic : (k, n), n chances or None
        The k-th highest of n (None: the fifth of ten), or chances of the highest, the second ... of n.

    Raises
    ------
    InputError
        No place, a negative chance, or more than 100 positives.

    Examples
    --------
    >>> (
    ...     compute_order_chances("k-os", (2, 3)),
    ...     compute_order_chances("k-os", [0.5, 0.25, 0.25]),
    ...     compute_order_chances("warp", (2, 3)),
    ... )
    ((0.0, 1.0, 1.0), (0.5, 0.75, 1.0), (1.0,))
    """
    if loss != "k-os":
        return (1.0,)
    order_statistic = ORDER_STATISTIC if order_statistic is None else order_statistic
    try:
        chances = np.asarray(order_statistic, np.float64)
    except (TypeError, ValueError):
        chances = np.empty(0)
    is_pair = chances.shape == (2,) and all(isinstance(v, (int, np.integer)) for v in order_statistic)
    if is_pair and 1 <= chances[0] <= chances[1] <= MAX_POSITIVES and chances[1] > 1:
        chances = np.eye(1, int(chances[1]), int(chances[0]) - 1).ravel()
    elif is_pair or chances.ndim != 1 or not 2 <= len(chances) <= MAX_POSITIVES or not _are_chances(chances):
        raise InputError(
            f"order_statistic is {order_statistic!r}; give (k, n) for the k-th highest of n positives, 1 <= k <= n <= "
            f"{MAX_POSITIVES} and n > 1, or n chances"
        )
    return tuple(float(c) for c in np.cumsum(chances) / chances.sum())


def _are_chances(chances: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return bool(np.isfinite(chances).all() and (chances >= 0).all() and chances.sum() > 0)
