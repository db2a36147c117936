"""Remove near-duplicates across a split: validation and test rows that are too close to training rows.

Weston et al. 2011 ("Wsabie", IJCAI, section 6.1 and the longer version) remove the test pictures whose nearest
neighbour among the training and validation pictures is too close.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.sparse_matrices import convert_to_csr
from wsabie.evaluation.splits import Split

_MAX_SIMILARITIES = 4_000_000
"""Similarities held in memory at once."""

_ROUNDING = 1e-6
"""Tolerance that lets a threshold of 1 catch exact duplicates, whose float32 cosine may be just below 1."""

_COLUMNS_PER_BLOCK = 32_768
"""Reference rows compared at once."""


class NearDuplicates(NamedTuple):
    """Rows removed from a split, with the row that each is too close to."""

    rows: Int64
    neighbours: Int64
    similarities: Float32  # cosine


def drop_near(X: Matrix, parts: Split, threshold: float) -> tuple[Split, NearDuplicates]:
    """Remove validation rows near a training row, then test rows near a training or validation row.

    Parameters
    ----------
    X : csr_matrix or array, (n, d)
    parts : Split
    threshold : float
        Rows whose cosine with their nearest neighbour is at least this are removed; above 0, up to 1. Rows of zeros
        have no neighbours.

    Returns
    -------
    Split
        Without the dropped rows.
    NearDuplicates
        Sorted by row.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> parts, dropped = drop_near(X, Split(np.array([0, 1]), np.array([], int), np.array([2])), 0.99)
    >>> parts.test.tolist(), dropped.neighbours.tolist()
    ([], [0])
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold = {threshold} but a cosine similarity above 0 and up to 1 is needed, such as 0.95")
    points = _scale_rows_to_unit(X)
    valid, from_valid = _separate_near_rows(points, parts.valid, parts.train, threshold)
    test, from_test = _separate_near_rows(points, parts.test, np.concatenate([parts.train, valid]), threshold)
    order = np.argsort(np.concatenate([from_valid.rows, from_test.rows]))
    dropped = NearDuplicates(
        np.concatenate([from_valid.rows, from_test.rows])[order],
        np.concatenate([from_valid.neighbours, from_test.neighbours])[order],
        np.concatenate([from_valid.similarities, from_test.similarities])[order],
    )
    return Split(parts.train, valid, test), dropped


def find_nearest_known(X: Matrix, rows: Int64, known_rows: Int64) -> tuple[Int64, Float32]:
    """Find the known row nearest to each row by cosine, ties by position in `known_rows`, and the cosine.

    Memory is bounded: one block of rows meets one block of known rows at a time.

    Examples
    --------
    >>> find_nearest_known(np.array([[1.0, 1.0], [3.0, 0.0], [4.0, 4.0]]), np.array([0]), np.array([1, 2]))
    (array([2]), array([0.99999...], dtype=float32))
    """
    return _find_nearest(_scale_rows_to_unit(X), rows, known_rows)


def _separate_near_rows(points: Any, rows: Int64, known_rows: Int64, threshold: float) -> tuple[Int64, NearDuplicates]:
    neighbours, similarities = _find_nearest(points, rows, known_rows)
    near = similarities >= threshold - _ROUNDING
    return rows[~near], NearDuplicates(rows[near], neighbours[near], similarities[near])


def _find_nearest(points: Any, rows: Int64, known_rows: Int64) -> tuple[Int64, Float32]:
    best = np.full(len(rows), -np.inf, np.float32)
    neighbours = np.full(len(rows), -1, np.int64)
    for first in range(0, len(known_rows), _COLUMNS_PER_BLOCK):
        columns = known_rows[first : first + _COLUMNS_PER_BLOCK]
        known_points = points[columns].T
        step = max(1, _MAX_SIMILARITIES // len(columns))
        for lo in range(0, len(rows), step):
            product = points[rows[lo : lo + step]] @ known_points
            similarity = product.toarray() if hasattr(product, "toarray") else product
            top = similarity.argmax(axis=1)
            value = similarity[np.arange(len(top)), top]
            better = value > best[lo : lo + step]
            best[lo : lo + step][better] = value[better]
            neighbours[lo : lo + step][better] = columns[top[better]]
    return neighbours, best


def _scale_rows_to_unit(X: Matrix) -> Any:
    """Scale rows to length 1 in float32 (rows of zeros stay); sparse stays sparse."""
    if not hasattr(X, "tocsr"):
        X = np.asarray(X, np.float32)
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    X = convert_to_csr(X, "X").astype(np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(X.indptr)).astype(np.float32)
    return X
