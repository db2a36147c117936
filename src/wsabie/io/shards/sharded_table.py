"""Sharded rows as a source: a part at a time, or all in memory like any other rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Csr, Float32, Int32, Int64, Matrix
from wsabie.core.errors import require
from wsabie.core.json_conversion import JsonObject
from wsabie.io.parsers.array_builders import build_label_matrix, check_feature_count, check_label_count
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowCollector, StreamInfo, build_columns
from wsabie.io.shards.shard_folder import LABEL_TYPES, ShardBlock, ShardFolder, ShardSlice, open_shard_folder
from wsabie.storage.column_files import ColumnTable, ListColumn, compute_offsets, prefetch_array, take_lists

_ROWS_AT_ONCE = 1 << 14
_FOLDS = 1 << 16
_COUNTS = ("rows", "nonzeros", "pairs", "denied", "dense", "least")


class LabelStatistics(NamedTuple):
    """Numbers of rows and pairs, of rows without a true label, and of rows of which each label is true."""

    rows: int
    pairs: int
    unlabelled: int
    of_label: Int64


@dataclass(frozen=True)
class ShardedFeatureTable:
    """Rows of which only the requested ones are in memory.

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

    shards: ShardFolder
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
    def extractor_fingerprint(self) -> str | None:
        return self.shards.facts["extractor_fingerprint"]  # type: ignore[no-any-return]

    @property
    def augment(self) -> int:
        return int(self.shards.facts["augment"])

    @property
    def identity(self) -> list[object]:
        """Return a JSON-able identity of this selection of rows."""
        label_numbers = None if self.keep is None else self.keep.tolist()
        return [self.shards.fingerprint, self.lo, self.hi, self.folds, label_numbers]

    def split_holdout(self, share: float) -> tuple["ShardedFeatureTable", "ShardedFeatureTable"]:
        """Return rows to learn from, and a share of them set aside: the first ones, or whole groups.

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

    def with_labels(self, keep: Int64) -> "ShardedFeatureTable":
        """Return the same rows with only the labels of these numbers."""
        label_numbers = keep if self.keep is None else self.keep[keep]
        return replace(self, keep=label_numbers, label_names=[self.label_names[y] for y in keep])

    def compute_label_statistics(self) -> LabelStatistics:
        """Compute the statistics of the labels; of the features only the starts of rows are read."""
        rows = unlabelled = 0
        of_label = np.zeros(self.shards.facts["labels"], np.int64)
        for piece in self.shards.list_slices(self.lo, self.hi):
            y, is_selected = self.shards.gather_lists([piece], "y", LABEL_TYPES), self._select_rows(piece)
            labels, true = y.parts["labels"], y.parts["signs"] > 0
            if self.keep is not None:
                true &= self._number_labels()[labels] >= 0
            row = np.repeat(np.arange(len(is_selected)), np.diff(y.starts))
            is_bare = np.bincount(row[true], minlength=len(is_selected)) == 0
            rows, unlabelled = rows + int(is_selected.sum()), unlabelled + int((is_selected & is_bare).sum())
            mask = is_selected[row] & true
            of_label += np.bincount(labels[mask], minlength=len(of_label))
        of_label = of_label if self.keep is None else of_label[self.keep]
        return LabelStatistics(rows, int(of_label.sum()), unlabelled, of_label)

    def _select_rows(self, piece: ShardSlice) -> Bool:
        if self.folds is None:
            return np.ones(piece.hi - piece.lo, bool)
        fold = prefetch_array(self.shards.shard(piece.shard).numbers["fold"][piece.lo : piece.hi])
        return (fold >= self.folds[0]) & (fold.astype(np.int64) < self.folds[1])

    def _number_labels(self) -> Int32:
        """Return the number of each label of the shards among those that count, -1 for others."""
        columns = np.full(self.shards.facts["labels"], -1, np.int32)
        columns[np.arange(len(columns)) if self.keep is None else self.keep] = np.arange(len(self.label_names))
        return columns

    def read_spans(self, spans: Sequence[tuple[int, int]]) -> tuple[Csr | Float32, Matrix]:
        """Return features and the signed label matrix of the selected rows among some spans."""
        block = self.shards.read_spans(spans)
        if self.folds is not None:
            pieces = [piece for lo, hi in spans for piece in self.shards.list_slices(lo, hi)]
            block = _take_rows(block, np.flatnonzero(np.concatenate([self._select_rows(piece) for piece in pieces])))
        Y = block.Y
        if self.keep is not None:
            columns = self._number_labels()[Y.parts["labels"]]
            mask = columns >= 0
            starts = compute_offsets(mask)[Y.starts]
            Y = ListColumn(starts, {"labels": columns[mask], "signs": Y.parts["signs"][mask]})
        counts, labels, signs = np.diff(Y.starts), Y.parts["labels"], Y.parts["signs"]
        return block.X, build_label_matrix(counts, labels, len(self.label_names), signs)

    def list_spans(self, size: int) -> list[tuple[int, int]]:
        """Return the rows in consecutive spans of at most `size`; they do not depend on the shards."""
        return [(lo, min(lo + size, self.hi)) for lo in range(self.lo, self.hi, size)]

    def iterate_blocks(self, size: int = _ROWS_AT_ONCE) -> Iterator[FeatureTable]:
        """Yield all rows, a block at a time."""
        return (self._collect_rows([span]) for span in self.list_spans(size))

    def _collect_rows(self, spans: Sequence[tuple[int, int]]) -> FeatureTable:
        """Return the selected rows of some spans, of which one is in memory twice."""
        facts, collector = self.shards.facts, RowCollector()
        for span in spans:
            X, Y = self.read_spans([span])
            labels = ListColumn(Y.indptr, {"labels": Y.indices, "signs": Y.data})
            self._collect_words(span, collector.add)
            collector.add(build_columns(X, labels, {}, {}))
        origin = self.feature_names, self.extractor_fingerprint, self.augment
        info = StreamInfo(bool(facts["counts"]), self.n_features, *origin)
        return collector.build_table(info, self.label_names, open_width=bool(facts.get("open_width")))

    def _collect_words(
        self, span: tuple[int, int], add: Callable[[ColumnTable], None], names: Sequence[str] = ("id", "group", "time")
    ) -> None:
        """Add ids, and groups and times if there are some, of the selected rows of a span."""
        for piece in self.shards.list_slices(*span):
            rows, columns = np.flatnonzero(self._select_rows(piece)), self.shards.shard(piece.shard)
            numbers = {name: array for name, array in columns.numbers.items() if name == "id"}
            lists = {name: columns.lists[name] for name in names if name in columns.lists}
            words = ColumnTable(numbers, lists).part(piece.lo, piece.hi)
            for array in (*words.numbers.values(), *(column.parts["text"] for column in words.lists.values())):
                prefetch_array(array)
            with self.shards.refuse_damaged(piece.shard):
                add(words.take(rows))

    def read_ids(self, span: tuple[int, int]) -> tuple[list[str], Int64]:
        """Return ids of the selected rows of a span, and their numbers in the shards."""
        mask = np.concatenate([self._select_rows(piece) for piece in self.shards.list_slices(*span)])
        collector = RowCollector()
        self._collect_words(span, collector.add, ("id",))
        return collector.ids, span[0] + np.flatnonzero(mask)

    def read_row(self, number: int) -> FeatureTable:
        """Return one row, by its number in the shards.

        Raises
        ------
        InputError
            There is no such row.
        """
        require(0 <= number < len(self.shards), f"{self.path} has no row {number}; give 0 to {len(self.shards) - 1}")
        return self._collect_rows([(number, number + 1)])

    def read_first(self, n: int) -> FeatureTable:
        """Return the first n rows with a true label; fewer where there are not so many."""
        tables: list[FeatureTable] = []
        for rows in self.iterate_blocks(max(256, min(n, _ROWS_AT_ONCE))):
            labelled = np.flatnonzero(np.diff((rows.Y > 0).tocsr().indptr))
            tables.append(rows.take(labelled[: n - sum(map(len, tables))]))
            if sum(map(len, tables)) >= n:
                break
        return concatenate_tables(tables) if tables else self.load()

    def load(self) -> FeatureTable:
        """Return all rows in memory, or mapped from files where they are large."""
        return self._collect_rows(self.list_spans(_ROWS_AT_ONCE))


def open_shards(path: str | Path) -> ShardedFeatureTable:
    """Open a folder of shards, as `write_shards` writes it, of which training reads a block at a time.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ShardedFeatureTable
        Rows as `fit` takes them; `whole` reads them into memory.

    Raises
    ------
    InputError
        There are none, they are not finished or damaged, of another version, or promise far more features or labels
        than they hold.

    Examples
    --------
    >>> open_shards("nowhere")
    Traceback (most recent call last):
    wsabie.core.errors.InputError: nowhere holds no shards: it has no manifest.json; give a folder that `shards()`
    wrote
    """
    shards = open_shard_folder(Path(path))
    facts, n_bytes = shards.facts, sum(entry["bytes"] for entry in shards.files)
    check_feature_count(shards.path, facts["features"], n_bytes)  # a value takes a byte at least
    check_label_count(shards.path, facts["labels"], n_bytes)
    names = shards.read_names()
    return ShardedFeatureTable(shards, names.label_names, names.feature_names, 0, len(shards))


def concatenate_tables(parts: Sequence[FeatureTable]) -> FeatureTable:
    """Concatenate the rows of several parts of one collection."""
    from scipy.sparse import vstack

    first = parts[0]
    dense = isinstance(first.X, np.ndarray)
    X = np.concatenate([rows.X for rows in parts]) if dense else vstack([rows.X for rows in parts], "csr")
    metadata: JsonObject = {
        name: [value for rows in parts for value in getattr(rows, name)]
        for name in ("ids", "groups", "times")
        if getattr(first, name) is not None
    }
    return replace(first, X=X, Y=vstack([rows.Y for rows in parts], "csr"), **metadata)


def _take_rows(block: ShardBlock, index: Int64) -> ShardBlock:
    Y = take_lists(block.Y, index)
    if not isinstance(block.X, Csr):
        return ShardBlock(block.X[index], Y)
    X = take_lists(ListColumn(block.X.indptr, {"indices": block.X.indices, "data": block.X.data}), index)
    return ShardBlock(Csr(X.starts, X.parts["indices"], X.parts["data"]), Y)


class ShardStatistics:
    """Statistics of all rows for training, updated shard by shard."""

    def __init__(self, width: int, n_labels: int, dense: bool) -> None:
        self.dense, self.rows, self.nonzeros, self.least = dense, 0, 0, 0.0
        self.of_label = np.zeros(n_labels, np.int64)
        self.above_0 = np.zeros(width, np.int64)
        self.mean, self.squares = np.zeros(width), np.zeros(width)
        self.pairs = self.denied = 0

    def add(self, columns: ColumnTable) -> None:
        """Count the rows of a shard."""
        y = columns.lists["y"]
        signs = y.parts.get("signs", np.ones(len(y.parts["labels"]), np.int8))
        true = y.parts["labels"][signs > 0]
        self.of_label += np.bincount(true, minlength=len(self.of_label))
        self.pairs, self.denied = self.pairs + len(true), self.denied + len(signs) - len(true)
        values: Array
        if self.dense:
            values = columns.numbers["features"].astype(np.float32)
            if len(values):  # a shard of few rows may have none
                self._update_moments(values)
        else:
            indices, values = (columns.lists["x"].parts[key] for key in ("indices", "values"))
            positive_columns = indices if (values > 0).all() else indices[values > 0]
            self.above_0 += np.bincount(positive_columns, minlength=len(self.above_0))
        self.rows, self.nonzeros = self.rows + len(columns), self.nonzeros + values.size
        self.least = min(self.least, float(values.min(initial=0)))

    def _update_moments(self, values: Array) -> None:
        """Update mean and squared gaps from those of a part (Chan, Golub and LeVeque 1983)."""
        n, mean = len(values), values.mean(0, dtype=np.float64)
        gap, n_total = mean - self.mean, max(self.rows + n, 1)
        self.squares += np.square(values - mean).sum(0) + gap * gap * self.rows * n / n_total
        self.mean += gap * n / n_total

    def compute_facts(self) -> JsonObject:
        """Return the numbers that stand in the manifest."""
        sizes = {"features": len(self.above_0), "labels": len(self.of_label)}
        return sizes | {name: getattr(self, name) for name in _COUNTS}

    def arrays(self) -> dict[str, Mapping[str, Array]]:
        """Return the arrays of `ShardFolder.statistics`."""
        if self.dense:
            features = {"mean": self.mean, "deviation": np.sqrt(self.squares / max(self.rows, 1))}
        else:
            features = {"rows_above_0": self.above_0}
        return {"features": features, "labels": {"rows_of_label": self.of_label}}
