"""Relations, their inverses, reach and pairs of labels against slow twins, on random graphs with cycles."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.vocabulary import knowledge_graph
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import DOWN, UP, KnowledgeGraph

NAMES = [*"abcdefgh"]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=16)


def stated(**relations: list[tuple[str, str]]) -> KnowledgeGraph:
    graph = KnowledgeGraph()
    for name in NAMES:
        graph.add(name)
    for relation, pairs in relations.items():
        for source, target in pairs:
            graph.relate(relation.replace("_", "-"), source, target)
    return graph


def slow_reach(edges: set[tuple[str, str]], start: list[str], levels: int | None) -> dict[str, int]:
    steps, waiting = dict.fromkeys(start, 0), deque(start)
    while waiting:
        at = waiting.popleft()
        for end in sorted(target for source, target in edges if source == at and target not in steps):
            if levels is None or steps[at] < levels:
                steps[end] = steps[at] + 1
                waiting.append(end)
    return steps


@given(
    PAIRS,
    PAIRS,
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, 0, 1, 2]),
)
def test_reach_is_that_of_a_slow_search(kinds, instances, start, levels):
    graph = stated(is_a=kinds, instance_of=instances)
    edges = {pair for pair in [*kinds, *instances] if pair[0] != pair[1]}
    assert graph.reach(start, UP, levels) == slow_reach(edges, start, levels)
    assert graph.reach(start, DOWN, levels) == slow_reach({(b, a) for a, b in edges}, start, levels)


@given(PAIRS, PAIRS)
def test_what_is_inherited_is_what_follows(kinds, parts):
    graph = stated(is_a=[*kinds, ("a", "b")], part_of=[*parts, ("c", "a")])
    labels = match_labels(graph, NAMES)
    edges = {pair for pair in [*kinds, ("a", "b")] if pair[0] != pair[1]}
    direct = {pair for pair in [*parts, ("c", "a")] if pair[0] != pair[1]}
    up = {name: slow_reach(edges, [name], None) for name in NAMES}
    follows = {(p, w) for p in NAMES for w in NAMES if p != w and any((p, general) in direct for general in up[w])}
    assert {(NAMES[i], NAMES[j]) for i, j in labels.pairs("part-of")} == direct
    assert {(NAMES[i], NAMES[j]) for i, j in labels.pairs("part-of", inherit=True)} == follows
    assert {(NAMES[j], NAMES[i]) for i, j in labels.pairs("has-part", inherit=True)} == follows
    # what is more general is reached by a step or more, also around a circle
    general = {(x, y) for x in NAMES for y in up[x] if x != y}
    assert {(NAMES[i], NAMES[j]) for i, j in labels.pairs("is-a", inherit=True)} == general


@given(PAIRS, PAIRS, st.sampled_from(NAMES), st.sampled_from([None, 1]))
def test_an_expansion_is_what_its_definition_says(kinds, parts, name, levels):
    graph = stated(is_a=kinds, part_of=parts)
    labels = NAMES[:5]
    expansion = match_labels(graph, labels).expand(name, levels=levels)
    down = {(b, a) for a, b in kinds if a != b}
    descendants = slow_reach(down, [name], levels)
    assert {labels[match.position]: match.steps for match in expansion.kinds} == {
        k: v for k, v in descendants.items() if k in labels
    }
    of = {part for part, container in parts if container in descendants and part != container}
    assert {labels[match.position] for match in expansion.parts} == slow_reach(down, sorted(of), None).keys() & set(
        labels
    )
    assert [match.steps for match in expansion.kinds] == sorted(match.steps for match in expansion.kinds)
    assert all(match.via in descendants for match in expansion.parts)


def test_relations_go_both_ways_and_end_where_there_are_none():
    graph = stated(part_of=[("a", "b"), ("a", "b"), ("c", "c")])
    assert graph.related("B", "has-part") == graph.related("b", "^part-of") == ["a", "a"]
    assert graph.relations == {"part-of": 2}
    graph.relate("part-of", "d", "b")
    assert graph.related("b", "has-part") == ["a", "a", "d"]
    for wrong in ("", "^part-of", "has-part"):
        with pytest.raises(InputError, match="cannot be called"):
            graph.relate(wrong, "a", "b")
    with pytest.raises(InputError, match="'is-a'; there are part-of"):
        graph.related("a", "is-a")
    with pytest.raises(KeyError, match="no concept 'zzz'"):
        graph.concept("zzz")


def test_too_many_pairs_and_empty_names_are_refused(monkeypatch):
    monkeypatch.setattr(knowledge_graph, "MAX_PAIRS", 1)
    with pytest.raises(InputError, match="more than 1 pairs of part-of"):
        stated(part_of=[("a", "b"), ("c", "b")])
    with pytest.raises(InputError, match="empty name"):
        KnowledgeGraph().add(" ")


def test_labels_of_several_names_mean_what_has_them_all():
    graph = KnowledgeGraph()
    graph.add("n1", ["crane"])
    graph.add("n2", ["crane", "lifting_device"], "lifts", "en")
    graph.add("n2", ["Kran"], language="de")
    matched = match_labels(graph, ["crane, lifting device", "crane, ship", "CRANE", "kran"])
    assert matched.concepts == ["n2", None, "n1", "n2"]
    assert graph.concept("n2") == ("n2", ("crane", "lifting device", "Kran"), ("en", "en", "de"), "lifts")


def test_of_several_senses_the_first_with_labels_under_it_is_expanded():
    graph = KnowledgeGraph()
    for number, name in [("n1", "dolphin"), ("n2", "dolphin"), ("n3", "dolphin")]:
        graph.add(number, [name])
    graph.relate("part-of", "fin", "n2")
    graph.relate("is-a", "orca", "n3")
    assert match_labels(graph, ["orca", "fin"]).expand("Dolphin").concept == "n3"
    assert match_labels(graph, ["fin"]).expand("dolphin").concept == "n2"
    assert match_labels(graph, ["ship"]).expand("dolphin") == ("n1", [], [])
    assert match_labels(graph, ["orca", "dolphin"]).expand("dolphin").concept == "n1"  # the label means its first sense
