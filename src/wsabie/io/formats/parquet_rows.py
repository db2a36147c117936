"""Rows of features in Parquet, in and out without loss.

Sparse rows are `indices` list<uint32> with `values` list<float32>, dense ones `features` (a list of
floats, all of one length). Beside them: `id`, `labels` list<string>, `negatives` list<string> (labels that
are denied), `group`, `time`. `write_parquet_rows` notes under the key `wsabie` what columns cannot say: {"schema":
1, "n_features", "counts", "label_names", "feature_names", "dictionary", "augment"}; without the note the width is what
the rows need, labels are in the order of their code points, and ids that are missing are row numbers, counted from 1
over all shards.
"""

import json
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Bool, Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.io.formats.parquet_tables import KEY, ParquetBatch, ParquetTable, explain_arrow_errors, open_label_column
from wsabie.io.parsers.array_builders import (
    GrowingArray,
    LabelIndex,
    RowError,
    build_feature_matrix,
    build_signed_label_matrix,
    check_feature_count,
    compute_row_offsets,
    require_rows,
)
from wsabie.io.parsers.text_files import format_path
from wsabie.io.parsers.text_tables import LabelCellReader
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowStream, StreamInfo, StreamPart
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.column_files import ColumnTable, ListColumn, encode_text_column
from wsabie.storage.rejects import Rejects

SPARSE = ("indices", "values")
DENSE = "features"
_LARGEST = 2**31 - 2


def make_feature_collector(
    table: ParquetTable, counts: bool, n_features: int | None, *, by_themselves: bool = False, dense: int | None = None
) -> "_SparseCollector | _DenseCollector":
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
        self.row_counts = GrowingArray(np.int64)
        self.indices, self.values = GrowingArray(np.int32), GrowingArray(np.float32)

    def check(self, batch: ParquetBatch) -> dict[int, RowError]:
        lengths, indices = _flatten(batch, "indices")
        value_lengths, values = _flatten(batch, "values")
        equal = lengths == value_lengths
        indices, values = indices[np.repeat(equal, lengths)].astype(np.int64), values[np.repeat(equal, value_lengths)]
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


NEGATIVES = "negatives"
_BATCH = 1 << 12


def read_parquet_rows(
    table: ParquetTable,
    *,
    labels_from: str = "auto",
    label_column: str | None = None,
    split: str | None = None,
    counts: bool = False,
    n_features: int | None = None,
    rejects: Rejects | None = None,
) -> FeatureTable:
    """Read rows of features.

    Parameters
    ----------
    table : ParquetTable
    labels_from : str
        "none": a table without labels; anything else wants a column of them.
    label_column : str or None
        A column of labels with another name than usual.
    split : str or None
        Keep only rows with this `split`.
    counts : bool
        The values are declared counts, whatever the file says.
    n_features : int or None
        Width where the file notes none.
    rejects : Rejects or None
        Where rows that cannot be used are listed.

    Returns
    -------
    FeatureTable

    Raises
    ------
    InputError
        Damaged, without labels, labels of mixed types, a feature beyond the width that the file notes, or far more
        features than values.
    """
    rejects = Rejects() if rejects is None else rejects
    label = None if labels_from == "none" else open_label_column(table, label_column)
    counts = counts or bool(table.promised.get("counts"))
    features = make_feature_collector(table, counts, n_features)
    metadata = RowMetadataCollector(table, label, split, rejects)
    columns = [*features.columns, *metadata.columns()]
    for batch in table.batches([name for name in columns if table.has(name)], _BATCH):
        features.keep(metadata.add(batch, features.check(batch)))
    require_rows(len(metadata.ids), table.path, rejects)
    X = features.finish()
    if n_features is None and not isinstance(X, np.ndarray):
        check_feature_count(table.path, X.shape[1], X.nnz)
    return metadata.rows(X, counts)


