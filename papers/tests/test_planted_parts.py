"""Planted collections: sizes, every relation on every side, the knob of likeness, the null setting, the same arrays."""

import zlib

import numpy as np
import pytest

from papers.data import planted_parts
from papers.data.planted_parts import SIZES, draw_appearance, draw_relations, generate_planted_parts
from wsabie.core.errors import InputError
from wsabie.vocabulary.label_quadruplets import Quadruplets, count_quadruplets

PAPER = SIZES["parts:paper"]


@pytest.fixture(scope="module")
def tiny():
    return generate_planted_parts("parts:tiny")


@pytest.fixture(scope="module")
def looks():
    return draw_appearance(PAPER)


@pytest.fixture(scope="module", params=[0.0, 0.5, 1.0])
def relations(request, looks):
    return draw_relations(PAPER, looks, request.param)


def pairs(relations):
    return {tuple(pair) for pair in relations.tolist()}


def test_sizes(tiny):
    size, pictures = SIZES["parts:tiny"], tiny.pictures
    assert pictures.X.shape == (size.pictures, size.words)
    assert pictures.X.dtype == np.float32
    assert [len(rows) for rows in (tiny.split.train, tiny.split.valid, tiny.split.test)] == [1200, 150, 150]
    assert (len(tiny.true), len(tiny.training), len(tiny.unseen)) == (25, 23, 2)
    assert tiny.Y.shape == (1500, 30)
    np.testing.assert_array_equal(tiny.Y.indices, pictures.y)


def test_sizes_of_the_paper():
    assert PAPER.pictures == 400_490
    assert (PAPER.train, PAPER.valid, PAPER.test) == (324_158, 37_920, 38_412)


def test_every_relation_is_on_every_side(tiny):
    for rows in (tiny.split.train, tiny.split.valid, tiny.split.test):
        assert count_quadruplets(tiny.Y, tiny.true, rows=rows).min() > 0


def test_every_label_is_in_a_training_relation(relations):
    assert len(relations) == len(pairs(relations)) == 781
    assert len(np.unique(relations[:771])) == 1000
    objects, parts = np.unique(relations[:, 0]), np.unique(relations[:, 1])
    assert (len(objects), len(parts)) == (470, 600)


def test_relations_do_not_run_in_circles(relations):
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(relations)), relations.T), shape=(1000, 1000))
    assert connected_components(graph, connection="strong")[0] == 1000
    assert np.all(relations[:, 0] != relations[:, 1])


def test_objects_that_look_alike_have_parts_that_look_alike_as_the_knob_says(looks):
    likenesses = [likeness_of_parts(looks, draw_relations(PAPER, looks, rho)) for rho in (0.0, 0.5, 1.0)]
    assert abs(likenesses[0]) < 0.02
    assert 0.08 < likenesses[1] < 0.2
    assert 0.3 < likenesses[2] < 0.6


def likeness_of_parts(looks, relations):
    """Correlation, over pairs of relations of four labels, of how alike objects look and how alike parts look."""
    points = looks.labels / np.linalg.norm(looks.labels, axis=1, keepdims=True)
    first_relation, second_relation = np.triu_indices(len(relations), 1)
    is_disjoint = np.all(relations[first_relation] != relations[second_relation], axis=1)
    alike = [
        (
            points[relations[first_relation[is_disjoint], side]] * points[relations[second_relation[is_disjoint], side]]
        ).sum(1)
        for side in (0, 1)
    ]
    return np.corrcoef(alike)[0, 1]


def test_parts_do_not_look_like_their_objects(looks, relations):
    points = looks.labels / np.linalg.norm(looks.labels, axis=1, keepdims=True)
    assert abs((points[relations[:, 0]] * points[relations[:, 1]]).sum(1).mean()) < 0.03


def test_unseen_relations_are_of_labels_that_training_knows(tiny):
    assert not pairs(tiny.unseen) & pairs(tiny.training)
    np.testing.assert_array_equal(tiny.true, np.concatenate([tiny.training, tiny.unseen]))
    assert set(tiny.unseen.ravel().tolist()) <= set(tiny.training.ravel().tolist())


def test_the_null_setting_tells_of_relations_none_of_which_holds(tiny):
    null = generate_planted_parts("parts:tiny", null=True)
    assert not pairs(null.training) & (pairs(tiny.true) | pairs(tiny.true[:, ::-1]))
    assert not pairs(null.training) & pairs(null.training[:, ::-1])
    assert len(pairs(null.training)) == len(tiny.training)
    for side in (0, 1):  # every label is the object, and the part, of as many
        np.testing.assert_array_equal(np.sort(null.training[:, side]), np.sort(tiny.training[:, side]))
    np.testing.assert_array_equal(null.true, tiny.true)
    assert (null.pictures.X != tiny.pictures.X).nnz == 0
    Quadruplets(null.Y, null.training, rows=null.split.valid)


def test_pictures_can_be_handed_on(tiny):
    handed = generate_planted_parts("parts:tiny", null=True, pictures=tiny.pictures)
    assert handed.pictures is tiny.pictures
    np.testing.assert_array_equal(handed.training, generate_planted_parts("parts:tiny", null=True).training)
    with pytest.raises(InputError, match="not those of parts:tiny with seed 1"):
        generate_planted_parts("parts:tiny", seed=1, pictures=tiny.pictures)


def test_likeness_moves_relations_and_leaves_pictures(tiny):
    alike_parts = generate_planted_parts("parts:tiny", likeness=1.0)
    assert (alike_parts.pictures.X != tiny.pictures.X).nnz == 0
    np.testing.assert_array_equal(alike_parts.pictures.y, tiny.pictures.y)
    assert pairs(alike_parts.true) != pairs(tiny.true)


def test_the_same_arrays_each_time_and_others_for_another_seed(tiny):
    again, reseeded = generate_planted_parts("parts:tiny"), generate_planted_parts("parts:tiny", seed=1)
    assert (again.pictures.X != tiny.pictures.X).nnz == 0
    np.testing.assert_array_equal(again.true, tiny.true)
    assert pairs(reseeded.true) != pairs(tiny.true)
    assert (reseeded.pictures.X != tiny.pictures.X).nnz > 0


def test_labels_and_relations_are_those_of_every_other_run(tiny):
    # They depend on the generator of random numbers; words also on the rounding of a matrix product.
    assert zlib.crc32(tiny.pictures.y.tobytes()) == 2736812821
    assert zlib.crc32(tiny.true.tobytes()) == 3702884832


def test_rows_hold_sorted_distinct_words_and_whole_counts(tiny):
    X = tiny.pictures.X
    assert X.has_canonical_format
    assert np.all((X.data >= 1) & (X.data == np.round(X.data)))
    assert abs(X.sum() / X.shape[0] - planted_parts.TOKENS * np.exp(0.25**2 / 2)) < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "parts:huge"}, "parts:tiny"),
        ({"likeness": 1.5}, "between 0 and 1"),
        ({"likeness": float("nan")}, "between 0 and 1"),
        ({"seed": -1}, "whole number from 0"),
    ],
)
def test_invalid_planted_parts_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        generate_planted_parts(**{"name": "parts:tiny", **arguments})
