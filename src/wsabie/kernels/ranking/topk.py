"""Best k of a row of scores, in one heap per row, updated tile by tile.

A heap slot is a (score, label) pair; the root is the worst of the k. A pair is better when its score is
higher, or equal with a lower label id. Tiles come in ascending order of their labels, so a later label must
be strictly better than the root to enter. Minus infinity marks what is not a candidate: it never enters, and
empty slots keep label -1 and score -inf.

Candidates for the best k, by byte codes and a bound on their error.

A label's vector is w = s c + r, a scale times bytes plus a residual; a query is q = t b + p likewise. So

    q w = s t (b c) + q r + p s c,    |q r + p s c| <= s (|q| |r| / s + |p| |c|) <= s error_bound

where `error_bound` takes the largest |r| / s and |c| of a block of labels. A score lies within s error_bound of the
score of its code. The k-th best of the lower ends is a bound that the k best labels reach. A label whose upper end is
below it by more than the rounding of float32 sums (`slack`) is none of them. The bound rises block by block. Labels
that reach it in their block are listed, and the list is filtered again when it is full.

NumPy's `argpartition` and faiss leave open the order of equal scores (`docs/decisions/exact-search.md`).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import overload

from wsabie.core.arrays import LANES, Array, Float32, Int32, Int64, UInt32
from wsabie.kernels.compiler import INLINE, jit, jit_entry, jit_noinline
from wsabie.kernels.simd.byte_products import LABELS, multiply_block
from wsabie.kernels.simd.vector_registers import has_coordinate_beyond, load_point, to_float32

CHUNK = 64
"""Scores compared with the k-th best at once; one vectorised test rejects most chunks."""
_WIDTH = (None,) * (CHUNK // LANES)
_LOWEST = np.finfo(np.float32).min
_QUERY_GROUP = (None, None, None, None)  # so many queries share the codes that are read
_SINGLE_QUERY = (None,)


class TopKHeap(NamedTuple):
    """Best k of each row: a heap while scanning, best first after `sort_topk`."""

    scores: Array  # (n_rows, k) float32 or float64
    labels: Int64  # (n_rows, k)


def allocate_heap(n_rows: int, k: int, dtype: npt.DTypeLike = np.float32) -> TopKHeap:
    """Return an empty heap: scores -inf, labels -1.

    Examples
    --------
    >>> allocate_heap(1, 2).labels
    array([[-1, -1]])
    """
    return TopKHeap(np.full((n_rows, k), -np.inf, dtype), np.full((n_rows, k), -1, np.int64))


@jit
def _better(score, label, other_score, other_label):
    return score > other_score or (score == other_score and label < other_label)


@jit
def sift_down(scores, labels, size, hole, score, label):
    """Put the pair into the hole and let it sink below everything worse."""
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and _better(scores[child], labels[child], scores[child + 1], labels[child + 1]):
            child += 1
        if not _better(score, label, scores[child], labels[child]):
            break
        scores[hole] = scores[child]
        labels[hole] = labels[child]
        hole = child
    scores[hole] = score
    labels[hole] = label


@jit_noinline
def _offer(row, start, stop, first, scores, labels):
    """Offer row[start:stop] to the heap one by one; return how many were NaN."""
    bad = 0
    for j in range(start, stop):
        score = row[j]
        if not (score <= scores[0]):
            if score != score:
                bad += 1
            else:
                sift_down(scores, labels, len(scores), 0, score, first + j)
    return bad


def _chunk_beyond(row, start, worst):
    """Return True if a score of the chunk is better than `worst`, or NaN."""
    beyond = False
    for j in range(start, start + CHUNK):
        beyond |= not (row[j] <= worst)
    return beyond


@overload(_chunk_beyond, jit_options=INLINE)  # `dispatch` tells NamedTuples apart, and not the numbers of arrays
def _(row, start, worst):
    if row.dtype == types.float32:  # registers hold no others
        return lambda row, start, worst: has_coordinate_beyond(load_point(row[start : start + CHUNK], _WIDTH), worst)
    return _chunk_beyond


@jit
def _scan_row(row, first, scores, labels):
    bad = 0
    end = len(row) // CHUNK * CHUNK
    for start in range(0, end, CHUNK):
        if _chunk_beyond(row, start, scores[0]):
            bad += _offer(row, start, start + CHUNK, first, scores, labels)
    return bad + _offer(row, end, len(row), first, scores, labels)


@jit_entry
def scan_topk(tile, first, heap, lo, hi):
    """Offer the tile's rows lo..hi-1 to the same rows of the heap; column 0 is label `first`.

    Parameters
    ----------
    tile : (n_rows, width) float32 or float64
    first : int
    heap : TopKHeap with n_rows rows, changed in place
    lo, hi : int
        So that several threads can share one tile.

    Returns
    -------
    int
        Number of NaN scores, which never enter the heap.
    """
    bad = 0
    for i in range(lo, hi):
        bad += _scan_row(tile[i], first, heap.scores[i], heap.labels[i])
    return bad


@jit_entry
def sort_topk(heap, lo, hi):
    """Sort any rows lo..hi-1 in place: best first, ties by label id, empty slots last."""
    for i in range(lo, hi):
        scores, labels = heap.scores[i], heap.labels[i]
        for hole in range(len(scores) // 2 - 1, -1, -1):
            sift_down(scores, labels, len(scores), hole, scores[hole], labels[hole])
        for size in range(len(scores) - 1, 0, -1):
            score, label = scores[size], labels[size]
            scores[size], labels[size] = scores[0], labels[0]
            sift_down(scores, labels, size, 0, score, label)


@jit_entry
def hide_labels(tile, first, hidden):
    """Set the labels in `hidden`, Lists over the tile's rows, to -inf; column 0 is label `first`.

    Labels outside the tile's columns are passed over.
    """
    for i in range(len(tile)):
        listed = hidden.labels[hidden.indptr[i] : hidden.indptr[i + 1]]
        for p in range(np.searchsorted(listed, first), len(listed)):
            if listed[p] >= first + tile.shape[1]:
                break
            tile[i, listed[p] - first] = -np.inf


@jit_entry
def score_pairs(table, stride, queries, labels, distances, out, lo, hi):
    """Compute inner products, or squared distances, of the rows lo..hi-1 with the labels listed for each.

    The order of the sum depends on the number of dimensions alone: equal vectors have equal bits, wherever they stand,
    which a matrix product does not promise.

    Parameters
    ----------
    table : 1-D float32, or halves (`wsabie.kernels.ranking.topk`)
        Label y is table[y * stride : y * stride + dim].
    stride : int
    queries : (n_rows, dim) float32, C order
    labels : (n_rows, k) int64
        -1: no label, which scores -inf (as a distance inf).
    distances : bool
    out : (n_rows, k) float32, filled in place
    lo, hi : int
    """
    for i in range(lo, hi):
        q = queries[i]
        for j in range(labels.shape[1]):
            y = labels[i, j]
            w = table[max(y, 0) * stride :]
            if y < 0:
                out[i, j] = np.float32(math.inf) if distances else np.float32(-math.inf)
            elif distances:
                out[i, j] = _squared_distance(q, w)
            else:
                out[i, j] = _product(q, w)


@jit
def _two_with_four(v, w, q0, q1, q2, q3):
    """Return the inner products of two vectors with four queries; each number is read once for several."""
    v0 = v1 = v2 = v3 = w0 = w1 = w2 = w3 = np.float32(0)
    for d in range(len(q0)):
        v0 += to_float32(v[d]) * q0[d]
        v1 += to_float32(v[d]) * q1[d]
        v2 += to_float32(v[d]) * q2[d]
        v3 += to_float32(v[d]) * q3[d]
        w0 += to_float32(w[d]) * q0[d]
        w1 += to_float32(w[d]) * q1[d]
        w2 += to_float32(w[d]) * q2[d]
        w3 += to_float32(w[d]) * q3[d]
    return v0, v1, v2, v3, w0, w1, w2, w3


@jit_entry
def score_few_queries(table, stride, first, queries, out):
    """Compute inner products of few queries with the labels first, first + 1, ...

    A matrix product first packs the table, which takes longer than few products. This kernel reads each label's vector
    once, in place. The order of a sum differs at the edges.

    Parameters
    ----------
    table : 1-D float32 or halves
        As for `score_pairs`.
    stride, first : int
    queries : (n_rows, dim) float32, C order
    out : (n_rows, n_labels) float32, filled in place
    """
    n, width = out.shape
    if n == 1:
        _score_one(table, stride, first, queries[0], out[0])
        return
    n_in_fours, pairs = n - n % 4, width - width % 2
    for j in range(0, pairs, 2):
        v = table[(first + j) * stride :]
        w = table[(first + j + 1) * stride :]
        for i in range(0, n_in_fours, 4):
            (
                out[i, j], out[i + 1, j], out[i + 2, j], out[i + 3, j],
                out[i, j + 1], out[i + 1, j + 1], out[i + 2, j + 1], out[i + 3, j + 1],
            ) = _two_with_four(v, w, queries[i], queries[i + 1], queries[i + 2], queries[i + 3])  # fmt: skip
        for i in range(n_in_fours, n):
            out[i, j] = _product(queries[i], v)
            out[i, j + 1] = _product(queries[i], w)
    for j in range(pairs, width):
        for i in range(n):
            out[i, j] = _product(queries[i], table[(first + j) * stride :])


@jit
def _score_one(table, stride, first, q, out):
    """Score a single query with four vectors at a time, so that its numbers are read once for them."""
    fours = len(out) - len(out) % 4
    for j in range(0, fours, 4):
        offset = (first + j) * stride
        t, u, v, w = (
            table[offset:],
            table[offset + stride :],
            table[offset + 2 * stride :],
            table[offset + 3 * stride :],
        )
        a = b = c = d = np.float32(0)
        for k in range(len(q)):
            a += to_float32(t[k]) * q[k]
            b += to_float32(u[k]) * q[k]
            c += to_float32(v[k]) * q[k]
            d += to_float32(w[k]) * q[k]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
    for j in range(fours, len(out)):
        out[j] = _product(q, table[(first + j) * stride :])


@jit
def _product(q, w):
    total = np.float32(0)
    for d in range(len(q)):
        total += q[d] * to_float32(w[d])
    return total


@jit
def _squared_distance(q, w):
    total = np.float32(0)
    for d in range(len(q)):
        gap = q[d] - to_float32(w[d])
        total += gap * gap
    return total


class ByteCodes(NamedTuple):
    """Codes of labels, in blocks of LABELS; padding has an offset of -inf."""

    words: UInt32  # (n_blocks * n_words * LABELS,): of a block for each four coordinates a word per label
    scales: Float32  # (n_blocks * LABELS,), s
    offsets: Float32  # (n_blocks * LABELS,), added to the inner product
    largest: Float32  # (n_blocks, 2): |r| / s, |c|


class ByteQueries(NamedTuple):
    """Queries in bytes, with the lengths of their residuals."""

    words: UInt32  # (n, n_words)
    starts: Int32  # (n,), -128 times the sum of the bytes
    scales: Float32  # (n,), t
    lengths: Float32  # (n,), |q|
    residual_norms: Float32  # (n,), |p|
    slack: Float32  # (n,)


class TopKCandidates(NamedTuple):
    """Candidates for the best: of each query the lower ends, the bound, and a list."""

    lower: TopKHeap  # (n, k)
    bounds: Float32  # (n,): labels with a lower upper end are out
    labels: Int64  # (n, room)
    upper: Float32  # (n, room)
    counts: Int64  # (n,); -1: there was no room for all


def allocate_candidates(n: int, k: int, room: int) -> TopKCandidates:
    """Allocate empty lists of candidates."""
    return TopKCandidates(
        allocate_heap(n, k),
        np.full(n, _LOWEST, np.float32),
        np.empty((n, room), np.int64),
        np.empty((n, room), np.float32),
        np.zeros(n, np.int64),
    )


@jit
def _any_reaches(sums, scales, offsets, unit, error_bound, bound):
    """Return True if an upper end of the block reaches the bound; a separate leaf, so that it vectorises."""
    reached = False
    for j in range(LABELS):
        reached |= (np.float32(sums[j]) * unit + error_bound) * scales[j] + offsets[j] >= bound
    return reached


@jit_noinline
def _record_block(sums, scales, offsets, unit, error_bound, first, candidates, i, slack):
    """Offer the labels of a block, whose first is `first`, one by one."""
    lower, lower_labels = candidates.lower.scores[i], candidates.lower.labels[i]
    labels, upper, count = candidates.labels[i], candidates.upper[i], candidates.counts[i]
    bound = candidates.bounds[i]
    for j in range(LABELS):
        value = (np.float32(sums[j]) * unit + error_bound) * scales[j] + offsets[j]
        if not value >= bound:
            continue
        if count == len(labels):
            count = _compact_list(labels, upper, count, bound)
            if 2 * count > len(labels):
                candidates.counts[i] = -1
                candidates.bounds[i] = np.float32(np.inf)
                return
        labels[count], upper[count] = first + j, value
        count += 1
        least = value - 2 * error_bound * scales[j]
        if least > lower[0]:
            sift_down(lower, lower_labels, len(lower), 0, least, first + j)
            bound = max(bound, lower[0] - slack)
    candidates.counts[i], candidates.bounds[i] = count, bound


@jit
def _compact_list(labels, upper, count, bound):
    """Drop the labels below the bound from a list; return how many stay."""
    n_left = 0
    for p in range(count):
        if upper[p] >= bound:
            labels[n_left], upper[n_left] = labels[p], upper[p]
            n_left += 1
    return n_left


@jit
def _screen_block(codes, queries, candidates, sums, block, i):
    columns = slice(block * LABELS, (block + 1) * LABELS)
    scales, offsets, unit = codes.scales[columns], codes.offsets[columns], queries.scales[i]
    error_bound = queries.lengths[i] * codes.largest[block, 0] + queries.residual_norms[i] * codes.largest[block, 1]
    if _any_reaches(sums, scales, offsets, unit, error_bound, candidates.bounds[i]):
        _record_block(sums, scales, offsets, unit, error_bound, block * LABELS, candidates, i, queries.slack[i])


@jit_entry
def screen_labels(codes, queries, candidates, sums, lo, hi):
    """List the labels of the blocks lo..hi-1 that may be among the best of each query.

    Parameters
    ----------
    codes : ByteCodes
    queries : ByteQueries
    candidates : TopKCandidates, changed in place
    sums : (4, LABELS) int32
        Scratch.
    lo, hi : int
    """
    n, n_words = queries.words.shape
    n_grouped = n - n % len(_QUERY_GROUP)
    for block in range(lo, hi):
        start = block * n_words * LABELS
        for i in range(0, n_grouped, len(_QUERY_GROUP)):
            multiply_block(codes.words, start, queries.words, queries.starts, i, _QUERY_GROUP, sums)
            for row in range(len(_QUERY_GROUP)):
                _screen_block(codes, queries, candidates, sums[row], block, i + row)
        for i in range(n_grouped, n):
            multiply_block(codes.words, start, queries.words, queries.starts, i, _SINGLE_QUERY, sums)
            _screen_block(codes, queries, candidates, sums[0], block, i)


@jit_entry
def drop_below_bounds(candidates, bounds):
    """Keep the labels that reach the final bounds, (n,) float32, of all blocks, padded with -1."""
    for i in range(len(candidates.counts)):
        labels = candidates.labels[i]
        count = max(candidates.counts[i], 0)
        count = _compact_list(labels, candidates.upper[i], count, bounds[i])
        labels[count:] = -1
        if candidates.counts[i] >= 0:
            candidates.counts[i] = count
