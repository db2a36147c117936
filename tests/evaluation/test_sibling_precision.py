"""Sibling precision: values worked by hand, the definition over all orders of ties, what must hold for any S."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, identity

from wsabie.core.errors import InputError
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.vocabulary.label_similarity import SiblingSimilarity, SparseSimilarity

KS = (1, 2, 3, 7)


def measured(scores, Y, S, ks=KS, exclude=None, kind="psib"):
    evaluation = evaluate_scores([(0, np.atleast_2d(scores))], Y, ks=ks, similar=S, exclude=exclude)
    return np.array([evaluation.per_row[f"{kind}@{k}"] for k in ks])


def naive(scores, positives, S, k, hidden=()):
    """The mean over every order that the scores allow, label by label."""
    candidates = [y for y in range(len(scores)) if y not in hidden]
    total = orders = 0
    for order in permutations(candidates):
        if all(scores[a] >= scores[b] for a, b in pairwise(order)):
            total += sum(max(S[y][j] for y in positives) for j in order[:k]) / k
            orders += 1
    return total / orders


def test_a_row_worked_by_hand():
    S = np.array([[1, 0.5, 0, 0.25], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    precisions = measured([[0.1, 0.9, 0.5, 0.7]], np.array([0]), S, (1, 2, 4, 5))[:, 0]
    expected = [0.5, (0.5 + 0.25) / 2, (0.5 + 0.25 + 0 + 1) / 4, (0.5 + 0.25 + 0 + 1) / 5]
    np.testing.assert_allclose(precisions, expected, rtol=1e-6)


def test_of_several_true_labels_the_closest_counts():
    S = np.array([[1, 0, 0.25], [0, 1, 0.75], [0, 0, 1]])
    Y = csr_matrix([[1, 1, 0]])
    np.testing.assert_allclose(measured([[0.1, 0.2, 0.9]], Y, S, (1, 2))[:, 0], [0.75, (0.75 + 1) / 2])


def test_siblings_share_a_parent():
    toad_frog_newt_oak = SiblingSimilarity(csr_matrix([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]]))
    precisions = measured([[0.2, 0.9, 0.5, 0.4]], np.array([0]), toad_frog_newt_oak, (1, 2, 3, 4))[:, 0]
    np.testing.assert_allclose(precisions, [1, 1 / 2, 1 / 3, (1 + 0 + 0 + 1) / 4], rtol=1e-6)
    assert toad_frog_newt_oak.siblings().tolist() == [1, 2, 1, 0]


def test_ties_at_the_cut_count_as_in_a_random_order():
    S = np.eye(4)
    S[0, 3] = 0.5
    precisions = measured([[0.5, 0.5, 0.5, 0.9]], np.array([0]), S, (1, 2, 3))[:, 0]
    np.testing.assert_allclose(precisions, [0.5, (0.5 + 1 / 3) / 2, (0.5 + 2 / 3) / 3], rtol=1e-6)


def test_a_constant_scorer_gets_the_mean_of_s():
    S = np.random.default_rng(0).random((6, 6))
    precisions = measured(np.zeros((1, 6)), np.array([2]), S, (1, 3))[:, 0]
    np.testing.assert_allclose(precisions, S[2].mean(), rtol=1e-6)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 5))
    levels = st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0])
    scores = np.array([draw(st.lists(levels, min_size=n, max_size=n))])
    true = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=n))
    hidden = draw(st.sets(st.sampled_from(sorted(set(range(n)) - true) or [n]), max_size=n)) - {n}
    cells = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    S = np.array(draw(st.lists(st.lists(cells, min_size=n, max_size=n), min_size=n, max_size=n)))
    Y, exclude = np.zeros((1, n), int), np.zeros((1, n), int)
    Y[0, list(true)] = 1
    exclude[0, list(hidden)] = 1
    return scores, csr_matrix(Y), S, csr_matrix(exclude), true, hidden


@settings(max_examples=150, deadline=None)
@given(problems())
def test_it_is_the_definition_over_all_orders_of_ties(problem):
    scores, Y, S, exclude, true, hidden = problem
    precisions = measured(scores, Y, S, exclude=exclude)[:, 0]
    np.testing.assert_allclose(precisions, [naive(scores[0], true, S, k, hidden) for k in KS], rtol=1e-5, atol=1e-7)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_identity_gives_precision_and_more_similarity_never_less(problem):
    scores, Y, S, exclude, *_ = problem
    n = S.shape[0]
    same, right = measured(scores, Y, identity(n), exclude=exclude), measured(scores, Y, S, exclude=exclude, kind="p")
    np.testing.assert_allclose(same, right, rtol=1e-6)
    lower = measured(scores, Y, S, exclude=exclude)
    assert (lower <= measured(scores, Y, np.maximum(S, 0.5), exclude=exclude) + 1e-7).all()
    everything = measured(scores, Y, np.ones((n, n)), (1,), exclude=exclude)
    np.testing.assert_allclose(everything, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_shared_parents_and_the_matrix_they_stand_for_agree(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    parents = (rng.random((n, 4)) < 0.3).astype(int)
    S = np.maximum((parents @ parents.T > 0).astype(float), np.eye(n))
    scores, Y = rng.random((5, n)).round(1), csr_matrix((rng.random((5, n)) < 0.4).astype(int) | (np.arange(n) == 0))
    folded, unfolded = measured(scores, Y, SiblingSimilarity(parents)), measured(scores, Y, S)
    np.testing.assert_array_equal(folded, unfolded)
    assert SiblingSimilarity(parents).siblings().tolist() == (S.sum(axis=1) - 1).tolist()


def test_renumbered_labels_change_nothing():
    rng = np.random.default_rng(4)
    scores, S, order = rng.random((3, 7)), rng.random((7, 7)), rng.permutation(7)
    original = measured(scores, np.array([1, 4, 6]), S)
    where = np.argsort(order)
    renumbered = measured(scores[:, order], where[[1, 4, 6]], S[np.ix_(order, order)])
    np.testing.assert_allclose(original, renumbered, rtol=1e-6)


def test_the_highest_possible_is_that_of_the_best_order():
    S = np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    evaluation = evaluate_scores([(0, np.array([[0.0, 1.0, 2.0]]))], np.array([0]), ks=(1, 2, 3), similar=S)
    assert {name: evaluation.ceilings[name] for name in ("psib@1", "psib@2", "psib@3")} == {
        "psib@1": 1.0,
        "psib@2": (1 + 0.5) / 2,
        "psib@3": (1 + 0.5) / 3,
    }


def test_rows_without_labels_do_not_count():
    evaluation = evaluate_scores(
        [(0, np.array([[2.0, 1.0], [1.0, 2.0]]))], csr_matrix([[1, 0], [0, 0]]), similar=np.eye(2)
    )
    assert evaluation.n_rows == 1
    assert evaluation.means["psib@1"] == 1


def test_no_sibling_precision_without_s():
    evaluation = evaluate_scores([(0, np.array([[2.0, 1.0]]))], np.array([0]))
    assert not [name for name in [*evaluation.means, *evaluation.ceilings] if name.startswith("psib")]


def test_a_parent_of_a_hundred_thousand_labels_takes_no_more_room_than_its_list():
    similar = SiblingSimilarity(csr_matrix(np.ones((100_000, 1), np.int8)))
    assert similar.max_similarity([7]).sum() == 100_000
    assert np.median(similar.siblings()) == 99_999


@pytest.mark.parametrize(
    ("S", "sentence"),
    [
        (np.ones((2, 3)), "square"),
        (np.full((3, 3), 1.5), r"holds 1\.5"),
        (np.full((3, 3), -0.5), r"holds -0\.5"),
        (np.full((3, 3), np.nan), "holds nan"),
        (np.ones((4, 4)), "about 4 labels"),
    ],
)
def test_invalid_similarity_is_refused(S, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate_scores([(0, np.zeros((1, 3)))], np.array([0]), similar=S)


def test_s_may_be_lopsided():
    S = SparseSimilarity(np.array([[1.0, 0.5], [0.0, 1.0]]))
    assert S.max_similarity([1]).tolist() == [0, 1]
    assert S.max_similarity([0]).tolist() == [1, 0.5]
