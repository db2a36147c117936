"""Labels that a query means, and labels that are related to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import UnknownLabelError
from wsabie.search.query_labels import HierarchyRelatedLabels, LabelAliases, QueryMatcher, format_label_list
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


@pytest.fixture
def vehicle_graph() -> KnowledgeGraph:
    graph = KnowledgeGraph()
    for low, high in [
        ("taxi", "car"), ("car", "motor vehicle"), ("truck", "motor vehicle"), ("motor vehicle", "vehicle"),
        ("spare wheel", "wheel"), ("sled", "vehicle"),
    ]:  # fmt: skip
        graph.relate("is-a", low, high)
    for part, container in [("wheel", "vehicle"), ("door", "car"), ("hub", "wheel")]:
        graph.relate("part-of", part, container)
    return graph


def list_relations(graph: KnowledgeGraph, labels: list[str], label: str, **options) -> dict[str, tuple[float, str]]:
    links = HierarchyRelatedLabels(match_labels(graph, labels), **options).related(label)
    assert [link.score for link in links] == sorted((link.score for link in links), reverse=True)
    return {link.label: (link.score, link.reason) for link in links}


def test_parts_kinds_wholes_and_siblings(vehicle_graph: KnowledgeGraph) -> None:
    labels = ["car", "taxi", "truck", "wheel", "spare wheel", "door", "hub", "sled"]
    assert list_relations(vehicle_graph, labels, "car") == {
        "door": (1, "known: part of car"),
        "taxi": (1, "known: kind of car"),
        "truck": (1 / 2, "known: a motor vehicle too"),
        "wheel": (1 / 3, "known: part of vehicle"),
        "spare wheel": (1 / 4, "known: part of vehicle"),
    }
    assert "wheel" not in list_relations(vehicle_graph, labels, "car", inherit=False)
    wheel = list_relations(vehicle_graph, labels, "wheel", source_name="words")
    assert wheel["hub"] == (1, "words: part of wheel")
    assert wheel["sled"] == (1 / 2, "words: has the part wheel")
    assert wheel["car"] == (1 / 3, "words: has the part wheel")


def test_a_word_above_labels_has_parts_and_kinds_but_no_siblings(vehicle_graph: KnowledgeGraph) -> None:
    relations = list_relations(vehicle_graph, ["car", "truck", "wheel", "sled"], "motor vehicle")
    assert relations == {
        "car": (1, "known: kind of motor vehicle"),
        "truck": (1, "known: kind of motor vehicle"),
        "wheel": (1 / 2, "known: part of vehicle"),
    }


def test_siblings_of_a_large_family_say_nothing() -> None:
    graph = KnowledgeGraph()
    for number in range(10):
        graph.relate("is-a", f"kind {number}", "thing")
    labels = [f"kind {number}" for number in range(10)]
    assert list_relations(graph, labels[:4], "kind 0")["kind 1"] == (1 / 4, "known: a thing too")
    assert list_relations(graph, labels[:5], "kind 0") == {}


def test_of_labels_with_one_meaning_the_usual_one_is_shown(vehicle_graph: KnowledgeGraph) -> None:
    vehicle_graph.add("n9", ["tram", "trolley", "streetcar"])
    vehicle_graph.relate("is-a", "n9", "truck")
    assert list(list_relations(vehicle_graph, ["truck", "streetcar", "trolley"], "truck")) == ["trolley"]


def test_a_label_of_which_nothing_is_known_has_a_stand_in(vehicle_graph: KnowledgeGraph) -> None:
    matched = match_labels(vehicle_graph, ["car", "door", "Wagen", "weg"])
    same = LabelAliases([[1, 1, 0], [1, 1, 0], [0, 0, 1]], ["car", "Wagen", "weg"])
    assert HierarchyRelatedLabels(matched).related("Wagen") == []
    (door,) = HierarchyRelatedLabels(matched, aliases=same).related("Wagen")
    assert door == ("door", 1.0, "known: part of car ('Wagen' names the same items)")
    assert HierarchyRelatedLabels(matched, aliases=same).related("weg") == []


def test_circles_end(vehicle_graph: KnowledgeGraph) -> None:
    vehicle_graph.relate("is-a", "vehicle", "taxi")
    vehicle_graph.relate("part-of", "car", "hub")
    assert list_relations(vehicle_graph, ["car", "taxi", "wheel", "hub"], "car")
