"""Rows at unit length and inner products of sparse rows: manual values, NumPy, and the slow twin."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.count_scaling import normalise_log_counts as slow

from strategies import sparse_rows
from wsabie.core.arrays import Csr
from wsabie.kernels.features.sparse_rows import multiply_rows, normalise_log_counts

LOGS = np.log1p(np.arange(256, dtype=np.float64)).astype(np.float32)
seeds = st.integers(0, 2**32 - 1)


def csr(X):
    lengths, (_, columns) = (X > 0).sum(1), np.nonzero(X)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Csr(starts.astype(np.int64), columns.astype(np.int32), X[X > 0].astype(np.float32))


def kernel(rows, weight, logs=LOGS):
    out = np.full(len(rows.data), np.nan, np.float32)
    normalise_log_counts(rows, weight.astype(np.float32), logs, out)
    return out


def draw_counts(seed, n=9, d=12):
    """Rows with counts, fractions and large values, the first one empty; weights."""
    rng = np.random.default_rng(seed)
    large_values = rng.random((n, d)) * 10.0 ** rng.integers(-3, 7, (n, d))
    values = np.where(rng.random((n, d)) < 0.6, rng.integers(0, 300, (n, d)), large_values)
    X = np.where(rng.random((n, d)) < 0.4, values, 0).astype(np.float32)
    X[0] = 0
    return X, rng.random(d) + 0.1


def test_scaled_counts_by_hand():
    """log 4 and log 2, weighted 3 and 8 / 2: 6 and 4 times log 2."""
    X = np.array([[3, 0, 1], [0, 0, 0]])
    a, b = 6 / np.hypot(6, 4), 4 / np.hypot(6, 4)
    assert kernel(csr(X), np.array([3, 1, 4])) == pytest.approx([a, b])


@given(seeds)
def test_equals_its_slow_twin(seed):
    X, weight = draw_counts(seed)
    np.testing.assert_allclose(kernel(csr(X), weight), slow(X, weight)[X > 0], rtol=1e-6)


@pytest.mark.parametrize("x", [0.5, 1, 254, 255, 255.5, 256, 65_504, 3e38])
def test_values_that_no_table_holds(x):
    X = np.array([[x, 1.0]], np.float32)
    np.testing.assert_allclose(kernel(csr(X), np.ones(2)), slow(X, np.ones(2))[0], rtol=1e-6)
    np.testing.assert_allclose(kernel(csr(X), np.ones(2), LOGS[:1]), slow(X, np.ones(2))[0], rtol=1e-6)


@given(seeds)
def test_a_row_depends_on_no_other_row(seed):
    X, weight = draw_counts(seed)
    each = [kernel(csr(X[[i]]), weight) for i in range(len(X))]
    assert np.array_equal(kernel(csr(X), weight), np.concatenate(each))


def test_the_rows_own_values_may_be_overwritten():
    X, weight = draw_counts(1)
    rows = csr(X)
    scaled_copy = kernel(rows, weight)
    normalise_log_counts(rows, weight.astype(np.float32), LOGS, rows.data)
    assert np.array_equal(rows.data, scaled_copy)


def test_a_row_of_zeros_stays():
    rows = Csr(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([0, 0, 7], np.float32))
    assert kernel(rows, np.ones(2)).tolist() == [0, 0, 1]


def build_csr(matrix):
    return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32))


def products(X, Z):
    out = np.full((X.shape[0], Z.shape[0]), np.nan, np.float32)
    multiply_rows(build_csr(X), build_csr(Z.T.tocsr()), out)
    return out


def test_products_by_hand():
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
