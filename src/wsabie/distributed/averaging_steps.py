"""What becomes of the steps that several workers took from the same tables.

A row of a table moved by d_1, ..., d_n. Let S be the sum of these and Q the sum of their squared lengths. It goes by

    OUTER S / max(1, |S|^2 / Q),

where OUTER is 1 as long as there is one worker. Without it:

- Only one worker moved it: |S|^2 = Q, and it goes by the whole step, as if that worker were alone.
- The steps have nothing to do with each other: |S|^2 = Q on average, and all of them are kept.
- They all go the same way, d_w = n_w u after n_w updates: S Q / |S|^2 = u (sum n_w^2) / (sum n_w), which is the average
  of the steps weighted by the numbers of updates.

So rows that few rows of the data touch, which are most, learn as fast as on one machine, and for those that all touch
the workers do not run n times too far. The mean of the tables loses speed on the former; the sum of the steps diverges
on the latter.

Steps travel as integers of 8 bits with a scale for each row (`wsabie.kernels.steps`), a quarter of the tables' bytes,
and rows that hardly moved do not travel. What is rounded off is left where it arose and goes with the next steps. All
workers have the same tables, bit for bit, of which the coordinator has a copy beside its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int8, Int32, under_one_type

OUTER = 0.8
"""Share of the joined steps by which tables go: what the workers did in a round is noisy, and this smooths it."""


class Steps(NamedTuple):
    """How far some rows of a table moved: values * scales."""

    rows: Int32  # (n,)
    scales: Float32  # (n,)
    values: Int8  # (n, dim)


Tables = Mapping[str, Float32]
Parts = dict[str, Steps | Float32]
"""What travels of each table: steps, or to those who come anew the table itself."""


def whole(tables: Tables) -> Parts:
    """Everything."""
    return {name: table.copy() for name, table in tables.items()}


def n_bytes(parts: Parts) -> int:
    """What travels."""
    arrays = (one if isinstance(one, Steps) else (one,) for one in parts.values())
    return sum(array.nbytes for some in arrays for array in some)


def steps(now: Tables, before: Tables, *, back: bool) -> Parts:
    """How far rows moved, about; `now` goes back by it, or `before` goes on, and what is left between is rounding.

    Examples
    --------
    >>> before = {"labels": np.zeros((4, 2), np.float32)}
    >>> now = {"labels": np.array([[0, 0], [0, 3], [0, 0], [0, 0]], np.float32)}
    >>> found = steps(now, before, back=True)["labels"]
    >>> found.rows.tolist(), (found.scales[:, None] * found.values).tolist(), now["labels"][1].tolist()
    ([1], [[0.0, 3.0]], [0.0, 0.0])
    """
    from wsabie.kernels.steps import round_steps

    found: Parts = {}
    for name, table in now.items():
        flat = _flat(table)
        rows, scales = np.empty(len(flat), np.int32), np.empty(len(flat), np.float32)
        values = np.empty(flat.shape, np.int8)
        n = round_steps(flat, _flat(before[name]), back, rows, scales, values)
        found[name] = Steps(rows[:n], scales[:n], values[:n])
    return found


class Together:
    """The steps of several workers, added up one worker after the other.

    Parameters
    ----------
    tables : mapping of arrays
        What they are steps from, (n,) or (n, dim) float32 each.

    Attributes
    ----------
    n : int
        Workers whose steps have not been joined.

    Examples
    --------
    Two that went the same way, by 3 updates and 1, and two that had nothing to do with each other:

    >>> tables, start = ({"labels": np.zeros((2, 2), np.float32)} for _ in range(2))
    >>> both = Together(tables)
    >>> both.add(steps({"labels": np.array([[3, 0], [3, 0]], np.float32)}, start, back=True))
    >>> both.add(steps({"labels": np.array([[1, 0], [0, 1]], np.float32)}, start, back=True))
    >>> drift = both.join(tables)
    >>> (tables["labels"] / OUTER).round(6).tolist()
    [[2.5, 0.0], [3.0, 1.0]]
    """

    def __init__(self, tables: Tables) -> None:
        self.n = 0
        self._sums = {name: (np.zeros_like(_flat(table)), np.zeros(len(table), np.float32))
                      for name, table in tables.items()}  # fmt: skip

    def add(self, moved: Parts) -> None:
        """The steps of one worker."""
        from wsabie.kernels.steps import add_steps

        self.n += 1
        for name, some in moved.items():
            add_steps(*self._sums[name], *map(under_one_type, some))

    def join(self, tables: Tables) -> float:
        """Move the tables, in place, and begin anew; returns the drift: how far the workers' tables were from their
        mean, relative to the length of the tables (root of the mean of the squares).
        """
        from wsabie.kernels.steps import join_steps

        sums, n, rate = np.zeros(3), max(self.n, 1), np.float32(OUTER if self.n > 1 else 1)
        for name, table in tables.items():
            join_steps(_flat(table), rate, *self._sums[name], sums)
        self.n = 0
        apart = sums[0] / n - sums[1] / n**2
        return float(np.sqrt(max(apart, 0.0) / max(sums[2], 1e-30)))


def take(own: Tables, before: Tables, news: Parts) -> None:
    """Bring a worker's tables to new ones, and keep what it has not given.

    Parameters
    ----------
    own : mapping of arrays
        The worker's tables.
    before : mapping of arrays
        The tables that it took; afterwards the new ones.
    news : mapping of Steps or arrays
    """
    from wsabie.kernels.steps import take_steps

    for name, some in news.items():
        if isinstance(some, Steps):
            take_steps(_flat(own[name]), _flat(before[name]), *map(under_one_type, some))
        else:
            own[name][:] += some - before[name]
            before[name][:] = some


def rehearse() -> None:
    """Have everything compiled."""
    for shape in ((1,), (1, 1)):
        tables, before = ({"t": np.full(shape, number, np.float32)} for number in (1, 0))
        together = Together(tables)
        together.add(steps(tables, before, back=True))
        together.join(tables)
        take(tables, before, steps(tables, before, back=False))


def _flat(table: Float32) -> Float32:
    """(n, dim); numbers are rows of one."""
    return table[:, None] if table.ndim == 1 else table
