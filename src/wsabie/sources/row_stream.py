"""Rows of a source a part after the other, so that no more than a part is ever in memory.

Parquet and sparse text are read so; rows of any other form are read whole first, for they are small. A part's labels
have the numbers in which their names came up; what they are in the end the whole source tells.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from wsabie.base.arrays import Int32
from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow, LabelIndex, row_starts, sparse_features
from wsabie.sources.open import kind_of, open_source
from wsabie.sources.parquet_features import DENSE, SPARSE, dense_width, feature_columns
from wsabie.sources.parquet_file import Batch, LabelColumn, Table, label_column_of, note_of, open_table
from wsabie.sources.parquet_rows import Beside
from wsabie.sources.records import Rows
from wsabie.sources.sharded import open_shards
from wsabie.sources.svmlight import check_lines, limits_of, promised
from wsabie.sources.svmlight_stream import Collected, collected_parts
from wsabie.sources.text import shown
from wsabie.storage.columns import Columns, Lists, texts, words_of
from wsabie.storage.rejects import Rejects

_ROWS_AT_ONCE = 1 << 14
_BATCH = 1 << 13


class Part(NamedTuple):
    """Some rows, and how far the source has been read."""

    columns: Columns
    position: int


@dataclass(frozen=True)
class About:
    """What a source says of its rows.

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


class RowStream(Protocol):
    """A source of rows that can be read again, from a position on."""

    @property
    def path(self) -> Path: ...

    @property
    def about(self) -> About: ...

    @property
    def index(self) -> LabelIndex:
        """The names of labels so far."""
        ...

    def parts(self, skip: int = 0) -> Iterator[Part]:
        """The rows behind a position that an earlier part has told."""
        ...


def open_stream(path: Path, rejects: Rejects) -> RowStream:
    """Open a source of rows, whatever form it has.

    Parameters
    ----------
    path : Path
        Whatever `open_source` takes for rows.
    rejects : Rejects
        Where rows that cannot be used are listed.

    Raises
    ------
    InputError
        As `open_source`, or pictures, sounds or documents, which have to be described first.
    """
    streamed = _streamed(path, rejects)
    if streamed is not None:
        return streamed
    rows = open_source(path, rejects=rejects)
    if not isinstance(rows, Rows):
        raise InputError(
            f"{shown(path)} holds {rows.things}, and shards hold rows; describe them first with wsabie features, and "
            "give the file that it writes"
        )
    return WholeStream(path, rows)


def _streamed(path: Path, rejects: Rejects, *, labelled: bool = True) -> RowStream | None:
    kind = kind_of(path)
    if kind == "svmlight":
        return TextStream(path, rejects)
    if kind == "parquet":
        table = open_table(path)
        if table.has(*SPARSE) or table.has(DENSE):
            return ParquetStream(table, rejects, labelled=labelled)
    return None


def unlabelled_rows(path: Path, rejects: Rejects, n_features: int | None = None) -> Iterator[Rows] | None:
    """The rows of a source without their labels, some at a time; None where it holds other things than rows.

    Of shards, Parquet and sparse text no more are in memory, so that an id may come twice.

    Parameters
    ----------
    path : Path
    rejects : Rejects
        Where rows that cannot be used are listed.
    n_features : int or None
        The width of rows that do not tell theirs.

    Raises
    ------
    InputError
        As `open_source`; of rows that are read, when they are.
    """
    if kind_of(path) == "shards":
        return (replace(rows, Y=rows.Y[:, :0], label_names=[]) for rows in open_shards(path).blocks())
    stream = _streamed(path, rejects, labelled=False)
    if stream is None:
        return None
    open_width = stream.about.n_features is None
    about = replace(stream.about, n_features=stream.about.n_features or n_features)
    return (replace(_unlabelled(part.columns, about), open_width=open_width) for part in stream.parts())


def unlabelled_table(data: Any, place: Path, rejects: Rejects, n_features: int) -> Rows | None:
    """The rows of an Arrow table in memory without their labels; None where it holds other things than rows.

    Ids are the numbers of rows, from 0.

    Parameters
    ----------
    data : pyarrow.Table
    place : Path
        Names the table in sentences.
    rejects : Rejects
        Where rows that cannot be used are listed, by their ids: those without features, or with one out of range, too.
    n_features : int
        The width where the table does not tell it.

    Raises
    ------
    InputError
        A column that is no list of numbers, or damaged notes.
    """
    table = Table(place, [], data.schema, [], {"n_features": n_features} | note_of(data.schema, place))
    if not (table.has(*SPARSE) or table.has(DENSE)):
        return None
    about, kept = _about(table), np.ones(data.num_rows, bool)
    features, first = feature_columns(table, about.counts, None, by_themselves=True), 0
    for part in data.to_batches():
        good = kept[first : first + part.num_rows]
        faults = features.check(Batch(place, first + 1, part))
        for name in features.columns:
            faults |= dict.fromkeys(np.flatnonzero(part.column(name).is_null()).tolist(), BadRow("empty"))
        for row, bad in faults.items():
            good[row] = False
            rejects.add(str(first + row), bad.reason, bad.detail)
        features.keep(good)
        first += part.num_rows
    return _bare(features.finish(), [str(row) for row in np.flatnonzero(kept)], about)


