"""Near-duplicates across a split: rows too close to a row that the model learns from leave validation and
test.

Weston, Bengio & Usunier ("Wsabie", IJCAI 2011, section 6.1 and the longer version) remove the test pictures
whose nearest neighbour among the training and validation pictures is too close.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.sparse import to_csr
from wsabie.evaluation.splits import Split

_CELLS = 4_000_000
"""Similarities held at once."""

_ROUNDING = 1e-6
"""So that a threshold of 1 catches exact duplicates, whose cosine in float32 may fall just short of it."""

_COLUMNS = 32_768
"""Known rows compared at once."""


class Dropped(NamedTuple):
    """Rows that left a split, with the row that each is too close to."""

    rows: Int64
    neighbours: Int64
    similarities: Float32  # cosine


def drop_near(X: Matrix, parts: Split, threshold: float) -> tuple[Split, Dropped]:
    """Take out validation rows near a training row, then test rows near a training or remaining validation
    row.

    Parameters
    ----------
    X : csr_matrix or array, (n, d)
    parts : Split
    threshold : float
        A row whose cosine with its nearest neighbour is at least this leaves; between 0 and 1. Rows of zeros
        are near nothing.

    Returns
    -------
    Split
        Without the dropped rows.
    Dropped
        Sorted by row.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> kept, dropped = drop_near(X, Split(np.array([0, 1]), np.array([], int), np.array([2])), 0.99)
    >>> kept.test.tolist(), dropped.neighbours.tolist()
    ([], [0])
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold = {threshold} but a cosine similarity above 0 and up to 1 is needed, such as 0.95")
    points = _unit_rows(X)
    valid, from_valid = _apart(points, parts.valid, parts.train, threshold)
    test, from_test = _apart(points, parts.test, np.concatenate([parts.train, valid]), threshold)
    order = np.argsort(np.concatenate([from_valid.rows, from_test.rows]))
    dropped = Dropped(
        np.concatenate([from_valid.rows, from_test.rows])[order],
        np.concatenate([from_valid.neighbours, from_test.neighbours])[order],
        np.concatenate([from_valid.similarities, from_test.similarities])[order],
    )
    return Split(parts.train, valid, test), dropped


def nearest(X: Matrix, rows: Int64, known: Int64) -> tuple[Int64, Float32]:
    """The known row nearest to each row by cosine, ties by position in `known`, and the cosine.

    Memory is bounded: a block of rows against a block of known rows at a time.

    Examples
    --------
    >>> nearest(np.array([[1.0, 1.0], [3.0, 0.0], [4.0, 4.0]]), np.array([0]), np.array([1, 2]))
    (array([2]), array([0.99999...], dtype=float32))
    """
    return _nearest(_unit_rows(X), rows, known)


def _apart(points: Any, rows: Int64, known: Int64, threshold: float) -> tuple[Int64, Dropped]:
    neighbours, similarities = _nearest(points, rows, known)
    near = similarities >= threshold - _ROUNDING
    return rows[~near], Dropped(rows[near], neighbours[near], similarities[near])


def _nearest(points: Any, rows: Int64, known: Int64) -> tuple[Int64, Float32]:
    best = np.full(len(rows), -np.inf, np.float32)
    where = np.full(len(rows), -1, np.int64)
    for first in range(0, len(known), _COLUMNS):
        columns = known[first : first + _COLUMNS]
        others = points[columns].T
        step = max(1, _CELLS // len(columns))
        for lo in range(0, len(rows), step):
            product = points[rows[lo : lo + step]] @ others
            similarity = product.toarray() if hasattr(product, "toarray") else product
            top = similarity.argmax(axis=1)
            value = similarity[np.arange(len(top)), top]
            better = value > best[lo : lo + step]
            best[lo : lo + step][better] = value[better]
            where[lo : lo + step][better] = columns[top[better]]
    return where, best


def _unit_rows(X: Matrix) -> Any:
    """Rows scaled to length 1 in float32 (rows of zeros stay); sparse stays sparse."""
    if not hasattr(X, "tocsr"):
        X = np.asarray(X, np.float32)
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    X = to_csr(X, "X").astype(np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(X.indptr)).astype(np.float32)
    return X
