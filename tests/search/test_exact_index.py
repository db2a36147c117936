"""Exact search: the slow twin for every similarity, tiles, ties, exclusions, candidates, memory, errors."""

import tracemalloc
from itertools import cycle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from tests.reference.label_ranks import compute_scores
from tests.reference.topk import select_topk

from wsabie.core.errors import InputError
from wsabie.core.execution import run_in_threads
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean, score_label
from wsabie.search import exact_index
from wsabie.search.dense_scores import compute_all_scores
from wsabie.search.exact_index import ExactIndex, find_top_k

KINDS = {"dot": Dot, "euclidean": Euclidean, "cosine": Cosine}
SIMILARITIES = tuple(KINDS)


def points(n, dim, seed):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 20), st.integers(1, 4)),
    k=st.integers(1, 25),
    block_rows=st.integers(1, 4),
    seed=st.integers(0, 99),
    with_candidates=st.booleans(),
    parted=st.booleans(),
    gathered=st.sampled_from([0, 8, 10**6]),
)
def test_equals_the_slow_twin_with_ties_exclusions_and_candidates(
    shape, k, block_rows, seed, with_candidates, parted, gathered
):
    """Small integers have exact products, so that ties must be broken by label id; also by threads for the parts."""
    n, n_labels, dim = shape
    rng = np.random.default_rng(seed)
    queries, table = (rng.integers(-2, 3, size=(m, dim)).astype(np.float32) for m in (n, n_labels))
    bias = rng.integers(-1, 2, size=n_labels).astype(np.float32)
    exclude = csr_matrix(rng.random((n, n_labels)) < 0.2)
    candidates_ = rng.integers(n_labels, size=5) if with_candidates else None
    scores = compute_scores("dot", queries, table, bias)
    scores[exclude.toarray()] = -np.inf
    if with_candidates:
        scores[:, np.setdiff1d(np.arange(n_labels), candidates_)] = -np.inf
    expected_ids, expected = select_topk(scores, k)
    options = {"bias": bias, "exclude": exclude, "candidates": candidates_, "block_rows": block_rows, "threads": 3}
    with mock.patch.multiple(
        exact_index, _MIN_PARALLEL_BYTES=0 if parted else exact_index._MIN_PARALLEL_BYTES, _GATHER_COST=gathered
    ):
        ids, best_scores = find_top_k(queries, table, k, **options)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(best_scores, expected)
    assert (ids.dtype, best_scores.dtype) == (np.int64, np.float32)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("biased", [False, True])
def test_every_similarity_agrees_with_float64(similarity, biased):
    queries, table = points(37, 20, 0), points(500, 20, 1)
    bias = points(1, 500, 2)[0] if biased else None
    exact_scores = compute_scores(similarity, queries, table, np.zeros(500) if bias is None else bias)
    ids, scores = find_top_k(queries, table, 12, bias=bias, similarity=similarity)
    np.testing.assert_allclose(scores, np.take_along_axis(exact_scores, ids, axis=1), atol=2e-5)
    np.testing.assert_allclose(scores, -np.sort(-exact_scores, axis=1)[:, :12], atol=2e-5)
    assert (np.diff(scores, axis=1) <= 0).all()
    labels = KINDS[similarity](table, np.zeros(500, np.float32) if bias is None else bias)
    np.testing.assert_allclose(compute_all_scores(labels, queries), exact_scores, atol=2e-5)


def test_small_tiles_and_threads_change_nothing(monkeypatch):
    queries, table = points(300, 8, 0), points(700, 8, 1)
    single_threaded = find_top_k(queries, table, 9, threads=1)
    for threads in (2, 4):
        np.testing.assert_array_equal(find_top_k(queries, table, 9, threads=threads)[0], single_threaded[0])
    monkeypatch.setattr(exact_index, "_CELLS", 1000)
    np.testing.assert_array_equal(find_top_k(queries, table, 9, block_rows=64)[0], single_threaded[0])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("width", [np.float32, np.float16])
