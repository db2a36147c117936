"""Feature columns of a Parquet table, checked and collected batch by batch.

For each batch call `check(batch)`, which returns the faults of rows, then `keep(mask)` with the rows that
stay; at the end `finish()` returns X.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Bool, Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.io.formats.parquet.tables import ParquetBatch, ParquetTable, explain_arrow_errors
from wsabie.io.parsers.array_builders import GrowingArray, RowError, build_feature_matrix, compute_row_offsets
from wsabie.io.parsers.text_files import format_path

SPARSE = ("indices", "values")
DENSE = "features"
_LARGEST = 2**31 - 2


class FeatureCollector(Protocol):
    """Collector of X."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def check(self, batch: ParquetBatch) -> dict[int, RowError]: ...

    def keep(self, mask: Bool) -> None: ...

    def finish(self) -> Matrix: ...


def make_feature_collector(
    table: ParquetTable, counts: bool, n_features: int | None, *, by_themselves: bool = False, dense: int | None = None
) -> FeatureCollector:
    """Return the collector for a table's form of features.

    Features beyond the promised width are refused, or are a fault of their rows with `by_themselves`. The
    first dense row sets the width, unless it is known (`dense`).
    """
    width = table.promised.get("n_features")
    if table.has(DENSE):
        return _DenseCollector(width or dense, counts)
    return _SparseCollector(width, n_features or 0, counts, by_themselves)


def read_dense_width(table: ParquetTable) -> int | None:
    """Return the width of dense rows, from the note or the first row; None of other or no rows."""
    if not table.has(DENSE):
        return None
    first = next(table.batches([DENSE], 1, 0), None)
    return table.promised.get("n_features") or (None if first is None else int(_flatten(first, DENSE)[0][0]))


class _SparseCollector:
    columns = SPARSE

    def __init__(self, promised: int | None, at_least: int, counts: bool, by_themselves: bool) -> None:
        self.promised, self.at_least, self.counts = promised, at_least, counts
        self.by_themselves = by_themselves
        self.largest = promised - 1 if promised is not None and by_themselves else _LARGEST
        self.row_counts, self.indices, self.values = (
            GrowingArray(np.int64),
            GrowingArray(np.int32),
            GrowingArray(np.float32),
        )

    def check(self, batch: ParquetBatch) -> dict[int, RowError]:
        lengths, indices = _flatten(batch, "indices")
        value_lengths, values = _flatten(batch, "values")
        equal = lengths == value_lengths
        indices, values = (
            indices[np.repeat(equal, lengths)].astype(np.int64),
            values[np.repeat(equal, value_lengths)],
        )
        self._lengths = np.where(equal, lengths, 0)
        rows = np.repeat(np.arange(len(lengths)), self._lengths)
        self._order(rows, indices, _convert_to_float32(values))
        faults = _first_faults(
            (np.flatnonzero(~equal), "indices and values of different lengths"),
            (rows[(self._indices < 0) | (self._indices > self.largest)], "feature number out of range"),
            (rows[~np.isfinite(self._values)], "value that is not finite"),
            (rows[self.counts & (self._values < 0)], "negative count"),
            (rows[1:][(rows[1:] == rows[:-1]) & (np.diff(self._indices) == 0)], "feature given twice"),
        )
        self._refuse_beyond(batch, rows)
        return faults

    def _order(self, rows: Int64, indices: Int64, values: Float32) -> None:
        if ((np.diff(indices) < 0) & (np.diff(rows) == 0)).any():
            order = np.lexsort((indices, rows))
            indices, values = indices[order], values[order]
        self._indices, self._values = indices, values

    def _refuse_beyond(self, batch: ParquetBatch, rows: Int64) -> None:
        if self.promised is None or self.by_themselves:
            return
        beyond = np.flatnonzero(self._indices >= self.promised)
        if len(beyond):
            raise InputError(
                f"{batch.where(int(rows[beyond[0]]))} has feature {self._indices[beyond[0]]} but the file "
                f"promises {self.promised:,} features, numbered from 0; write the file again"
            )

    def keep(self, mask: Bool) -> None:
        entries = np.repeat(mask, self._lengths)
        self.row_counts.extend(self._lengths[mask])
        self.indices.extend(self._indices[entries])
        self.values.extend(self._values[entries])

    def finish(self) -> Matrix:
        indices = self.indices.finish()
        width = self.promised
        if width is None:
            width = max(int(indices.max(initial=-1)) + 1, self.at_least)
        return build_feature_matrix(compute_row_offsets(self.row_counts.finish()), indices, self.values.finish(), width)


class _DenseCollector:
    columns = (DENSE,)

    def __init__(self, width: int | None, counts: bool) -> None:
        self.width, self.counts = width, counts
        self.values = GrowingArray(np.float32)

    def check(self, batch: ParquetBatch) -> dict[int, RowError]:
        lengths, flat = _flatten(batch, DENSE)
        if self.width is None and len(lengths):
            self.width = int(lengths[0])
        width = self.width or 0
        self._right = lengths == width
        rows = np.flatnonzero(self._right)
        self._values = _convert_to_float32(flat[np.repeat(self._right, lengths)]).reshape(len(rows), width)
        return _first_faults(
            (np.flatnonzero(~self._right), "wrong number of features"),
            (rows[~np.isfinite(self._values).all(axis=1)], "value that is not finite"),
            (rows[self.counts & (self._values < 0).any(axis=1)], "negative count"),
        )

    def keep(self, mask: Bool) -> None:
        self.values.extend(self._values[mask[self._right]].ravel())

    def finish(self) -> Matrix:
        return self.values.finish().reshape(-1, self.width or 0)


def _flatten(batch: ParquetBatch, name: str) -> tuple[Int64, npt.NDArray[Any]]:
    """Return (length of each list, all numbers in a row) of a list column; missing ones become NaN or -1."""
    import pyarrow.compute as pc
    from pyarrow import types

    with explain_arrow_errors(batch.file):
        column = batch.data.column(name)
        column = getattr(column, "storage", column)  # lists, where an engine has a type of its own for arrays
        kind = column.type
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not listed or not (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
            raise InputError(
                f"{format_path(batch.file)} has the column {name!r} of type {str(kind)[:60]}, which is no list of "
                "numbers"
            )
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        flat = column.flatten()
        missing = -1 if types.is_integer(kind.value_type) else float("nan")
        if flat.null_count:
            flat = (flat.cast("int64") if types.is_unsigned_integer(kind.value_type) else flat).fill_null(missing)
        return lengths.astype(np.int64), flat.to_numpy(zero_copy_only=False)


def _convert_to_float32(values: npt.NDArray[Any]) -> Float32:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _first_faults(*checks: tuple[npt.NDArray[Any], str]) -> dict[int, RowError]:
    """Return the first fault of each row."""
    faults: dict[int, RowError] = {}
    for rows, reason in checks:
        for row in np.unique(rows).tolist():
            faults.setdefault(row, RowError(reason))
    return faults
