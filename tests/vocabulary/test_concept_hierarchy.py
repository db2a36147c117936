"""Siblings by hand and against the definition; names, senses, cycles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.vocabulary import concept_hierarchy as hierarchy
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.label_similarity import SiblingSimilarity, SparseSimilarity, classify_labels

NAMES = [*"abcdef"]


def alike(kinds: Hierarchy, labels: list[str]) -> list[list[int]]:
    similar = kinds.find_siblings(labels)
    return [similar.max_similarity([y]).astype(int).tolist() for y in range(len(labels))]


def test_siblings_share_a_parent_and_parents_are_no_siblings():
    kinds = Hierarchy([("toad", "amphibian"), ("frog", "amphibian"), ("amphibian", "animal"), ("oak", "tree")])
    assert alike(kinds, ["toad", "frog", "amphibian", "oak"]) == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]


def test_names_of_one_concept_are_alike_even_without_a_parent():
    kinds = Hierarchy([("n1", "n0")])
    kinds.add_names("n0", ["entity", "Thing"])
    kinds.add_names("n1", ["toad"])
    assert alike(kinds, ["entity", "thing", "toad"]) == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_name_stands_for_all_its_concepts():
    kinds = Hierarchy([("n1", "bird"), ("heron", "bird"), ("n2", "machine"), ("forklift", "machine")])
    kinds.add_names("n1", ["crane"])
    kinds.add_names("n2", ["crane"])
    assert alike(kinds, ["heron", "Crane", "forklift"]) == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert kinds.parents("crane") == ["bird", "machine"]


def test_unknown_labels_have_no_siblings():
    similar = Hierarchy([("toad", "amphibian"), ("frog", "amphibian")]).find_siblings(["ship", "toad", "boat", "frog"])
    assert similar.siblings().tolist() == [0, 1, 0, 1]
    assert similar.is_known().tolist() == [False, True, False, True]


def test_cycles_and_concepts_that_are_their_own_parents():
    kinds = Hierarchy([("a", "b"), ("b", "a"), ("c", "c"), ("d", "b"), ("b", "e"), ("e", "b")])
    assert alike(kinds, ["a", "b", "c", "d", "e"]) == [
        [1, 0, 0, 1, 1],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [1, 0, 0, 1, 1],
        [1, 0, 0, 1, 1],
    ]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12))
def test_any_pairs_give_what_the_definition_says(pairs):
    parents = {name: {p for c, p in pairs if c == name and p != name} for name in NAMES}
    expected = [[int(i == j or bool(parents[i] & parents[j])) for j in NAMES] for i in NAMES]
    assert alike(Hierarchy(pairs), NAMES) == expected


def test_the_fingerprint_tells_lists_apart_whatever_their_order():
    pairs = [("n1", "n0"), ("n2", "n0"), ("n3", "n2")]
    first, two, three = Hierarchy(pairs), Hierarchy(pairs[::-1]), Hierarchy(pairs[:2])
    assert first.fingerprint() == two.fingerprint() != three.fingerprint()
    two.add_names("n1", ["toad"])
    assert first.fingerprint() != two.fingerprint()
    first.add_names("n2", ["toad"])
    assert first.fingerprint() != two.fingerprint()
    first.add_names("n1", ["toad"])
    two.add_names("n2", ["toad"])
    assert first.fingerprint() == two.fingerprint()


def test_too_many_pairs_and_empty_names_are_refused(monkeypatch):
    monkeypatch.setattr(hierarchy, "MAX_PAIRS", 2)
    with pytest.raises(InputError, match="more than 2 pairs"):
        Hierarchy([("a", "z"), ("b", "z"), ("c", "z")])
    with pytest.raises(InputError, match="empty name"):
        Hierarchy([("a", " ")])


def test_marks_tell_true_labels_from_siblings():
    similar = SparseSimilarity(np.array([[1, 0.25, 0], [0, 1, 0], [0, 0, 1]]))
    assert classify_labels([2, 1, 0], [0], similar) == ["other", "sibling", "true"]
    assert classify_labels([2, 1, 0], [], SiblingSimilarity(np.ones((3, 1)))) == ["other"] * 3
