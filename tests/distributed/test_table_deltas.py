"""Joined steps: worked out by hand, and by properties that hold for any of them."""

import numpy as np
import pytest

from wsabie.distributed import table_deltas
from wsabie.distributed.table_deltas import DeltaSum, apply_deltas, compute_deltas, copy_tables, count_bytes


@pytest.fixture(autouse=True)
def whole_steps(monkeypatch):
    """Apply the whole sum of joined steps, without the outer rate."""
    monkeypatch.setattr(table_deltas, "OUTER_RATE", 1.0)


def test_of_the_steps_of_several_workers_a_share_is_made(monkeypatch):
    monkeypatch.setattr(table_deltas, "OUTER_RATE", 0.5)
    assert joined([3, 4], [0, 0]) == [1.5, 2]
    assert joined([3, 4]) == [3, 4]  # there is no other


def make_delta(moved):
    """A worker's steps in a table."""
    start = np.zeros(np.shape(moved), np.float32)
    return compute_deltas({"t": np.array(moved, np.float32)}, {"t": start}, subtract_deltas=True)


def joined(*moved, start=None):
    """The table of one row after these steps."""
    table = np.zeros((1, len(moved[0])), np.float32) if start is None else np.array([start], np.float32)
    delta_sum = DeltaSum({"t": table})
    for step in moved:
        delta_sum.add(make_delta([step]))
    delta_sum.join({"t": table})
    return table[0].tolist()


def test_steps_in_one_direction_are_averaged_by_the_updates_behind_them():
    """3 updates and 1 of the same u: (3 * 3u + 1 * 1u) / (3 + 1)."""
    assert joined([3, 0], [1, 0]) == [(3 * 3 + 1 * 1) / (3 + 1), 0]
    assert joined([2, 0], [2, 0], [2, 0]) == [2, 0]


def test_steps_of_one_worker_alone_are_whole():
    assert joined([3, 4], [0, 0]) == [3, 4]
    assert joined([3, 4], start=[1, 1]) == [4, 5]


def test_steps_that_have_nothing_to_do_with_each_other_are_all_kept():
    assert joined([1, 0, 0], [0, 2, 0], [0, 0, 3]) == [1, 2, 3]


def test_steps_against_each_other_cancel():
    assert joined([1, 0], [-1, 0]) == [0, 0]


def test_what_is_between_lies_between():
    """At 60 degrees: |S|^2 = 3, Q = 2, so that two thirds of the sum are left."""
    a, b = np.array([1, 0]), np.array([0.5, 3**0.5 / 2])
    assert joined(a, b) == pytest.approx((a + b) / 1.5, abs=1 / 64)


def test_a_table_of_numbers_is_rows_of_one():
    bias = np.zeros(3, np.float32)
    delta_sum = DeltaSum({"t": bias})
    delta_sum.add(make_delta([1, 0, 2]))
    delta_sum.add(make_delta([0, 0, 2]))
    delta_sum.join({"t": bias})
    assert bias.tolist() == [1, 0, 2]


def test_drift_is_the_distance_from_the_mean():
    """Two that went 2 and 0 along the first axis from (0, 3): each is 1 from the mean; the table was 3 long."""
    table = np.array([[0, 3]], np.float32)
    delta_sum = DeltaSum({"t": table})
    delta_sum.add(make_delta([[2, 0]]))
    delta_sum.add(make_delta([[0, 0]]))
    assert delta_sum.join({"t": table}) == pytest.approx(1 / 3)
    assert table.tolist() == [[2, 3]]
    assert delta_sum.n_workers == 0
    assert delta_sum.join({"t": table}) == 0  # started over


def test_only_rows_that_moved_travel():
    few = make_delta([[0, 0], [2, 3], [0, 0], [0, 0]])
    assert few["t"].rows.tolist() == [1]
    assert count_bytes(few) == 4 + 4 + 2
    assert count_bytes({"t": np.zeros((4, 2), np.float32)}) == 32


def test_what_is_rounded_off_goes_with_the_next_steps():
    """0.005 beside 1 is less than half of a 64th: it goes when it has come together."""
    local, base, shared, known_tables = ({"t": np.zeros((1, 2), np.float32)} for _ in range(4))
    delta_sum, values = DeltaSum(shared), set()
    for _ in range(100):
        local["t"] += np.array([[1, 0.005]], np.float32)
        delta_sum.add(compute_deltas(local, base, subtract_deltas=True))
        delta_sum.join(shared)
        apply_deltas(local, base, compute_deltas(shared, known_tables, subtract_deltas=False))
        values.add(float(base["t"][0, 1]))
    np.testing.assert_allclose(local["t"], [[100, 0.5]], atol=1e-3)
    np.testing.assert_allclose(shared["t"], [[100, 0.5]], atol=0.02)
    assert 1 < len(values) < 50


def test_all_have_the_same_tables_bit_for_bit_and_keep_what_they_have_not_given():
    rng = np.random.default_rng(0)
    shared = {"t": rng.standard_normal((20, 5)).astype(np.float32), "u": np.zeros(4, np.float32)}
    shared_base, workers = copy_tables(shared), [(copy_tables(shared), copy_tables(shared)) for _ in range(3)]
    delta_sum = DeltaSum(shared)
    for _ in range(10):
        for local, base in workers:
            for table in local.values():
                table += 0.1 * rng.standard_normal(table.shape).astype(np.float32)
            delta_sum.add(compute_deltas(local, base, subtract_deltas=True))
        delta_sum.join(shared)
        deltas = compute_deltas(shared, shared_base, subtract_deltas=False)
        for local, base in workers:
            apply_deltas(local, base, deltas)
            for name in shared:
                np.testing.assert_array_equal(base[name], shared_base[name])
                np.testing.assert_allclose(local[name], shared[name], atol=0.02)
    local, base = workers[0]
    remainder = local["t"] - base["t"]
    apply_deltas(local, base, copy_tables({"t": shared_base["t"] + 1}))
    np.testing.assert_allclose(local["t"] - base["t"], remainder, atol=1e-6)
