"""The ladder of proof for the kernels of steps that travel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.delta_compression import join_row_deltas, round_row_delta

from wsabie.kernels.training.delta_compression import MIN_SQUARED_MOVE, add_deltas, join_deltas, move_rows, round_deltas

seeds = st.integers(0, 2**32 - 1)


def draw_tables(n, dim, seed, scale=0.1):
    """A table, and one from which some of its rows have moved."""
    rng = np.random.default_rng(seed)
    start_table = rng.standard_normal((n, dim)).astype(np.float32)
    moved = (scale * rng.standard_normal((n, dim)) * (rng.random((n, 1)) < 0.7)).astype(np.float32)
    return start_table, start_table + moved


def given_steps(now, start, back):
    rows, scales = np.empty(len(now), np.int32), np.empty(len(now), np.float32)
    values = np.empty(now.shape, np.int8)
    n = round_deltas(now, start, back, rows, scales, values)
    return rows[:n], scales[:n], values[:n]


def test_by_hand():
    start = np.array([[1, 1], [0, 0], [5, 5]], np.float32)
    now = np.array([[1, 1], [1, -0.5], [5, 5.001]], np.float32)  # the last one by less than a thousandth
    rows, scales, values = given_steps(now, start, back=True)
    assert rows.tolist() == [1]
    assert scales.tolist() == [1 / 64]
    assert values.tolist() == [[64, -32]]
    assert now[1].tolist() == [0, 0]
    total, squares = np.zeros((3, 2), np.float32), np.zeros(3, np.float32)
    add_deltas(total, squares, rows, scales, values)
    add_deltas(total, squares, rows, scales, values)
    assert total[1].tolist() == [2, -1]
    assert squares.tolist() == [0, 2 * 1.25, 0]
    sums = np.zeros(3)
    join_deltas(start, np.float32(1), total, squares, sums)
    assert start.tolist() == [[1, 1], [1, -0.5], [5, 5]]  # |S|^2 / Q = 5 / 2.5
    assert sums.tolist() == [2.5, 5, 2 + 50]
    assert not total.any()
    assert not squares.any()


@pytest.mark.parametrize("back", [False, True])
@settings(max_examples=60)
@given(n=st.integers(1, 9), dim=st.sampled_from([1, 3, 16, 37]), seed=seeds, power=st.integers(-8, 3))
def test_rounding_equals_its_slow_twin(back, n, dim, seed, power):
    base, now = draw_tables(n, dim, seed, 2.0**power)
    start, end = base.copy(), now.copy()
    rows, scales, values = given_steps(now, base, back)
    far = ((end - start) ** 2).sum(1) / (start**2).sum(1)
    assert (
        set(np.flatnonzero(far > 1.01 * MIN_SQUARED_MOVE))
        <= set(rows)
        <= set(np.flatnonzero(far > 0.99 * MIN_SQUARED_MOVE))
    )
    for row, scale, q in zip(rows, scales, values, strict=True):
        expected_scale, integers = round_row_delta(end[row] - start[row])
        assert scale == expected_scale
        np.testing.assert_allclose(q, integers, atol=1)  # a half may go either way
        off = np.abs((end[row] - start[row]) / scale - q)
        assert off[q < 127].max(initial=0) <= 0.501  # the largest may lie a step beyond what 8 bits hold
        assert off.max() <= 1.001
    given_back = np.zeros_like(start)
    given_back[rows] = scales[:, None] * values
    np.testing.assert_array_equal(base, start if back else start + given_back)
    np.testing.assert_array_equal(now, end - given_back if back else end)


@settings(max_examples=60)
@given(
    n=st.integers(1, 5),
    dim=st.sampled_from([1, 3, 16, 37]),
    workers=st.integers(1, 5),
    rate=st.sampled_from([0.5, 1]),
    seed=seeds,
)
def test_joining_equals_its_slow_twin(n, dim, workers, rate, seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n, dim)).astype(np.float32)
    common = rng.standard_normal((n, dim))
    start, all_steps, sums = table.copy(), np.zeros((workers, n, dim)), np.zeros(3)
    total, squares = np.zeros((n, dim), np.float32), np.zeros(n, np.float32)
    for w in range(workers):
        _, moved = draw_tables(n, dim, seed + w)
        rows, scales, values = given_steps((moved * 0.1 + common).astype(np.float32), np.zeros_like(table), back=False)
        add_deltas(total, squares, rows, scales, values)
        all_steps[w, rows] = scales[:, None] * values.astype(np.float64)
    join_deltas(table, np.float32(rate), total, squares, sums)
    for i in range(n):
        np.testing.assert_allclose(table[i], start[i] + rate * join_row_deltas(all_steps[:, i]), rtol=1e-4, atol=1e-5)
    expected_sums = [(all_steps**2).sum(), (all_steps.sum(0) ** 2).sum(), (start.astype(float) ** 2).sum()]
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-4)


def test_both_tables_take_the_same_steps():
    rng = np.random.default_rng(0)
    local, base = rng.standard_normal((2, 6, 5)).astype(np.float32)
    rows, scales = np.array([1, 4], np.int32), np.array([0.5, 2], np.float32)
    values = rng.integers(-128, 128, (2, 5)).astype(np.int8)
    expected = local.copy(), base.copy()
    for table in expected:
        table[rows] += scales[:, None] * values
    move_rows(local, base, rows, scales, values)
    np.testing.assert_array_equal((local, base), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_rows_are_reported(bad):
    now, base = np.ones((3, 2), np.float32), np.ones((3, 2), np.float32)
    now[1, 0] = bad
    rows, scales, _ = given_steps(now, base, back=False)
    assert rows.tolist() == [1]
    assert not np.isfinite(scales[0])
    assert not np.isfinite(base[1]).all()
