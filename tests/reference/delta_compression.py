"""Slow, plain NumPy twin of `steps`."""

from typing import Any

import numpy as np


def round_row_delta(step: Any) -> tuple[float, list[int]]:
    """The scale of one row's step, and its integers.

    Examples
    --------
    >>> round_row_delta([1, -0.5, 0]), round_row_delta([1.99, -1.99])
    ((0.015625, [64, -32, 0]), (0.015625, [127, -127]))
    """
    high = float(np.max(np.abs(step)))
    scale = 2.0 ** (int(np.floor(np.log2(high))) - 6)
    return scale, [min(int(np.floor(d / scale + 0.5)), 127) for d in step]


def join_row_deltas(steps: Any) -> Any:
    """S / max(1, |S|^2 / Q) of the steps of a row, (n_workers, dim).

    Examples
    --------
    >>> join_row_deltas([[3, 0], [1, 0]]).tolist(), join_row_deltas([[3, 0], [0, 1]]).tolist()
    ([2.5, 0.0], [3.0, 1.0])
    """
    total, squares = np.sum(steps, axis=0, dtype=np.float64), np.sum(np.square(steps, dtype=np.float64))
    return total / max(1.0, np.sum(total**2) / max(squares, 1e-30))
