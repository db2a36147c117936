"""Rows in memory from a stream of described pictures."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.features.viewer import Described
from wsabie.sources.build import Growing, LabelIndex, label_matrix, row_starts, sparse_features
from wsabie.sources.records import ItemSource, Rows


def rows_of(
    described: Iterable[Described],
    n_features: int,
    *,
    counts: bool = False,
    dense: bool = False,
    dictionary: str | None = None,
    augment: int = 0,
) -> Rows:
    """Collect a stream into `Rows`, label names in the order of their code points.

    Parameters
    ----------
    described : iterable of Described
    n_features : int
    counts : bool
        The values are counts.
    dense : bool
        Every row holds every column; X is then an array.
    dictionary : str or None
        Fingerprint of the dictionary that described them.
    augment : int
        Further views of each picture in the stream.
    """
    collected = _Collected()
    for row in described:
        collected.add(row)
    return replace(collected.rows(n_features, dense), counts=counts, dictionary=dictionary, augment=augment)


def outline(source: ItemSource) -> Rows:
    """What is known of pictures before any is decoded, as rows without features: ids, labels, groups, times."""
    nothing = np.empty(0, np.int32), np.empty(0, np.float32)
    return rows_of((Described(p.id, p.labels, p.group, p.time, *nothing) for p in source), 0)


class _Collected:
    def __init__(self) -> None:
        self.labels = LabelIndex()
        self.ids: list[str] = []
        self.groups: list[str | None] = []
        self.times: list[str | None] = []
        self.nnz, self.indices, self.values = Growing(np.int64), Growing(np.int32), Growing(np.float32)
        self.label_counts, self.label_numbers = Growing(np.int64), Growing(np.int32)

    def add(self, row: Described) -> None:
        numbers = self.labels.numbers(row.labels)
        self.label_counts.extend(np.array([len(numbers)]))
        self.label_numbers.extend(np.array(numbers, np.int32))
        self.ids.append(row.id)
        self.groups.append(row.group)
        self.times.append(row.time)
        self.nnz.extend(np.array([len(row.indices)]))
        self.indices.extend(row.indices)
        self.values.extend(row.values)

    def rows(self, n_features: int, dense: bool) -> Rows:
        names, final = self.labels.finish()
        values = self.values.finish()
        if dense:
            X: Matrix = values.reshape(len(self.ids), n_features)
        else:
            X = sparse_features(row_starts(self.nnz.finish()), self.indices.finish(), values, n_features)
        Y: Matrix = label_matrix(self.label_counts.finish(), final[self.label_numbers.finish()], len(names))
        groups, times = _filled(self.groups, self.ids), _filled(self.times, [""] * len(self.ids))
        return Rows(X, Y, names, self.ids, groups, times)


def _filled(values: list[str | None], otherwise: list[str]) -> list[str] | None:
    """None when all are missing; else each missing one replaced."""
    if all(value is None for value in values):
        return None
    return [other if value is None else value for value, other in zip(values, otherwise, strict=True)]
