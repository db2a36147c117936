"""Co-occurrence of labels: pairs on the same items, and similarity of the labels around them.

Two names of one concept occur with the same other labels. If one person uses both, they are always on the same items;
if each person uses one, they never are.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, select

from wsabie.collection.db.tables import annotations
from wsabie.core.arrays import Bool, Float32, Int64, Matrix

MAX_SEARCHED = 30_000
"""Number of labels in the neighbour search, the most frequent."""
MIN_ITEMS = 5
"""Fewest items that make the co-occurrence of a label meaningful."""

_DIM = 64
_BLOCK_SIZE = 512
_TIE_TOLERANCE = 1e-4  # tolerance of the cosine
_MAX_TIES = 30  # largest number of ties with the k-th


class PairCounts(NamedTuple):
    """Co-occurrence counts of two labels.

    Attributes
    ----------
    n_both : int
        Number of items that have both.
    expected : float
        Expected number if the two were independent.
    share : float
        `n_both` over the items of the rarer label.
    jaccard : float
        `n_both` over the items that have either.
    likelihood_ratio : float
        Dunning's G squared for dependence of the two labels.
    """

    n_both: int
    expected: float
    share: float
    jaccard: float
    likelihood_ratio: float


class Cooccurrence:
    """Matrix of items and labels, with context vectors of the labels.

    Parameters
    ----------
    A : csc_matrix (n_items, n_labels), float32
        1 for each accepted label of an item.

    Attributes
    ----------
    counts : (n_labels,) int64
    contexts : (n_labels, dim) float32
        Context vector of each label at unit length; zeros if its items have no other label.
    """

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self.counts: Int64 = np.diff(A.indptr).astype(np.int64)
        self.contexts: Float32 = _compute_contexts(A, self.counts)

    def count_pairs(self, pairs: Int64) -> list[PairCounts]:
        """Return the counts of pairs of labels, (n, 2)."""
        n_items, counts = self.A.shape[0], []
        for lo in range(0, len(pairs), 10_000):
            part = pairs[lo : lo + 10_000]
            n_both = np.asarray(self.A[:, part[:, 0]].multiply(self.A[:, part[:, 1]]).sum(axis=0)).ravel()
            for (a, b), n in zip(self.counts[part].tolist(), n_both.astype(int).tolist(), strict=True):
                share, jaccard = n / max(min(a, b), 1), n / max(a + b - n, 1)
                counts.append(
                    PairCounts(n, a * b / max(n_items, 1), share, jaccard, _compute_g_squared(n, a, b, n_items))
                )
        return counts

    def compute_cosines(self, pairs: Int64) -> Float32:
        """Return the cosine between the contexts of two labels, for pairs (n, 2)."""
        cosines: Float32 = np.einsum("nd,nd->n", self.contexts[pairs[:, 0]], self.contexts[pairs[:, 1]])
        return cosines

    def find_neighbours(self, min_cosine: float) -> list[tuple[int, int, float]]:
        """Return pairs of labels with similar contexts, each among the three nearest of the other."""
        frequent = np.flatnonzero(self.counts >= MIN_ITEMS)
        frequent = frequent[np.argsort(-self.counts[frequent], kind="stable")][:MAX_SEARCHED]
        return [
            (int(frequent[a]), int(frequent[b]), cosine)
            for a, b, cosine in find_mutual_neighbours(self.contexts[frequent], min_cosine)
        ]


def read_cooccurrence(connection: Connection, columns_by_label: dict[int, int]) -> Cooccurrence:
    """Read the accepted labels of all items.

    Parameters
    ----------
    connection : Connection
    columns_by_label : dict of int to int
        Column of each label by its id.
    """
    from array import array

    from scipy.sparse import csc_matrix

    a = annotations.c
    query = select(a.item_id, a.label_id).where(a.state == "accepted")
    item_rows, item_columns = array("q"), array("q")
    rows_by_item: dict[int, int] = {}
    for item, label in connection.execute(query.execution_options(yield_per=10_000)):
        if (column := columns_by_label.get(label)) is not None:
            item_rows.append(rows_by_item.setdefault(item, len(rows_by_item)))
            item_columns.append(column)
    indices = np.asarray(item_rows), np.asarray(item_columns)
    A = csc_matrix((np.ones(len(item_rows), np.float32), indices), (len(rows_by_item), len(columns_by_label)))
    A.sum_duplicates()  # a label may have several regions on an item
    A.data[:] = 1
    return Cooccurrence(A)


def find_mutual_neighbours(vectors: Float32, min_cosine: float, k: int = 3) -> list[tuple[int, int, float]]:
    """Return pairs of unit rows, each among the k nearest of the other or tied; zero rows have none.

    Examples
    --------
    >>> find_mutual_neighbours(np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32), 0.7, k=1)
    [(0, 1, 0.8)]
    """
    n, codes = len(vectors), [np.empty(0, np.int64)]
    for lo in range(0, n, _BLOCK_SIZE):
        scores = vectors[lo : lo + _BLOCK_SIZE] @ vectors.T
        scores[np.arange(len(scores)), np.arange(lo, lo + len(scores))] = -np.inf
        remaining, bound = scores.copy(), scores.max(axis=1, initial=-np.inf)
        for _ in range(min(k, n) - 1):
            remaining[np.arange(len(remaining)), remaining.argmax(axis=1)] = -np.inf
            bound = remaining.max(axis=1)
        rows, columns = np.nonzero(scores >= np.maximum(bound - _TIE_TOLERANCE, min_cosine)[:, None])
        first = np.searchsorted(rows, np.arange(len(scores)))
        is_within_ties = np.arange(len(rows)) - first[rows] < _MAX_TIES
        codes.append((rows[is_within_ties] + lo) * n + columns[is_within_ties])
    pairs = np.concatenate(codes)
    first_row, second_row = pairs // max(n, 1), pairs % max(n, 1)
    pairs = pairs[(first_row < second_row) & np.isin(pairs, second_row * n + first_row)]
    neighbours = np.stack([pairs // max(n, 1), pairs % max(n, 1)], axis=1)
    cosines = np.einsum("nd,nd->n", vectors[neighbours[:, 0]], vectors[neighbours[:, 1]])
    return [(a, b, round(cosine, 4)) for (a, b), cosine in zip(neighbours.tolist(), cosines.tolist(), strict=True)]


def normalise_rows(vectors: Any) -> Float32:
    """Scale rows to unit length; zero rows stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Float32 = np.divide(vectors, lengths, out=np.zeros_like(vectors, np.float32), where=lengths > 0)
    return normalised


def _compute_contexts(A: Matrix, counts: Int64) -> Float32:
    """Return context vectors of labels, in which rare labels weigh more and the common mean is removed."""
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
    context_sums = A.T @ items - (counts * weights).astype(np.float32)[:, None] * labels
    has_no_context: Bool = np.asarray(A.T @ (A.sum(axis=1) - 1)).ravel() < 0.5
    unit_contexts = normalise_rows(np.asarray(context_sums, np.float32))
    unit_contexts[has_no_context] = 0
    centred = unit_contexts - unit_contexts[~has_no_context].mean(axis=0) if not has_no_context.all() else unit_contexts
    centred[has_no_context] = 0
    return normalise_rows(centred)


def _compute_g_squared(n_both: int, a: int, b: int, n: int) -> float:
    observed = (n_both, a - n_both, b - n_both, n - a - b + n_both)
    chance = (a * b, a * (n - b), (n - a) * b, (n - a) * (n - b))
    return 2 * sum(
        count * log(count * n / expected) for count, expected in zip(observed, chance, strict=True) if count > 0
    )
