"""Feature tables in memory from a stream of rows."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.features.base.extraction_tasks import ItemFeatures
from wsabie.io.parsers.array_builders import (
    GrowingArray,
    LabelIndex,
    build_feature_matrix,
    build_label_matrix,
    compute_row_offsets,
)
from wsabie.io.records import FeatureTable, ItemSource


def build_feature_table(
    described: Iterable[ItemFeatures],
    n_features: int,
    *,
    counts: bool = False,
    dense: bool = False,
    dictionary: str | None = None,
    augment: int = 0,
) -> FeatureTable:
    """Collect a stream into a `FeatureTable`, label names in the order of their code points.

    Parameters
    ----------
    described : iterable of ItemFeatures
    n_features : int
    counts : bool
        The values are counts.
    dense : bool
        Every row holds every column; X is then an array.
    dictionary : str or None
        Fingerprint of the extractor.
    augment : int
        Further views of each picture in the stream.
    """
    collected = _TableCollector()
    for row in described:
        collected.add(row)
    return replace(collected.rows(n_features, dense), counts=counts, dictionary=dictionary, augment=augment)


def build_label_table(source: ItemSource) -> FeatureTable:
    """Return a table without features: ids, labels, groups and times of items that are not decoded."""
    nothing = np.empty(0, np.int32), np.empty(0, np.float32)
    return build_feature_table((ItemFeatures(p.id, p.labels, p.group, p.time, *nothing) for p in source), 0)


class _TableCollector:
    def __init__(self) -> None:
        self.labels = LabelIndex()
        self.ids: list[str] = []
        self.groups: list[str | None] = []
        self.times: list[str | None] = []
        self.nnz, self.indices, self.values = GrowingArray(np.int64), GrowingArray(np.int32), GrowingArray(np.float32)
        self.label_counts, self.label_numbers = GrowingArray(np.int64), GrowingArray(np.int32)

    def add(self, row: ItemFeatures) -> None:
        numbers = self.labels.numbers(row.labels)
        self.label_counts.extend(np.array([len(numbers)]))
        self.label_numbers.extend(np.array(numbers, np.int32))
        self.ids.append(row.id)
        self.groups.append(row.group)
        self.times.append(row.time)
        self.nnz.extend(np.array([len(row.indices)]))
        self.indices.extend(row.indices)
        self.values.extend(row.values)

    def rows(self, n_features: int, dense: bool) -> FeatureTable:
        names, final = self.labels.finish()
        values = self.values.finish()
        if dense:
            X: Matrix = values.reshape(len(self.ids), n_features)
        else:
            X = build_feature_matrix(compute_row_offsets(self.nnz.finish()), self.indices.finish(), values, n_features)
        Y: Matrix = build_label_matrix(self.label_counts.finish(), final[self.label_numbers.finish()], len(names))
        groups, times = _fill_missing(self.groups, self.ids), _fill_missing(self.times, [""] * len(self.ids))
        return FeatureTable(X, Y, names, self.ids, groups, times)


def _fill_missing(values: list[str | None], otherwise: list[str]) -> list[str] | None:
    """Return None when all values are missing, else replace each missing one."""
    if all(value is None for value in values):
        return None
    return [default if value is None else value for value, default in zip(values, otherwise, strict=True)]
