"""Rows of features in Parquet, a part after the other."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.sources.build import LabelIndex, row_starts
from wsabie.sources.parquet_features import dense_width, feature_columns
from wsabie.sources.parquet_file import Batch, LabelColumn, Table, label_column_of
from wsabie.sources.parquet_rows import Beside
from wsabie.sources.streamed import About, Part, RowStream
from wsabie.storage.columns import Columns, Lists, texts
from wsabie.storage.rejects import Rejects

_BATCH = 1 << 13


class ParquetStream(RowStream):
    """Rows of features in Parquet; not `labelled`, their labels are not looked at, and an id may come twice."""

    def __init__(self, table: Table, rejects: Rejects, *, labelled: bool = True) -> None:
        self.table, self.path, self.rejects = table, table.path, rejects
        self._label = LabelColumn(table, label_column_of(table, None)) if labelled else None
        self.index = LabelIndex(table.promised.get("label_names"))
        self.about = about_table(table)
        self._dense = dense_width(table)

    @property
    def files(self) -> list[Path]:
        return self.table.files

    def where(self, row: int) -> str:
        ends = list(accumulate(self.table.file_rows, initial=0))
        at = bisect_left(ends, row) - 1
        return Batch(self.table.files[at], 1, None).where(row - ends[at] - 1)

    def parts(self, skip: int = 0) -> Iterator[Part]:
        features = feature_columns(self.table, self.about.counts, None, dense=self._dense)
        beside = self._beside(skip)
        names = [name for name in (*features.columns, *beside.columns()) if self.table.has(name)]
        for batch in self.table.batches(names, _BATCH, skip):
            before = beside.rows_before
            mask = beside.add(batch, features.check(batch))
            features.keep(mask)
            if mask.any():
                numbers = (before + 1 + np.flatnonzero(mask)).astype(np.uint64)
                yield Part(self._columns(features.finish(), beside, numbers), beside.rows_before)
            features = feature_columns(self.table, self.about.counts, None, dense=self._dense)
            beside = self._beside(beside.rows_before)

    def _beside(self, before: int) -> Beside:
        beside = Beside(self.table, self._label, None, self.rejects, self.index, unique=self._label is not None)
        beside.rows_before = before
        return beside

    def _columns(self, X: Any, beside: Beside, rows: Any) -> Columns:
        labels = Lists(row_starts(np.array(beside.counts)), {"labels": np.array(beside.labels, np.int32)})
        if self.table.has("negatives"):
            labels.parts["signs"] = np.array(beside.signs, np.int8)
        numbers: dict[str, Any] = {"row": rows}
        lists = {"y": labels}
        if isinstance(X, np.ndarray):
            numbers["features"] = X
        else:
            lists["x"] = Lists(X.indptr, {"indices": X.indices, "values": X.data})
        if self.table.has("id"):
            lists["id"] = texts(beside.ids)
        else:
            numbers["id"] = rows
        for name, words in (("group", beside.groups), ("time", beside.times)):
            if self.table.has(name):
                lists[name] = texts(words)
        return Columns(numbers, lists)


def about_table(table: Table) -> About:
    """What `write_rows` noted."""
    noted = table.promised
    return About(
        bool(noted.get("counts")),
        noted.get("n_features"),
        noted.get("feature_names"),
        noted.get("dictionary"),
        noted.get("augment", 0),
        "given" if "label_names" in noted else "text",
    )
