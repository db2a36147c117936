"""Slow, plain NumPy twin of `intersect_rows`: the written specification that the kernel is tested against."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64


def intersect_rows(X: Any, Z: Any) -> Float64:
    """K[i, l] = sum_j min(x_ij, z_lj) for dense rows X (n, d) and Z (m, d).

    Examples
    --------
    >>> intersect_rows([[2, 0, 5]], [[1, 4, 9], [0, 0, 0]])
    array([[6., 0.]])
    """
    X, Z = np.asarray(X, np.float64), np.asarray(Z, np.float64)
    K: Float64 = np.minimum(X[:, None, :], Z[None, :, :]).sum(axis=2)
    return K
