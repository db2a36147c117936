"""Slow, plain NumPy twin of `unit_rows`."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64


def normalise_log_counts(X: Any, weight: Any) -> Float64:
    """Dense rows X (n, d) as log(1 + x) * weight, those that are not empty at unit length.

    Examples
    --------
    >>> normalise_log_counts([[np.e - 1, 0, np.e - 1], [0, 0, 0]], [3, 1, 4])
    array([[0.6, 0. , 0.8],
           [0. , 0. , 0. ]])
    """
    scaled = np.log1p(np.asarray(X, np.float64)) * np.asarray(weight)
    rows: Float64 = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-12)
    return rows
