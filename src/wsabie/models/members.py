"""What sets the members of an ensemble apart, and what is known of each when it is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64
from wsabie.base.validation import require, sample_weights
from wsabie.models.wsabie import Wsabie

SHARE = 0.7
"""Of the columns, where each member draws its own."""


@dataclass(frozen=True)
class Member:
    """One model of an ensemble.

    Attributes
    ----------
    seed : int
    columns : int
        How many it sees.
    spread : float
        Standard deviation of its scores over labels, averaged over training rows.
    epochs : int
    validation_map : float or None
        The best of its epochs.
    seconds : float
        Of its training.
    """

    seed: int
    columns: int
    spread: float
    epochs: int
    validation_map: float | None
    seconds: float

    @classmethod
    def of(cls, model: Wsabie, spread: float, seconds: float) -> "Member":
        """A member that was just trained."""
        figures = [stats.validation for stats in model.history_ if stats.validation is not None]
        best = max(figures, default=None)
        return cls(model.seed, model.n_features_in_, spread, len(model.history_), best, seconds)


def column_sets(columns: Any, n_columns: int, n: int, seed: int) -> list[Int64]:
    """The columns that each of n members sees, ascending.

    Parameters
    ----------
    columns : sequence of column numbers or masks, float or None
        Sets that are used in turn; or the share that each member draws, None being `SHARE`.
    n_columns, n, seed : int

    Raises
    ------
    InputError
        A set is empty or names a column that there is not, or there are more sets than members.

    Examples
    --------
    >>> [found.tolist() for found in column_sets([[0, 1], [2]], 3, 3, 0)]
    [[0, 1], [2], [0, 1]]
    >>> [len(found) for found in column_sets(0.5, 10, 2, 0)]
    [5, 5]
    """
    if columns is None or isinstance(columns, (float, int)):
        share = SHARE if columns is None else float(columns)
        require(0 < share <= 1, f"columns is {columns!r}; choose a share above 0 and up to 1, or sets of columns")
        size = max(1, round(share * n_columns))
        return [np.sort(_draws(seed, m).choice(n_columns, size, replace=False)) for m in range(n)]
    sets = [_numbers(found, n_columns) for found in columns]
    require(
        0 < len(sets) <= n,
        f"there are {len(sets)} sets of columns for {n} members; give from 1 to {n} sets, or more members",
    )
    return [sets[m % len(sets)] for m in range(n)]


def row_weights(given: Any, n_rows: int, seed: int, member: int) -> Float32:
    """How often each row is drawn, as many draws as there are rows, times the weight that it was given."""
    drawn = np.bincount(_draws(seed, member).integers(0, n_rows, n_rows), minlength=n_rows).astype(np.float32)
    return drawn if given is None else drawn * sample_weights(given, n_rows)


def _draws(seed: int, member: int) -> np.random.Generator:
    return np.random.default_rng([seed, 2, member])


def _numbers(found: Any, n_columns: int) -> Int64:
    given = np.asarray(found)
    if given.dtype == bool:
        require(given.shape == (n_columns,), f"a mask of columns has {given.size} entries; give {n_columns}")
        given = np.flatnonzero(given)
    usable = given.ndim == 1 and given.size > 0 and np.issubdtype(given.dtype, np.integer)
    require(usable, "a set of columns is empty or holds no whole numbers; give column numbers, or a mask")
    low, high = int(given.min()), int(given.max())
    require(
        low >= 0 and high < n_columns,
        f"there is no column {low if low < 0 else high}; the {n_columns:,} columns are numbered from 0",
    )
    return np.unique(given).astype(np.int64)


def column_blocks(names: Sequence[str]) -> list[Int64]:
    """Blocks of columns by the part of their names before the first ":"; empty where that makes no two blocks.

    Examples
    --------
    >>> [block.tolist() for block in column_blocks(["colour:0", "colour:1", "hog:0"])]
    [[0, 1], [2]]
    >>> column_blocks(["sea", "sky"])
    []
    """
    if not all(":" in name for name in names):
        return []
    prefixes = np.array([name.partition(":")[0] for name in names])
    known = list(dict.fromkeys(prefixes.tolist()))
    return [np.flatnonzero(prefixes == prefix) for prefix in known] if len(known) > 1 else []
