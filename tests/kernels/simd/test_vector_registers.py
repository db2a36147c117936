"""Points in registers: compiled, each function does what it does as NumPy, for any number of vectors."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import seeds
from wsabie.core.arrays import LANES
from wsabie.kernels.simd.vector_registers import (
    add_scaled,
    dot_points,
    find_max_magnitude,
    has_coordinate_beyond,
    load_bytes,
    load_point,
    make_zero,
    prefetch_bytes,
    scale_point,
    store_bytes,
    store_point,
)


def everything(a: Any, b: Any, scale: Any, out: Any, width: Any) -> Any:
    """Each function once: writes (a + scale * b) * scale, then the origin; returns a . b."""
    point = load_point(a, width)
    store_point(out[0], scale_point(add_scaled(point, scale, load_point(b, width)), scale))
    store_point(out[1], make_zero(width))
    return dot_points(point, load_point(b, width))


compiled = numba.njit(everything)


@given(seed=seeds, n=st.sampled_from([1, 2, 3, 4, 5, 7, 16, 40]), scale=st.floats(-3, 3, width=32))
def test_compiled_points_are_arrays(seed: int, n: int, scale: float) -> None:
    a, b = np.random.default_rng(seed).standard_normal((2, LANES * n)).astype(np.float32)
    (fast, slow), width = np.full((2, 2, LANES * n + 3), np.nan, np.float32), (None,) * n
    actual, expected = (f(a, b, np.float32(scale), out, width) for f, out in ((compiled, fast), (everything, slow)))
    assert actual == pytest.approx(float(expected), rel=1e-5, abs=1e-4)
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-5)
    assert np.isnan(fast[:, LANES * n :]).all(), "beyond the point"


def test_a_point_may_begin_anywhere_and_its_array_go_on() -> None:
    """Halves of a query are points of their own; nothing has to be aligned."""
    numbers, out = np.arange(40, dtype=np.float32), np.zeros((2, 17), np.float32)
    product = compiled(numbers[3:], numbers[5:21], np.float32(1), out, (None,))
    assert product == sum((3 + k) * (5 + k) for k in range(16))
    assert out[0].tolist() == [*(8 + 2 * k for k in range(16)), 0]


@numba.njit
def found_beyond(a: Any, number: Any, width: Any) -> Any:
    return has_coordinate_beyond(load_point(a, width), number)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_one_coordinate_beyond_is_seen_wherever_it_stands(n: int) -> None:
    """A value equal to the limit is not beyond it; NaN is reported on either side."""
    width, limit = (None,) * n, np.float32(2)
    a = np.full(LANES * n, 2, np.float32)
    assert not found_beyond(a, limit, width)
    for k in range(len(a)):
        for value in (np.nextafter(limit, np.float32(3)), np.inf, np.nan):
            a[k] = value
            assert found_beyond(a, limit, width), (k, value)
            assert has_coordinate_beyond(a, limit)
        a[k] = 2
    a[:] = -np.inf
    assert not found_beyond(a, np.float32(-np.inf), width)
    assert found_beyond(a, np.float32(np.nan), width) == has_coordinate_beyond(a, np.float32(np.nan)) == True  # noqa: E712


@numba.njit
def summed(rows: Any, out: Any, width: Any) -> None:
    point = make_zero(width)
    for i in range(len(rows)):
        point = add_scaled(point, np.float32(1), load_point(rows[i], width))
    store_point(out, point)


def test_a_sum_over_rows_never_leaves_the_registers() -> None:
    """One store a vector, after the loop; of vectors, so that nothing is left to what the compiler finds out."""
    summed(np.ones((3, 64), np.float32), np.zeros(64, np.float32), (None,) * 4)
    (code,) = summed.inspect_llvm().values()
    assert sum("store <16 x float>" in line for line in code.splitlines()) == 4


@pytest.mark.parametrize(
    "rows", [np.ones((3, 64)), np.ones((3, 128), np.float32)[:, ::2], np.asfortranarray(np.ones((3, 64), np.float32))]
)
def test_other_numbers_are_refused_and_not_read_as_vectors(rows: np.ndarray) -> None:
    with pytest.raises(numba.TypingError, match="a point lies in a row of float32"):
        summed(rows, np.zeros(64, np.float32), (None,) * 4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_values_stay_nonfinite(bad: float) -> None:
    a, b = np.ones((2, LANES), np.float32)
    a[5] = bad
    out = np.zeros((2, LANES), np.float32)
    assert not np.isfinite(compiled(a, b, np.float32(1), out, (None,)))
    assert not np.isfinite(out[0, 5])
    assert np.isfinite(np.delete(out[0], 5)).all()


def written(a: Any, point: Any, width: Any) -> Any:
    """Writes a point as bytes; returns its largest coordinate, and its product with what was written."""
    prefetch_bytes(a, width)
    store_bytes(a, load_point(point, width))
    return find_max_magnitude(load_point(point, width)), dot_points(load_point(point, width), load_bytes(a, width))


fast_written = numba.njit(written)


@given(seed=seeds, n=st.sampled_from([1, 2, 3, 7, 16]), halves=st.booleans(), ends=st.booleans())
def test_bytes_are_the_nearest_integers(seed: int, n: int, halves: bool, ends: bool) -> None:
    """Halves go to the even one, as NumPy's do; the ends -127 and 127 are whole, and nothing behind is written."""
    numbers = np.random.default_rng(seed).uniform(-127, 127, LANES * n).astype(np.float32)
    numbers = np.floor(numbers) + np.float32(0.5) if halves else numbers
    if ends:
        numbers[:2] = -127, 127
    (fast, slow), width = np.full((2, LANES * n + 3), 99, np.int8), (None,) * n
    actual, expected = (f(a, numbers, width) for f, a in ((fast_written, fast), (written, slow)))
    assert actual == pytest.approx(expected, rel=1e-5, abs=1e-2)
    assert fast.tolist() == slow.tolist() == [*map(round, numbers.tolist()), 99, 99, 99]
