"""Bisection beside NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wsabie.kernels.primitives.binary_search import find_first_at_least
from wsabie.kernels.training.warp import is_in_sorted

numbers = st.lists(st.integers(0, 20), max_size=12).map(sorted)


@given(numbers, st.integers(-1, 21), st.data())
def test_the_first_place_within_a_part(ascending, value, data):
    lo = data.draw(st.integers(0, len(ascending)))
    hi = data.draw(st.integers(lo, len(ascending)))
    values = np.array(ascending, np.int32)
    assert find_first_at_least(values, lo, hi, value) == lo + np.searchsorted(values[lo:hi], value)
    assert is_in_sorted(values, lo, hi, value) == (value in ascending[lo:hi])
