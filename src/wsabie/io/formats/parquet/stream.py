"""Stream of rows of features in Parquet."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.io.formats.parquet.feature_columns import make_feature_collector, read_dense_width
from wsabie.io.formats.parquet.feature_rows import RowMetadataCollector
from wsabie.io.formats.parquet.tables import ParquetBatch, ParquetLabelColumn, ParquetTable, find_label_column
from wsabie.io.parsers.array_builders import LabelIndex, compute_row_offsets
from wsabie.io.row_streams import RowStream, StreamInfo, StreamPart
from wsabie.storage.column_files import ColumnTable, ListColumn, encode_text_column
from wsabie.storage.rejects import Rejects

_BATCH = 1 << 13


class ParquetStream(RowStream):
    """Rows of features in Parquet, part by part.

    Without `labelled` their labels are ignored, and an id may occur twice.
    """

    def __init__(self, table: ParquetTable, rejects: Rejects, *, labelled: bool = True) -> None:
        self.table, self.path, self.rejects = table, table.path, rejects
        self._label = ParquetLabelColumn(table, find_label_column(table, None)) if labelled else None
        self.index = LabelIndex(table.promised.get("label_names"))
        self.about = read_stream_info(table)
        self._dense = read_dense_width(table)

    @property
    def files(self) -> list[Path]:
        return self.table.files

    def where(self, row: int) -> str:
        ends = list(accumulate(self.table.file_rows, initial=0))
        shard = bisect_left(ends, row) - 1
        return ParquetBatch(self.table.files[shard], 1, None).where(row - ends[shard] - 1)

    def parts(self, skip: int = 0) -> Iterator[StreamPart]:
        features = make_feature_collector(self.table, self.about.counts, None, dense=self._dense)
        metadata = self._make_collector(skip)
        names = [name for name in (*features.columns, *metadata.columns()) if self.table.has(name)]
        for batch in self.table.batches(names, _BATCH, skip):
            n_rows_before = metadata.rows_before
            mask = metadata.add(batch, features.check(batch))
            features.keep(mask)
            if mask.any():
                numbers = (n_rows_before + 1 + np.flatnonzero(mask)).astype(np.uint64)
                yield StreamPart(self._build_columns(features.finish(), metadata, numbers), metadata.rows_before)
            features = make_feature_collector(self.table, self.about.counts, None, dense=self._dense)
            metadata = self._make_collector(metadata.rows_before)

    def _make_collector(self, n_rows_before: int) -> RowMetadataCollector:
        metadata = RowMetadataCollector(
            self.table, self._label, None, self.rejects, self.index, unique=self._label is not None
        )
        metadata.rows_before = n_rows_before
        return metadata

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
        for name, words in (("group", metadata.groups), ("time", metadata.times)):
            if self.table.has(name):
                lists[name] = encode_text_column(words)
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
