"""Slow, plain NumPy twin of `topk`: the written specification that the kernels are tested against."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Int64


def select_topk(scores: Any, k: int) -> tuple[Int64, Any]:
    """Labels and scores of the k best per row: higher score first, ties by lower label, -inf is not a candidate.

    Examples
    --------
    >>> labels, scores = select_topk(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4)
    >>> labels
    array([[ 1,  2,  0, -1]])
    """
    scores = np.asarray(scores)
    labels = np.full((len(scores), k), -1, np.int64)
    best = np.full((len(scores), k), -np.inf, scores.dtype)
    for i, row in enumerate(scores):
        candidates = [j for j in range(len(row)) if row[j] > -np.inf]
        best_labels = sorted(candidates, key=lambda j: (-row[j], j))[:k]
        labels[i, : len(best_labels)] = best_labels
        best[i, : len(best_labels)] = row[best_labels]
    return labels, best
