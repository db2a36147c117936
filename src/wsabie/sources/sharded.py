"""Rows in shards as a source: some at a time, or all in memory like any other rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Csr, Float32, Int32, Int64, Matrix
from wsabie.base.validation import require
from wsabie.sources.build import Growing, row_starts, signed_label_matrix, sparse_features
from wsabie.sources.records import Rows
from wsabie.sources.widths import check_columns, check_labels
from wsabie.storage.columns import Columns, Lists, expect, taken, words_of
from wsabie.storage.shards import Piece, Shards, Stored, open_shard_folder

_ROWS_AT_ONCE = 1 << 14
_FOLDS = 1 << 16


class Truth(NamedTuple):
    """How many rows and pairs there are, rows without a true label, and rows of which each label is true."""

    rows: int
    pairs: int
    unlabelled: int
    of_label: Int64


@dataclass(frozen=True)
class ShardedRows:
    """Rows of which only those that are asked for are in memory.

    Attributes
    ----------
    shards : Shards
    label_names : list of str
    feature_names : list of str or None
    lo, hi : int
        The rows lo..hi - 1 of the shards; their order is random.
    folds : (int, int) or None
        Where rows have groups: only those whose group's 16 bits lie from the one to below the other.
    keep : (n_labels,) int64 or None
        The labels that count, by their numbers in the shards; None: all.
    """

    shards: Shards
    label_names: list[str]
    feature_names: list[str] | None
    lo: int
    hi: int
    folds: tuple[int, int] | None = None
    keep: Int64 | None = None

    @property
    def path(self) -> Path:
        return self.shards.path

    @property
    def n_features(self) -> int:
        return int(self.shards.facts["features"])

    @property
    def dictionary(self) -> str | None:
        return self.shards.facts["dictionary"]  # type: ignore[no-any-return]

    @property
    def augment(self) -> int:
        return int(self.shards.facts["augment"])

    @property
    def identity(self) -> list[Any]:
        """By which a selection of rows is known again, JSON-able."""
        kept = None if self.keep is None else self.keep.tolist()
        return [self.shards.fingerprint, self.lo, self.hi, self.folds, kept]

    def held_out(self, share: float) -> tuple["ShardedRows", "ShardedRows"]:
        """Rows to learn from, and a share of them set aside: the first ones, or whole groups.

        Raises
        ------
        InputError
            The share is not between 0 and 1.
        """
        require(0 < share < 1, f"the share set aside is {share}; give a number between 0 and 1")
        if "fold" not in self.shards.shard(0).numbers:
            cut = self.lo + round(share * (self.hi - self.lo))
            return replace(self, lo=cut), replace(self, hi=cut)
        lo, hi = self.folds or (0, _FOLDS)
        cut = lo + round(share * (hi - lo))
        return replace(self, folds=(cut, hi)), replace(self, folds=(lo, cut))

    def with_labels(self, keep: Int64) -> "ShardedRows":
        """The same rows with only the labels of these numbers."""
        kept = keep if self.keep is None else self.keep[keep]
        return replace(self, keep=kept, label_names=[self.label_names[y] for y in keep])

    def truth(self) -> Truth:
        """What the labels are like; of the features nothing is read but where those of each row begin."""
        rows = unlabelled = 0
        of_label = np.zeros(self.shards.facts["labels"], np.int64)
        for piece in self.shards.pieces(self.lo, self.hi):
            labels, some = self._labels(piece)
            true, row = labels.parts["signs"] > 0, np.repeat(np.arange(len(some)), np.diff(labels.starts))
            bare = np.bincount(row[true], minlength=len(some)) == 0
            rows, unlabelled = rows + int(some.sum()), unlabelled + int((some & bare).sum())
            counted = some[row] & true
            of_label += np.bincount(labels.parts["labels"][counted], minlength=len(of_label))
        of_label = of_label if self.keep is None else of_label[self.keep]
        return Truth(rows, int(of_label.sum()), unlabelled, of_label)

    def _labels(self, piece: Piece) -> tuple[Lists, Bool]:
        """The labels of rows of a shard, those that count, and which of the rows do."""
        y = self.shards.shard(piece.shard).lists["y"]
        starts = expect(y.starts[piece.lo : piece.hi + 1]).astype(np.int64)
        at = slice(int(starts[0]), int(starts[-1]))
        labels = expect(y.parts["labels"][at]).astype(np.int32)
        signs = expect(y.parts["signs"][at]) if "signs" in y.parts else np.ones(len(labels), np.int8)
        found = Lists(starts - starts[0], {"labels": labels, "signs": signs})
        if self.keep is not None:
            signs = np.where(self._columns()[labels] >= 0, signs, 0)
            found = Lists(found.starts, {"labels": labels, "signs": signs})
        return found, self._chosen(piece)

    def _chosen(self, piece: Piece) -> Bool:
        if self.folds is None:
            return np.ones(piece.hi - piece.lo, bool)
        fold = expect(self.shards.shard(piece.shard).numbers["fold"][piece.lo : piece.hi])
        chosen: Bool = (fold >= self.folds[0]) & (fold.astype(np.int64) < self.folds[1])
        return chosen

    def _columns(self) -> Int32:
        """The number of each label of the shards among those that count, -1 where it does not."""
        columns = np.full(self.shards.facts["labels"], -1, np.int32)
        columns[np.arange(len(columns)) if self.keep is None else self.keep] = np.arange(len(self.label_names))
        return columns

    def read(self, spans: Sequence[tuple[int, int]]) -> tuple[Csr | Float32, Matrix]:
        """Features and the signed label matrix of the chosen rows among some spans of the shards' rows."""
        stored = self.shards.read(spans)
        if self.folds is not None:
            pieces = [piece for lo, hi in spans for piece in self.shards.pieces(lo, hi)]
            stored = _some(stored, np.flatnonzero(np.concatenate([self._chosen(piece) for piece in pieces])))
        Y = stored.Y
        if self.keep is not None:
            columns = self._columns()[Y.parts["labels"]]
            kept = columns >= 0
            starts = row_starts(kept)[Y.starts]
            Y = Lists(starts, {"labels": columns[kept], "signs": Y.parts["signs"][kept]})
        return stored.X, signed_label_matrix(Y.starts, Y.parts["labels"], Y.parts["signs"], len(self.label_names))

    def spans(self, size: int) -> list[tuple[int, int]]:
        """The rows in spans of at most `size` that follow each other; their ends do not depend on the shards."""
        return [(lo, min(lo + size, self.hi)) for lo in range(self.lo, self.hi, size)]

    def blocks(self, size: int = _ROWS_AT_ONCE) -> Iterator[Rows]:
        """All rows, some at a time."""
        for span in self.spans(size):
            yield self._rows(span)

    def _rows(self, span: tuple[int, int]) -> Rows:
        X, Y = self.read([span])
        words = self._words(span)
        return self._as_rows(_matrix(X, self.n_features), Y, words["id"], words.get("group"), words.get("time"))

    def _as_rows(self, X: Matrix, Y: Matrix, ids: list[str], groups: list[str] | None, times: list[str] | None) -> Rows:
        facts = self.shards.facts
        return Rows(X, Y, self.label_names, ids, groups, times, bool(facts["counts"]), self.feature_names,
                    self.dictionary, self.augment, bool(facts.get("open_width")))  # fmt: skip

    def _words(self, span: tuple[int, int], names: Sequence[str] = ("id", "group", "time")) -> dict[str, list[str]]:
        """Ids, and groups and times where there are some, of the chosen rows of a span."""
        found: dict[str, list[str]] = {"id": []}
        for piece in self.shards.pieces(*span):
            chosen, columns = np.flatnonzero(self._chosen(piece)), self.shards.shard(piece.shard)
            words = Columns(lists={name: columns.lists[name] for name in names if name in columns.lists})
            if "id" in columns.numbers:
                found["id"].extend(map(str, expect(columns.numbers["id"][piece.lo : piece.hi])[chosen].tolist()))
            for name, column in words.part(piece.lo, piece.hi).lists.items():
                expect(column.parts["text"])
                with self.shards.refuse_damaged(piece.shard):
                    found.setdefault(name, []).extend(words_of(taken(column, chosen)))
        return found

    def ids(self, span: tuple[int, int]) -> tuple[list[str], Int64]:
        """Ids of the chosen rows of a span, and their numbers in the shards."""
        chosen = np.concatenate([self._chosen(piece) for piece in self.shards.pieces(*span)])
        return self._words(span, ("id",))["id"], span[0] + np.flatnonzero(chosen)

    def at(self, number: int) -> Rows:
        """One row, by its number in the shards.

        Raises
        ------
        InputError
            There is no such row.
        """
        require(0 <= number < len(self.shards), f"{self.path} has no row {number}; give 0 to {len(self.shards) - 1}")
        return self._rows((number, number + 1))

    def first(self, n: int) -> Rows:
        """The first n rows with a true label; fewer where there are not so many."""
        found: list[Rows] = []
        for rows in self.blocks(max(256, min(n, _ROWS_AT_ONCE))):
            labelled = np.flatnonzero(np.diff((rows.Y > 0).tocsr().indptr))
            found.append(rows.take(labelled[: n - sum(map(len, found))]))
            if sum(map(len, found)) >= n:
                break
        return together(found) if found else self.whole()

    def whole(self) -> Rows:
        """All rows in memory, or mapped from files where they are large."""
        dense = self.shards.dense
        lengths, marks, labels, signs = Growing(np.int64), Growing(np.int64), Growing(np.int32), Growing(np.int8)
        indices, values = Growing(np.int32), Growing(np.float32)
        words: dict[str, list[str]] = {}
        for span in self.spans(_ROWS_AT_ONCE):
            X, Y = self.read([span])
            if isinstance(X, Csr):
                lengths.extend(np.diff(X.indptr))
                indices.extend(X.indices)
                values.extend(X.data)
            else:
                values.extend(X.ravel())
            marks.extend(np.diff(Y.indptr))
            labels.extend(Y.indices)
            signs.extend(Y.data)
            for name, some in self._words(span).items():
                words.setdefault(name, []).extend(some)
        if dense:
            X = values.finish().reshape(-1, self.n_features)
        else:
            X = sparse_features(row_starts(lengths.view()), indices.finish(), values.finish(), self.n_features)
        Y = signed_label_matrix(row_starts(marks.view()), labels.finish(), signs.finish(), len(self.label_names))
        return self._as_rows(X, Y, words.get("id", []), words.get("group"), words.get("time"))


