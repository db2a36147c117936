"""Rank of the true label among all labels: the one piece of code that measures every system.

It is imported inside each system's environment, so it needs nothing but NumPy, and runs on Python 3.10.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS_AT_ONCE = 512
Scorer = Callable[[int, int], Any]
"""`scores(lo, hi)` -> (hi - lo, n_labels) float: higher is better, -inf for a label that the system leaves out."""


def measure(scores: Scorer, y: Any, n_labels: int) -> dict[str, float]:
    """Mean reciprocal rank, p@1 and hit@10 of the true labels `y`, a block of rows at a time.

    The rank of a label counts from 1 among all `n_labels`. Labels with equal scores stand in random order, and the
    figures are the expected ones; labels that a system leaves out are tied below those that it returns.

    Raises
    ------
    ValueError
        A score is NaN, or a block has the wrong shape.

    Examples
    --------
    >>> measure(lambda lo, hi: np.array([[0.1, 0.9, 0.5], [1.0, 1.0, 0.0]])[lo:hi], np.array([2, 0]), 3)
    {'MRR': 0.625, 'p@1': 0.25, 'hit@10': 1.0}
    """
    n_above, tied = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    for lo in range(0, len(y), ROWS_AT_ONCE):
        hi = min(lo + ROWS_AT_ONCE, len(y))
        n_above[lo:hi], tied[lo:hi] = places(np.asarray(scores(lo, hi)), y[lo:hi], n_labels)
    return {
        "MRR": round(float(reciprocal_ranks(n_above, tied).mean()), 5),
        "p@1": round(float(hits(n_above, tied, 1).mean()), 5),
        "hit@10": round(float(hits(n_above, tied, 10).mean()), 5),
    }


def places(scores: Any, true: Any, n_labels: int) -> tuple[Any, Any]:
    """Labels above the true one, and other labels with the same score, row by row."""
    if scores.shape != (len(true), n_labels):
        raise ValueError(f"the scores have the shape {scores.shape}, not {(len(true), n_labels)}")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN")
    true_scores = scores[np.arange(len(true)), true][:, None]
    return (scores > true_scores).sum(1), (scores == true_scores).sum(1) - 1


def reciprocal_ranks(n_above: Any, tied: Any) -> Any:
    """Expected 1 / rank: the mean of 1/r over r = above + 1 .. above + tied + 1."""
    most = int((n_above + tied).max(initial=0)) + 1
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, most + 1))])
    return (harmonic[n_above + tied + 1] - harmonic[n_above]) / (tied + 1)


def hits(n_above: Any, tied: Any, k: int) -> Any:
    """Chance that the true label is among the first k."""
    return np.clip((k - n_above) / (tied + 1), 0.0, 1.0)


def dense(ids: Any, scores: Any, n_labels: int) -> Any:
    """Scores of all labels from lists of the best ones, one list per row; the rest is -inf."""
    out = np.full((len(ids), n_labels), -np.inf, np.float32)
    for row, (labels, values) in enumerate(zip(ids, scores, strict=True)):
        out[row, labels] = values
    return out
