"""Slow, plain NumPy twin of `screening`, in float64: between which two scores a label lies, and who is in sight."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64, Int64


def bound_scores(rows: Any, offsets: Any, points: Any) -> tuple[Float64, Float64]:
    """Lower and upper ends of all scores, (n, n_labels), with bounds of each label's own instead of its block's.

    Examples
    --------
    >>> lower, upper = bound_scores([[127.0, 1.0]], [0.5], [[1.0, 127.0]])
    >>> lower, upper
    (array([[254.5]]), array([[254.5]]))
    """
    labels, queries = np.asarray(rows, np.float64), np.asarray(points, np.float64)
    near, near_asked = _rounded(labels), _rounded(queries)
    middle = near_asked @ near.T + np.asarray(offsets, np.float64)
    label_error, query_error = _length(labels - near), _length(queries - near_asked)
    error_bound = np.outer(_length(queries), label_error) + np.outer(query_error, _length(near))
    return middle - error_bound, middle + error_bound


def select_candidates(lower: Float64, upper: Float64, k: int, slack: float) -> list[Int64]:
    """Return, for each query, the labels whose upper end reaches the k-th best lower end less the slack.

    Examples
    --------
    >>> select_candidates(np.array([[1.0, 3.0, 5.0]]), np.array([[2.0, 3.5, 6.0]]), 2, 0.75)
    [array([1, 2])]
    """
    bounds = np.sort(lower, axis=1)[:, -k] - slack
    return [np.flatnonzero(row >= bound) for row, bound in zip(upper, bounds, strict=True)]


def _rounded(rows: Float64) -> Float64:
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True) / 127, 1e-300)
    rounded: Float64 = np.rint(rows / scale) * scale
    return rounded


def _length(rows: Float64) -> Float64:
    lengths: Float64 = np.linalg.norm(rows, axis=1)
    return lengths