class RowMetadataCollector:
    """Collector of all columns of a table except its features.

    Attributes
    ----------
    index : LabelIndex
        That of parts of the table that came before, where rows are read by parts.
    rows_before : int
        Rows of the table before those that are added next.
    unique : bool
        A row whose id came before is rejected.
    """

    def __init__(
        self,
        table: ParquetTable,
        label: LabelCellReader | None,
        split: str | None,
        rejects: Rejects,
        index: LabelIndex | None = None,
        *,
        unique: bool = True,
    ) -> None:
        self.table, self.label, self.split, self.rejects = table, label, split, rejects
        self.index, self.unique = index or LabelIndex(table.promised.get("label_names")), unique
        self.ids: list[str] = []
        self._used_ids: set[str] = set()
        self.groups: list[str] = []
        self.times: list[str] = []
        self.counts, self.labels, self.signs = array("i"), array("i"), array("b")
        self.rows_before = 0

    def columns(self) -> list[str]:
        return [self.label.name if self.label else "labels", NEGATIVES, "id", "group", "time", "split"]

    def add(self, batch: ParquetBatch, faults: dict[int, RowError]) -> Bool:
        """Collect the good rows of a batch and return their mask."""
        mask = np.zeros(batch.data.num_rows, bool)
        columns = [batch.column(name) for name in self.columns()]
        for row, (labels, denied, ident, group, time, split) in enumerate(zip(*columns, strict=True)):
            if self.split is not None and split != self.split:
                continue
            name = str(self.rows_before + row + 1) if ident is None else str(ident)
            try:
                if row in faults:
                    raise faults[row]
                if self.unique and name in self._used_ids:
                    raise RowError("duplicate id", name)
                self._add_labels(batch.where(row), labels, denied)
            except RowError as error:
                self.rejects.add(batch.where(row), error.reason, error.detail)
                continue
            mask[row] = True
            self.ids.append(name)
            self._used_ids.add(name)
            self.groups.append(name if group is None else str(group))
            self.times.append("" if time is None else str(time))
        self.rows_before += len(mask)
        return mask

    def _add_labels(self, where: str, labels: object, denied: object) -> None:
        stated = self.index.numbers(self.label.read_labels(labels, where)) if self.label else []
        refused = self.index.numbers(LabelCellReader(NEGATIVES).read_labels(denied, where))
        if set(stated) & set(refused):
            raise RowError("label both stated and denied")
        self.counts.append(len(stated) + len(refused))
        self.labels.extend(stated + refused)
        self.signs.extend([1] * len(stated) + [-1] * len(refused))

    def rows(self, X: Matrix, counts: bool) -> FeatureTable:
        """Return all collected rows, with their features."""
        names, final = self.index.finish()
        starts = compute_row_offsets(np.array(self.counts))
        Y = build_signed_label_matrix(starts, final[np.array(self.labels)], np.array(self.signs), len(names))
        groups = self.groups if self.table.has("group") else None
        times, noted = self.times if self.table.has("time") else None, read_stream_info(self.table)
        facts = noted.feature_names, noted.dictionary, noted.augment, noted.n_features is None
        return FeatureTable(X, Y, names, self.ids, groups, times, counts, *facts)


class DenseTransform(NamedTuple):
    """Conversion of blocks of rows into dense ones, (b, width) float32, lazily and in order."""

    width: int
    apply: Callable[[Iterable[Matrix]], Iterator[Float32]]


def write_parquet_rows(rows: FeatureTable, path: str | Path, *, through: DenseTransform | None = None) -> None:
    """Write rows so that `read_parquet_rows` gives back the same arrays, names and ids, bit for bit.

    The file appears whole or not at all.

    Parameters
    ----------
    rows : FeatureTable
        X sparse is written as `indices` and `values`, dense as `features`.
    path : str or Path
        Usually ends with .parquet.
    through : DenseTransform or None
        What becomes of X on the way, a block at a time, so that all dense rows are never in memory together.

    Raises
    ------
    InputError
        The folder cannot be written, or the disk is full.
    """
    from pyarrow import Table as ArrowTable
    from pyarrow.parquet import ParquetWriter

    kept = ("counts", "label_names", "feature_names", "dictionary", "augment")
    width = through.width if through else None
    note = {"schema": 1, "n_features": width or rows.X.shape[1]} | {name: getattr(rows, name) for name in kept}
    schema = _build_schema(rows, width).with_metadata({KEY: json.dumps(note, ensure_ascii=False).encode()})
    with replace_file(path) as draft, ParquetWriter(draft, schema, compression="zstd") as writer:
        blocks = (rows.take(range(lo, min(lo + _BATCH, len(rows)))) for lo in range(0, len(rows), _BATCH))
        for block in _transform_blocks(blocks, through) if through else blocks:
            writer.write_table(ArrowTable.from_pydict(_build_columns(block), schema=schema))


def _transform_blocks(blocks: Iterable[FeatureTable], through: DenseTransform) -> Iterator[FeatureTable]:
    under_way: deque[FeatureTable] = deque()

    def iterate_matrices() -> Iterator[Matrix]:
        for block in blocks:
            under_way.append(block)
            yield block.X

    for X in through.apply(iterate_matrices()):
        yield replace(under_way.popleft(), X=X)


def _build_schema(rows: FeatureTable, width: int | None) -> Any:
    """Return the columns of the file; `width` is that of dense rows which `rows` become, None: unchanged."""
    import pyarrow as pa

    names = pa.list_(pa.string())
    fields = [("id", pa.string()), ("labels", names)]
    fields += [(NEGATIVES, names)] if (rows.Y.data < 0).any() else []
    fields += [("group", pa.string())] if rows.groups is not None else []
    fields += [("time", pa.string())] if rows.times is not None else []
    if width is not None or isinstance(rows.X, np.ndarray):
        fields += [(DENSE, pa.list_(pa.float32(), width or rows.X.shape[1]))]
    else:
        fields += [(SPARSE[0], pa.list_(pa.uint32())), (SPARSE[1], pa.list_(pa.float32()))]
    return pa.schema(fields)