@pytest.mark.parametrize("n_queries", [1, 5])
def test_a_large_table_is_scanned_by_parts_with_the_same_result(monkeypatch, similarity, width, n_queries):
    table = np.repeat(points(200, 20, 1), 4, axis=0).astype(width)  # each four times: many tie
    expected = find_top_k(points(n_queries, 20, 0), table, 9, similarity=similarity, threads=1)
    monkeypatch.setattr(exact_index, "_MIN_PARALLEL_BYTES", 0)
    spans = []
    monkeypatch.setattr(
        exact_index, "run_in_threads", lambda work, items, n: spans.append(n) or run_in_threads(work, items, n)
    )
    actual = find_top_k(points(n_queries, 20, 0), table, 9, similarity=similarity, threads=3)
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert max(spans) == (1 if n_queries == 1 and width is np.float32 else 3)


def test_a_distance_to_itself_is_exactly_zero_even_far_from_the_origin():
    table = points(200, 16, 0) + 1000
    ids, scores = find_top_k(table, table, 1, similarity="euclidean")
    assert ids[:, 0].tolist() == list(range(200))
    assert (scores == 0).all()
    assert not np.signbit(scores).any()


def test_the_nearest_are_found_far_from_the_origin():
    """|q - w|^2 out of products would keep one or two digits of its seven here."""
    table, queries = points(2000, 16, 0) + 1000, points(50, 16, 1) + 1000
    exact_distances = np.linalg.norm(queries[:, None].astype(np.float64) - table, axis=2)
    ids, scores = find_top_k(queries, table, 10, similarity="euclidean")
    np.testing.assert_array_equal(ids, np.argsort(exact_distances, axis=1)[:, :10])
    np.testing.assert_allclose(scores, -np.sort(exact_distances, axis=1)[:, :10], rtol=1e-4)
    np.testing.assert_array_equal(find_top_k(queries, table, 10, similarity="euclidean", bias=np.zeros(2000))[0], ids)
    np.testing.assert_array_equal(find_top_k(queries[:5], table, 10, similarity="euclidean")[0], ids[:5])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("n_queries", [1, 5, 40])
@pytest.mark.parametrize("offset", [0, 50])
def test_halves_are_searched_as_the_float32_numbers_that_they_are(similarity, n_queries, offset):
    padded = (points(3001, 24, 0) + offset).astype(np.float16)
    half = padded[:, :20]  # as they lie
    queries, candidates_ = points(n_queries, 20, 1) + offset, np.arange(5, 3000, 7)
    for candidates in (None, candidates_):
        actual = find_top_k(queries, half, 10, similarity=similarity, candidates=candidates)
        same = find_top_k(queries, half.astype(np.float32), 10, similarity=similarity, candidates=candidates)
        for values, same_values in zip(actual, same, strict=True):
            np.testing.assert_array_equal(values, same_values)
    index = ExactIndex(half, similarity="dot")
    assert index.table.dtype == np.float16
    assert np.shares_memory(index.table, padded)


