"""The most probable labels of items, by a model of the collection."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64, Matrix
from wsabie.catalogue.shelf import OpenModel
from wsabie.search.exact import ExactIndex


class Top(NamedTuple):
    """The most probable labels of items, best first; label -1 where there are fewer than k."""

    labels: Int64  # (n, k)
    scores: Float32  # (n, k)
    probabilities: Float64  # (n, k)


class Ranking:
    """A model's labels, as they are now, made ready to be ranked by probability.

    A probability is a sigmoid of slope * score + offset + the label's offset: an inner product with a bias, so that the
    search for the highest ones is exact whatever the number of labels.
    """

    def __init__(self, opened: OpenModel, labels_now: Int64) -> None:
        model = opened.model
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

    def excluded(self, pairs: Iterable[tuple[int, int]], n: int) -> Matrix:
        """(place, label) pairs as the columns that are no candidates, (n, n_columns)."""
        from scipy.sparse import csr_matrix

        rows: list[int] = []
        columns: list[int] = []
        for place, label in pairs:
            lo, hi = np.searchsorted(self._sorted, [label, label + 1])
            rows += [place] * int(hi - lo)
            columns += self._order[lo:hi].tolist()
        ones = np.ones(len(rows), np.int8)
        return csr_matrix((ones, (rows, columns)), (n, len(self.labels)))

    def top(self, points: Float32, k: int, exclude: Any = None, threads: int | None = None) -> Top:
        """The k most probable labels of points, (n, dim)."""
        asked = min(k - 1 + self._most, len(self.labels)) or 1
        ids, _ = self._index.top_k(points, asked, exclude=exclude, threads=threads)
        if self._most > 1:
            ids = _without_twins(ids, self.labels)
        ids = np.pad(ids[:, :k], ((0, 0), (0, max(0, k - ids.shape[1]))), constant_values=-1)
        scores = np.einsum("nd,nkd->nk", points, self._vectors[ids]) + self._bias[ids]
        probabilities = self._calibration.predict_proba(scores, self.columns[ids])
        none = ids < 0
        return Top(
            np.where(none, -1, self.labels[ids]),
            np.where(none, 0, scores).astype(np.float32),
            np.where(none, 0.0, probabilities),
        )


def _without_twins(ids: Int64, labels: Int64) -> Int64:
    """Columns of each row without those whose label stands before them: what were two labels may be one by now."""
    found = np.full_like(ids, -1)
    for row, given in enumerate(ids):
        kept = dict.fromkeys(labels[given[given >= 0]].tolist())
        first = {label: int(i) for i, label in reversed(list(zip(given, labels[given], strict=True))) if i >= 0}
        found[row, : len(kept)] = [first[label] for label in kept]
    return found
