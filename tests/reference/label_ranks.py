"""Slow, plain NumPy twin of `ranks`: the written specification that the kernels are tested against."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wsabie.core.arrays import Int32


def rank_row(scores: Any, listed: Sequence[int], excluded: Sequence[int] = ()) -> tuple[Int32, Int32]:
    """For each listed label: how many other candidates score strictly above it, and how many the same.

    Examples
    --------
    >>> rank_row(np.array([0.5, 2.0, 0.5, 1.0]), listed=[0, 3], excluded=[1])
    (array([1, 0], dtype=int32), array([1, 0], dtype=int32))
    """
    candidates = np.setdiff1d(np.arange(len(scores)), np.asarray(excluded, np.int64))
    n_above = [int(np.sum(~(scores[candidates] <= scores[y]))) for y in listed]
    tied = [max(int(np.sum(scores[candidates] == scores[y])) - 1, 0) for y in listed]
    return np.array(n_above, np.int32), np.array(tied, np.int32)


def compute_scores(similarity: str, queries: Any, table: Any, bias: Any) -> Any:
    """Scores in float64 by "dot", "euclidean" (negative distance) or "cosine", plus the label's bias."""
    queries, table = np.asarray(queries, np.float64), np.asarray(table, np.float64)
    product = queries @ table.T
    if similarity == "euclidean":
        product = -np.linalg.norm(queries[:, None, :] - table[None, :, :], axis=2)
    elif similarity == "cosine":
        lengths = [np.maximum(np.linalg.norm(rows, axis=1), 1e-3) for rows in (queries, table)]
        product = product / np.outer(*lengths)
    return product + np.asarray(bias, np.float64)