def _build_columns(rows: FeatureTable) -> dict[str, Any]:
    """Return the columns of a block; Arrow ignores those that the schema does not name."""
    import pyarrow as pa

    columns = {"id": rows.ids, "group": rows.groups, "time": rows.times}
    columns |= {"labels": _build_name_column(rows, 1), NEGATIVES: _build_name_column(rows, -1)}
    if isinstance(rows.X, np.ndarray):
        flat = pa.array(np.ascontiguousarray(rows.X, np.float32).ravel())
        return columns | {DENSE: pa.FixedSizeListArray.from_arrays(flat, rows.X.shape[1])}
    X = rows.X.tocsr().sorted_indices()
    starts = pa.array(X.indptr.astype(np.int32))
    return columns | {
        SPARSE[0]: pa.ListArray.from_arrays(starts, pa.array(X.indices.astype(np.uint32))),
        SPARSE[1]: pa.ListArray.from_arrays(starts, pa.array(X.data.astype(np.float32))),
    }


def _build_name_column(rows: FeatureTable, sign: int) -> Any:
    """Return the label names of each row with this sign, as an Arrow list column."""
    import pyarrow as pa

    mask = rows.Y.data == sign
    starts = compute_row_offsets(mask)[rows.Y.indptr].astype(np.int32)
    names = pa.array(rows.label_names, pa.string()).take(pa.array(rows.Y.indices[mask]))
    return pa.ListArray.from_arrays(pa.array(starts), names)


_STREAM_BATCH = 1 << 13


class ParquetStream(RowStream):
    """Rows of features in Parquet, part by part.

    Without `labelled` their labels are ignored, and an id may occur twice.
    """

    def __init__(self, table: ParquetTable, rejects: Rejects, *, labelled: bool = True) -> None:
        self.table, self.path, self.rejects = table, table.path, rejects
        self._label = open_label_column(table, None) if labelled else None
        self.index = LabelIndex(table.promised.get("label_names"))
        self.info = read_stream_info(table)
        self._dense = read_dense_width(table)

    @property
    def files(self) -> list[Path]:
        return self.table.files

    def where(self, row: int) -> str:
        ends = list(accumulate(self.table.file_rows, initial=0))
        shard = bisect_left(ends, row) - 1
        return ParquetBatch(self.table.files[shard], 1, None).where(row - ends[shard] - 1)

    def parts(self, skip: int = 0) -> Iterator[StreamPart]:
        features, metadata = self._make_collectors(skip)
        names = [name for name in (*features.columns, *metadata.columns()) if self.table.has(name)]
        for batch in self.table.batches(names, _STREAM_BATCH, skip):
            mask = metadata.add(batch, features.check(batch))
            features.keep(mask)
            if mask.any():
                numbers = (metadata.rows_before - len(mask) + 1 + np.flatnonzero(mask)).astype(np.uint64)
                yield StreamPart(self._build_columns(features.finish(), metadata, numbers), metadata.rows_before)
            features, metadata = self._make_collectors(metadata.rows_before)

    def _make_collectors(self, n_rows_before: int) -> "tuple[_SparseCollector | _DenseCollector, RowMetadataCollector]":
        metadata = RowMetadataCollector(
            self.table, self._label, None, self.rejects, self.index, unique=self._label is not None
        )
        metadata.rows_before = n_rows_before
        return make_feature_collector(self.table, self.info.counts, None, dense=self._dense), metadata

    def _build_columns(self, X: Any, metadata: RowMetadataCollector, rows: Any) -> ColumnTable:
        labels = ListColumn(
            compute_row_offsets(np.array(metadata.counts)), {"labels": np.array(metadata.labels, np.int32)}
        )
        if self.table.has("negatives"):
            labels.parts["signs"] = np.array(metadata.signs, np.int8)
        numbers: dict[str, Any] = {"row": rows}
        lists = {"y": labels}
        if isinstance(X, np.ndarray):
            numbers["features"] = X
        else:
            lists["x"] = ListColumn(X.indptr, {"indices": X.indices, "values": X.data})
        if self.table.has("id"):
            lists["id"] = encode_text_column(metadata.ids)
        else:
            numbers["id"] = rows
        words = {"group": metadata.groups, "time": metadata.times}
        lists |= {name: encode_text_column(texts) for name, texts in words.items() if self.table.has(name)}
        return ColumnTable(numbers, lists)


def read_stream_info(table: ParquetTable) -> StreamInfo:
    """Return the facts that `write_parquet_rows` noted."""
    noted = table.promised
    return StreamInfo(
        bool(noted.get("counts")),
        noted.get("n_features"),
        noted.get("feature_names"),
        noted.get("dictionary"),
        noted.get("augment", 0),
        "given" if "label_names" in noted else "text",
    )
