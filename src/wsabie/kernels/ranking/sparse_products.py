"""Inner products of sparse rows with many others that lie feature by feature.

A row visits the others that share a feature with it and no others, and adds into one line of scores. A sum is always
taken in the order of the row's features, whatever stands beside it.
"""

from wsabie.kernels.compiler import jit_entry


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
