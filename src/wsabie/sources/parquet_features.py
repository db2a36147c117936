"""Feature columns of a Parquet table, checked and collected batch by batch.

A collector is asked `check(batch)` for what is wrong with which rows, then `keep(mask)` for the rows that
stay, and at the end `finish()` for X.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, Growing, row_starts, sparse_features
from wsabie.sources.parquet_file import Batch, Table, decoding
from wsabie.sources.text import shown

SPARSE = ("indices", "values")
DENSE = "features"
_LARGEST = 2**31 - 2


class FeatureColumns(Protocol):
    """Collects X."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def check(self, batch: Batch) -> dict[int, BadRow]: ...

    def keep(self, mask: Bool) -> None: ...

    def finish(self) -> Matrix: ...


def feature_columns(
    table: Table, counts: bool, n_features: int | None, *, by_themselves: bool = False, dense: int | None = None
) -> FeatureColumns:
    """The collector for a table's form of features; features beyond the width that is promised are refused, or are a
    fault of their rows `by_themselves`. Of dense rows the first one tells the width, unless it is known (`dense`)."""
    width = table.promised.get("n_features")
    if table.has(DENSE):
        return _Dense(width or dense, counts)
    return _Sparse(width, n_features or 0, counts, by_themselves)


def dense_width(table: Table) -> int | None:
    """The width of dense rows, which the first one tells where nothing promises it; None of others, or of none."""
    if not table.has(DENSE):
        return None
    first = next(table.batches([DENSE], 1, 0), None)
    return table.promised.get("n_features") or (None if first is None else int(_flat(first, DENSE)[0][0]))


class _Sparse:
    columns = SPARSE

    def __init__(self, promised: int | None, at_least: int, counts: bool, by_themselves: bool) -> None:
        self.promised, self.at_least, self.counts = promised, at_least, counts
        self.by_themselves = by_themselves
        self.largest = promised - 1 if promised is not None and by_themselves else _LARGEST
        self.row_counts, self.indices, self.values = Growing(np.int64), Growing(np.int32), Growing(np.float32)

    def check(self, batch: Batch) -> dict[int, BadRow]:
        lengths, indices = _flat(batch, "indices")
        others, values = _flat(batch, "values")
        equal = lengths == others
        indices, values = (
            indices[np.repeat(equal, lengths)].astype(np.int64),
            values[np.repeat(equal, others)],
        )
        self._lengths = np.where(equal, lengths, 0)
        rows = np.repeat(np.arange(len(lengths)), self._lengths)
        self._order(rows, indices, _single(values))
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

    def _refuse_beyond(self, batch: Batch, rows: Int64) -> None:
        if self.promised is None or self.by_themselves:
            return
        beyond = np.flatnonzero(self._indices >= self.promised)
        if len(beyond):
            raise InputError(
                f"{batch.where(int(rows[beyond[0]]))} has feature {self._indices[beyond[0]]} but the file "
                f"promises {self.promised:,} features, numbered from 0; write the file again"
            )

    def keep(self, mask: Bool) -> None:
        kept = np.repeat(mask, self._lengths)
        self.row_counts.extend(self._lengths[mask])
        self.indices.extend(self._indices[kept])
        self.values.extend(self._values[kept])

    def finish(self) -> Matrix:
        indices = self.indices.finish()
        width = self.promised
        if width is None:
            width = max(int(indices.max(initial=-1)) + 1, self.at_least)
        return sparse_features(row_starts(self.row_counts.finish()), indices, self.values.finish(), width)


class _Dense:
    columns = (DENSE,)

    def __init__(self, width: int | None, counts: bool) -> None:
        self.width, self.counts = width, counts
        self.values = Growing(np.float32)

    def check(self, batch: Batch) -> dict[int, BadRow]:
        lengths, flat = _flat(batch, DENSE)
        if self.width is None and len(lengths):
            self.width = int(lengths[0])
        width = self.width or 0
        self._right = lengths == width
        rows = np.flatnonzero(self._right)
        self._values = _single(flat[np.repeat(self._right, lengths)]).reshape(len(rows), width)
        return _first_faults(
            (np.flatnonzero(~self._right), "wrong number of features"),
            (rows[~np.isfinite(self._values).all(axis=1)], "value that is not finite"),
            (rows[self.counts & (self._values < 0).any(axis=1)], "negative count"),
        )

    def keep(self, mask: Bool) -> None:
        self.values.extend(self._values[mask[self._right]].ravel())

    def finish(self) -> Matrix:
        return self.values.finish().reshape(-1, self.width or 0)


def _flat(batch: Batch, name: str) -> tuple[Int64, npt.NDArray[Any]]:
    """(length of each list, all numbers in a row) of a list column; missing numbers become NaN or -1."""
    import pyarrow.compute as pc
    from pyarrow import types

    with decoding(batch.file):
        column = batch.data.column(name)
        column = getattr(column, "storage", column)  # lists, where an engine has a type of its own for arrays
        kind = column.type
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not listed or not (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)):
            raise InputError(
                f"{shown(batch.file)} has the column {name!r} of type {str(kind)[:60]}, which is no list of numbers"
            )
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        flat = column.flatten()
        missing = -1 if types.is_integer(kind.value_type) else float("nan")
        if flat.null_count:
            flat = (flat.cast("int64") if types.is_unsigned_integer(kind.value_type) else flat).fill_null(missing)
        return lengths.astype(np.int64), flat.to_numpy(zero_copy_only=False)


def _single(values: npt.NDArray[Any]) -> Float32:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _first_faults(*found: tuple[npt.NDArray[Any], str]) -> dict[int, BadRow]:
    """Row -> its first fault."""
    faults: dict[int, BadRow] = {}
    for rows, reason in found:
        for row in np.unique(rows).tolist():
            faults.setdefault(row, BadRow(reason))
    return faults
