"""The hierarchical error: values worked by hand, and a slow twin on random graphs with circles and lone labels."""

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
    [("toad", "frogs"), ("frog", "frogs"), ("frogs", "animal"), ("dog", "animal"), ("oak", "tree"), ("tree", "plant")]
)
LABELS = ["toad", "frog", "dog", "oak"]


def measured(scores, Y, heights, ks):
    evaluation = evaluate_scores([(0, np.atleast_2d(scores))], Y, ks=ks, heights=heights)
    return [float(evaluation.per_row[f"herr@{k}"][0]) for k in ks]


def test_a_row_worked_by_hand():
    """Frogs are one above toad and frog, animals two above the toad; nothing is above toad and oak, so it is 2 + 1."""
    heights = KINDS.find_ancestors(LABELS)
    assert heights.compute_heights([0]).tolist() == [0, 1, 2, 3]
    assert measured([0.1, 0.2, 0.3, 0.4], np.array([0]), heights, (1, 2, 3, 4)) == [3, 2, 1, 0]


def test_the_lowest_of_several_ancestors_counts():
    kinds = Hierarchy([("dog", "pet"), ("cat", "pet"), ("dog", "beast"), ("cat", "feline"), ("feline", "beast"),
                       ("lion", "feline"), ("cub", "lion"), ("pup", "dog")])  # fmt: skip
    heights = kinds.find_ancestors(["dog", "cat", "cub", "pup"])
    assert heights.compute_heights([0]).tolist() == [0, 2, 3, 1]  # pet stands on dog, which stands on pup; beast on cub


def test_a_label_above_another_is_their_ancestor():
    heights = Hierarchy([("poodle", "dog"), ("dog", "animal")]).find_ancestors(["poodle", "dog", "animal"])
    assert heights.compute_heights([0]).tolist() == [0, 1, 2]
    assert heights.compute_heights([2]).tolist() == [2, 2, 0]


def test_kinds_without_labels_add_no_height():
    kinds = Hierarchy([("poodle", "dog"), ("tiny poodle", "poodle"), ("cat", "pet"), ("dog", "pet")])
    assert kinds.find_ancestors(["dog", "cat"]).compute_heights([0]).tolist() == [0, 1]


def test_circles_are_one_height():
    kinds = Hierarchy([("a", "x"), ("x", "y"), ("y", "x"), ("b", "y"), ("c", "z"), ("y", "z")])
    assert kinds.find_ancestors(["a", "b", "c"]).compute_heights([0]).tolist() == [0, 1, 2]


def test_the_nearest_of_several_true_labels_counts():
    assert measured([0.1, 0.9, 0.2, 0.3], csr_matrix([[1, 0, 1, 0]]), KINDS.find_ancestors(LABELS), (1,)) == [1]


def test_heights_of_other_labels_are_refused():
    with pytest.raises(InputError, match="heights are between 4 labels, not 2"):
        measured([0.1, 0.2], np.array([0]), KINDS.find_ancestors(LABELS), (1,))


def closure(n, edges):
    """reach[a, b]: b is a, or above a."""
    reach = np.eye(n, dtype=bool)
    for child, parent in edges:
        reach[child, parent] = True
    for via in range(n):
        reach |= reach[:, [via]] & reach[[via]]
    return reach


def twin_errors(n_labels, n, edges, true):
    reach = closure(n, edges)
    inside = reach[:n_labels].any(axis=0)

    def height(x):
        children = [y for y in range(n) if inside[y] and reach[y, x] and not reach[x, y]]
        return 1 + max(map(height, children)) if children else 0

    top = 1 + max(height(x) for x in range(n) if inside[x])
    return [
        0 if y in true else min([height(x) for t in true for x in range(n) if reach[t, x] and reach[y, x]], default=top)
        for y in range(n_labels)
    ]


@st.composite
def problems(draw):
    n = draw(st.integers(2, 5))
    edges = draw(st.lists(st.sampled_from(list(permutations(range(n + 3), 2))), max_size=9))
    true = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=2))
    scores = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n))
    return n, edges, sorted(true), np.array(scores), draw(st.integers(1, n))


@given(problems())
def test_is_the_mean_over_all_orders_of_ties(problem):
    n, edges, true, scores, k = problem
    names = [f"thing {i}" for i in range(n + 3)]
    kinds = Hierarchy([(names[a], names[b]) for a, b in edges])
    errors = twin_errors(n, n + 3, edges, true)
    is_mapped = [kinds.find_senses(name) != () for name in names[:n]]
    for y in range(n):  # nothing is above what the list does not know, not even itself
        if not is_mapped[y] and y not in true:
            errors[y] = max(errors[y], kinds.find_ancestors(names[:n]).top)
    assert kinds.find_ancestors(names[:n]).compute_heights(true).tolist() == errors
    orders = [o for o in permutations(range(n)) if all(scores[a] >= scores[b] for a, b in pairwise(o))]
    expected = np.mean([min(errors[y] for y in order[:k]) for order in orders])
    Y = np.zeros((1, n), int)
    Y[0, true] = 1
    assert measured(scores, csr_matrix(Y), kinds.find_ancestors(names[:n]), (k,))[0] == pytest.approx(
        expected, abs=1e-5
    )


def test_within_equals_hops_counted_by_hand():
    kinds = Hierarchy([("a", "b"), ("b", "c"), ("c", "a"), ("d", "c"), ("e", "f")])
    assert [sorted(kinds.find_within(["a"], h)) for h in range(4)] == [["a"], list("abc"), list("abcd"), list("abcd")]
    assert kinds.find_within(["unknown"], 3) == []
    assert all(len(kinds.find_within(pair, 1)) >= 2 for pair in combinations("abcd", 2))
