"""Ranks of points: they agree with ranks of scores, and their bits do not depend on threads."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.core.label_lists import build_exclusion_lists, list_positives, remove_excluded
from wsabie.evaluation.metrics import average_precision
from wsabie.evaluation.positive_ranks import rank_embeddings, rank_scores
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean


@pytest.fixture
def task():
    """Small integers, so that products are exact and ties agree."""
    rng = np.random.default_rng(0)
    queries = rng.integers(-3, 4, size=(300, 16)).astype(np.float32)
    table = rng.integers(-3, 4, size=(150, 16)).astype(np.float32)
    Y = csr_matrix((rng.random((300, 150)) < 0.02).astype(np.int8))
    exclude = csr_matrix((rng.random((300, 150)) < 0.05).astype(np.int8))
    return queries, table, Y, exclude


def test_they_agree_with_ranks_of_scores(task):
    queries, table, Y, exclude = task
    actual = rank_embeddings(Dot(table, np.zeros(150, np.float32)), queries, Y, exclude=exclude)
    hidden = build_exclusion_lists(exclude, 300, 150)
    expected = rank_scores(queries @ table.T, remove_excluded(list_positives(Y, 150), hidden, 150), hidden)
    np.testing.assert_array_equal(actual.n_above, expected.n_above)
    np.testing.assert_array_equal(actual.group, expected.group)
    np.testing.assert_array_equal(actual.n_candidates, expected.n_candidates)


@pytest.mark.parametrize("kind", [Dot, Euclidean, Cosine])
def test_the_same_bits_for_1_2_and_4_threads(task, kind):
    queries, table, Y, exclude = task
    rng = np.random.default_rng(1)
    noisy = (table + rng.normal(size=table.shape)).astype(np.float32)
    labels = kind(noisy, rng.normal(size=150).astype(np.float32))
    results = [
        average_precision(rank_embeddings(labels, queries, Y, exclude=exclude, threads=threads)).tobytes()
        for threads in (1, 2, 4)
    ]
    assert results[0] == results[1] == results[2]


def test_inconsistent_inputs_are_refused(task):
    queries, table, Y, _ = task
    labels = Dot(table, np.zeros(150, np.float32))
    with pytest.raises(InputError, match="15 dimensions but the label vectors 16"):
        rank_embeddings(labels, queries[:, :15], Y)
    with pytest.raises(InputError, match="Y has 299 rows but there are 300 points"):
        rank_embeddings(labels, queries, Y[:-1])
    queries[7, 0] = np.nan
    Y = np.zeros(300, int)
    with pytest.raises(InputError, match="the score of a positive of row 7 is NaN"):
        rank_embeddings(labels, queries, Y)
