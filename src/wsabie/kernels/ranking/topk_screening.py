"""Candidates for the best k, by byte codes and a bound on their error.

A label's vector is w = s c + r, a scale times bytes plus a residual; a query is q = t b + p likewise. So

    q w = s t (b c) + q r + p s c,    |q r + p s c| <= s (|q| |r| / s + |p| |c|) <= s doubt

where `doubt` takes the largest |r| / s and |c| of a block of labels. A score lies within s doubt of the score of its
code. The k-th best of the lower ends is a bound that the k best labels reach. A label whose upper end is below it by
more than the rounding of float32 sums (`slack`) is none of them. The bound rises block by block. Labels that reach it
in their block are listed, and the list is filtered again when it is full.
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64, UInt32
from wsabie.kernels.compiler import jit, jit_entry, jit_noinline
from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, sift_down
from wsabie.kernels.simd.byte_products import LABELS, multiply_block

_LOWEST = np.finfo(np.float32).min
_QUERY_GROUP = (None, None, None, None)  # so many queries share the codes that are read
_SINGLE_QUERY = (None,)


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
    missed: Float32  # (n,), |p|
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
def _any_reaches(sums, scales, offsets, unit, doubt, bound):
    """Return True if an upper end of the block reaches the bound; a separate leaf, so that it vectorises."""
    reached = False
    for j in range(LABELS):
        reached |= (np.float32(sums[j]) * unit + doubt) * scales[j] + offsets[j] >= bound
    return reached


@jit_noinline
def _record_block(sums, scales, offsets, unit, doubt, first, candidates, i, slack):
    """Offer the labels of a block, whose first is `first`, one by one."""
    lower, names = candidates.lower.scores[i], candidates.lower.labels[i]
    labels, upper, count = candidates.labels[i], candidates.upper[i], candidates.counts[i]
    bound = candidates.bounds[i]
    for j in range(LABELS):
        value = (np.float32(sums[j]) * unit + doubt) * scales[j] + offsets[j]
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
        least = value - 2 * doubt * scales[j]
        if least > lower[0]:
            sift_down(lower, names, len(lower), 0, least, first + j)
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
    doubt = queries.lengths[i] * codes.largest[block, 0] + queries.missed[i] * codes.largest[block, 1]
    if _any_reaches(sums, scales, offsets, unit, doubt, candidates.bounds[i]):
        _record_block(sums, scales, offsets, unit, doubt, block * LABELS, candidates, i, queries.slack[i])


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
