"""Scaling of rows of counts for models: log(1 + count), weighted, at unit length."""

from math import log1p

import numpy as np

from wsabie.kernels.compiler import jit_entry

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
