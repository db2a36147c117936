"""Rows of features in Parquet, in and out without loss.

Sparse rows are `indices` list<uint32> with `values` list<float32>, dense ones `features` (a list of
floats, all of one length). Beside them: `id`, `labels` list<string>, `negatives` list<string> (labels that
are denied), `group`, `time`. `write_parquet_rows` notes under the key `wsabie` what columns cannot say: {"schema":
1, "n_features", "counts", "label_names", "feature_names", "extractor_fingerprint", "augment", "near_equality"}; without
the note the width is what the rows need, labels are in the order of their code points, and ids that are missing are row
numbers, counted from 1 over all shards.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, tee
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.io.formats.parquet_tables import (
    KEY,
    ArrowObject,
    ParquetBatch,
    ParquetTable,
    explain_arrow_errors,
    open_label_column,
    read_schema_note,
)
from wsabie.io.parsers.array_builders import LabelIndex, build_feature_matrix
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.records import FeatureTable, ReadOptions
from wsabie.io.row_streams import RowBatch, RowStream, StreamInfo, StreamPart, build_columns, build_unlabelled_table
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.column_files import compute_offsets
from wsabie.storage.rejects import Rejects, RowError

SPARSE = ("indices", "values")
DENSE = "features"
_MAX_NUMBER = 2**31 - 2
NEGATIVES = "negatives"
_BATCH = 1 << 12
_STREAM_BATCH = 1 << 13


def make_feature_reader(
    table: ParquetTable, counts: bool, *, reject_out_of_range: bool = False
) -> "_SparseFeatureReader | _DenseFeatureReader":
    """Return the reader of a table's form of features.

    Features beyond the promised width are refused, or are a fault of their rows with `reject_out_of_range`. The
    first dense row sets the width, unless it is known.
    """
    width = table.note.get("n_features")
    if not table.has_columns(DENSE):
        return _SparseFeatureReader(width, counts, reject_out_of_range)
    first = next(table.iterate_batches([DENSE], 1, 0), None) if width is None else None
    return _DenseFeatureReader(width if first is None else int(_flatten(first, DENSE)[0][0]), counts)


class _SparseFeatureReader:
    columns = SPARSE

    def __init__(self, promised: int | None, counts: bool, reject_out_of_range: bool) -> None:
        self.promised, self.counts, self.reject_out_of_range = promised, counts, reject_out_of_range
        self.largest = promised - 1 if promised is not None and reject_out_of_range else _MAX_NUMBER

    def check(self, batch: ParquetBatch) -> dict[int, RowError]:
        lengths, indices = _flatten(batch, "indices")
        value_lengths, values = _flatten(batch, "values")
        equal = lengths == value_lengths
        indices, values = indices[np.repeat(equal, lengths)].astype(np.int64), values[np.repeat(equal, value_lengths)]
        self._lengths = np.where(equal, lengths, 0)
        rows = np.repeat(np.arange(len(lengths)), self._lengths)
        if ((np.diff(indices) < 0) & (np.diff(rows) == 0)).any():
            order = np.lexsort((indices, rows))
            indices, values = indices[order], values[order]
        self._indices, self._values = indices, _convert_to_float32(values)
        faults = _first_faults(
            (np.flatnonzero(~equal), "indices and values of different lengths"),
            (rows[(self._indices < 0) | (self._indices > self.largest)], "feature number out of range"),
            (rows[~np.isfinite(self._values)], "value that is not finite"),
            (rows[self.counts & (self._values < 0)], "negative count"),
            (rows[1:][(rows[1:] == rows[:-1]) & (np.diff(self._indices) == 0)], "feature given twice"),
        )
        self._refuse_out_of_range(batch, rows)
        return faults

    def _refuse_out_of_range(self, batch: ParquetBatch, rows: Int64) -> None:
        if self.promised is None or self.reject_out_of_range:
            return
        beyond = np.flatnonzero(self._indices >= self.promised)
        if len(beyond):
            raise InputError(
                f"{batch.format_position(int(rows[beyond[0]]))} has feature {self._indices[beyond[0]]} but the file "
                f"promises {self.promised:,} features, numbered from 0; write the file again"
            )

    def select_rows(self, mask: Bool) -> Matrix:
        """Return the features of some rows of the batch that was checked last."""
        entries = np.repeat(mask, self._lengths)
        indices, starts = self._indices[entries].astype(np.int32), compute_offsets(self._lengths[mask])
        width = int(indices.max(initial=-1)) + 1 if self.promised is None else self.promised
        return build_feature_matrix(starts, indices, self._values[entries], width)


class _DenseFeatureReader:
    columns = (DENSE,)

    def __init__(self, width: int | None, counts: bool) -> None:
        self.width, self.counts = width, counts

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

    def select_rows(self, mask: Bool) -> Matrix:
        return self._values[mask[self._right]]


def _flatten(batch: ParquetBatch, name: str) -> tuple[Int64, Array]:
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
                f"{batch.file} has the column {name!r} of type {str(kind)[:60]}, which is not a list of numbers"
            )
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        flat = column.flatten()
        missing = -1 if types.is_integer(kind.value_type) else float("nan")
        if flat.null_count:
            flat = (flat.cast("int64") if types.is_unsigned_integer(kind.value_type) else flat).fill_null(missing)
        return lengths.astype(np.int64), flat.to_numpy(zero_copy_only=False)


def _convert_to_float32(values: Array) -> Float32:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _first_faults(*checks: tuple[Array, str]) -> dict[int, RowError]:
    """Return the first fault of each row."""
    faults: dict[int, RowError] = {}
    for rows, reason in checks:
        for row in np.unique(rows).tolist():
            faults.setdefault(row, RowError(reason))
    return faults


class DenseTransform(NamedTuple):
    """Conversion of blocks of rows into dense ones, (b, width) float32, lazily and in order."""

    width: int
    apply: Callable[[Iterable[Matrix]], Iterator[Float32]]


def write_parquet_rows(rows: FeatureTable, path: str | Path, *, through: DenseTransform | None = None) -> None:
    """Write rows so that `ParquetStream` gives back the same arrays, names and ids, bit for bit.

    The file appears whole or not at all.

    Parameters
    ----------
    rows : FeatureTable
        X sparse is written as `indices` and `values`, dense as `features`.
    path : str or Path
        Usually ends with .parquet.
    through : DenseTransform or None
        Conversion of X, a block at a time, so that the dense rows are never in memory together.

    Raises
    ------
    InputError
        The folder cannot be written, or the disk is full.
    """
    from pyarrow.parquet import ParquetWriter

    facts = ("counts", "label_names", "feature_names", "extractor_fingerprint", "augment", "near_equality")
    width = through.width if through else None
    note = {"schema": 1, "n_features": width or rows.X.shape[1]}
    note |= {name: getattr(rows, name) for name in facts}
    has_negatives, empty = bool((rows.Y.data < 0).any()), rows.take(np.arange(0))
    empty = empty if width is None else replace(empty, X=np.zeros((0, width), np.float32))
    metadata = {KEY: json.dumps(note, ensure_ascii=False).encode()}
    schema = _build_arrow_table(empty, has_negatives).schema.with_metadata(metadata)
    with replace_file(path) as draft, ParquetWriter(draft, schema, compression="zstd") as writer:
        blocks = (rows.take(range(lo, min(lo + _BATCH, len(rows)))) for lo in range(0, len(rows), _BATCH))
        for block in _transform_blocks(blocks, through) if through else blocks:
            writer.write_table(_build_arrow_table(block, has_negatives))


def _transform_blocks(blocks: Iterable[FeatureTable], through: DenseTransform) -> Iterator[FeatureTable]:
    blocks, inputs = tee(blocks)
    for X, block in zip(through.apply(block.X for block in inputs), blocks, strict=True):
        yield replace(block, X=X)


def _build_arrow_table(rows: FeatureTable, has_negatives: bool) -> ArrowObject:
    """Return the columns of a block; `has_negatives` says of all blocks that some deny labels."""
    import pyarrow as pa

    columns = {"id": pa.array(rows.ids, pa.string()), "labels": _build_name_column(rows, 1)}
    columns |= {NEGATIVES: _build_name_column(rows, -1)} if has_negatives else {}
    facts = {"group": rows.groups, "time": rows.times}
    columns |= {name: pa.array(texts, pa.string()) for name, texts in facts.items() if texts is not None}
    if isinstance(rows.X, np.ndarray):
        flat = pa.array(np.ascontiguousarray(rows.X, np.float32).ravel())
        columns[DENSE] = pa.FixedSizeListArray.from_arrays(flat, rows.X.shape[1])
    else:
        X = rows.X.tocsr().sorted_indices()
        starts = pa.array(X.indptr.astype(np.int32))
        columns[SPARSE[0]] = pa.ListArray.from_arrays(starts, pa.array(X.indices.astype(np.uint32)))
        columns[SPARSE[1]] = pa.ListArray.from_arrays(starts, pa.array(X.data.astype(np.float32)))
    return pa.table(columns)


def _build_name_column(rows: FeatureTable, sign: int) -> ArrowObject:
    """Return the label names of each row with this sign, as an Arrow list column."""
    import pyarrow as pa

    mask = rows.Y.data == sign
    starts = compute_offsets(mask)[rows.Y.indptr].astype(np.int32)
    names = pa.array(rows.label_names, pa.string()).take(pa.array(rows.Y.indices[mask]))
    return pa.ListArray.from_arrays(pa.array(starts), names)


class ParquetStream(RowStream):
    """Rows of features in Parquet, part by part.

    Parameters
    ----------
    table : ParquetTable
    options : ReadOptions
        Without labels an id may occur twice.
    counts : bool
        The values are declared counts, whatever the file says.
    unique : bool
        A row whose id came before is rejected, otherwise only one whose id is in the same part.

    Raises
    ------
    InputError
        Damaged, without labels, labels of mixed types, a feature beyond the width that the file notes, or far more
        features than values.
    """

    def __init__(
        self, table: ParquetTable, options: ReadOptions, *, counts: bool = False, unique: bool = False
    ) -> None:
        self.table, self.path, self.rejects, self._unique = table, table.path, options.rejects, unique
        self._split = options.split
        self._label = open_label_column(table, options.label_column) if options.has_labels else None
        self.index = LabelIndex(table.note.get("label_names"))
        info = read_stream_info(table)
        self.info = replace(info, counts=counts or info.counts)
        self._features = make_feature_reader(table, self.info.counts)

    @property
    def files(self) -> list[Path]:
        return self.table.files

    def format_position(self, row: int) -> str:
        ends = list(accumulate(self.table.file_rows, initial=0))
        shard = bisect_left(ends, row) - 1
        return ParquetBatch(self.table.files[shard], 1, None).format_position(row - ends[shard] - 1)

    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        columns, label_columns = [NEGATIVES, "id", "group", "time", "split"], self._label.columns if self._label else []
        names = [name for name in (*self._features.columns, *label_columns, *columns) if self.table.has_columns(name)]
        n_rows, ids = skip, set[str]()
        for data in self.table.iterate_batches(names, _STREAM_BATCH, skip):
            faults, batch = self._features.check(data), RowBatch(signed=self.table.has_columns(NEGATIVES))
            cell_rows = zip(data.get_label_cells(self._label), *map(data.get_column, columns), strict=True)
            for row, cells in enumerate(cell_rows):
                if self._split is None or cells[-1] == self._split:
                    with self.rejects.catch(where := data.format_position(row)):
                        if row in faults:
                            raise faults[row]
                        self._add_row(batch, n_rows + row + 1, where, cells[:-1], ids)
            mask = np.zeros(data.data.num_rows, bool)
            mask[np.array(batch.lines, np.int64) - n_rows - 1] = True
            n_rows += len(mask)
            if len(batch):
                yield StreamPart(batch.to_columns(self._features.select_rows(mask)), n_rows)
            if not self._unique:
                ids.clear()

    def _add_row(self, batch: RowBatch, number: int, where: str, cells: tuple[ArrowObject, ...], ids: set[str]) -> None:
        labels, denied, ident, group, time = cells
        ident = number if ident is None else ident
        name = str(int(ident) if isinstance(ident, float) and ident.is_integer() else ident)
        if name in ids:
            raise RowError("duplicate id", name)
        stated = self.index.assign_ids(self._label.read_labels(labels, where)) if self._label else []
        refused = self.index.assign_ids(LabelCellReader(NEGATIVES).read_labels(denied, where))
        if set(stated) & set(refused):
            raise RowError("label both stated and denied")
        facts = {"id": name, "group": name if group is None else str(group), "time": "" if time is None else str(time)}
        batch.add(number, stated + refused, {key: text for key, text in facts.items() if self.table.has_columns(key)})
        if batch.signs is not None:
            batch.signs.extend([1] * len(stated) + [-1] * len(refused))
        ids.update([name] if self._unique or self._label else [])


def read_stream_info(table: ParquetTable) -> StreamInfo:
    """Return the facts that `write_parquet_rows` noted."""
    noted = table.note
    facts = {"counts", "n_features", "feature_names", "extractor_fingerprint", "augment", "near_equality"}
    names = facts & noted.keys()
    return StreamInfo(**{name: noted[name] for name in names}, order="source" if "label_names" in noted else "text")


def open_unlabelled_table(
    data: ArrowObject, table_name: Path, rejects: Rejects, n_features: int
) -> FeatureTable | None:
    """Return the rows of an Arrow table without their labels; None for other data than rows.

    Ids are the numbers of rows, from 0.

    Parameters
    ----------
    data : pyarrow.Table
    table_name : Path
        Names the table in sentences.
    rejects : Rejects
        Where rows that cannot be used are listed, by their ids: those without features, or with one out of range, too.
    n_features : int
        The width where the table does not state it.

    Raises
    ------
    InputError
        A column that is not a list of numbers, or damaged notes.
    """
    table = ParquetTable(
        table_name, [], data.schema, [], {"n_features": n_features} | read_schema_note(data.schema, table_name)
    )
    if not (table.has_columns(*SPARSE) or table.has_columns(DENSE)):
        return None
    info, parts, first = read_stream_info(table), [], 0
    features = make_feature_reader(table, info.counts, reject_out_of_range=True)
    for part in data.to_batches():
        mask = np.ones(part.num_rows, bool)
        faults = features.check(ParquetBatch(table_name, first + 1, part))
        for name in features.columns:
            faults |= dict.fromkeys(np.flatnonzero(part.column(name).is_null()).tolist(), RowError("empty"))
        for row, error in faults.items():
            mask[row] = False
            rejects.add(str(first + row), error.reason, error.detail)
        parts.append(build_columns(features.select_rows(mask), None, {}, {"id": first + np.flatnonzero(mask)}))
        first += part.num_rows
    return build_unlabelled_table(parts, info)