def _unlabelled(columns: Columns, about: About) -> Rows:
    X: Any
    if "features" in columns.numbers:
        X = np.asarray(columns.numbers["features"], np.float32)
    else:
        x = columns.lists["x"]
        indices, values = x.parts["indices"], x.parts["values"]
        width = max(about.n_features or 0, int(indices.max(initial=-1)) + 1)
        X = sparse_features(np.asarray(x.starts, np.int64), indices, values, width)
    ids = words_of(columns.lists["id"]) if "id" in columns.lists else list(map(str, columns.numbers["id"].tolist()))
    return _bare(X, ids, about)


def _bare(X: Any, ids: list[str], about: About) -> Rows:
    from scipy.sparse import csr_matrix

    nothing = csr_matrix((len(ids), 0), dtype=np.int8)
    return Rows(X, nothing, [], ids, None, None, about.counts, about.feature_names, about.dictionary, about.augment)


def _about(table: Table) -> About:
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


class TextStream:
    """XC or svmlight text."""

    def __init__(self, path: Path, rejects: Rejects) -> None:
        self.path, self.rejects = path, rejects
        self._header, names = promised(path)
        if self._header and names is None:
            names = [str(i) for i in range(self._header.labels)]
        self._limits = limits_of(self._header, names, False)
        self._named = names is not None
        self.index = LabelIndex(names)
        width = self._header.features if self._header else None
        self.about = About(n_features=width, order="given" if self._named else "number")

    def parts(self, skip: int = 0) -> Iterator[Part]:
        lines = skip
        headed = self._header is not None
        for got in collected_parts(self.path, self._limits, headed=headed, rejects=self.rejects, skip=skip):
            lines = got.n_lines
            if len(got.lines):
                yield Part(self._columns(got), lines)
        check_lines(self.path, self._header, lines)

    def _columns(self, got: Collected) -> Columns:
        last = self._header.rows + 1 if self._header else got.n_lines
        kept = int(np.searchsorted(got.lines.view(), last, side="right"))
        features = Lists(
            row_starts(got.feature_counts.view()), {"indices": got.indices.view(), "values": got.values.view()}
        )
        labels = Lists(row_starts(got.label_counts.view()), {"labels": self._numbered(got.labels.view())})
        return Columns({"id": got.lines.view().astype(np.uint64)}, {"x": features, "y": labels}).part(0, kept)

    def _numbered(self, labels: Int32) -> Int32:
        """By the order in which they came up, where no list of names says what they are."""
        if self._named:
            return labels
        written, place = np.unique(labels, return_inverse=True)
        numbers = np.array([self.index.number(str(label)) for label in written.tolist()], np.int32)
        return numbers[place]


class ParquetStream:
    """Rows of features in Parquet; not `labelled`, their labels are not looked at, and an id may come twice."""

    def __init__(self, table: Table, rejects: Rejects, *, labelled: bool = True) -> None:
        self.table, self.path, self.rejects = table, table.path, rejects
        self._label = LabelColumn(table, label_column_of(table, None)) if labelled else None
        self.index = LabelIndex(table.promised.get("label_names"))
        self.about = _about(table)
        self._dense = dense_width(table)

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


@dataclass
class WholeStream:
    """Rows that are in memory."""

    path: Path
    rows: Rows
    index: LabelIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = LabelIndex(self.rows.label_names)

    @property
    def about(self) -> About:
        rows = self.rows
        width = None if rows.open_width else rows.X.shape[1]
        return About(rows.counts, width, rows.feature_names, rows.dictionary, rows.augment, "given")

    def parts(self, skip: int = 0) -> Iterator[Part]:
        signed = bool((self.rows.Y.data < 0).any())
        for lo in range(skip, len(self.rows), _ROWS_AT_ONCE):
            some = self.rows.take(range(lo, min(lo + _ROWS_AT_ONCE, len(self.rows))))
            yield Part(columns_of(some, signed), lo + len(some))


def columns_of(rows: Rows, signed: bool) -> Columns:
    """Rows as columns; labels have their own numbers, and signs where some are denied."""
    Y = rows.Y.tocsr()
    labels = Lists(Y.indptr, {"labels": Y.indices, **({"signs": Y.data.astype(np.int8)} if signed else {})})
    lists = {"y": labels, "id": texts(rows.ids)}
    numbers = {}
    if isinstance(rows.X, np.ndarray):
        numbers["features"] = np.asarray(rows.X, np.float32)
    else:
        X = rows.X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        lists["x"] = Lists(X.indptr, {"indices": X.indices, "values": X.data})
    for name, words in (("group", rows.groups), ("time", rows.times)):
        if words is not None:
            lists[name] = texts(words)
    return Columns(numbers, lists)
