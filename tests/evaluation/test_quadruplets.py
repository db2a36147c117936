"""Splits for quadruplets: each relation on each side, groups whole, and what is dropped says why."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.evaluation.quadruplets import split_quadruplets
from wsabie.vocabulary.label_quadruplets import count_quadruplets


def one_label_each(*counts):
    return np.eye(len(counts), dtype=int)[np.repeat(np.arange(len(counts)), counts)]


def sides_of(quadruplet_split):
    return quadruplet_split.split.train, quadruplet_split.split.valid, quadruplet_split.split.test


def assert_sound(Y, relations, quadruplet_split):
    """A partition; kept relations are on every side, the others are not, and each is in one of the two lists."""
    np.testing.assert_array_equal(np.sort(np.concatenate(sides_of(quadruplet_split))), np.arange(Y.shape[0]))
    on_each = np.all([count_quadruplets(Y, relations, rows=rows) > 0 for rows in sides_of(quadruplet_split)], axis=0)
    pairs = [tuple(pair) for pair in relations]
    assert [tuple(pair) for pair in quadruplet_split.relations.tolist()] == [
        p for p, on in zip(pairs, on_each, strict=True) if on
    ]
    assert [dropped[:2] for dropped in quadruplet_split.dropped] == [
        p for p, on in zip(pairs, on_each, strict=True) if not on
    ]
    assert all(dropped.reason for dropped in quadruplet_split.dropped)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=4, max_size=8), st.integers(0, 2**32 - 1))
def test_pictures_of_one_label_lose_no_relation_that_has_three_of_each(counts, seed):
    counts = [*counts, 3, 9, 9]
    Y, rng = one_label_each(*counts)[np.random.default_rng(seed).permutation(sum(counts))], np.random.default_rng(seed)
    pairs = [(a, b) for a in range(len(counts)) for b in range(len(counts)) if a < b]
    relations = [pairs[i] for i in rng.choice(len(pairs), 6, replace=False)] + [(len(counts) - 1, len(counts) - 3)]
    relations = list(dict.fromkeys(relations))
    quadruplet_split = split_quadruplets(csr_matrix(Y), relations, seed=seed)
    assert_sound(Y, relations, quadruplet_split)
    enough = [pair for pair in relations if min(counts[label] for label in pair) >= 3]
    assert [tuple(pair) for pair in quadruplet_split.relations.tolist()] == enough


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.6), st.booleans())
def test_several_labels_and_groups(seed, rate, grouped):
    rng = np.random.default_rng(seed)
    Y = (rng.random((40, 6)) < rate).astype(int)
    Y[:30, :2] = one_label_each(15, 15)
    groups = [f"g{i}" for i in rng.integers(0, 15, 40)] if grouped else None
    relations = [(0, 1), (1, 2), (3, 2), (4, 5), (5, 0)]
    quadruplet_split = split_quadruplets(csr_matrix(Y), relations, valid=0.2, test=0.2, groups=groups, seed=seed)
    assert_sound(Y, relations, quadruplet_split)
    if grouped:
        side = quadruplet_split.split.sides(40)
        assert all(len({side[i] for i in range(40) if groups[i] == group}) == 1 for group in set(groups))


def test_the_smallest_case_that_can_be():
    """Parts that are on pictures of the object too: two different pictures are left for each of three sides."""
    Y = np.array([[1, 1]] * 3 + [[1, 0]] * 3 + [[0, 0]] * 14)
    for seed in range(20):
        quadruplet_split = split_quadruplets(Y, [(0, 1)], seed=seed)
        assert_sound(Y, [(0, 1)], quadruplet_split)
        assert not quadruplet_split.dropped


def test_fractions_are_met_to_one_picture():
    Y = one_label_each(*[400] * 10)
    quadruplet_split = split_quadruplets(Y, [(i, i + 1) for i in range(9)], valid=379 / 4000, test=384 / 4000)
    assert [len(rows) for rows in sides_of(quadruplet_split)] == [4000 - 379 - 384, 379, 384]


def test_the_order_of_the_pictures_does_not_matter():
    Y, ids = one_label_each(4, 5, 6), [f"picture {i}" for i in range(15)]
    order = np.random.default_rng(0).permutation(15)
    quadruplet_split = split_quadruplets(Y, [(0, 1), (1, 2)], ids=ids)
    moved = split_quadruplets(Y[order], [(0, 1), (1, 2)], ids=[ids[i] for i in order])
    for rows, moved_rows in zip(sides_of(quadruplet_split), sides_of(moved), strict=True):
        assert {ids[i] for i in rows} == {ids[order[i]] for i in moved_rows}
    assert sides_of(split_quadruplets(Y, [(0, 1)], ids=ids, seed=1))[2].tolist() != quadruplet_split.split.test.tolist()


def test_a_side_of_no_pictures_needs_no_quadruplet():
    quadruplet_split = split_quadruplets(one_label_each(2, 2), [(0, 1)], valid=0, test=0.5)
    assert [len(rows) for rows in sides_of(quadruplet_split)] == [2, 0, 2]
    assert not quadruplet_split.dropped


@pytest.mark.parametrize(
    ("Y", "groups", "reason"),
    [
        (one_label_each(2, 9, 9, 9), None, "label 0 has 2 pictures"),
        (one_label_each(9, 0, 9, 9), None, "label 1 has 0 pictures"),
        (one_label_each(4, 9, 9, 9), ["a", "a", "b", "b"] + [None] * 27, "label 0 are in 2 groups"),
        (np.vstack([[[1, 1, 0, 0]] * 5, np.eye(4, dtype=int)[[2, 3] * 9]]), None, "5 pictures together"),
    ],
)
def test_relations_missing_from_a_side_are_dropped_with_a_reason(Y, groups, reason):
    quadruplet_split = split_quadruplets(Y, [(0, 1), (2, 3)], groups=groups)
    assert_sound(Y, [(0, 1), (2, 3)], quadruplet_split)
    assert len(quadruplet_split.dropped) == 1
    assert reason in quadruplet_split.dropped[0].reason


def test_relations_that_stand_in_each_others_way():
    """Two relations decide the sides of groups a to f; of the groups of a third one, two may be on one side."""
    groups = [*"abc" * 2, *"def" * 2, *"adg" * 2]
    Y = one_label_each(3, 3, 3, 3, 3, 3)
    relations = [(0, 1), (2, 3), (4, 5)]
    dropped = []
    for seed in range(20):
        quadruplet_split = split_quadruplets(Y, relations, groups=groups, valid=0.3, test=0.3, seed=seed)
        assert_sound(Y, relations, quadruplet_split)
        dropped += quadruplet_split.dropped
    assert dropped
    assert all("other relations hold its pictures on other sides, and none is left for" in d.reason for d in dropped)


def test_without_any_relation_there_is_no_split():
    with pytest.raises(InputError, match=r"none of 1 relations .* \(the first: label 0 has 2 pictures"):
        split_quadruplets(one_label_each(2, 9), [(0, 1)])


def test_bad_arguments():
    Y = one_label_each(5, 5)
    with pytest.raises(InputError, match="sum is below 1"):
        split_quadruplets(Y, [(0, 1)], valid=0.6, test=0.5)
    with pytest.raises(InputError, match="outside 0 to 1"):
        split_quadruplets(Y, [(0, 2)])
    with pytest.raises(InputError, match="give one per row"):
        split_quadruplets(Y, [(0, 1)], groups=["a"])