def crowded(n, dim, seed):
    """Vectors that are equal, or differ by what rounding may make of them."""
    centres = points(n // 100, dim, seed)[np.random.default_rng(seed).integers(0, n // 100, n)]
    return centres * (1 + 1e-7 * points(n, 1, seed + 1)) if n else centres


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("scales", [(1, 1), (1e-24, 1), (1, 1e-24), (1e-20, 1e-20), (1e15, 1e3)])
def test_equal_and_nearly_equal_vectors_come_in_the_order_of_their_scores_proper(similarity, biased, scales):
    """Against all labels scored one by one: what the products leave in doubt must be settled."""
    table, queries = crowded(3001, 100, 0) * np.float32(scales[0]), points(40, 100, 1) * np.float32(scales[1])
    queries[:20] *= np.float32(1e-3)  # so that a block may not take the lengths of another one
    bias = np.repeat(points(1, 31, 2)[0], 100)[:3001] if biased else None
    index = ExactIndex(table, bias=bias, similarity=similarity)
    everybody = np.tile(np.arange(3001), (40, 1))
    ids, scores = index.rescore(queries, everybody, 10)
    result = index.top_k(queries, 10, block_rows=20)
    np.testing.assert_array_equal(result[0], ids)
    np.testing.assert_array_equal(result[1], scores)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_table_of_one_vector_is_ordered_by_label(similarity):
    table, queries = np.tile(points(1, 100, 0), (3001, 1)), points(512, 100, 1)
    ids, scores = find_top_k(queries, table, 10, similarity=similarity, threads=2)
    assert (ids == np.arange(10)).all()
    assert (scores == scores[:, :1]).all()
    everything = compute_all_scores(KINDS[similarity](table, np.zeros(3001, np.float32)), queries, threads=2)
    assert (everything == everything[:, :1]).all()


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_what_a_row_gets_depends_on_no_other_row_and_no_number_of_threads(similarity):
    table, queries = points(3001, 100, 0), points(300, 100, 1)
    labels, index = KINDS[similarity](table, np.zeros(3001, np.float32)), ExactIndex(table, similarity=similarity)
    ids, scores = index.top_k(queries, 10, threads=1)
    for threads in (2, 4):
        for values, all_values in zip(index.top_k(queries, 10, threads=threads), (ids, scores), strict=True):
            np.testing.assert_array_equal(values, all_values)
    for i, n in zip(range(0, 280, 7), cycle(range(1, 20)), strict=False):
        for values, all_values in zip(index.top_k(queries[i : i + n], 10), (ids, scores), strict=True):
            np.testing.assert_array_equal(values, all_values[i : i + n])
    everything = compute_all_scores(labels, queries)
    np.testing.assert_array_equal(compute_all_scores(labels, queries, threads=3), everything)
    np.testing.assert_array_equal(
        np.concatenate([compute_all_scores(labels, queries[i : i + 1]) for i in range(300)]), everything
    )


def test_columns_cut_from_a_padded_table_are_used_as_they_are():
    padded = np.zeros((50, 16), np.float32)
    padded[:, :10] = points(50, 10, 0)
    index = ExactIndex(padded[:, :10])
    assert np.shares_memory(index.table, padded)
    queries = points(3, 10, 1)
    np.testing.assert_array_equal(index.top_k(queries, 5)[0], find_top_k(queries, padded[:, :10].copy(), 5)[0])
    assert ExactIndex(np.asfortranarray(padded)).top_k(np.ones((1, 16)), 1)[0].shape == (1, 1)


def test_zero_vectors_have_cosine_zero():
    ids, scores = find_top_k(np.zeros((1, 3)), np.eye(3), 3, similarity="cosine")
    assert ids.tolist() == [[0, 1, 2]]
    assert scores.tolist() == [[0, 0, 0]]


def test_short_vectors_have_the_cosine_that_training_gives_them():
    table, queries = points(5, 16, 0), points(4, 16, 1)
    table[1:4] *= np.array([[1e-3], [1e-4], [0]], np.float32)
    queries[1:3] *= np.array([[1e-5], [0]], np.float32)
    bias = np.zeros(5, np.float32)
    trained = [[score_label(Cosine(table, bias), q, y, (None,)) for y in range(5)] for q in queries]
    np.testing.assert_allclose(compute_all_scores(Cosine(table, bias), queries), trained, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(compute_scores("cosine", queries, table, bias), trained, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_too_few_candidates_are_padded(similarity):
    exclude = csr_matrix(np.array([[1, 0, 0], [1, 1, 1]]))
    ids, scores = find_top_k(np.ones((2, 2)), np.ones((3, 2)), 3, similarity=similarity, exclude=exclude)
    assert ids.tolist() == [[1, 2, -1], [-1, -1, -1]]
    assert np.isneginf(scores[ids < 0]).all()
    assert np.isfinite(scores[ids >= 0]).all()


def test_nothing_asked_nothing_found():
    assert find_top_k(np.empty((0, 2)), np.ones((3, 2)), 2)[0].shape == (0, 2)
    assert find_top_k(np.ones((1, 2)), np.ones((3, 2)), 2, candidates=[])[0].tolist() == [[-1, -1]]
    assert find_top_k(np.ones((1, 2)), np.empty((0, 2)), 1)[0].tolist() == [[-1]]


def test_memory_does_not_grow_with_queries_times_labels():
    queries, table = points(4000, 4, 0), points(20_000, 4, 1)
    find_top_k(queries[:300], table, 10)
    assert peak_of(lambda: find_top_k(queries, table, 10)) < 5 * 2**20 < queries.shape[0] * len(table)


@pytest.mark.parametrize("gathered", [0, 8])
def test_memory_does_not_grow_with_candidates_times_dimensions(monkeypatch, gathered):
    monkeypatch.setattr(exact_index, "_GATHER_COST", gathered)
    queries, table = points(1, 200, 0), points(50_000, 200, 1)
    index, most = ExactIndex(table), np.arange(1, 50_000)
    index.top_k(queries, 10, candidates=most)
    assert peak_of(lambda: index.top_k(queries, 10, candidates=most)) < 5 * 2**20 < table.nbytes / 4


def peak_of(work):
    """Bytes allocated at the peak."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_points_near_the_origin_keep_their_digits_beside_far_ones():
    table = 1000 + points(1000, 4, 0)
    table[0], table[1] = 3e-6, 1e-6
    ids, scores = find_top_k(np.full((1, 4), 1.1e-6, np.float32), table, 2, similarity="euclidean")
    assert ids.tolist() == [[1, 0]]
    np.testing.assert_allclose(scores, [[-2e-7, -3.8e-6]], rtol=1e-4)


def test_vectors_of_packed_records_are_read_where_they_lie():
    records = np.zeros(50, [("id", "u1"), ("vector", "f4", (3,))])
    records["vector"] = points(50, 3, 0)
    queries = points(4, 3, 1)
    for actual, expected in zip(
        find_top_k(queries, records["vector"], 3), find_top_k(queries, points(50, 3, 0), 3), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((1, 2)), np.ones((3, 4)), 1), {}, "2 dimensions but the labels 4"),
        ((np.ones(2), np.ones((3, 2)), 1), {}, "the queries has 1 dimension"),
        ((csr_matrix(np.ones((1, 2))), np.ones((3, 2)), 1), {}, "the queries cannot be read as real numbers .sparse."),
        (([[1, 2], [3]], np.ones((3, 2)), 1), {}, "the queries cannot be read as real numbers"),
        ((np.ones((1, 2)), np.ones((3, 2)) * 1j, 1), {}, "the label table cannot be read as real numbers .complex."),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"bias": ["a", "b", "c"]}, "the bias cannot be read as real numbers"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"threads": -1}, "threads is -1; choose a whole number above 0"),
        ((np.ones((1, 2)), np.ones((3, 2)), 0), {}, "k is 0"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"block_rows": 0}, "block_rows is 0"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"candidates": [3]}, "candidate 3 does not exist"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"candidates": [-1]}, "candidate -1 does not exist"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"candidates": 1}, "the candidates have 0 dimensions"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"candidates": np.empty((2, 0))}, "the candidates have 2 dimensions"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"exclude": np.zeros((2, 3))}, "exclude has 2 rows"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"exclude": np.zeros((1, 2))}, "exclude has 2 columns"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"bias": [1.0]}, "1 biases for 3 labels"),
        ((np.ones((1, 2)), np.ones((3, 2)), 1), {"similarity": "l1"}, "similarity 'l1' is unknown"),
        ((np.full((1, 2), np.nan), np.ones((3, 2)), 1), {}, "query 0 holds a value that is not finite"),
        ((np.ones((1, 2)), np.full((3, 2), np.nan), 1), {}, "the model has diverged"),
        ((np.ones((1, 2)), np.full((3, 2), 1e20), 1), {}, "too long for float32; the model has diverged"),
        ((np.array([[1, 1], [1e20, 0]]), np.ones((3, 2)), 1), {}, "query 1 .* too long for float32"),
    ],
)
def test_a_search_that_cannot_be_made_is_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        find_top_k(*arguments, **options)
