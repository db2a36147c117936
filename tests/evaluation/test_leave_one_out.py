"""Leave one out: exactly one label of each row, at random, whatever the order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from wsabie.core.errors import InputError
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.evaluation.splits import hold_out_labels


def signed(seed, n=40, n_labels=9, density=0.3):
    rng = np.random.default_rng(seed)
    Y = random_array((n, n_labels), density=density, format="csr", rng=rng, dtype=np.float64)
    Y.data = rng.choice([1, 1, 1, -1], Y.nnz).astype(np.int8)
    return csr_matrix(Y).astype(np.int8)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), least=st.integers(1, 4))
def test_rows_with_enough_labels_lose_one_and_nothing_else_changes(seed, least):
    Y = signed(seed)
    original = Y.copy()
    train, test = hold_out_labels(Y, least=least, seed=seed)
    counts = (Y > 0).sum(axis=1).A1
    assert ((counts >= least) == test.sum(axis=1).A1).all()
    assert (train + test != Y).nnz == 0
    assert train.multiply(test).nnz == 0
    assert (original != Y).nnz == 0
    assert train.nnz + test.nnz == Y.nnz


def test_every_label_of_a_row_has_the_same_chance():
    Y = csr_matrix(np.ones((4000, 4), np.int8))
    counts = hold_out_labels(Y).test.sum(axis=0).A1
    assert abs(counts - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)


def test_the_draw_depends_on_the_id_and_the_seed_alone():
    Y, ids = signed(1, n=200), [f"picture {i}" for i in range(200)]
    order = np.random.default_rng(0).permutation(200)
    test = hold_out_labels(Y, ids=ids, seed=3).test
    moved = hold_out_labels(Y[order], ids=[ids[i] for i in order], seed=3).test
    assert (test[order] != moved).nnz == 0
    assert (hold_out_labels(Y, ids=ids, seed=4).test != test).nnz > 0


def test_a_share_of_the_rows():
    Y = csr_matrix(np.ones((100, 3), np.int8))
    assert hold_out_labels(Y, share=0.25).test.nnz == 25
    assert hold_out_labels(Y, share=1e-9).test.nnz == 1


def test_training_labels_are_no_candidates():
    """The held-out label is third, behind the two that the row was trained with: first when these are left out."""
    Y = np.array([[1, 1, 1, 0]])
    train, test = hold_out_labels(Y)
    scores = 9.0 * train.toarray() + test.toarray()
    without_exclusion = evaluate_scores([(0, scores)], test, ks=(1,)).means
    out = evaluate_scores([(0, scores)], test, ks=(1,), exclude=train).means
    assert (without_exclusion["MAP"], out["MAP"]) == (pytest.approx(1 / 3), 1)
    assert (without_exclusion["AUC"], out["AUC"]) == (pytest.approx(1 / 3), 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"least": 0}, "least = 0 and share = 1.0 but least is 1 or more"),
        ({"share": 0.0}, "share = 0.0 but"),
        ({"share": 1.5}, "share = 1.5 but"),
        ({"seed": -1}, "seed is -1"),
        ({"ids": ["a"]}, "ids has 1 entries for 2 rows"),
        ({"least": 3}, "no row has 3 labels or more, so that none can be held out"),
    ],
)
def test_impossible_holdouts_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        hold_out_labels(np.array([[1, 1, -1], [1, 0, 0]]), **options)
