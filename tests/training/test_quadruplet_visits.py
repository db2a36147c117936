"""Epochs of quadruplets as Mesnil et al. 2014, section 4.3, draw them, against plain loops."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from strategies import label_rows, seeds
from wsabie.core.validation import check_features
from wsabie.embedding.protocols import ComposedInputs
from wsabie.training import quadruplet_visits
from wsabie.training.quadruplet_visits import ImageVisits, QuadrupletVisits

N, K = 12, 7


def collection(seed: int, rate: float = 0.3) -> tuple[sp.csr_matrix, np.ndarray]:
    """Pictures with labels, some explicitly wrong, and relations between the labels."""
    rng = np.random.default_rng(seed)
    pairs = np.array(
        [
            (first_label, second_label)
            for first_label in range(K)
            for second_label in range(K)
            if first_label != second_label
        ]
    )
    return label_rows(N, K, rate, 0.2, rng), pairs[rng.choice(len(pairs), 9, replace=False)]


def visits_of(Y: Any, relations: Any, **changes: Any) -> QuadrupletVisits:
    rows = check_features(np.arange(N * 2, dtype=np.float32).reshape(N, 2))
    settings = {"weights": None, "pair_weighting": "pairs", "seed": 5, **changes}
    return QuadrupletVisits(rows, Y, relations, **settings)


def pairs_of(block: Any) -> list[tuple[int, int, int]]:
    """(picture, label, label beside it) of all pairs of an epoch."""
    sides, targets = block.inputs, block.targets
    assert isinstance(sides, ComposedInputs)
    assert np.array_equal(sides.visits, sides.item_ids[targets.rows])
    counts = np.diff(targets.starts)
    example = np.repeat(targets.rows, counts)
    return list(
        zip(sides.item_ids[example].tolist(), targets.labels.tolist(), sides.label_ids[example].tolist(), strict=True)
    )


@given(seeds, st.integers(0, 3))
def test_every_pair_comes_once_with_a_relation_of_its_label(seed: int, epoch: int) -> None:
    Y, relations = collection(seed)
    visits = visits_of(Y, relations)
    (block,) = visits.read_epoch(epoch)
    visited_pairs, related_pairs = pairs_of(block), {tuple(pair) for pair in relations.tolist()}
    true = [(i, y) for i, y in zip(*np.nonzero((Y > 0).toarray()), strict=True)]
    assert sorted((i, y) for i, y, _ in visited_pairs) == sorted(true)
    assert visits.n_pairs == len(true)
    for i, y, other_label in visited_pairs:
        options = {two for first, two in related_pairs if first == y} | {
            first for first, two in related_pairs if two == y
        }
        elsewhere = {m for m in options if any(Y[j, m] > 0 for j in range(N) if j != i)}
        assert other_label in options if other_label >= 0 else len(elsewhere) < len(options) or not options
        if other_label >= 0:
            assert other_label in elsewhere


@given(seeds)
def test_labels_that_are_true_too_are_not_drawn_against(seed: int) -> None:
    """Labels of the picture that have the relation are hidden; all of them for a single picture."""
    Y, relations = collection(seed)
    (block,) = visits_of(Y, relations).read_epoch(0)
    sides, targets, related_pairs = block.inputs, block.targets, {tuple(pair) for pair in relations.tolist()}
    for e in range(len(sides.item_ids)):
        i, other_label = int(sides.item_ids[e]), int(sides.label_ids[e])
        hidden = set(targets.indices[targets.indptr[e] : targets.indptr[e + 1]].tolist())
        labels_of_item = {y for y in range(K) if Y[i, y] > 0}
        if other_label < 0:
            assert hidden == labels_of_item
            continue
        (y,) = targets.labels[np.repeat(targets.rows, np.diff(targets.starts)) == e].tolist()
        ways = [
            {o for o in labels_of_item if (o, other_label) in related_pairs},
            {o for o in labels_of_item if (other_label, o) in related_pairs},
        ]
        assert y in hidden
        assert hidden in [way for way in ways if y in way]
        explicit_negatives = set(
            targets.explicit_negatives[targets.explicit_indptr[e] : targets.explicit_indptr[e + 1]].tolist()
        )
        assert explicit_negatives == {y for y in range(K) if Y[i, y] < 0}


def test_relations_of_a_label_are_equally_likely() -> None:
    """A label that is the object of two and the part of one, over 3,000 epochs; chi-square."""
    Y = sp.csr_matrix(np.kron(np.eye(4), np.ones((3, 1))).astype(np.int8))
    visits = visits_of(Y, np.array([[0, 1], [0, 2], [3, 0]]))
    partners = [
        other_label
        for epoch in range(3000)
        for i, y, other_label in pairs_of(visits.read_epoch(epoch)[0])
        if y == 0 and i == 0
    ]
    counts = np.bincount(partners, minlength=4)
    assert counts[0] == 0
    assert ((counts[1:] - 1000) ** 2 / 1000).sum() < 20  # of chi-square with 2 degrees: one in 20,000


def test_epochs_differ_and_come_again() -> None:
    Y, relations = collection(3)
    visits = visits_of(Y, relations)
    first, again, next_one = (pairs_of(visits.read_epoch(epoch)[0]) for epoch in (0, 0, 1))
    assert first == again
    assert sorted(first) != sorted(next_one)


@pytest.mark.parametrize("positives", ["mean", "pairs"])
def test_pairs_weigh_what_the_picture_weighs(positives: str) -> None:
    Y, relations = collection(4, rate=0.5)
    weights = np.arange(N, dtype=np.float32)
    (block,) = visits_of(Y, relations, weights=weights, pair_weighting=positives).read_epoch(0)
    counts = np.asarray((Y > 0).sum(1)).ravel()
    expected = [weights[i] / (counts[i] if positives == "mean" else 1) for i, _, _ in pairs_of(block)]
    np.testing.assert_allclose(block.targets.weights, expected, rtol=1e-6)


def test_a_picture_is_not_its_own_part() -> None:
    """The one wheel is on the picture of a car, which is then labelled by itself; other cars have the wheel beside."""
    Y = sp.csr_matrix(np.array([[1, 1], [1, 0], [1, 0]], np.int8))
    rows = check_features(np.eye(3, dtype=np.float32))
    strict = QuadrupletVisits(rows, Y, np.array([[0, 1]]), None, "pairs", 0)
    assert sorted(pairs_of(strict.read_epoch(0)[0])) == [(0, 0, -1), (0, 1, 0), (1, 0, 1), (2, 0, 1)]
    going_on = QuadrupletVisits(rows, Y, np.array([[0, 1]]), None, "pairs", 0, strict=False)
    assert (0, 0, 1) in pairs_of(going_on.read_epoch(0)[0])


# ---- pictures that are ranked


def asked_of(block: Any) -> list[tuple[int, int, int, set[int]]]:
    """(picture that asks, label beside it, picture that is drawn, pictures that are not violators)."""
    sides, targets = block.inputs, block.targets
    assert np.array_equal(targets.rows, np.arange(len(sides.item_ids)))
    hidden_sets = [set(targets.indices[lo:hi].tolist()) for lo, hi in pairwise(targets.indptr)]
    return list(
        zip(sides.item_ids.tolist(), sides.label_ids.tolist(), targets.labels.tolist(), hidden_sets, strict=True)
    )


@given(seeds, st.integers(0, 3))
def test_the_other_picture_of_every_drawn_quadruplet_is_ranked(seed: int, epoch: int) -> None:
    Y, relations = collection(seed)
    labels, pictures = visits_of(Y, relations, picture_weight=0.5).read_epoch(epoch)
    (label_block,) = visits_of(Y, relations).read_epoch(epoch)
    assert pairs_of(labels) == pairs_of(label_block)
    picture_pairs = asked_of(pictures)
    assert [(i, other_label) for i, other_label, _, _ in picture_pairs] == [
        (i, other_label) for i, _, other_label in pairs_of(labels) if other_label >= 0
    ]
    for i, other_label, picture, hidden in picture_pairs:
        pictures_of_label = {j for j in range(N) if Y[j, other_label] > 0}
        assert picture in pictures_of_label - {i}
        assert hidden == pictures_of_label | {i}
    np.testing.assert_array_equal(pictures.inputs.items, 0.5 * labels.inputs.items)
    np.testing.assert_array_equal(pictures.ends.candidates, labels.inputs.items)
    assert (
        len(labels.targets.labels) + len(pictures.targets.labels) <= visits_of(Y, relations, picture_weight=1).n_pairs
    )


def test_pictures_of_a_label_are_equally_likely() -> None:
    """Five of them, one of which asks itself in half of the quadruplets; chi-square."""
    Y = sp.csr_matrix(np.array([[1, 0], [1, 1], [0, 1], [0, 1], [0, 1], [0, 1]], np.int8))
    asking = ImageVisits(np.eye(6, dtype=np.float32), Y, np.ones(6, np.float32), 1.0)
    items = np.tile([0, 1], 3000)
    block = asking(items, np.ones(6000, np.int64), np.random.default_rng(0))
    for item, choices in ((0, [1, 2, 3, 4, 5]), (1, [2, 3, 4, 5])):
        counts = np.bincount(block.targets.labels[items == item], minlength=6)
        assert counts[choices].sum() == 3000
        expected = 3000 / len(choices)
        assert ((counts[choices] - expected) ** 2 / expected).sum() < 25  # of chi-square with 4: one in 20,000


def test_what_is_known_of_an_epoch_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    Y, relations = collection(3)
    unlimited = visits_of(Y, relations, picture_weight=1.0).read_epoch(0)[1].targets
    monkeypatch.setattr(quadruplet_visits, "MAX_HIDDEN", 20)
    limited = visits_of(Y, relations, picture_weight=1.0).read_epoch(0)[1].targets
    assert 0 < len(limited.indices) <= 20 < len(unlimited.indices)


def test_a_label_without_another_picture_is_not_asked_for() -> None:
    """A model that goes on has seen pictures of the label, but has none to rank here."""
    Y = sp.csr_matrix(np.array([[1, 0], [1, 0]], np.int8))
    rows = check_features(np.eye(2, dtype=np.float32))
    visits = QuadrupletVisits(rows, Y, np.array([[0, 1]]), None, "pairs", 0, strict=False, picture_weight=1.0)
    labels, pictures = visits.read_epoch(0)
    assert (len(labels.targets.labels), len(pictures.targets.labels)) == (2, 0)
