"""Exact ranks: the slow twin on scores and on points, ties, exclusions, and bits that do not depend on the
split.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.label_ranks import compute_scores, rank_row

from wsabie.core.label_lists import LabelLists
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean
from wsabie.kernels.ranking.label_ranks import (
    TILE,
    RankCounts,
    allocate_scratch,
    count_query_ranks,
    count_ranks,
    score_listed_labels,
    score_rows,
    subtract_excluded_labels,
)

KINDS = {"dot": Dot, "euclidean": Euclidean, "cosine": Cosine}


def no_counts(lists):
    return RankCounts(np.zeros(len(lists.labels), np.int32), np.zeros(len(lists.labels), np.int32))


def as_lists(rows):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return LabelLists(indptr, np.array([label for row in rows for label in sorted(row)], np.int32))


def count_scores(scores, listed, excluded):
    listed_scores, counts = np.empty(len(listed.labels), scores.dtype), no_counts(listed)
    count_ranks(scores, listed, listed_scores, counts, 0, len(scores))
    rows = np.repeat(np.arange(excluded.n_rows), np.diff(excluded.indptr))
    subtract_excluded_labels(listed, listed_scores, excluded, scores[rows, excluded.labels], counts, 0, len(scores))
    return counts


def count_points(labels, queries, listed, excluded, bounds):
    listed_scores, excluded_scores, counts = (
        np.empty(len(listed.labels), np.float32),
        np.empty(len(excluded.labels), np.float32),
        no_counts(listed),
    )
    for lo, hi in pairwise(bounds):
        scratch = allocate_scratch(hi - lo, queries.shape[1])
        score_listed_labels(labels, queries, listed, listed_scores, lo, hi, scratch)
        score_listed_labels(labels, queries, excluded, excluded_scores, lo, hi, scratch)
        count_query_ranks(labels, queries, listed, listed_scores, counts, lo, hi, scratch)
        subtract_excluded_labels(listed, listed_scores, excluded, excluded_scores, counts, lo, hi)
    return counts, listed_scores


@st.composite
def rows_of_labels(draw):
    """Scores with many ties, and disjoint listed and excluded labels, empty rows included."""
    n_rows, n_labels = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    roles = draw(st.lists(st.integers(0, 2), min_size=n_rows * n_labels, max_size=n_rows * n_labels))
    roles = np.array(roles).reshape(n_rows, n_labels)
    values = draw(st.lists(st.integers(-2, 2), min_size=n_rows * n_labels, max_size=n_rows * n_labels))
    scores = np.array(values, np.float32).reshape(n_rows, n_labels)
    return scores, as_lists([np.flatnonzero(r == 1) for r in roles]), as_lists([np.flatnonzero(r == 2) for r in roles])


@settings(max_examples=60, deadline=None)
@given(case=rows_of_labels(), dtype=st.sampled_from([np.float32, np.float64]))
def test_counts_of_scores_equal_the_slow_twin(case, dtype):
    scores, listed, excluded = case
    counts = count_scores(scores.astype(dtype), listed, excluded)
    for i in range(len(scores)):
        span = slice(listed.indptr[i], listed.indptr[i + 1])
        n_above, tied = rank_row(scores[i], listed.labels[span], excluded.part(i, i + 1).labels)
        np.testing.assert_array_equal(counts.n_above[span], n_above)
        np.testing.assert_array_equal(counts.n_tied[span], tied)


@settings(max_examples=40, deadline=None)
@given(case=rows_of_labels(), dim=st.integers(1, 5), seed=st.integers(0, 99))
def test_counts_of_points_equal_the_slow_twin_where_products_are_exact(case, dim, seed):
    """Small integers have exact products in float32, so even ties must agree."""
    scores, listed, excluded = case
    rng = np.random.default_rng(seed)
    queries = rng.integers(-2, 3, size=(len(scores), dim)).astype(np.float32)
    table = rng.integers(-2, 3, size=(scores.shape[1], dim)).astype(np.float32)
    bias = rng.integers(-1, 2, size=len(table)).astype(np.float32)
    counts, listed_scores = count_points(Dot(table, bias), queries, listed, excluded, [0, len(queries)])
    exact = compute_scores("dot", queries, table, bias)
    for i in range(len(queries)):
        span = slice(listed.indptr[i], listed.indptr[i + 1])
        n_above, tied = rank_row(exact[i], listed.labels[span], excluded.part(i, i + 1).labels)
        np.testing.assert_array_equal(counts.n_above[span], n_above)
        np.testing.assert_array_equal(counts.n_tied[span], tied)
        np.testing.assert_array_equal(listed_scores[span], exact[i, listed.labels[span]])


@pytest.mark.parametrize("similarity", KINDS)
def test_float32_scores_and_ranks_stay_near_float64(similarity):
    rng = np.random.default_rng(1)
    table, queries = (rng.normal(size=(n, 33)).astype(np.float32) for n in (2 * TILE + 9, 21))
    bias = rng.normal(size=len(table)).astype(np.float32)
    listed = as_lists([rng.choice(len(table), i % 4, replace=False) for i in range(21)])
    counts, listed_scores = count_points(KINDS[similarity](table, bias), queries, listed, as_lists([[]] * 21), [0, 21])
    exact = compute_scores(similarity, queries, table, bias)
    rows = np.repeat(np.arange(21), np.diff(listed.indptr))
    np.testing.assert_allclose(listed_scores, exact[rows, listed.labels], atol=3e-5)
    gaps = np.abs(exact[rows] - exact[rows, listed.labels][:, None]) < 1e-4
    expected = [rank_row(exact[i], [y])[0][0] for i, y in zip(rows, listed.labels, strict=True)]
    assert (np.abs(counts.n_above - expected) <= gaps.sum(axis=1) - 1).all()


@pytest.mark.parametrize("similarity", KINDS)
def test_bits_do_not_depend_on_how_the_rows_are_split(similarity):
    rng = np.random.default_rng(2)
    table, queries = (rng.normal(size=(n, 17)).astype(np.float32) for n in (300, 30))
    labels = KINDS[similarity](table, rng.normal(size=300).astype(np.float32))
    listed = as_lists([rng.choice(300, 5, replace=False) for _ in range(30)])
    nothing = as_lists([[]] * 30)
    unsplit, scores = count_points(labels, queries, listed, nothing, [0, 30])
    for bounds in ([0, 15, 30], [0, 7, 14, 23, 30], list(range(31))):
        split, again = count_points(labels, queries, listed, nothing, bounds)
        np.testing.assert_array_equal(scores.view(np.int32), again.view(np.int32))
        np.testing.assert_array_equal(unsplit.n_above, split.n_above)


@pytest.mark.parametrize("similarity", KINDS)
def test_equal_label_vectors_tie_exactly_wherever_they_stand(similarity):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(2 * TILE + 40, 19)).astype(np.float32)
    same = [0, 5, TILE - 1, TILE, 2 * TILE + 39]
    table[same] = table[5]
    listed = as_lists([same] * 6)
    labels = KINDS[similarity](table, np.zeros(len(table), np.float32))
    counts, _ = count_points(labels, rng.normal(size=(6, 19)).astype(np.float32), listed, as_lists([[]] * 6), [0, 6])
    assert (counts.n_tied == len(same) - 1).all()


def test_nan_ranks_last_and_counts_above_others():
    scores = np.array([[1.0, np.nan, 0.0]], np.float32)
    counts = count_scores(scores, as_lists([[0]]), as_lists([[]]))
    assert counts.n_above.tolist() == [1]


@pytest.mark.parametrize("similarity", KINDS)
@pytest.mark.parametrize("split", [[0, 7], [0, 1, 3, 7]])
def test_scores_of_whole_rows_have_the_bits_of_listed_ones(similarity, split):
    rng = np.random.default_rng(0)
    table, queries = (rng.normal(size=(n, 21)).astype(np.float32) for n in (2 * TILE + 3, 7))
    labels = KINDS[similarity](table, rng.normal(size=len(table)).astype(np.float32))
    everybody = as_lists([range(len(table))] * 7)
    listed, scores = np.empty(7 * len(table), np.float32), np.full((7, len(table)), np.nan, np.float32)
    score_listed_labels(labels, queries, everybody, listed, 0, 7, allocate_scratch(7, 21))
    for lo, hi in pairwise(split):
        score_rows(labels, queries, scores, lo, hi, allocate_scratch(hi - lo, 21))
    np.testing.assert_array_equal(scores.ravel(), listed)
