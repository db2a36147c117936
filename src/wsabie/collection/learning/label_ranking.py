"""Rank the labels of items by probability."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsabie.collection.registry.model_registry import LoadedModel
from wsabie.core.arrays import Float32, Float64, Int64, Matrix
from wsabie.search.exact_index import ExactIndex


class TopLabels(NamedTuple):
    """Most probable labels of items, best first; label -1 pads rows with fewer than k."""

    labels: Int64  # (n, k)
    scores: Float32  # (n, k)
    probabilities: Float64  # (n, k)


class LabelRanker:
    """Ranker of a model's current labels by probability.

    A probability is a sigmoid of slope * score + offset + the label's offset: an inner product with a bias, so an exact
    search finds the highest ones for any number of labels.
    """

    def __init__(self, loaded_model: LoadedModel, labels_now: Int64) -> None:
        model = loaded_model.model
        self.columns = np.flatnonzero(labels_now >= 0)
        self.labels = labels_now[self.columns]
        self._calibration = model.calibration_
        self._offsets = model.calibration_.label_offsets[self.columns].astype(np.float64)
        slope, offset = model.calibration_.slope, model.calibration_.offset
        self._vectors = np.ascontiguousarray(model.label_vectors[self.columns])
        self._bias = model.space_.bias[self.columns]
        bias = (slope * self._bias + offset + self._offsets).astype(np.float32)
        self._index = ExactIndex(self._vectors * np.float32(slope), bias=bias)
        self._most = int(np.unique(self.labels, return_counts=True)[1].max(initial=1))
        order = np.argsort(self.labels, kind="stable")
        self._sorted, self._order = self.labels[order], order

    def exclude_pairs(self, pairs: Iterable[tuple[int, int]], n: int) -> Matrix:
        """Return (row, label) pairs as a matrix of excluded columns, (n, n_columns)."""
        from scipy.sparse import csr_matrix

        rows: list[int] = []
        columns: list[int] = []
        for place, label in pairs:
            start, end = np.searchsorted(self._sorted, [label, label + 1])
            rows += [place] * int(end - start)
            columns += self._order[start:end].tolist()
        values = np.ones(len(rows), np.int8)
        return csr_matrix((values, (rows, columns)), (n, len(self.labels)))

    def top(self, points: Float32, k: int, exclude: Any = None, threads: int | None = None) -> TopLabels:
        """Return the k most probable labels of points, (n, dim)."""
        n_candidates = min(k - 1 + self._most, len(self.labels)) or 1
        ids, _ = self._index.top_k(points, n_candidates, exclude=exclude, threads=threads)
        if self._most > 1:
            ids = _drop_repeated_labels(ids, self.labels)
        ids = np.pad(ids[:, :k], ((0, 0), (0, max(0, k - ids.shape[1]))), constant_values=-1)
        scores = np.einsum("nd,nkd->nk", points, self._vectors[ids]) + self._bias[ids]
        probabilities = self._calibration.predict_proba(scores, self.columns[ids])
        is_empty = ids < 0
        return TopLabels(
            np.where(is_empty, -1, self.labels[ids]),
            np.where(is_empty, 0, scores).astype(np.float32),
            np.where(is_empty, 0.0, probabilities),
        )


def _drop_repeated_labels(ids: Int64, labels: Int64) -> Int64:
    """Return ids without columns whose label ranks higher already, as labels may have merged."""
    distinct = np.full_like(ids, -1)
    for row, row_ids in enumerate(ids):
        row_labels = dict.fromkeys(labels[row_ids[row_ids >= 0]].tolist())
        first = {label: int(i) for i, label in reversed(list(zip(row_ids, labels[row_ids], strict=True))) if i >= 0}
        distinct[row, : len(row_labels)] = [first[label] for label in row_labels]
    return distinct
