"""The top-k scan: hand-worked rows, the slow twin, ties, NaN, tiles and threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.reference.topk import select_topk

from uncompiled_runs import run_with_and_without_compiler
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking.topk import (
    CHUNK,
    TopKHeap,
    allocate_heap,
    hide_labels,
    scan_topk,
    score_few_queries,
    sort_topk,
)


def best(scores, k, *, width=None):
    """Top k through tiles of `width` labels."""
    heap = allocate_heap(len(scores), k, scores.dtype)
    width = width or max(1, scores.shape[1])
    bad = 0
    for first in range(0, scores.shape[1], width):
        tile = np.ascontiguousarray(scores[:, first : first + width])
        bad += scan_topk(tile, first, heap, 0, len(scores))
    sort_topk(heap, 0, len(scores))
    return heap.labels, heap.scores, bad


few_values = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf])


def test_best_first_and_equal_scores_by_lower_label():
    labels, scores, bad = best(np.array([[1, 3, 3, 2, 3]], np.float32), 4)
    assert labels.tolist() == [[1, 2, 4, 3]]
    assert scores.tolist() == [[3, 3, 3, 2]]
    assert bad == 0


def test_fewer_candidates_than_k_leave_empty_slots():
    labels, scores, _ = best(np.array([[-np.inf, 2.0]], np.float32), 3)
    assert labels.tolist() == [[1, -1, -1]]
    assert scores.tolist() == [[2.0, -np.inf, -np.inf]]


@settings(max_examples=60, deadline=None)
@given(
    scores=arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 3 * CHUNK)), elements=few_values),
    k=st.integers(1, 20),
    width=st.integers(1, 3 * CHUNK),
)
def test_equals_the_slow_twin_under_many_ties_for_any_tiling(scores, k, width):
    labels, values, _ = best(scores, k, width=width)
    expected_labels, expected_values = select_topk(scores, k)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(values, expected_values)


@settings(max_examples=60, deadline=None)
@given(scores=arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 40)), elements=few_values), data=st.data())
def test_rows_that_are_no_heaps_are_ordered_too(scores, data):
    labels = np.array([data.draw(st.permutations(range(scores.shape[1]))) for _ in scores])
    expected = [np.lexsort((row, -theirs)) for row, theirs in zip(labels, scores, strict=True)]
    heap = TopKHeap(scores.copy(), labels.copy())
    sort_topk(heap, 0, len(scores))
    np.testing.assert_array_equal(heap.labels, np.take_along_axis(labels, np.array(expected), axis=1))
    np.testing.assert_array_equal(heap.scores, np.take_along_axis(scores, np.array(expected), axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_equals_the_slow_twin_on_long_rows(dtype, k):
    scores = np.random.default_rng(k).normal(size=(4, 1000)).astype(dtype)
    labels, values, _ = best(scores, k)
    expected_labels, expected_values = select_topk(scores, k)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(values, expected_values)
    assert values.dtype == dtype


def test_permuted_labels_give_permuted_ranks():
    rng = np.random.default_rng(0)
    scores, order = rng.normal(size=(3, 500)).astype(np.float32), rng.permutation(500)
    labels, values, _ = best(scores, 25)
    moved_labels, moved_values, _ = best(scores[:, order], 25)
    np.testing.assert_array_equal(order[moved_labels], labels)
    np.testing.assert_array_equal(moved_values, values)


@pytest.mark.parametrize("place", [0, CHUNK - 1, CHUNK, 2 * CHUNK + 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_nan_is_counted_and_never_enters(place, sign):
    scores = np.random.default_rng(0).normal(size=(2, 2 * CHUNK + 6)).astype(np.float32)
    scores[1, place] = np.copysign(np.float32(np.nan), np.float32(sign))
    labels, _, bad = best(scores, 3)
    assert bad == 1
    assert place not in labels[1]


def test_threads_share_a_tile_by_rows():
    scores = np.random.default_rng(0).normal(size=(7, 300)).astype(np.float32)
    unsplit, shared = allocate_heap(7, 5), allocate_heap(7, 5)
    scan_topk(scores, 0, unsplit, 0, 7)
    for lo, hi in ((0, 3), (3, 3), (3, 7)):
        scan_topk(scores, 0, shared, lo, hi)
    np.testing.assert_array_equal(unsplit.labels, shared.labels)


def test_hidden_labels_become_minus_infinity_only_inside_the_tile():
    tile = np.zeros((2, 3), np.float32)
    hide_labels(tile, 10, LabelLists(np.array([0, 4, 4]), np.array([2, 10, 12, 13], np.int32)))
    assert tile.tolist() == [[-np.inf, 0, -np.inf], [0, 0, 0]]


WITHOUT_JIT = """
import numpy as np
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking import label_ranks, topk
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean
rng = np.random.default_rng(3)
heap = topk.allocate_heap(2, 4)
print(topk.scan_topk(rng.normal(size=(2, 150)).astype(np.float32), 0, heap, 0, 2))
topk.sort_topk(heap, 0, 2)
print(heap.labels.tolist())
table, queries = rng.normal(size=(9, 3)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
listed = LabelLists(np.array([0, 2, 3]), np.array([1, 5, 8], np.int32))
hidden = LabelLists(np.array([0, 1, 1]), np.array([0], np.int32))
for kind in (Dot, Euclidean, Cosine):
    labels, own, other = kind(table, np.zeros(9, np.float32)), np.empty(3, np.float32), np.empty(1, np.float32)
    counts = label_ranks.RankCounts(np.zeros(3, np.int32), np.zeros(3, np.int32))
    scratch = label_ranks.allocate_scratch(2, 3)
    label_ranks.score_listed_labels(labels, queries, listed, own, 0, 2, scratch)
    label_ranks.score_listed_labels(labels, queries, hidden, other, 0, 2, scratch)
    label_ranks.count_query_ranks(labels, queries, listed, own, counts, 0, 2, scratch)
    label_ranks.subtract_excluded_labels(listed, own, hidden, other, counts, 0, 2)
    scores = np.empty((2, 9), np.float32)
    label_ranks.score_rows(labels, queries, scores, 0, 2, scratch)
    print(counts.n_above.tolist(), counts.n_tied.tolist(), own.round(4).tolist(), scores.round(4).tolist())
for distances in (False, True):
    pairs = np.empty((2, 2), np.float32)
    topk.score_pairs(table.ravel(), 3, queries, np.array([[0, 8], [-1, 4]]), distances, pairs, 0, 2)
    print(pairs.round(4).tolist())
"""


def test_the_kernels_say_the_same_without_compilation():
    compiled, plain = run_with_and_without_compiler(WITHOUT_JIT)
    assert compiled == plain
    assert len(compiled.splitlines()) == 7


@pytest.mark.parametrize("n_rows", range(1, 10))
@pytest.mark.parametrize("dim", [1, 7, 16, 100])
def test_inner_products_of_few_rows_are_those_of_float64(n_rows, dim):
    rng = np.random.default_rng(n_rows * dim)
    padded = rng.normal(size=(12, dim + 3)).astype(np.float32)  # what stands behind a vector is not read
    queries = rng.normal(size=(n_rows, dim)).astype(np.float32)
    for first, n_labels in [(0, 12), (1, 11), (5, 2), (11, 1), (3, 0)]:
        out = np.full((n_rows, n_labels), np.nan, np.float32)
        score_few_queries(padded.ravel(), dim + 3, first, queries, out)
        exact = queries.astype(np.float64) @ padded[first : first + n_labels, :dim].T.astype(np.float64)
        np.testing.assert_allclose(out, exact, rtol=0, atol=1e-5)
