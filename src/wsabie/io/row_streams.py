"""Streams of rows, part by part, and the stream of rows in memory."""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Csr, Int32, Matrix
from wsabie.io.parsers import array_builders
from wsabie.io.parsers.array_builders import GrowingArray, LabelIndex
from wsabie.io.records import FeatureTable
from wsabie.storage.column_files import ColumnTable, ListColumn, compute_offsets, decode_text_column, encode_text_column
from wsabie.storage.rejects import Rejects

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
    order : {"source", "text", "number"}
        How labels are numbered in the end: as their names came up, or in the order of the names, as text or as numbers.
    """

    counts: bool = False
    n_features: int | None = None
    feature_names: list[str] | None = None
    extractor_fingerprint: str | None = None
    augment: int = 0
    near_equality: float | None = None
    order: Literal["source", "text", "number"] = "text"


class RowStream(ABC):
    """Source of rows that can be read again from a position.

    Attributes
    ----------
    path : Path
    info : StreamInfo
    index : LabelIndex
        The names of labels so far.
    rejects : Rejects
        Where rows that cannot be used are listed.
    """

    path: Path
    info: StreamInfo
    index: LabelIndex
    rejects: Rejects

    @abstractmethod
    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        """Yield the rows after a position that an earlier part stated."""

    @property
    def files(self) -> list[Path]:
        """Return the files that are read: the rows change when one of these changes."""
        return [self.path]

    def format_position(self, row: int) -> str:
        """Return the position in the file of the row that a part numbers `row`."""
        return f"{self.path}:{row}"

    def finish_labels(self) -> tuple[list[str], Int32]:
        """Return (names by final number, final number of each that parts have)."""
        return self.index.finish()

    def read_all(self, n_features: int | None = None) -> FeatureTable:
        """Return all rows in memory, or mapped from files where they are large.

        Parameters
        ----------
        n_features : int or None
            Width of rows that do not state theirs, where it is known; they may be wider.

        Raises
        ------
        InputError
            There is none, or far more features than values.
        """
        collector = RowCollector()
        for part in self.iterate_parts():
            collector.add(part.columns)
        array_builders.require_rows(len(collector), self.path, self.rejects)
        rows = collector.build_table(self.info, *self.finish_labels(), n_features=n_features or 0)
        if n_features is None and not isinstance(rows.X, np.ndarray):
            array_builders.check_feature_count(self.path, rows.X.shape[1], rows.X.nnz)
        return rows


class RowBatch:
    """Rows that a text or table has been parsed to, in lists.

    Parameters
    ----------
    signed : bool
        Each label has a sign.
    """

    def __init__(self, *, signed: bool = False) -> None:
        self.signs = array("b") if signed else None
        self.lines: list[int] = []
        self.facts: dict[str, list[str]] = {}
        self.labels, self.label_counts, self.indices, self.value_counts = (array("i") for _ in range(4))
        self.values = array("f")

    def __len__(self) -> int:
        return len(self.lines)

    def add(
        self,
        line: int,
        labels: Collection[int],
        facts: Mapping[str, str] = {},
        indices: Collection[int] = (),
        values: Iterable[float] = (),
    ) -> None:
        """Add a row by its number in the source; `facts` are its id, group and time, default values are 1."""
        self.lines.append(line)
        self.labels.extend(labels)
        self.label_counts.append(len(labels))
        self.indices.extend(indices)
        self.value_counts.append(len(indices))
        self.values.extend(values)
        for name, text in facts.items():
            self.facts.setdefault(name, []).append(text)

    def build_features(self, width: int) -> Matrix:
        """Return X, csr_matrix (n, width) float32; repeated features of a row count with their sum."""
        from scipy.sparse import csr_matrix

        indices = np.array(self.indices, np.int32)
        values = np.array(self.values, np.float32) if self.values else np.ones(len(indices), np.float32)
        X = csr_matrix((values, indices, compute_offsets(self.value_counts)), (len(self), width))
        X.sum_duplicates()
        return X

    def to_columns(self, X: Matrix) -> ColumnTable:
        """Return the rows with their features; those without an id have their number."""
        labels = {"labels": np.array(self.labels, np.int32)}
        if self.signs is not None:
            labels["signs"] = np.array(self.signs, np.int8)
        numbers = {"row" if "id" in self.facts else "id": np.array(self.lines, np.uint64)}
        return build_columns(X, ListColumn(compute_offsets(self.label_counts), labels), self.facts, numbers)


class RowCollector:
    """Collector of rows in arrays that grow: one table of many parts."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._facts: dict[str, list[str]] = {"id": self.ids}
        self._arrays: dict[str, GrowingArray] = {}
        self._width = 0

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, columns: ColumnTable, *, labelled: bool = True) -> None:
        """Add some rows."""
        if "id" in columns.numbers:
            self.ids.extend(map(str, columns.numbers["id"].tolist()))
        for name in columns.lists.keys() & {"id", "group", "time"}:
            self._facts.setdefault(name, []).extend(decode_text_column(columns.lists[name]))
        if (features := columns.numbers.get("features")) is not None:
            self._width = features.shape[1]
            self._extend("features", features.ravel())
        for name in columns.lists.keys() & ({"x", "y"} if labelled else {"x"}):
            self._extend(name, np.diff(columns.lists[name].starts))
            for key, flat in columns.lists[name].parts.items():
                self._extend(key, flat)

    def _extend(self, name: str, part: Array) -> None:
        self._arrays.setdefault(name, GrowingArray(part.dtype)).extend(part)

    def build_table(
        self,
        info: StreamInfo,
        label_names: list[str],
        final_ids: Int32 | None = None,
        *,
        n_features: int = 0,
        open_width: bool = False,
    ) -> FeatureTable:
        """Return the rows, at least `n_features` wide; `final_ids` renumbers the labels."""
        arrays = {name: array.finish() for name, array in self._arrays.items()}
        nothing = np.zeros(0, np.int32)
        if "features" in arrays:
            X: Matrix = arrays["features"].reshape(-1, self._width)
        else:
            indices, values = arrays.get("indices", nothing), arrays.get("values", nothing.astype(np.float32))
            width = max(info.n_features or n_features, int(indices.max(initial=-1)) + 1)
            X = array_builders.build_feature_matrix(compute_offsets(arrays.get("x", nothing)), indices, values, width)
        counts, labels = arrays.get("y", np.zeros(len(self), np.int32)), arrays.get("labels", nothing)
        labels = labels if final_ids is None else final_ids[labels]
        Y = array_builders.build_label_matrix(counts, labels, len(label_names), arrays.get("signs"))
        is_open = open_width or info.n_features is None
        origin = info.extractor_fingerprint, info.augment, info.near_equality
        sources = info.counts, info.feature_names, *origin, is_open
        return FeatureTable(X, Y, label_names, self.ids, self._facts.get("group"), self._facts.get("time"), *sources)


