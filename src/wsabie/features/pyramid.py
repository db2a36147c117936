"""Histograms over a spatial pyramid: of the whole picture, of its quarters, of its sixteenths ...

Lazebnik, Schmid and Ponce (2006), without their weights: every level has the same mass, so that a model may choose.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError

MASS = 1000.0
"""Sum of the histograms of one level: values are thousandths of the picture, of the size that logarithms want."""


def n_cells(levels: tuple[int, ...]) -> int:
    """Cells of all levels together.

    Examples
    --------
    >>> n_cells((1, 2, 4))
    21
    """
    return sum(level * level for level in levels)


def cells_of(height: int, width: int, level: int) -> Int64:
    """The cell of each pixel in a grid of `level` x `level`, (h, w), row after row; some stay empty in small pictures.

    Examples
    --------
    >>> cells_of(2, 4, 2).tolist()
    [[0, 0, 1, 1], [2, 2, 3, 3]]
    """
    rows, columns = np.arange(height) * level // height, np.arange(width) * level // width
    cells: Int64 = rows[:, None] * level + columns
    return cells


def spatial_histograms(bins: Any, n_bins: int, levels: tuple[int, ...]) -> Float32:
    """Count the bins of a picture's pixels in every cell of every level.

    Parameters
    ----------
    bins : (h, w) integers
        The bin of each pixel.
    n_bins : int
    levels : tuple of int
        Cells along a side, one number a level.

    Returns
    -------
    ndarray, (n_cells * n_bins,), float32
        Level by level, cell by cell; each level sums to `MASS`.

    Examples
    --------
    >>> spatial_histograms(np.array([[0, 1], [1, 1]]), 2, (1, 2)).tolist()
    [250.0, 750.0, 250.0, 0.0, 0.0, 250.0, 0.0, 250.0, 0.0, 250.0]
    """
    height, width = bins.shape
    found = [
        np.bincount((cells_of(height, width, level) * n_bins + bins).ravel(), minlength=level * level * n_bins)
        for level in levels
    ]
    out: Float32 = (np.concatenate(found) * (MASS / bins.size)).astype(np.float32)
    return out


def check_levels(levels: tuple[int, ...]) -> None:
    """Raise InputError unless there are levels that can be counted."""
    if not levels or not all(isinstance(level, int | np.integer) and 1 <= level <= 32 for level in levels):
        raise InputError(
            f"levels is {levels}; give one number from 1 to 32 for each level of the pyramid, as (1, 2, 4)"
        )
