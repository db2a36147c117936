"""Join the steps that several workers took from the same tables.

A row of a table moved by d_1, ..., d_n. Let S be the sum of these and Q the sum of their squared lengths. The joined
step is

    OUTER_RATE S / max(1, |S|^2 / Q),

where OUTER_RATE is 1 for a single worker. Apart from that factor:

- Only one worker moved the row: |S|^2 = Q, and the row takes the whole step.
- The steps are unrelated: |S|^2 = Q on average, and the row takes all of them.
- All steps have one direction, d_w = n_w u after n_w updates: S Q / |S|^2 = u (sum n_w^2) / (sum n_w), which is the
  average of the steps weighted by the numbers of updates.

Most rows are touched by few rows of the data, and they learn as fast as on one machine. Rows that all workers touch do
not move n times too far. The mean of the tables would be too slow for the former, and the sum of the steps would
diverge for the latter.

Steps travel as integers of 8 bits with a scale for each row (`wsabie.kernels.training.delta_compression`), a quarter of
the tables' bytes, and rows that hardly moved do not travel. Rounding errors stay where they arose and go with the next
steps. All workers have the same tables, bit for bit; the coordinator has a copy of these beside its own.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int8, Int32, view_as_writable
from wsabie.kernels.training.delta_compression import add_deltas, join_deltas, move_rows, round_deltas

OUTER_RATE = 0.8
"""Share of the joined steps that tables take, to smooth the noise of a round."""
Tables = Mapping[str, Float32]


class TableDelta(NamedTuple):
    """Steps of some rows of a table: values * scales."""

    rows: Int32  # (n,)
    scales: Float32  # (n,)
    values: Int8  # (n, dim)


TableDeltas = dict[str, TableDelta | Float32]
"""Message about each table: its steps, or for a new worker the table itself."""


def copy_tables(tables: Tables) -> TableDeltas:
    """Copy all tables."""
    return {name: table.copy() for name, table in tables.items()}


def count_bytes(message: TableDeltas) -> int:
    """Count the bytes of a message."""
    arrays = (part if isinstance(part, TableDelta) else (part,) for part in message.values())
    return sum(array.nbytes for part_arrays in arrays for array in part_arrays)


def compute_deltas(tables: Tables, base: Tables, *, subtract_deltas: bool) -> TableDeltas:
    """Compute rounded steps from `base` to `tables`, and apply them to one side.

    With `subtract_deltas`, `tables` go back by the steps; otherwise `base` goes forward. The rounding errors remain.

    Examples
    --------
    >>> base = {"labels": np.zeros((4, 2), np.float32)}
    >>> tables = {"labels": np.array([[0, 0], [0, 3], [0, 0], [0, 0]], np.float32)}
    >>> delta = compute_deltas(tables, base, subtract_deltas=True)["labels"]
    >>> delta.rows.tolist(), (delta.scales[:, None] * delta.values).tolist(), tables["labels"][1].tolist()
    ([1], [[0.0, 3.0]], [0.0, 0.0])
    """
    deltas: TableDeltas = {}
    for name, table in tables.items():
        flat = _as_matrix(table)
        rows, scales = np.empty(len(flat), np.int32), np.empty(len(flat), np.float32)
        values = np.empty(flat.shape, np.int8)
        n = round_deltas(flat, _as_matrix(base[name]), subtract_deltas, rows, scales, values)
        deltas[name] = TableDelta(rows[:n], scales[:n], values[:n])
    return deltas


class DeltaSum:
    """Sum of the steps of several workers.

    Parameters
    ----------
    tables : mapping of arrays
        Tables that the steps start from, (n,) or (n, dim) float32 each.

    Attributes
    ----------
    n_workers : int
        Number of workers whose steps are not joined yet.

    Examples
    --------
    Two steps in one direction, by 3 updates and 1, and two unrelated steps:

    >>> tables, start = ({"labels": np.zeros((2, 2), np.float32)} for _ in range(2))
    >>> delta_sum = DeltaSum(tables)
    >>> delta_sum.add(compute_deltas({"labels": np.array([[3, 0], [3, 0]], np.float32)}, start, subtract_deltas=True))
    >>> delta_sum.add(compute_deltas({"labels": np.array([[1, 0], [0, 1]], np.float32)}, start, subtract_deltas=True))
    >>> drift = delta_sum.join(tables)
    >>> (tables["labels"] / OUTER_RATE).round(6).tolist()
    [[2.5, 0.0], [3.0, 1.0]]
    """

    def __init__(self, tables: Tables) -> None:
        self.n_workers = 0
        self._sums = {name: (np.zeros_like(_as_matrix(table)), np.zeros(len(table), np.float32))
                      for name, table in tables.items()}  # fmt: skip

    def add(self, deltas: TableDeltas) -> None:
        """Add the steps of one worker."""
        self.n_workers += 1
        for name, delta in deltas.items():
            add_deltas(*self._sums[name], *map(view_as_writable, delta))

    def join(self, tables: Tables) -> float:
        """Move the tables in place, reset the sum, and return the drift.

        The drift is the root mean square distance of the workers' tables from their mean, relative to the length of the
        tables.
        """
        sums, n, rate = np.zeros(3), max(self.n_workers, 1), np.float32(OUTER_RATE if self.n_workers > 1 else 1)
        for name, table in tables.items():
            join_deltas(_as_matrix(table), rate, *self._sums[name], sums)
        self.n_workers = 0
        spread = sums[0] / n - sums[1] / n**2
        return float(np.sqrt(max(spread, 0.0) / max(sums[2], 1e-30)))


def apply_deltas(tables: Tables, base: Tables, deltas: TableDeltas) -> None:
    """Bring a worker's tables up to date, and keep its steps that are not extracted yet.

    Parameters
    ----------
    tables : mapping of arrays
        The worker's tables.
    base : mapping of arrays
        The tables that it took last; afterwards the new ones.
    deltas : mapping of TableDelta or arrays
    """
    for name, delta in deltas.items():
        if isinstance(delta, TableDelta):
            move_rows(_as_matrix(tables[name]), _as_matrix(base[name]), *map(view_as_writable, delta))
        else:
            tables[name][:] += delta - base[name]
            base[name][:] = delta


def warm_up() -> None:
    """Compile the kernels of this module."""
    for shape in ((1,), (1, 1)):
        tables, base = ({"t": np.full(shape, number, np.float32)} for number in (1, 0))
        delta_sum = DeltaSum(tables)
        delta_sum.add(compute_deltas(tables, base, subtract_deltas=True))
        delta_sum.join(tables)
        apply_deltas(tables, base, compute_deltas(tables, base, subtract_deltas=False))


def _as_matrix(table: Float32) -> Float32:
    """Return a view (n, dim); a vector becomes one column."""
    return table[:, None] if table.ndim == 1 else table
