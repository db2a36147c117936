"""Hierarchical precision: values worked by hand, the paper's loop written out, ties as the mean over all orders."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.vocabulary.concept_hierarchy import Hierarchy

KINDS = Hierarchy(
    [("toad", "amphibian"), ("frog", "amphibian"), ("amphibian", "animal"), ("dog", "animal"), ("oak", "tree")]
)
LABELS = ["toad", "frog", "dog", "oak"]


def measured(scores, Y, hops, ks, exclude=None):
    evaluation = evaluate_scores([(0, np.atleast_2d(scores))], Y, ks=ks, hops=hops, exclude=exclude)
    return [float(evaluation.per_row[f"hp@{k}"][0]) for k in ks], [evaluation.ceilings[f"hp@{k}"] for k in ks]


def test_a_row_worked_by_hand():
    """Toad and frog are two hops apart, toad and dog three; no hop leads to the oak."""
    hops = KINDS.find_distances(LABELS)
    assert hops.compute_hops([0], 4).tolist()[:3] == [0, 2, 3]
    values, highest = measured([0.1, 0.3, 0.2, 0.9], np.array([0]), hops, (1, 2, 3, 4))
    assert values == pytest.approx([0, 1 / 2, 2 / 3, 3 / 4])
    assert highest == pytest.approx([1, 1, 1, 3 / 4])


def test_a_label_that_the_hierarchy_does_not_know_is_near_to_itself():
    hops = KINDS.find_distances([*LABELS, "submarine"])
    assert hops.is_known().tolist() == [True] * 4 + [False]
    values, highest = measured([0.1, 0.3, 0.2, 0.4, 0.9], np.array([4]), hops, (1, 2))
    assert (values, highest) == ([1, 1 / 2], [1, 1 / 2])


def test_rings_are_of_candidates():
    """Without the frog the ring of the dog is needed for two."""
    values, _ = measured(
        [0.1, 0.9, 0.8, 0.7], np.array([0]), KINDS.find_distances(LABELS), (2,), csr_matrix([[0, 1, 0, 0]])
    )
    assert values == [1 / 2]


def test_rings_are_whole_and_around_all_true_labels():
    hops = Hierarchy([(name, "animal") for name in "abcd"] + [("z", "stone")]).find_distances(list("abcdz"))
    values, highest = measured([0, 0.1, 0.9, 0.8, 0.7], np.array([0]), hops, (2,))
    assert (values, highest) == ([1], [1])  # c and d, of the set a b c d
    precisions, _ = measured([0.1, 0.2, 0.9, 0.3, 0.8], csr_matrix([[1, 0, 0, 0, 1]]), hops, (2,))
    assert precisions == [1 / 2]  # a and z are two


def test_words_stand_for_all_their_concepts():
    kinds = Hierarchy([("c1", "bird"), ("c2", "machine"), ("heron", "bird"), ("forklift", "machine")])
    kinds.add_names("c1", ["crane"])
    kinds.add_names("c2", ["crane"])
    assert kinds.find_distances(["crane", "heron", "forklift"]).compute_hops([0], 3).tolist() == [0, 2, 2]


def rings(true, k, distance, candidates):
    """The paper's loop, with an end where nothing more can be reached."""
    ring, hop = set(), 0
    while len(ring) < k and hop <= len(distance):
        ring |= {y for y in candidates if min(distance[t][y] for t in true) == hop}
        hop += 1
    return ring


@st.composite
def problems(draw):
    n = draw(st.integers(2, 5))
    edges = draw(st.lists(st.sampled_from(list(combinations(range(n + 2), 2))), max_size=7))
    true = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=2))
    scores = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n))
    return n, edges, sorted(true), np.array(scores), draw(st.integers(1, n))


@given(problems())
def test_is_the_mean_over_all_orders_of_ties(problem):
    n, edges, true, scores, k = problem
    distance = np.full((n + 2, n + 2), 99)
    np.fill_diagonal(distance, 0)
    for a, b in edges:
        distance[a, b] = distance[b, a] = 1
    for via in range(n + 2):
        distance = np.minimum(distance, distance[:, [via]] + distance[[via]])
    correct = rings(true, k, distance, range(n))
    orders = [o for o in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(o))]
    expected = np.mean([len(correct & set(order[:k])) / k for order in orders])
    Y = np.zeros((1, n), int)
    Y[0, true] = 1
    names = [f"thing {i}" for i in range(n + 2)]
    hops = Hierarchy((names[a], names[b]) for a, b in edges).find_distances(names[:n])
    values, highest = measured(scores, csr_matrix(Y), hops, (k,))
    assert values[0] == pytest.approx(expected, abs=1e-6)
    assert highest[0] == pytest.approx(min(k, len(correct)) / k)


def test_hops_of_other_labels_are_refused():
    with pytest.raises(InputError, match="hops are between 4 labels, not 2"):
        measured([0.1, 0.2], np.array([0]), KINDS.find_distances(LABELS), (1,))
