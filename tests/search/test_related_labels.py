"""Labels related by knowledge: their number of steps and their reason."""

import pytest

from wsabie.search.query_labels import HierarchyRelatedLabels, LabelAliases
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph


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
