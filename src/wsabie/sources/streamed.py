"""Rows of a source a part after the other: what a stream of them is, and that of rows in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from wsabie.sources.build import LabelIndex
from wsabie.sources.records import Rows
from wsabie.sources.text import shown
from wsabie.storage.columns import Columns, Lists, texts

_ROWS_AT_ONCE = 1 << 14


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


class RowStream(ABC):
    """A source of rows that can be read again, from a position on.

    Attributes
    ----------
    path : Path
    about : About
    index : LabelIndex
        The names of labels so far.
    """

    path: Path
    about: About
    index: LabelIndex

    @abstractmethod
    def parts(self, skip: int = 0) -> Iterator[Part]:
        """The rows behind a position that an earlier part has told."""

    @property
    def files(self) -> list[Path]:
        """What is read: the rows are others where one of these has changed."""
        return [self.path]

    def where(self, row: int) -> str:
        """Where a row stands that a part gives the number `row`."""
        return f"{shown(self.path)}:{row}"


class WholeStream(RowStream):
    """Rows that are in memory."""

    def __init__(self, path: Path, rows: Rows) -> None:
        self.path, self.rows, self.index = path, rows, LabelIndex(rows.label_names)
        width = None if rows.open_width else rows.X.shape[1]
        self.about = About(rows.counts, width, rows.feature_names, rows.dictionary, rows.augment, "given")

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
