"""Members of an ensemble: the rows or columns that each gets, and figures of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.core.validation import check_sample_weights, require
from wsabie.models.wsabie.estimator import Wsabie

SHARE = 0.7
"""Default share of the columns that each member draws."""


@dataclass(frozen=True)
class EnsembleMember:
    """One model of an ensemble.

    Attributes
    ----------
    seed : int
    columns : int
        Number of columns that it sees.
    spread : float
        Standard deviation of its scores over labels, averaged over training rows.
    epochs : int
    validation_map : float or None
        Figure of its best epoch.
    seconds : float
        Duration of its training.
    """

    seed: int
    columns: int
    spread: float
    epochs: int
    validation_map: float | None
    seconds: float

    @classmethod
    def of(cls, model: Wsabie, spread: float, seconds: float) -> "EnsembleMember":
        """Return the figures of a member that was just trained."""
        figures = [stats.validation for stats in model.history_ if stats.validation is not None]
        best = max(figures, default=None)
        return cls(model.seed, model.n_features_in_, spread, len(model.history_), best, seconds)


def draw_column_sets(columns: Any, n_columns: int, n: int, seed: int) -> list[Int64]:
    """Return the columns that each of n members sees, ascending.

    Parameters
    ----------
    columns : sequence of column numbers or masks, float or None
        Sets that are used in turn, or the share that each member draws (None: `SHARE`).
    n_columns, n, seed : int

    Raises
    ------
    InputError
        A set is empty or names a missing column, or there are more sets than members.

    Examples
    --------
    >>> [found.tolist() for found in draw_column_sets([[0, 1], [2]], 3, 3, 0)]
    [[0, 1], [2], [0, 1]]
    >>> [len(found) for found in draw_column_sets(0.5, 10, 2, 0)]
    [5, 5]
    """
    if columns is None or isinstance(columns, (float, int)):
        share = SHARE if columns is None else float(columns)
        require(0 < share <= 1, f"columns is {columns!r}; choose a share above 0 and up to 1, or sets of columns")
        size = max(1, round(share * n_columns))
        return [np.sort(_build_member_rng(seed, m).choice(n_columns, size, replace=False)) for m in range(n)]
    sets = [_convert_to_numbers(column_set, n_columns) for column_set in columns]
    require(
        0 < len(sets) <= n,
        f"there are {len(sets)} sets of columns for {n} members; give from 1 to {n} sets, or more members",
    )
    return [sets[m % len(sets)] for m in range(n)]


def draw_row_weights(sample_weight: Any, n_rows: int, seed: int, member: int) -> Float32:
    """Return the weight of each row times the number of its draws; there are as many draws as rows."""
    counts = np.bincount(_build_member_rng(seed, member).integers(0, n_rows, n_rows), minlength=n_rows).astype(
        np.float32
    )
    return counts if sample_weight is None else counts * check_sample_weights(sample_weight, n_rows)


def _build_member_rng(seed: int, member: int) -> np.random.Generator:
    return np.random.default_rng([seed, 2, member])


def _convert_to_numbers(column_set: Any, n_columns: int) -> Int64:
    numbers = np.asarray(column_set)
    if numbers.dtype == bool:
        require(numbers.shape == (n_columns,), f"a mask of columns has {numbers.size} entries; give {n_columns}")
        numbers = np.flatnonzero(numbers)
    usable = numbers.ndim == 1 and numbers.size > 0 and np.issubdtype(numbers.dtype, np.integer)
    require(usable, "a set of columns is empty or holds no whole numbers; give column numbers, or a mask")
    low, high = int(numbers.min()), int(numbers.max())
    require(
        low >= 0 and high < n_columns,
        f"there is no column {low if low < 0 else high}; the {n_columns:,} columns are numbered from 0",
    )
    return np.unique(numbers).astype(np.int64)


def group_columns(names: Sequence[str]) -> list[Int64]:
    """Group columns by the part of their names before the first ":"; no groups if there is only one.

    Examples
    --------
    >>> [block.tolist() for block in group_columns(["colour:0", "colour:1", "hog:0"])]
    [[0, 1], [2]]
    >>> group_columns(["sea", "sky"])
    []
    """
    if not all(":" in name for name in names):
        return []
    prefixes = np.array([name.partition(":")[0] for name in names])
    unique_prefixes = list(dict.fromkeys(prefixes.tolist()))
    return [np.flatnonzero(prefixes == prefix) for prefix in unique_prefixes] if len(unique_prefixes) > 1 else []
