"""Streams of rows, part by part, and the stream of rows in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from wsabie.io.parsers.array_builders import LabelIndex
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable
from wsabie.storage.column_files import ColumnTable, ListColumn, encode_text_column

_ROWS_AT_ONCE = 1 << 14


class StreamPart(NamedTuple):
    """Rows of a source, and the position up to which the source has been read."""

    columns: ColumnTable
    position: int


@dataclass(frozen=True)
class StreamInfo:
    """Facts about the rows of a source.

    Attributes
    ----------
    n_features : int or None
        None: what the rows need.
    order : {"given", "text", "number"}
        How labels are numbered in the end: as their names came up, or in the order of the names, as text or as numbers.
    """

    counts: bool = False
    n_features: int | None = None
    feature_names: list[str] | None = None
    dictionary: str | None = None
    augment: int = 0
    order: Literal["given", "text", "number"] = "text"


class RowStream(ABC):
    """Source of rows that can be read again from a position.

    Attributes
    ----------
    path : Path
    info : StreamInfo
    index : LabelIndex
        The names of labels so far.
    """

    path: Path
    info: StreamInfo
    index: LabelIndex

    @abstractmethod
    def parts(self, skip: int = 0) -> Iterator[StreamPart]:
        """Yield the rows behind a position of an earlier part."""

    @property
    def files(self) -> list[Path]:
        """Return the files that are read: the rows change when one of these changes."""
        return [self.path]

    def where(self, row: int) -> str:
        """Return the place of the row that a part numbers `row`."""
        return f"{format_path(self.path)}:{row}"


class InMemoryStream(RowStream):
    """Stream of rows that are in memory."""

    def __init__(self, path: Path, rows: FeatureTable) -> None:
        self.path, self.rows, self.index = path, rows, LabelIndex(rows.label_names)
        width = None if rows.open_width else rows.X.shape[1]
        self.info = StreamInfo(rows.counts, width, rows.feature_names, rows.dictionary, rows.augment, "given")

    def parts(self, skip: int = 0) -> Iterator[StreamPart]:
        signed = bool((self.rows.Y.data < 0).any())
        for lo in range(skip, len(self.rows), _ROWS_AT_ONCE):
            batch = self.rows.take(range(lo, min(lo + _ROWS_AT_ONCE, len(self.rows))))
            yield StreamPart(convert_to_columns(batch, signed), lo + len(batch))


def convert_to_columns(rows: FeatureTable, signed: bool) -> ColumnTable:
    """Return rows as columns; labels keep their numbers, and have signs where some are denied."""
    Y = rows.Y.tocsr()
    labels = ListColumn(Y.indptr, {"labels": Y.indices, **({"signs": Y.data.astype(np.int8)} if signed else {})})
    lists = {"y": labels, "id": encode_text_column(rows.ids)}
    numbers = {}
    if isinstance(rows.X, np.ndarray):
        numbers["features"] = np.asarray(rows.X, np.float32)
    else:
        X = rows.X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        lists["x"] = ListColumn(X.indptr, {"indices": X.indices, "values": X.data})
    for name, words in (("group", rows.groups), ("time", rows.times)):
        if words is not None:
            lists[name] = encode_text_column(words)
    return ColumnTable(numbers, lists)
