"""The company that labels keep: on which items they are, together or not, and beside which other labels.

Two names of one thing are used beside the same other labels. Where one person writes both, they are always on the same
items; where everybody has one of their own, never.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.catalogue.tables import annotations

SEARCHED = 30_000
"""Labels among which nearest ones are searched, the most frequent."""
FEW = 5
"""Items that a label needs, so that its company says something."""

_DIM = 64
_BLOCK = 512
_TIE = 1e-4  # in the cosine
_TIES = 30  # as near as the k-th, at most


class Together(NamedTuple):
    """How often two labels are on one item.

    Attributes
    ----------
    both : int
        Items that have both.
    expected : float
        As many would have both if the two knew nothing of each other.
    share : float
        Of the items of the rarer one.
    jaccard : float
        Of the items that have either.
    likelihood_ratio : float
        Dunning's G squared: how much better the counts are explained when the two depend on each other.
    """

    both: int
    expected: float
    share: float
    jaccard: float
    likelihood_ratio: float


class Company:
    """Labels and the items that they are on.

    Parameters
    ----------
    A : csc_matrix (n_items, n_labels), float32
        1 where a label was accepted for an item.

    Attributes
    ----------
    counts : (n_labels,) int64
    contexts : (n_labels, dim) float32
        What else stands on the items of each label, at unit length; zeros where nothing does.
    """

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self.counts: Int64 = np.diff(A.indptr).astype(np.int64)
        self.contexts: Float32 = _contexts(A, self.counts)

    def together(self, pairs: Int64) -> list[Together]:
        """Counts of some pairs of labels, (n, 2)."""
        n_items, found = self.A.shape[0], []
        for lo in range(0, len(pairs), 10_000):
            part = pairs[lo : lo + 10_000]
            both = np.asarray(self.A[:, part[:, 0]].multiply(self.A[:, part[:, 1]]).sum(axis=0)).ravel()
            for (a, b), n in zip(self.counts[part].tolist(), both.astype(int).tolist(), strict=True):
                share, jaccard = n / max(min(a, b), 1), n / max(a + b - n, 1)
                found.append(Together(n, a * b / max(n_items, 1), share, jaccard, _g_squared(n, a, b, n_items)))
        return found

    def cosines(self, pairs: Int64) -> Float32:
        """How alike the company of two labels is, for pairs (n, 2)."""
        found: Float32 = np.einsum("nd,nd->n", self.contexts[pairs[:, 0]], self.contexts[pairs[:, 1]])
        return found

    def nearest(self, least: float) -> list[tuple[int, int, float]]:
        """Labels whose company is alike, each among the three nearest of the other."""
        frequent = np.flatnonzero(self.counts >= FEW)
        frequent = frequent[np.argsort(-self.counts[frequent], kind="stable")][:SEARCHED]
        return [(int(frequent[a]), int(frequent[b]), c) for a, b, c in mutual(self.contexts[frequent], least)]


def company_of(connection: Connection, places: dict[int, int]) -> Company:
    """Read which labels are on which items.

    Parameters
    ----------
    connection : Connection
    places : dict of int to int
        Column of each label, by its number.
    """
    from array import array

    from scipy.sparse import csc_matrix

    a = annotations.c
    query = select(a.item_id, a.label_id).where(a.state == "accepted")
    items, columns = array("q"), array("q")
    rows: dict[int, int] = {}
    for item, label in connection.execute(query.execution_options(yield_per=10_000)):
        if (place := places.get(label)) is not None:
            items.append(rows.setdefault(item, len(rows)))
            columns.append(place)
    ones = np.ones(len(items), np.float32)
    A = csc_matrix((ones, (np.asarray(items), np.asarray(columns))), (len(rows), len(places)))
    A.sum_duplicates()  # of a label that stands for several regions
    A.data[:] = 1
    return Company(A)


def mutual(vectors: Float32, least: float, k: int = 3) -> list[tuple[int, int, float]]:
    """Pairs of rows of unit length, each among the k nearest of the other (or as near as these); of rows of zeros none.

    Examples
    --------
    >>> mutual(np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32), 0.7, k=1)
    [(0, 1, 0.8)]
    """
    n, found = len(vectors), [np.empty(0, np.int64)]
    for lo in range(0, n, _BLOCK):
        scores = vectors[lo : lo + _BLOCK] @ vectors.T
        scores[np.arange(len(scores)), np.arange(lo, lo + len(scores))] = -np.inf
        left, bound = scores.copy(), scores.max(axis=1, initial=-np.inf)
        for _ in range(min(k, n) - 1):
            left[np.arange(len(left)), left.argmax(axis=1)] = -np.inf
            bound = left.max(axis=1)
        rows, columns = np.nonzero(scores >= np.maximum(bound - _TIE, least)[:, None])
        first = np.searchsorted(rows, np.arange(len(scores)))
        few = np.arange(len(rows)) - first[rows] < _TIES
        found.append((rows[few] + lo) * n + columns[few])
    pairs = np.concatenate(found)
    one, other = pairs // max(n, 1), pairs % max(n, 1)
    pairs = pairs[(one < other) & np.isin(pairs, other * n + one)]
    near = np.stack([pairs // max(n, 1), pairs % max(n, 1)], axis=1)
    cosines = np.einsum("nd,nd->n", vectors[near[:, 0]], vectors[near[:, 1]])
    return [(a, b, round(cosine, 4)) for (a, b), cosine in zip(near.tolist(), cosines.tolist(), strict=True)]


def at_unit_length(vectors: Any) -> Float32:
    """Rows at unit length; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Float32 = np.divide(vectors, lengths, out=np.zeros_like(vectors, np.float32), where=lengths > 0)
    return found


def _contexts(A: Matrix, counts: Int64) -> Float32:
    """Rare labels say more of an item than frequent ones; what all items have in common says nothing."""
    n_items, n_labels = A.shape
    dim = min(_DIM, n_items - 1, n_labels - 1)
    if dim < 2:
        return np.zeros((n_labels, 1), np.float32)
    from scipy.sparse import diags
    from sklearn.utils.extmath import randomized_svd

    weights = np.log((n_items + 1) / np.maximum(counts, 1)).astype(np.float32)
    weighted = (A @ diags(weights)).tocsr().astype(np.float32)
    _, values, axes = randomized_svd(weighted, dim, n_iter=3, random_state=0)
    labels = np.ascontiguousarray((axes * np.sqrt(values)[:, None]).T, np.float32)
    items = weighted @ labels
    beside = A.T @ items - (counts * weights).astype(np.float32)[:, None] * labels
    alone: Bool = np.asarray(A.T @ (A.sum(axis=1) - 1)).ravel() < 0.5
    unit = at_unit_length(np.asarray(beside, np.float32))
    unit[alone] = 0
    centred = unit - unit[~alone].mean(axis=0) if not alone.all() else unit
    centred[alone] = 0
    return at_unit_length(centred)


def _g_squared(both: int, a: int, b: int, n: int) -> float:
    seen = (both, a - both, b - both, n - a - b + both)
    chance = (a * b, a * (n - b), (n - a) * b, (n - a) * (n - b))
    return 2 * sum(s * log(s * n / c) for s, c in zip(seen, chance, strict=True) if s > 0)
