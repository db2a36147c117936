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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Bool, Float32, Matrix
from wsabie.io.dimension_checks import check_feature_count
from wsabie.io.formats.parquet.feature_columns import DENSE, SPARSE, make_feature_collector
from wsabie.io.formats.parquet.tables import KEY, ParquetBatch, ParquetLabelColumn, ParquetTable, find_label_column
from wsabie.io.parsers.array_builders import (
    LabelIndex,
    RowError,
    build_signed_label_matrix,
    compute_row_offsets,
    require_rows,
)
from wsabie.io.parsers.table_cells import LabelCellReader
from wsabie.io.records import FeatureTable
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects

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
    label = None if labels_from == "none" else ParquetLabelColumn(table, find_label_column(table, label_column))
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
        label: ParquetLabelColumn | None,
        split: str | None,
        rejects: Rejects,
        index: LabelIndex | None = None,
        *,
        unique: bool = True,
    ) -> None:
        self.table, self.label, self.split, self.rejects = table, label, split, rejects
        self.index = index or LabelIndex(table.promised.get("label_names"))
        self.unique = unique
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
        stated: list[int] = []
        if self.label:
            stated = self.index.numbers(self.label.read_labels(labels, where))
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
        times = self.times if self.table.has("time") else None
        noted = {name: self.table.promised.get(name) for name in ("feature_names", "dictionary")}
        augment = self.table.promised.get("augment", 0)
        open_width = self.table.promised.get("n_features") is None
        return FeatureTable(
            X, Y, names, self.ids, groups, times, counts, **noted, augment=augment, open_width=open_width
        )


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

    note = {
        "schema": 1,
        "n_features": through.width if through else rows.X.shape[1],
        "counts": rows.counts,
        "label_names": rows.label_names,
        "feature_names": rows.feature_names,
        "dictionary": rows.dictionary,
        "augment": rows.augment,
    }
    schema = _build_schema(rows, through.width if through else None).with_metadata(
        {KEY: json.dumps(note, ensure_ascii=False).encode()}
    )
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
