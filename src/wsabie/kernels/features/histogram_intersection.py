"""Histogram intersection kernel K(x, z) = sum_j min(x_j, z_j) between rows and landmarks.

The landmarks lie feature by feature: a row visits the landmarks that share a feature with it and no others, so that its
cost is the sum of the lengths of its features' lists and not (non-zeros) x (landmarks). A sum is always taken in the
order of the features, whatever stands beside the row.
"""

from wsabie.kernels.compiler import jit, jit_entry


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
