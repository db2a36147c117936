"""Quadruplets: counted and drawn as brute force lays them out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.vocabulary.label_quadruplets import Quadruplets, count_quadruplets


def laid_out(Y, relation, rows=None):
    """Every (object picture, part picture) of a relation, by the definition."""
    rows = range(len(Y)) if rows is None else rows
    object_label, part_label = relation
    return [(o, p) for o, p in product(rows, rows) if o != p and Y[o, object_label] > 0 and Y[p, part_label] > 0]


def chi_square(observed, expected):
    """Return how many standard deviations the statistic is above its mean."""
    free = len(observed) - 1
    return (np.sum((observed - expected) ** 2 / expected) - free) / np.sqrt(2 * free)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(2, 5), st.floats(0, 1), st.booleans())
def test_counts_are_those_of_brute_force(seed, n, n_labels, rate, has_rows):
    rng = np.random.default_rng(seed)
    Y = rng.choice([-1, 0, 1], (n, n_labels), p=[(1 - rate) / 2, (1 - rate) / 2, rate])
    relations = [(a, b) for a, b in product(range(n_labels), repeat=2) if a != b]
    rng.shuffle(relations)
    rows = np.flatnonzero(rng.random(n) < 0.6) if has_rows else None
    counts = count_quadruplets(csr_matrix(Y), relations, rows=rows)
    assert counts.tolist() == [len(laid_out(Y, tuple(pair), rows)) for pair in relations]


@pytest.fixture(scope="module")
def uneven():
    """Pictures of one and of several labels, of which label 0 is frequent and label 3 rare."""
    rng = np.random.default_rng(1)
    Y = (rng.random((14, 4)) < [0.8, 0.4, 0.3, 0.15]).astype(int)
    Y[0] = 1
    return Y, [(0, 1), (1, 2), (0, 3), (3, 0)]


@pytest.mark.parametrize("by", ["relation", "quadruplet"])
def test_draws_are_uniform(uneven, by):
    Y, relations = uneven
    quadruplets, n = Quadruplets(Y, relations), 40_000
    quadruplet_sample = quadruplets.sample(n, np.random.default_rng(2), by=by)
    cells = {
        (*pair, *pictures): i
        for i, (pair, pictures) in enumerate((pair, pictures) for pair in relations for pictures in laid_out(Y, pair))
    }
    assert len(cells) == quadruplets.counts.sum()
    four = zip(
        quadruplet_sample.object_labels,
        quadruplet_sample.part_labels,
        quadruplet_sample.objects,
        quadruplet_sample.parts,
        strict=True,
    )
    observed = np.bincount([cells[tuple(map(int, quadruplet))] for quadruplet in four], minlength=len(cells))
    chances = np.repeat(1 / (len(relations) * quadruplets.counts), quadruplets.counts)
    expected = n * (chances if by == "relation" else np.full(len(cells), 1 / len(cells)))
    assert chi_square(observed, expected) < 4
    expected_by_quadruplet = n * (chances if by == "quadruplet" else np.full(len(cells), 1 / len(cells)))
    assert chi_square(observed, expected_by_quadruplet) > 20  # the test can tell the two ways apart


def test_relations_of_one_quadruplet_each_come_alike():
    quadruplet_sample = Quadruplets(np.eye(4), [(0, 1), (2, 3)]).sample(
        10_000, np.random.default_rng(0), by="quadruplet"
    )
    assert abs(np.count_nonzero(quadruplet_sample.objects == 0) - 5000) < 4 * 50


def test_a_picture_is_never_its_own_part():
    Y = np.ones((2, 2), int)  # every second pair is one picture twice
    quadruplet_sample = Quadruplets(Y, [(0, 1)]).sample(10_000, np.random.default_rng(0))
    assert np.all(quadruplet_sample.objects != quadruplet_sample.parts)
    assert 0.48 < quadruplet_sample.objects.mean() < 0.52


def test_the_same_generator_draws_the_same_and_types_are_fixed(uneven):
    quadruplets = Quadruplets(csr_matrix(uneven[0]), uneven[1])
    once, again = (quadruplets.sample(500, np.random.default_rng(5)) for _ in range(2))
    for ours, theirs in zip(once, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert [array.dtype for array in once] == [np.int64, np.int32, np.int64, np.int32]
    assert [len(array) for array in quadruplets.sample(0, np.random.default_rng(0))] == [0, 0, 0, 0]


def test_rows_are_those_of_the_whole_collection(uneven):
    Y, rows = uneven[0], np.array([0, 3, 5, 6, 9, 11, 13])
    quadruplet_sample = Quadruplets(Y, [(0, 1)], rows=rows).sample(5000, np.random.default_rng(0))
    assert set(zip(quadruplet_sample.objects.tolist(), quadruplet_sample.parts.tolist(), strict=True)) == set(
        laid_out(Y, (0, 1), rows.tolist())
    )


def test_more_quadruplets_than_32_bits_are_counted_exactly():
    Y = csr_matrix((np.ones(200_000), (np.arange(200_000), np.arange(200_000) % 2)), shape=(200_000, 2))
    assert Quadruplets(Y, [(0, 1), (1, 0)]).counts.sum() == 2 * 100_000**2


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ([(0, 2)], "1 of 1 relations have no two different pictures, such as labels 0 \\(pictures: 1\\) and 2 \\(0\\)"),
        ([(0, 1)], "no two different pictures"),  # one picture carries both
        ([(0, 3)], "outside 0 to 2"),
        ([(-1, 0)], "outside 0 to 2"),
        ([(1, 1)], "its own part"),
        ([(0, 1), (0, 1)], "comes 2 times"),
        ([], "give pairs"),
        ([(0, 1, 2)], "give pairs"),
        ([(0.5, 1.0)], "give pairs"),
    ],
)
def test_relations_that_cannot_be_are_refused(relations, message):
    with pytest.raises(InputError, match=message):
        Quadruplets(np.array([[1, 1, 0]]), relations)


def test_what_is_asked_wrongly_is_refused():
    quadruplets = Quadruplets(np.eye(2), [(0, 1)])
    with pytest.raises(InputError, match="0 or more"):
        quadruplets.sample(-1, np.random.default_rng(0))
    with pytest.raises(InputError, match="'relation', 'quadruplet'"):
        quadruplets.sample(1, np.random.default_rng(0), by="pair")
