"""Inner products by lists of features: hand-worked, against NumPy, and the same bits whatever stands beside."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from strategies import sparse_rows
from wsabie.core.arrays import Csr
from wsabie.kernels.features.sparse_rows import multiply_rows


def csr(matrix):
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32))


def products(X, Z):
    out = np.full((X.shape[0], Z.shape[0]), np.nan, np.float32)
    multiply_rows(csr(X), csr(Z.T.tocsr()), out)
    return out


def test_by_hand():
    X, Z = sp.csr_matrix([[2.0, 0, 5], [0, 0, 0]]), sp.csr_matrix([[1.0, 4, 9], [3, 0, 0], [0, 7, 0]])
    assert products(X, Z).tolist() == [[47, 6, 0], [0, 0, 0]]


@given(st.integers(1, 9), st.integers(1, 30), st.sampled_from([0.0, 0.2, 1.0]), st.integers(0, 2**32 - 1))
def test_are_those_of_numpy_and_depend_on_no_other_row(n, m, density, seed):
    rng = np.random.default_rng(seed)
    X, Z = sparse_rows(n, 12, density, rng), sparse_rows(m, 12, 0.5, rng)
    scores = products(X, Z)
    np.testing.assert_allclose(scores, X.toarray() @ Z.toarray().T, rtol=1e-5, atol=1e-5)
    assert scores[-1:].tobytes() == products(X[-1:], Z).tobytes()
    assert scores[:, :1].tobytes() == np.ascontiguousarray(products(X, Z[:1])).tobytes()
