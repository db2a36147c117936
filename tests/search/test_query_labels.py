"""Matching of a query: labels first, then knowledge, aliases and word vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import UnknownLabelError
from wsabie.search.query_labels import LabelAliases, QueryMatcher, format_label_list
from wsabie.vocabulary.concept_matching import LabelConcepts, match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.word_vectors import WordVectors

LABELS = ["car", "auto", "Bicycle", "ship"]


@pytest.fixture
def matched() -> LabelConcepts:
    graph = KnowledgeGraph()
    graph.add("n1", ["vehicle", "conveyance"])
    graph.add("n2", ["car", "auto", "motorcar"], language="en")
    graph.add("n2", ["voiture"], language="fra")
    graph.add("n3", ["bicycle"])
    graph.add("n4", ["galaxy"])
    for kind in ("n2", "n3"):
        graph.relate("is-a", kind, "n1")
    return match_labels(graph, LABELS)


def test_a_label_is_itself_whatever_its_case(matched: LabelConcepts) -> None:
    queries = QueryMatcher(LABELS, matched)
    assert queries.match("bicycle")[1:4] == (["Bicycle"], "label", None)
    assert queries.match(" CAR ").labels == ["car"]
    matcher = QueryMatcher(["Turkey", "turkey"])
    assert [matcher.match(name).labels for name in ("turkey", "Turkey", "TURKEY")] == [
        ["turkey"], ["Turkey"], ["Turkey"],
    ]  # fmt: skip


def test_other_names_kinds_and_translations(matched: LabelConcepts) -> None:
    queries = QueryMatcher(LABELS, matched)
    match_ = queries.match("motorcar")
    assert match_ == ("motorcar", ["car", "auto"], "name", "n2", "'motorcar' is another name of 'car' and 'auto'")
    assert queries.match("Voiture").sentence.startswith("'Voiture' (fra) is another name of")
    match_ = queries.match("conveyance")
    assert (match_.labels, match_.match_kind, match_.concept) == (["car", "auto", "Bicycle"], "kinds", "n1")
    with pytest.raises(UnknownLabelError, match="there is no label 'galaxy'"):
        queries.match("galaxy")


def test_what_is_known_goes_before_what_is_near(matched: LabelConcepts) -> None:
    vectors = WordVectors(
        ["ship", "boat", "car", "voiture"], np.array([[1, 0], [0.9, 0.1], [0, 1], [1, 0]], np.float32)
    )
    same = LabelAliases(np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1]]), ["ship", "schiff", "boat"])
    queries = QueryMatcher(LABELS, matched, same, vectors)
    assert queries.match("voiture").match_kind == "name"
    assert queries.match("schiff").sentence == (
        "'schiff' names the same items of the collection as 'ship' (cosine 0.82)"
    )
    assert queries.match("boat").labels == ["ship"]
    weak = LabelAliases(np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]), ["ship", "boat", "car"])
    match_ = QueryMatcher(LABELS, None, weak, vectors).match("boat")
    assert (match_.match_kind, match_.labels) == ("word vector", ["ship"])
    assert "(cosine 0.99)" in match_.sentence
    nothing = WordVectors(["ship", "boat"], np.array([[1, 0], [0, 0]], np.float32))
    with pytest.raises(UnknownLabelError):
        QueryMatcher(LABELS, None, None, nothing).match("boat")
    with pytest.raises(UnknownLabelError):
        QueryMatcher(["no vector"], None, None, vectors).match("boat")


@given(st.integers(1, 12), st.integers(2, 6), st.integers(0, 2**31))
def test_the_same_items_as_by_brute_force(n_items: int, n_labels: int, seed: int) -> None:
    Y = np.random.default_rng(seed).integers(0, 2, (n_items, n_labels))
    names = [f"label {y}" for y in range(n_labels)]
    aliases = LabelAliases(Y, names).nearest("Label 0", names)
    cooccurrences = Y[:, 0] @ Y
    alike = cooccurrences / np.sqrt(np.maximum(Y.sum(0) * Y[:, 0].sum(), 1))
    alike[0] = 0
    if not alike.any():
        assert aliases is None
        return
    assert aliases is not None
    assert aliases[1] == pytest.approx(alike.max())
    assert alike[names.index(aliases[0])] == pytest.approx(alike.max())


def test_lists_are_cut() -> None:
    assert format_label_list(["a"]) == "a"
    assert format_label_list(list("abc"), 2) == "a, b and 1 more"
