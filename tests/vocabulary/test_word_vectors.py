"""Synsets and their terms: the appendix's own examples, the alternatives that it names, and a slow twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.label_lists import build_exclusion_lists
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.word_vectors import TermTable, WordVectors, compute_target_vectors, list_label_terms

NAMES = [["ballroom", "dance hall", "dance palace"], ["crane"], ["crane"], ["heron"]]
WORDS = WordVectors(
    ["ballroom", "dance_hall", "dance_palace", "crane", "heron"],
    np.array([[1, 0, 0], [0.9, 0.1, 0], [0.8, 0.2, 0], [0, 1, 0], [0, 0, 2]], np.float32),
)


def predicted(point, k, *, names=NAMES, candidate=None, exclude=None, rng=None, n=4):
    """The appendix's procedure for one point, by names of the numbers of labels."""
    term_table = TermTable.empty(3).with_labels(names, WORDS)
    candidate = np.ones(len(names), bool) if candidate is None else candidate
    terms = term_table.select_terms(candidate)
    scores = term_table.table[terms] @ np.asarray(point, np.float32)
    order = np.argsort(-scores, kind="stable")[: n * k]
    hidden = None if exclude is None else build_exclusion_lists(exclude, 1, len(names))
    ids, values = term_table.expand_terms(terms[order][None], scores[order][None], k, candidate, hidden, rng)
    return ids[0].tolist(), values[0].tolist()


def test_both_cranes_come_where_the_term_stood():
    assert predicted([0, 1, 0.5], 3)[0] == [1, 2, 3]
    assert predicted([0, 0.5, 1], 2)[0] == [3, 1]  # cut after k, not after the term


def test_later_terms_of_one_synset_are_removed():
    """Ballroom, dance hall and dance palace are the three nearest terms and one synset."""
    ids, scores = predicted([1, 0.3, 0.2], 3)
    assert ids == [0, 1, 2]
    assert scores[0] == pytest.approx(float((0.8 + 0.2 * 0.3) / np.sqrt(0.68)))  # dance palace


def test_fewer_terms_may_mean_fewer_labels_than_k():
    assert predicted([1, 0.3, 0.2], 2, n=1)[0] == [0, -1]
    assert predicted([1, 0.3, 0.2], 2, n=1)[1][1] == -np.inf


def test_one_meaning_is_drawn():
    rankings = {tuple(predicted([0, 1, 0], 1, rng=np.random.default_rng(seed))[0]) for seed in range(20)}
    assert rankings == {(1,), (2,)}


def test_candidates_bring_their_own_terms_alone():
    candidate = np.array([True, False, True, False])
    assert predicted([0, 1, 0.5], 3, candidate=candidate)[0] == [2, 0, -1]


def test_excluded_labels_leave_their_place():
    assert predicted([0, 1, 0.5], 2, exclude=np.array([[0, 1, 0, 0]]))[0] == [2, 3]


def test_targets_are_the_first_term_a_random_one_or_the_mean():
    names = [["ballroom", "heron"], ["unheard of", "crane"]]
    first = compute_target_vectors(names, WORDS)
    assert (first.table.tolist(), first.positions.tolist(), first.missing) == ([[1, 0, 0]], [0], ["unheard of"])
    assert compute_target_vectors(names, WORDS, "mean").table == pytest.approx(
        np.array([[0.5**0.5, 0, 0.5**0.5], [0, 1, 0]])
    )
    vectors = {tuple(compute_target_vectors(names, WORDS, "random", seed).table[0]) for seed in range(20)}
    assert vectors == {(1, 0, 0), (0, 0, 1)}


def test_a_vector_without_length_is_none():
    assert compute_target_vectors([["x"]], WordVectors(["x"], np.zeros((1, 2), np.float32))).missing == ["x"]


def test_terms_are_names_of_the_concept_or_between_commas():
    graph = KnowledgeGraph()
    graph.add("n1", ["crane"], "a bird")
    graph.add("n2", ["crane"], "a machine")
    assert list_label_terms(["n2", "crane", "toad,  frog", ",", "unknown"], graph) == [
        ("crane",), ("crane",), ("toad", "frog"), (",",), ("unknown",)
    ]  # fmt: skip


def test_the_paper_counts_nine_synsets_with_a_head(data_dir):
    """Appendix A.2: "up to 9 different synsets in the case of 'head'", and two cranes in ILSVRC 2012."""
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph

    folder = data_dir / "imagenet_synsets"
    graph = read_knowledge_graph(folder / "words.txt")
    ilsvrc_synsets, all_of_them = (
        (folder / name).read_text().split() for name in ("ilsvrc2012_1k.txt", "imagenet.synset.txt")
    )
    words = WordVectors(["head", "crane"], np.eye(2, dtype=np.float32))
    assert np.bincount(TermTable.empty(2).with_labels(list_label_terms(all_of_them, graph), words).term).max() == 9
    table = TermTable.empty(2).with_labels(list_label_terms(ilsvrc_synsets, graph), words)
    assert np.bincount(table.term)[table.names.index("crane")] == 2


def twin(scores, meanings, k, n):
    """Appendix A.2, sentence by sentence."""
    nearest = sorted(range(len(scores)), key=lambda t: -scores[t])[: n * k]
    expanded = [label for term in nearest for label in sorted(meanings[term])]
    return [label for i, label in enumerate(expanded) if label not in expanded[:i]][:k]


@given(
    st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=8),
    st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False),
)  # fmt: skip
def test_equals_the_appendix_written_out(meanings, k, n, random):
    names = [
        [f"t{term}" for term, labels_of_term in enumerate(meanings) if label in labels_of_term] for label in range(6)
    ]
    values = random.sample(range(100), len(meanings))
    words = WordVectors([f"t{t}" for t in range(len(meanings))], np.eye(len(meanings), dtype=np.float32))
    term_table = TermTable.empty(len(meanings)).with_labels(names, words)
    scores = np.array([values[int(name[1:])] for name in term_table.names], np.float32)
    order = np.argsort(-scores)[: n * k]
    ids, _ = term_table.expand_terms(order[None], scores[order][None], k, np.ones(6, bool))
    assert [label for label in ids[0].tolist() if label >= 0] == twin(values, meanings, k, n)
    best = term_table.compute_best_scores(scores[None])[
        0
    ]  # with terms enough the order is that of each label's best term
    everything, _ = term_table.expand_terms(np.argsort(-scores)[None], np.sort(scores)[::-1][None], 6, np.ones(6, bool))
    ranked = everything[0][everything[0] >= 0]
    assert ranked.tolist() == sorted(np.flatnonzero(best > -np.inf), key=lambda y: -best[y])
