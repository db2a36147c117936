"""What becomes of the steps that several workers took from the same tables.

A row of a table moved by d_1, ..., d_n. Let S be the sum of these and Q the sum of their squared lengths. It goes by

    S / max(1, |S|^2 / Q)

- Only one worker moved it: |S|^2 = Q, and it goes by the whole step, as if that worker were alone.
- The steps have nothing to do with each other: |S|^2 = Q on average, and all of them are kept.
- They all go the same way, d_w = n_w u after n_w updates: S Q / |S|^2 = u (sum n_w^2) / (sum n_w), which is the average
  of the steps weighted by the numbers of updates.

So rows that few rows of the data touch, which are most, learn as fast as on one machine, and for those that all touch
the workers do not run n times too far. The mean of the tables loses speed on the former; the sum of the steps diverges
on the latter.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float32, Float64, Int32

_FEW = 0.5  # share of the rows up to which their numbers are sent with them


class Some(NamedTuple):
    """Some rows of a table by their numbers, or all of them."""

    rows: Int32 | None
    values: Float32


Tables = Mapping[str, Float32]
Parts = dict[str, Some]


def some_of(table: Float32, chosen: Any) -> Some:
    """The chosen rows, (n,) bool; where these are many, the table itself."""
    rows = np.flatnonzero(chosen)
    if len(rows) > _FEW * len(table):
        return Some(None, table)
    return Some(rows.astype(np.int32), table[rows])


def whole(tables: Tables) -> Parts:
    """Everything."""
    return {name: Some(None, table.copy()) for name, table in tables.items()}


def n_bytes(parts: Mapping[str, Some]) -> int:
    """What travels."""
    return sum(some.values.nbytes + (0 if some.rows is None else some.rows.nbytes) for some in parts.values())


def steps(now: Tables, before: Tables) -> Parts:
    """How far rows moved; those that did not are left out where they are many.

    Examples
    --------
    >>> before = {"labels": np.zeros((4, 2), np.float32)}
    >>> now = {"labels": np.array([[0, 0], [0, 3], [0, 0], [0, 0]], np.float32)}
    >>> steps(now, before)["labels"].rows.tolist(), steps(now, before)["labels"].values.tolist()
    ([1], [[0.0, 3.0]])
    """
    found = {}
    for name, table in now.items():
        moved = table - before[name]
        found[name] = some_of(moved, _flat(moved).any(1))
    return found


class Together:
    """The steps of several workers, added up one worker after the other.

    Parameters
    ----------
    tables : mapping of arrays
        What they are steps from, (n,) or (n, dim) float32 each.

    Examples
    --------
    Two that went the same way, by 3 updates and 1, and two that had nothing to do with each other:

    >>> tables = {"labels": np.zeros((2, 2), np.float32)}
    >>> both = Together(tables)
    >>> both.add({"labels": Some(None, np.array([[3, 0], [3, 0]], np.float32))})
    >>> both.add({"labels": Some(None, np.array([[1, 0], [0, 1]], np.float32))})
    >>> both.join(tables)["labels"].tolist(), tables["labels"].tolist()
    ([True, True], [[2.5, 0.0], [3.0, 1.0]])
    """

    def __init__(self, tables: Tables) -> None:
        self.n = 0
        self._sum = {name: np.zeros_like(_flat(table)) for name, table in tables.items()}
        self._squares: dict[str, Float32] = {name: np.zeros(len(table), np.float32) for name, table in tables.items()}

    def add(self, moved: Mapping[str, Some]) -> None:
        """The steps of one worker."""
        self.n += 1
        for name, (rows, values) in moved.items():
            at: Any = slice(None) if rows is None else rows
            flat = _flat(values)
            self._sum[name][at] += flat
            self._squares[name][at] += np.einsum("ij,ij->i", flat, flat)

    def join(self, tables: Tables) -> dict[str, Bool]:
        """Move the tables, in place; returns which of their rows some worker moved."""
        moved = {}
        for name, table in tables.items():
            total, squares = self._sum[name], self._squares[name]
            length = np.einsum("ij,ij->i", total, total)
            flat = _flat(table)
            flat += total / np.maximum(1, length / np.maximum(squares, np.float32(1e-30)))[:, None]
            moved[name] = squares > 0
        return moved

    def drift(self, tables: Tables) -> float:
        """How far the workers' tables are from their mean, relative to its length: root of the mean of the squares."""
        apart = length = 0.0
        for name, table in tables.items():
            flat = _flat(table)
            apart += float(np.sum(self._squares[name], dtype=np.float64)) / max(self.n, 1)
            apart -= _square(self._sum[name]) / max(self.n, 1) ** 2
            length += _square(flat)
        return float(np.sqrt(max(apart, 0.0) / max(length, 1e-30)))


def take(own: Tables, before: Tables, news: Mapping[str, Some]) -> None:
    """Bring a worker's tables to new ones, and keep what it has done since it gave its steps.

    Parameters
    ----------
    own : mapping of arrays
        The worker's tables.
    before : mapping of arrays
        The same as they were when it gave its steps; afterwards the new ones.
    news : mapping of Some
    """
    for name, (rows, values) in news.items():
        at: Any = slice(None) if rows is None else rows
        own[name][at] += values - before[name][at]
        before[name][at] = values


def _flat(table: Float32) -> Float32:
    """(n, dim); numbers are rows of one."""
    return table[:, None] if table.ndim == 1 else table


def _square(flat: Float32) -> float:
    lengths: Float64 = np.einsum("ij,ij->i", flat, flat).astype(np.float64)
    return float(lengths.sum())
