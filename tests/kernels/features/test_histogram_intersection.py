"""The ladder of proof for the intersection kernel."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.histogram_intersection import intersect_rows as slow

from uncompiled_runs import run_with_and_without_compiler
from wsabie.features.nystroem import compute_intersection_kernel, prepare_csr

seeds = st.integers(0, 2**32 - 1)


def draw_rows(n, d, density, seed, counts=False):
    """Non-negative rows, the first one empty."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.integers(1, 9, (n, d)) if counts else rng.random((n, d)), 0)
    X[0] = 0
    return sp.csr_matrix(X.astype(np.float32))


def kernel(X, Z, dtype=np.float32, threads=1):
    return compute_intersection_kernel(prepare_csr(X), prepare_csr(Z.T), Z.shape[0], dtype=dtype, threads=threads)


def test_by_hand():
    X, Z = sp.csr_matrix([[2, 0, 5], [0, 0, 0]]), sp.csr_matrix([[1, 4, 9], [3, 0, 0], [0, 7, 0]])
    assert kernel(X, Z).tolist() == [[min(2, 1) + min(5, 9), min(2, 3), 0], [0, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60)
@given(
    n=st.integers(1, 8), m=st.integers(1, 8), d=st.integers(1, 12), density=st.sampled_from([0, 0.3, 1.0]), seed=seeds
)
def test_equals_its_slow_twin(dtype, n, m, d, density, seed):
    X, Z = draw_rows(n, d, density, seed), draw_rows(m, d, density, seed + 1)
    products = kernel(X, Z, dtype)
    assert products.dtype == dtype
    np.testing.assert_allclose(products, slow(X.toarray(), Z.toarray()), rtol=1e-6 if dtype == np.float32 else 1e-12)


@given(n=st.integers(1, 8), d=st.integers(1, 12), density=st.sampled_from([0.2, 1.0]), seed=seeds)
def test_symmetric_with_the_length_of_a_row_on_the_diagonal(n, d, density, seed):
    X = draw_rows(n, d, density, seed, counts=True)
    K = kernel(X, X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), np.asarray(X.sum(axis=1)).ravel())
    assert np.linalg.eigvalsh(K.astype(float)).min() > -1e-6 * max(1, K.max())


def test_renumbered_features_and_landmarks_change_nothing():
    X, Z = draw_rows(20, 30, 0.3, 1, counts=True), draw_rows(9, 30, 0.3, 2, counts=True)
    features, landmarks = np.random.default_rng(0).permutation(30), np.random.default_rng(1).permutation(9)
    np.testing.assert_array_equal(kernel(X[:, features], Z[landmarks][:, features]), kernel(X, Z)[:, landmarks])


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_and_neighbours_change_no_bit(threads):
    X, Z = draw_rows(700, 40, 0.3, 3), draw_rows(50, 40, 0.3, 4)
    all_products = kernel(X, Z, threads=threads)
    np.testing.assert_array_equal(all_products, kernel(X, Z))
    np.testing.assert_array_equal(all_products[300:310], kernel(X[300:310], Z))


def test_without_the_compiler_the_results_are_the_same():
    script = """
import json
import numpy as np
import scipy.sparse as sp
from wsabie.features.nystroem import prepare_csr, compute_intersection_kernel
rng = np.random.default_rng(3)
X, Z = (np.maximum(rng.standard_normal((n, 6)), 0) for n in (5, 4))
Z[:, 0] = 1  # a feature that all landmarks have
K = compute_intersection_kernel(prepare_csr(sp.csr_matrix(X)), prepare_csr(sp.csr_matrix(Z).T), 4, dtype=np.float64)
print(json.dumps(K.tolist()))
"""
    compiled, interpreted = (np.array(json.loads(text)) for text in run_with_and_without_compiler(script))
    np.testing.assert_allclose(compiled, interpreted, rtol=1e-12)
    assert (compiled > 0).all()
