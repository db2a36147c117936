"""Bisection beside NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wsabie.kernels.bisection import first_at_least
from wsabie.kernels.warp import contains

numbers = st.lists(st.integers(0, 20), max_size=12).map(sorted)


@given(numbers, st.integers(-1, 21), st.data())
def test_the_first_place_within_a_part(ascending, value, data):
    lo = data.draw(st.integers(0, len(ascending)))
    hi = data.draw(st.integers(lo, len(ascending)))
    own = np.array(ascending, np.int32)
    assert first_at_least(own, lo, hi, value) == lo + np.searchsorted(own[lo:hi], value)
    assert contains(own, lo, hi, value) == (value in ascending[lo:hi])