def open_shards(path: str | Path) -> ShardedRows:
    """Open a folder of shards, as `wsabie shards` writes it, of which training reads a block at a time.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        There are none, they are not finished or damaged, of another version, or promise far more features or labels
        than they hold.

    Examples
    --------
    >>> open_shards("nowhere")
    Traceback (most recent call last):
    wsabie.base.errors.InputError: nowhere holds no shards: it has no manifest.json; give a folder that `wsabie shards`
    wrote
    """
    shards = open_shard_folder(Path(path))
    facts, stored = shards.facts, sum(entry["bytes"] for entry in shards.files)
    check_columns(shards.path, facts["features"], stored)  # a value takes a byte at least
    check_labels(shards.path, facts["labels"], stored)
    names = shards.names()
    return ShardedRows(shards, names["label_names"] or [], names["feature_names"], 0, len(shards))


def together(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts of one collection."""
    from scipy.sparse import vstack

    first = parts[0]
    dense = isinstance(first.X, np.ndarray)
    X = np.concatenate([rows.X for rows in parts]) if dense else vstack([rows.X for rows in parts], "csr")
    beside: dict[str, Any] = {
        name: [one for rows in parts for one in getattr(rows, name)]
        for name in ("ids", "groups", "times")
        if getattr(first, name) is not None
    }
    return replace(first, X=X, Y=vstack([rows.Y for rows in parts], "csr"), **beside)


def _matrix(X: Csr | Float32, n_features: int) -> Matrix:
    return sparse_features(X.indptr, X.indices, X.data, n_features) if isinstance(X, Csr) else X


def _some(stored: Stored, index: Int64) -> Stored:
    Y = taken(stored.Y, index)
    if not isinstance(stored.X, Csr):
        return Stored(stored.X[index], Y)
    X = taken(Lists(stored.X.indptr, {"indices": stored.X.indices, "data": stored.X.data}), index)
    return Stored(Csr(X.starts, X.parts["indices"], X.parts["data"]), Y)
