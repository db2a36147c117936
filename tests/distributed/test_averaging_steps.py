"""How steps are joined: by hand, and what holds for any of them."""

import numpy as np
import pytest

from wsabie.distributed.averaging_steps import Some, Together, n_bytes, some_of, steps, take, whole


def joined(*moved, start=None):
    """The table of one row after these steps."""
    table = np.zeros((1, len(moved[0])), np.float32) if start is None else np.array([start], np.float32)
    together = Together({"t": table})
    for step in moved:
        together.add({"t": Some(None, np.array([step], np.float32))})
    together.join({"t": table})
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
    assert joined(a, b) == pytest.approx((a + b) / 1.5)


def test_a_table_of_numbers_is_rows_of_one():
    bias = np.zeros(3, np.float32)
    together = Together({"bias": bias})
    together.add({"bias": Some(None, np.array([1, 0, 2], np.float32))})
    together.add({"bias": Some(np.array([2], np.int32), np.array([2], np.float32))})
    assert together.join({"bias": bias})["bias"].tolist() == [True, False, True]
    assert bias.tolist() == [1, 0, 2]


def test_drift_is_the_distance_from_the_mean():
    """Two that went 2 and 0 along the first axis from (0, 3): each is 1 from the mean, which is as long as sqrt(10)."""
    table = np.array([[0, 3]], np.float32)
    together = Together({"t": table})
    together.add({"t": Some(None, np.array([[2, 0]], np.float32))})
    together.add({"t": Some(None, np.array([[0, 0]], np.float32))})
    together.join({"t": table})
    assert table.tolist() == [[2, 3]]
    assert together.drift({"t": np.array([[1, 3]], np.float32)}) == pytest.approx((1 / 10) ** 0.5)


def test_few_rows_travel_with_their_numbers_and_many_without():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    few, many = some_of(table, np.array([0, 1, 0, 0], bool)), some_of(table, np.array([1, 1, 0, 1], bool))
    assert few.rows is not None
    assert few.rows.tolist() == [1]
    assert few.values.tolist() == [[2, 3]]
    assert many.rows is None
    assert n_bytes({"a": few, "b": many}) == 2 * 4 + 4 + 8 * 4


def test_a_worker_that_trained_on_keeps_what_it_did_since_it_gave():
    own, before = {"t": np.zeros((4, 2), np.float32)}, {"t": np.zeros((4, 2), np.float32)}
    own["t"][1] += 1
    given = steps(own, before)
    before["t"][:] = own["t"]
    own["t"][1] += 10  # since
    shared = {"t": np.zeros((4, 2), np.float32)}
    together = Together(shared)
    together.add(given)
    together.add({"t": Some(np.array([1], np.int32), np.array([[1, 1]], np.float32))})
    together.join(shared)
    take(own, before, whole(shared))
    assert shared["t"][1].tolist() == [1, 1]
    assert own["t"][1].tolist() == [11, 11]
    assert steps(own, before)["t"].values.tolist() == [[10, 10]]
