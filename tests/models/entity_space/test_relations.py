"""Kinds and relations: accepted forms and refusals."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.models.entity_space.relations import (
    EntityKind,
    Relation,
    build_pair_matrix,
    collect_kinds,
    drop_unknown_pairs,
)
from wsabie.vocabulary.label_names import Vocabulary

X = np.eye(3, dtype=np.float32)
BOTH_GROW, NEITHER = (True, True), (False, False)


def matrix(pairs: Any, grow: tuple[bool, bool] = NEITHER, names: tuple[str, str] = ("abc", "xy")) -> Any:
    """The pairs of a query's kind q and a target's kind t as a dense matrix."""
    return build_pair_matrix(Relation("q", "t", pairs), *map(Vocabulary, names), grow).toarray()


# ---- forms of pairs


EXPECTED = [[1, 0], [0, 0], [1, 1]]
FORMS = [
    [("a", "x"), ("c", "x"), ("c", "y")],
    (["a", "x"], ["c", "x"], ["c", "y"]),
    {("a", "x"), ("c", "x"), ("c", "y")},
    np.array([["a", "x"], ["c", "x"], ["c", "y"]]),
    np.array([["a", "x"], ["c", "x"], ["c", "y"]], object),
    [("c", " x"), ("c", "y "), ("a", "x"), ("c", "x")],
    [(0, 0), (2, 0), (2, 1)],
    np.array([[2, 1], [0, 0], [2, 0], [2, 1]], np.uint16),
    sp.csr_matrix(EXPECTED),
    sp.coo_matrix(np.array(EXPECTED) * 0.5),
    sp.csr_array(np.array(EXPECTED) > 0),
    sp.csr_matrix([[1, -1], [0, 0], [3, 2]]),
    sp.coo_matrix(([1, 1, 1, 1], ([0, 2, 2, 2], [0, 0, 1, 1]))),
]


@pytest.mark.parametrize("pairs", FORMS)
def test_names_ids_and_matrices_agree(pairs: Any) -> None:
    pair_matrix = matrix(pairs)
    assert pair_matrix.dtype == np.int8
    assert pair_matrix.tolist() == EXPECTED


def test_generator_of_pairs_is_read_once() -> None:
    assert matrix(pair for pair in FORMS[0]).tolist() == EXPECTED


def test_empty_pairs_are_accepted() -> None:
    for pairs in ([], (), np.zeros((0, 2), int), sp.csr_matrix((3, 2))):
        assert not matrix(pairs).any()


def test_new_names_are_added_in_order() -> None:
    queries, targets = Vocabulary(["a"]), Vocabulary()
    Y = build_pair_matrix(Relation("q", "t", [("b", "y"), ("a", "x"), ("b ", "x")]), queries, targets, BOTH_GROW)
    assert (list(queries), list(targets)) == (["a", "b"], ["y", "x"])
    assert Y.toarray().tolist() == [[0, 1], [1, 1]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_pairs_of_one_kind_are_symmetric_without_self_pairs(pairs: list[tuple[int, int]]) -> None:
    entities = Vocabulary("abcdef")
    Y = build_pair_matrix(Relation("q", "q", pairs), entities, entities, NEITHER).toarray()
    symmetric = {*pairs, *((b, a) for a, b in pairs)}
    assert {tuple(map(int, cell)) for cell in np.argwhere(Y)} == {(a, b) for a, b in symmetric if a != b}
    assert set(np.unique(Y)) <= {0, 1}


def test_new_and_known_entities_are_two_sides() -> None:
    """They have numbers of their own: the first of the one is not the first of the other."""
    relation = Relation(EntityKind("doc", X), "doc", [(0, 0), (2, 3)])
    Y = build_pair_matrix(relation, Vocabulary("abc"), Vocabulary("vwxyz"), NEITHER)
    assert np.argwhere(Y.toarray()).tolist() == [[0, 0], [2, 3]]


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (None, "they are None; give a list of pairs"),
        (3, "they are 3"),
        ("ax", "they are 'ax'"),
        ([1, 2], "give .query id, target id. pairs of names, two columns of numbers, or a sparse matrix"),
        (["ax", "cy"], "give .query id, target id. pairs"),
        ([("a", "x", "y")], "give .query id, target id. pairs"),
        ([(0, 1), (2,)], "give .query id, target id. pairs"),
        ([(0, "x")], "give .query id, target id. pairs"),
        ([("a", None)], "give .query id, target id. pairs"),
        (np.ones((2, 2)), "give .query id, target id. pairs"),
        (np.ones((2, 3), int), "give .query id, target id. pairs"),
        ({"a": "x"}, "give .query id, target id. pairs"),
        ([("a", "x"), ("c", 1)], r"\('c', 1\) is not a pair of names, as others are"),
        ([("a", "x"), ()], r"\(\) is not a pair of names, as others are"),
        ([("a", "x"), ("zz", "x")], "there is no q 'zz' among the 3 qs"),
        ([("a", "x"), ("a", "xx")], "there is no t 'xx'; did you mean 'x'"),
        ([(0, 0), (3, 1)], "it names number 3 of the 3 entities of kind 'q'"),
        ([(0, -1)], "it names number -1 of the 2 entities of kind 't'"),
        (sp.identity(4), "it names number 3 of the 3 entities of kind 'q'"),
        (sp.csr_matrix((np.ones(1), np.array([5]), np.array([0, 1, 1, 1])), (3, 6))[:, :6], "number 5 of the 2 entit"),
    ],
)
def test_invalid_pairs_are_refused_with_the_relation(pairs: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=f"the pairs of 'q - t' cannot be used: .*{sentence}"):
        matrix(pairs)


def test_empty_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"the pairs of 'q - t' cannot be used: .* has an empty name"):
        matrix([("a", " ")], BOTH_GROW)


def test_pairs_of_unknown_names_are_counted() -> None:
    sides = Vocabulary("abc"), Vocabulary("xy")
    pairs = [("a", "x"), ("zz", "x"), ("c", "zz"), ("c", "y")]
    for given_pairs in (pairs, np.array(pairs), iter(pairs)):
        relation, left_out = drop_unknown_pairs(Relation("q", "t", given_pairs), *sides)
        assert (relation.pairs, left_out) in (
            ([("a", "x"), ("c", "y")], 2), ([["a", "x"], ["c", "y"]], 2)
        )  # fmt: skip
    for numbers in (np.array([[0, 9]]), sp.identity(9)):
        relation, left_out = drop_unknown_pairs(Relation("q", "t", numbers), *sides)
        assert relation.pairs is numbers
        assert left_out == 0


# ---- kinds and relations


@pytest.mark.parametrize("ids", [["a", "b", "c"], np.array(["a", "b", "c"]), ("a", " b", "c ")])
def test_any_sequence_of_ids_gives_names(ids: Any) -> None:
    assert list(EntityKind("k", X, ids).names()) == ["a", "b", "c"]


def test_entities_without_ids_are_numbered() -> None:
    assert list(EntityKind("k", sp.csr_matrix(X)).names()) == ["0", "1", "2"]
    assert list(EntityKind("k").names()) == []


def test_features_may_be_lists() -> None:
    assert repr(EntityKind("k", X.tolist())) == "Kind('k', 3 entities of 3 features)"
    assert repr(EntityKind("k", ids=["a"])) == "Kind('k', 1 entities)"


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (lambda: EntityKind(""), "'' is not a name for a kind of entities"),
        (lambda: EntityKind(" "), "' ' is not a name for a kind of entities"),
        (lambda: EntityKind(3), "3 is not a name for a kind of entities"),  # type: ignore[arg-type]
        (
            lambda: EntityKind("k", X[0]),
            r"the features of 'k' has 1 dimension\(s\); give a row of features for each entity",
        ),
        (lambda: EntityKind("k", [[1, 2], [3]]), "the features of 'k' has rows of different lengths"),
        (lambda: EntityKind("k", X, ["a"]), "the kind 'k' has 3 rows of features and 1 ids; give an id for each row"),
        (lambda: EntityKind("k", map="m"), "the kind 'k' has no features, and so no map to share; give X"),
        (
            lambda: EntityKind("k", X, ["a", "b", "a"]).names(),
            "the entities of the kind 'k' cannot be told apart: .*'a' comes",
        ),
        (
            lambda: EntityKind("k", X, [1, 2, 3]).names(),
            "'k' cannot be told apart: 1 is not text; give names, or leave ids",
        ),  # type: ignore[list-item]
        (lambda: EntityKind("k", X, ["a", "", "c"]).names(), "'k' cannot be told apart: .*empty name"),
    ],
)
def test_invalid_kinds_are_refused(kind: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        kind()


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf, 1001, "1", None])
def test_weight_must_be_positive(weight: Any) -> None:
    with pytest.raises(InputError, match=r"the weight of 'q - t' is .*; choose a number above 0, 1,000 at most"):
        Relation("q", "t", [], weight=weight)


@pytest.mark.parametrize("end", [3, None, ["q"]])
def test_relation_end_must_be_a_kind(end: Any) -> None:
    for ends in ((end, "t"), ("q", end)):
        with pytest.raises(InputError, match="is not a kind of entities; give a Kind, or the name of one"):
            Relation(*ends, [])


def test_relations_are_named_by_kinds_or_explicitly() -> None:
    assert Relation(EntityKind("doc", X), "tag", []).name == "doc - tag"
    assert Relation("a", "b", [], "c").name == "c"


def test_kinds_are_equal_by_name() -> None:
    doc = EntityKind("doc", X)
    kinds = collect_kinds([Relation("doc", "tag", []), Relation("tag", "doc", []), Relation(doc, doc, [])])
    assert list(kinds) == ["doc", "tag"]
    assert kinds["doc"] is doc
    assert kinds["tag"].X is None
    with pytest.raises(InputError, match="two different kinds are called 'doc'; make one, and use it in both"):
        collect_kinds([Relation(doc, "tag", []), Relation(EntityKind("doc", X), "word", [])])
    with pytest.raises(InputError, match="there are two relations called 'doc - tag'; give each a name of its own"):
        collect_kinds([Relation(doc, "tag", []), Relation(doc, "tag", [])])


@pytest.mark.parametrize("times", [1, 2, 127, 128, 200, 256, 300])
def test_repeated_pair_counts_once(times: int) -> None:
    entities = Vocabulary(["a", "b", "c"])
    Y = build_pair_matrix(Relation("d", "d", [("a", "b")] * times + [("c", "b")]), entities, entities, (False, False))
    assert Y.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
