"""Weighting of counts by inverse document frequency."""

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Float32, Int32


def compute_idf(document_frequencies: ArrayLike, n: int) -> Float32:
    """Return the inverse document frequency log((1 + n) / (1 + document frequency)) + 1, never zero.

    Parameters
    ----------
    document_frequencies : (n_features,) integers
        Rows (or pictures) that hold the feature.
    n : int
        All rows.

    Examples
    --------
    >>> compute_idf(np.array([0, 9]), 9)
    array([3.3025851, 1.       ], dtype=float32)
    """
    return (np.log((1 + n) / (1 + np.asarray(document_frequencies))) + 1).astype(np.float32)


def weight_counts(words: Int32, counts: Float32, idf: Float32 | None) -> Float32:
    """Return the counts, or log(1 + count) * idf at unit length.

    Parameters
    ----------
    words : (nnz,) int32
    counts : (nnz,) float32
    idf : (n_words,) float32 or None
        None: counts.

    Examples
    --------
    >>> weight_counts(np.array([0, 2], np.int32), np.array([1, 1], np.float32), np.array([3, 9, 4], np.float32))
    array([0.6, 0.8], dtype=float32)
    """
    if idf is None:
        return counts
    values = np.log1p(counts) * idf[words]
    return np.asarray(values / np.sqrt(values @ values), np.float32)
