"""Kernels of sparse rows: scaling of counts, histogram intersection, inner products.

The intersection of two rows is K(x, z) = sum_j min(x_j, z_j). Landmarks, and the other rows of products, lie feature
by feature: a row visits those that share a feature with it and no others, so that its cost is the sum of the lengths of
its features' lists and not (non-zeros) x (landmarks). A sum is always taken in the order of the row's features,
whatever stands beside the row.
"""

from math import log1p

import numpy as np

from wsabie.kernels.compiler import jit, jit_entry

_SHORTEST = np.float32(1e-12)


@jit_entry
def normalise_log_counts(rows, weight, logs, out):
    """Fill `out` with log(1 + x) * weight of the rows' values, every row divided by its length.

    Parameters
    ----------
    rows : Csr, values of 0 or more
    weight : (n_features,) float32
    logs : (n,) float32
        log(1 + x) of x = 0, 1 ... n - 1: nearly all values are small counts, and a logarithm costs several looks.
    out : (nnz,) float32
        May be the rows' own values.
    """
    last = np.float32(len(logs) - 1)
    for i in range(len(rows.indptr) - 1):
        lo, hi = rows.indptr[i], rows.indptr[i + 1]
        squares = np.float32(0)
        for p in range(lo, hi):
            x = rows.data[p]
            count = np.int32(min(x, last))
            value = weight[rows.indices[p]] * (logs[count] if count == x else np.float32(log1p(x)))
            squares += value * value
            out[p] = value
        length = max(np.float32(np.sqrt(squares)), _SHORTEST)
        for p in range(lo, hi):
            out[p] /= length


@jit
def _add_least(out, value, landmarks, values):
    """Add min(value, z) to each landmark of one feature's list."""
    if len(landmarks) == len(out):  # a list of all landmarks is in their order: nothing to look up, vector instructions
        for j in range(len(out)):
            out[j] += min(value, values[j])
    else:
        for p in range(len(landmarks)):
            out[landmarks[p]] += min(value, values[p])


@jit_entry
def intersect_rows(rows, features, out, lo, hi):
    """Fill out[lo:hi] with the kernel between the rows lo..hi-1 and all landmarks.

    Parameters
    ----------
    rows : Csr, values of 0 or more
    features : Csr
        Row j holds the landmarks that have feature j, ascending, and its values: the landmarks transposed.
    out : (n_rows, n_landmarks) float32 or float64
        Sums are taken in its precision.
    lo, hi : int
    """
    for i in range(lo, hi):
        out_row = out[i]
        out_row[:] = 0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[p]
            start, stop = features.indptr[j], features.indptr[j + 1]
            _add_least(out_row, rows.data[p], features.indices[start:stop], features.data[start:stop])


@jit_entry
def multiply_rows(rows, features, out):
    """Fill `out` with the inner products of rows and others.

    Parameters
    ----------
    rows : Csr
    features : Csr
        Row j holds the others that have feature j, and its values: the others transposed.
    out : (n_rows, n_others) float32
    """
    for i in range(len(out)):
        scores = out[i]
        scores[:] = 0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            j, value = rows.indices[p], rows.data[p]
            for q in range(features.indptr[j], features.indptr[j + 1]):
                scores[features.indices[q]] += value * features.data[q]