class InMemoryStream(RowStream):
    """Stream of rows that are in memory."""

    def __init__(self, path: Path, rows: FeatureTable) -> None:
        self.path, self.rows, self.rejects = path, rows, Rejects()
        self.index = LabelIndex(rows.label_names)
        width = None if rows.open_width else rows.X.shape[1]
        origin = rows.extractor_fingerprint, rows.augment, rows.near_equality
        self.info = StreamInfo(rows.counts, width, rows.feature_names, *origin, "source")

    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        signed = bool((self.rows.Y.data < 0).any())
        for lo in range(skip, len(self.rows), _ROWS_AT_ONCE):
            batch = self.rows.take(range(lo, min(lo + _ROWS_AT_ONCE, len(self.rows))))
            yield StreamPart(convert_to_columns(batch, signed), lo + len(batch))


def build_columns(
    X: Matrix | Csr, y: ListColumn | None, facts: Mapping[str, Sequence[str] | None], numbers: dict[str, Array]
) -> ColumnTable:
    """Return rows as columns."""
    lists = {name: encode_text_column(texts) for name, texts in facts.items() if texts is not None}
    lists |= {} if y is None else {"y": y}
    if isinstance(X, np.ndarray):
        return ColumnTable({**numbers, "features": X}, lists)
    return ColumnTable(numbers, {**lists, "x": ListColumn(X.indptr, {"indices": X.indices, "values": X.data})})


def convert_to_columns(rows: FeatureTable, signed: bool) -> ColumnTable:
    """Return rows as columns; labels keep their numbers, and have signs where some are denied."""
    X, Y = rows.X, rows.Y.tocsr()
    labels = ListColumn(Y.indptr, {"labels": Y.indices, **({"signs": Y.data.astype(np.int8)} if signed else {})})
    if isinstance(X, np.ndarray):
        X = np.asarray(X, np.float32)
    elif not X.tocsr().has_canonical_format:
        X = X.tocsr().copy()
        X.sum_duplicates()
    return build_columns(X, labels, {"id": rows.ids, "group": rows.groups, "time": rows.times}, {})


def build_unlabelled_table(parts: Iterable[ColumnTable], info: StreamInfo, n_features: int = 0) -> FeatureTable:
    """Return rows of a stream without their labels."""
    collector = RowCollector()
    for columns in parts:
        collector.add(columns, labelled=False)
    return collector.build_table(info, [], n_features=n_features)
