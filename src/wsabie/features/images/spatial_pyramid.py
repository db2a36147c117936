"""Histograms over a spatial pyramid: the whole picture, its quarters, its sixteenths ...

Lazebnik, Schmid and Ponce (2006), without their weights: every level has the same mass, so that a model may choose.
"""

import numpy as np

from wsabie.core.arrays import Array, Float32, Int32, Int64
from wsabie.core.errors import require

MASS = 1000.0
"""Sum of the histograms of one level; values are thousandths of the picture, a good range for logarithms."""


def count_cells(levels: tuple[int, ...]) -> int:
    """Count the cells of all levels together.

    Examples
    --------
    >>> count_cells((1, 2, 4))
    21
    """
    return sum(level * level for level in levels)


def assign_cells(height: int, width: int, level: int) -> Int64:
    """Return the cell of each pixel in a grid of `level` x `level`, (h, w), row after row.

    Examples
    --------
    >>> assign_cells(2, 4, 2).tolist()
    [[0, 0, 1, 1], [2, 2, 3, 3]]
    """
    rows, columns = np.arange(height) * level // height, np.arange(width) * level // width
    cells: Int64 = rows[:, None] * level + columns
    return cells


def compute_spatial_histograms(bins: Array, n_bins: int, levels: tuple[int, ...]) -> Float32:
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
    >>> compute_spatial_histograms(np.array([[0, 1], [1, 1]]), 2, (1, 2)).tolist()
    [250.0, 750.0, 250.0, 0.0, 0.0, 250.0, 0.0, 250.0, 0.0, 250.0]
    """
    height, width = bins.shape
    histograms = [
        np.bincount((assign_cells(height, width, level) * n_bins + bins).ravel(), minlength=level * level * n_bins)
        for level in levels
    ]
    out: Float32 = (np.concatenate(histograms) * (MASS / bins.size)).astype(np.float32)
    return out


def select_nonzero(histogram: Float32) -> tuple[Int32, Float32]:
    """Return the columns and values of the non-zeros."""
    columns = np.flatnonzero(histogram).astype(np.int32)
    return columns, histogram[columns]


def check_levels(levels: tuple[int, ...]) -> None:
    """Raise InputError unless there are levels that can be counted."""
    are_counts = all(isinstance(level, int | np.integer) and 1 <= level <= 32 for level in levels)
    remedy = "give one number from 1 to 32 for each level of the pyramid, as (1, 2, 4)"
    require(bool(levels) and are_counts, f"levels is {levels}; {remedy}")
