"""Leaf functions on short vectors, against formulas; the width is a type, so one width stands for all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import seeds
from wsabie.kernels.primitives import vectors as vector

WIDTH = (None, None)
N = 32


def vectors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, N)).astype(np.float32)


def test_dot_is_the_sum_of_products() -> None:
    a, b = np.arange(N, dtype=np.float32), np.full(N, 2, np.float32)
    assert vector.dot(a, b, WIDTH) == 2 * sum(range(N))


def test_add_and_zero() -> None:
    a, b = vectors(2)
    original = a.copy()
    vector.add(a, np.float32(0.5), b, WIDTH)
    np.testing.assert_allclose(a, original + 0.5 * b, rtol=1e-6)
    vector.set_to_zero(a, WIDTH)
    assert not a.any()


@given(seeds, st.floats(0.1, 20))
def test_project_cuts_long_rows_and_leaves_short_ones(seed: int, max_norm: float) -> None:
    (a,) = vectors(1, seed)
    original, limit = a.copy(), np.float32(max_norm)
    length = math.sqrt((original.astype(float) ** 2).sum())
    vector.clip_vector_norm(a, limit, WIDTH)
    assert np.linalg.norm(a) <= limit * (1 + 1e-6)
    np.testing.assert_allclose(a, original * min(1, max_norm / length), rtol=1e-5)
    if length < max_norm * 0.999:
        assert np.array_equal(a, original)


def test_project_without_a_limit_changes_nothing() -> None:
    (a,) = vectors(1) * np.float32(1e6)
    original = a.copy()
    vector.clip_vector_norm(a, np.float32(np.inf), WIDTH)
    assert np.array_equal(a, original)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_project_does_not_hide_what_is_not_finite(bad: float) -> None:
    (a,) = vectors(1)
    a[5] = bad
    vector.clip_vector_norm(a, np.float32(1), WIDTH)
    assert not np.isfinite(a).all()
