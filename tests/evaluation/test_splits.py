"""Splits: disjoint and complete, groups whole, every label trained, time in order, near rows dropped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from wsabie.core.errors import InputError
from wsabie.evaluation import splits
from wsabie.evaluation.splits import Split, check_overlap, drop_near, split


def assert_partition(parts, n):
    joined = np.concatenate([parts.train, parts.valid, parts.test])
    np.testing.assert_array_equal(np.sort(joined), np.arange(n))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(20, 200), valid=st.floats(0.05, 0.4), test=st.floats(0.05, 0.4), seed=st.integers(0, 9))
def test_by_row_meets_the_fractions_to_one_row(n, valid, test, seed):
    parts = split(n, valid=valid, test=test, seed=seed)
    assert_partition(parts, n)
    assert abs(len(parts.test) - test * n) <= 1
    assert abs(len(parts.valid) - valid * n) <= 1


def test_the_fate_of_a_row_depends_on_its_id_not_on_its_place():
    ids = [f"picture {i}" for i in range(100)]
    order = np.random.default_rng(0).permutation(100)
    parts, moved = split(100, ids=ids), split(100, ids=[ids[i] for i in order])
    for side, moved_side in zip(
        (parts.train, parts.valid, parts.test), (moved.train, moved.valid, moved.test), strict=True
    ):
        assert {ids[i] for i in side} == {ids[order[i]] for i in moved_side}


def test_seeds_decide():
    assert split(100, seed=1).test.tolist() == split(100, seed=1).test.tolist()
    assert split(100, seed=1).test.tolist() != split(100, seed=2).test.tolist()


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 6), min_size=20, max_size=60), seed=st.integers(0, 9))
def test_by_group_keeps_groups_whole_and_meets_the_fractions_to_half_a_group(sizes, seed):
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    parts = split(len(groups), by="group", groups=groups, valid=0.2, test=0.2, seed=seed)
    assert_partition(parts, len(groups))
    names = [{groups[i] for i in side} for side in (parts.train, parts.valid, parts.test)]
    assert not (names[0] & names[1] | names[0] & names[2] | names[1] & names[2])
    assert abs(len(parts.test) - 0.2 * len(groups)) <= max(sizes) / 2
    assert abs(len(parts.valid) - 0.2 * len(groups)) <= max(sizes) / 2


def test_rows_without_a_group_are_their_own():
    groups = ["a"] * 10 + [None, ""] * 20
    parts = split(50, by="group", groups=groups, test=0.2, valid=0.2)
    assert_partition(parts, 50)
    assert len(set(parts.sides(50)[:10])) == 1
    assert len(parts.test) == len(parts.valid) == 10


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000))
def test_by_label_every_label_keeps_a_training_row(seed):
    rng = np.random.default_rng(seed)
    carried = rng.random((120, 30)) < rng.random(30) * 0.1
    carried[:, 0] = True
    Y = csr_matrix(carried.astype(np.int8))
    parts = split(120, by="label", Y=Y, valid=0.25, test=0.25, seed=seed)
    assert_partition(parts, 120)
    used = np.asarray(Y.sum(axis=0)).ravel() > 0
    assert (np.asarray(Y[parts.train].sum(axis=0)).ravel()[used] > 0).all()


def test_by_label_is_stratified():
    labels = np.repeat(np.arange(20), 50)
    parts = split(1000, by="label", Y=labels, valid=0.1, test=0.1)
    for side in (parts.valid, parts.test):
        assert len(side) == 100
        assert set(np.bincount(labels[side], minlength=20)) <= {4, 5, 6}


def test_by_label_keeps_only_rows_in_training_and_still_meets_the_fractions():
    labels = np.concatenate([np.arange(50), np.repeat(np.arange(50, 55), 10)])
    parts = split(100, by="label", Y=labels, valid=0.1, test=0.1)
    assert set(range(50)) <= set(parts.train)
    assert (len(parts.valid), len(parts.test)) == (10, 10)


def test_by_label_keeps_groups_whole():
    labels, groups = np.tile([0, 1, 2, 3], 50), np.repeat([f"g{i}" for i in range(50)], 4)
    parts = split(200, by="label", Y=labels, groups=list(groups), valid=0.2, test=0.2)
    assert all(len(set(parts.sides(200)[groups == g])) == 1 for g in set(groups))


def test_by_time_the_latest_rows_are_the_test():
    times = [f"2020-01-{1 + i % 28:02d}T{i % 24:02d}:00:00" for i in range(200)]
    parts = split(200, by="time", times=times, valid=0.1, test=0.1)
    assert_partition(parts, 200)
    side = [[times[i] for i in rows] for rows in (parts.train, parts.valid, parts.test)]
    assert max(side[0]) < min(side[1])
    assert max(side[1]) < min(side[2])


moments = st.one_of(
    st.datetimes().map(str),
    st.text("0123456789-:T+Z. W", max_size=30),
    st.text(max_size=10),
    st.sampled_from(["0001-01-01T00:00+23:59", "9999-12-31T23:59:59-23:59", "2020-W01", "NaT", "", "\ud800"]),
)


@settings(deadline=None)
@given(times=st.lists(moments, min_size=1, max_size=5), share=st.floats(0, 1))
def test_any_texts_are_times_or_one_sentence(times, share):
    try:
        parts = split(len(times), by="time", times=times, valid=0, test=share)
    except InputError as error:
        message = str(error)
    else:
        assert_partition(parts, len(times))
        return
    assert "\n" not in message


def test_times_with_zones_and_of_one_moment_are_understood():
    times = ["2024-01-01T00:00:00+02:00", "2023-12-31T23:00:00", "2024-01-01", "2024-01-01T00:00:00Z"]
    parts = split(4, by="time", times=times, valid=0.25, test=0.5)
    assert parts.train.tolist() == [0]
    assert parts.valid.tolist() == [1]
    assert parts.test.tolist() == [2, 3]
    numbers = split(4, by="time", times=np.array([1, 2, 3, 3]), valid=0.25, test=0.5)
    assert numbers.test.tolist() == [2, 3]


def test_a_group_is_as_late_as_its_latest_row():
    parts = split(4, by="time", times=np.array([1, 9, 5, 6]), groups=["a", "a", "b", "c"], valid=0.25, test=0.5)
    assert parts.test.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"valid": 0.5, "test": 0.5}, "their sum is below 1"),
        ({"valid": -0.1}, "both are 0 or more"),
        ({"seed": -1}, "seed is -1; choose a whole number from 0 to"),
        ({"seed": 2**63}, "choose a whole number from 0 to 9223372036854775807"),
        ({"by": "group"}, "a split by group needs groups"),
        ({"by": "time"}, "a split by time needs times"),
        ({"by": "label"}, "a split by label needs Y"),
        ({"by": "size"}, "a split by 'size' is unknown"),
        ({"by": "group", "groups": ["a"] * 9}, "groups has 9 entries for 10 rows"),
        ({"by": "group", "groups": ["a"] * 10}, "side of the split would be empty"),
        ({"by": "time", "times": ["soon"] * 10}, "time 'soon' of row 0 is not an ISO 8601 date"),
        ({"by": "time", "times": np.full(10, np.nan)}, "the time of row 0 is missing"),
        (
            {"by": "time", "times": ["2024-05-31"] * 9 + ["soon"], "ids": [f"{i}.png" for i in range(10)]},
            r"time 'soon' of row '9\.png' is not an ISO 8601 date; write it like 2024-05-31",
        ),
        (
            {"by": "time", "times": ["2024-05-31"] * 9 + [""], "ids": [f"{i}.png" for i in range(10)]},
            r"the time of row '9\.png' is missing",
        ),
    ],
)
def test_a_split_that_cannot_be_made_is_named(options, message):
    with pytest.raises(InputError, match=message):
        split(10, **options)


def test_overlap_is_refused():
    X = np.eye(5)
    check_overlap(["a"], X[:1], ["b"], X[:1])
    with pytest.raises(InputError, match=r"4 test rows are training rows too \('a', 'b', 'c' \.\.\.\)"):
        check_overlap(list("abcd"), X[:4], list("dcbax"), X[[3, 2, 1, 0, 4]])


@pytest.mark.parametrize("sparse", [True, False])
def test_the_same_number_of_a_line_is_no_overlap(sparse):
    X = csr_matrix(np.eye(3)) if sparse else np.eye(3)
    check_overlap(["1", "2"], X[:2], ["1", "2"], X[1:])
    with pytest.raises(InputError, match=r"1 test rows are training rows too \('2'\)"):
        check_overlap(["1", "2"], X[:2], ["1", "2"], X[[2, 1]])


@pytest.mark.parametrize("sparse", [True, False])
def test_nearest_equals_the_whole_matrix_for_any_block(monkeypatch, sparse):
    rng = np.random.default_rng(0)
    X = random_array((60, 40), density=0.2, rng=rng, format="csr")
    X = X if sparse else X.toarray()
    dense = X.toarray() if sparse else X
    unit = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    cosine = unit[40:] @ unit[:40].T
    monkeypatch.setattr(splits, "_MEBIBYTES", 1 / 2**10)
    _, dropped = drop_near(X, Split(np.arange(40), np.array([], int), np.arange(40, 60)), 1e-9)
    assert dropped.rows.tolist() == list(range(40, 60))
    neighbours, similarities = dropped.neighbours, dropped.similarities
    np.testing.assert_allclose(similarities, cosine.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(cosine[np.arange(20), neighbours], cosine.max(axis=1), atol=1e-6)


def test_near_rows_leave_and_the_test_is_compared_with_kept_validation_rows():
    X = csr_matrix([[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 3, 0.01], [0, 0, 1], [0, 0, 0]], dtype=float)
    parts = Split(np.array([0]), np.array([1, 2]), np.array([3, 4, 5]))
    split, dropped = drop_near(X, parts, 0.99)
    assert split.train.tolist() == [0]
    assert split.valid.tolist() == [2]
    assert split.test.tolist() == [4, 5]
    assert dropped.rows.tolist() == [1, 3]
    assert dropped.neighbours.tolist() == [0, 2]
    assert dropped.similarities[0] == pytest.approx(1)


def test_a_threshold_of_1_drops_exact_duplicates_only():
    X = np.random.default_rng(0).random((30, 9))
    X[20:] = X[:10] * np.arange(1, 11)[:, None]
    split, dropped = drop_near(X, Split(np.arange(10), np.arange(10, 20), np.arange(20, 30)), 1.0)
    assert dropped.rows.tolist() == list(range(20, 30))
    assert dropped.neighbours.tolist() == list(range(10))
    assert len(split.valid) == 10


@pytest.mark.parametrize("threshold", [0, 1.5, float("nan")])
def test_a_threshold_that_is_no_cosine_is_refused(threshold):
    with pytest.raises(InputError, match="a cosine similarity above 0"):
        drop_near(np.eye(3), Split(np.array([0]), np.array([1]), np.array([2])), threshold)
