"""Who may be among the best k, by codes of a byte a coordinate and a bound on what they leave out.

A label's vector is w = s c + r, a scale times bytes and the rest, a query's q = t b + p likewise. So

    q w = s t (b c) + q r + p s c,    |q r + p s c| <= s (|q| |r| / s + |p| |c|) <= s doubt

where `doubt` takes the largest |r| / s and |c| of a block of labels. A score lies between what the codes say less and
more s doubt. The k-th best of the lower ends is a bound that the k best labels reach or pass: whose upper end falls
short of it, by more than sums in float32 are off (`slack`), is none of them. The bound rises while blocks pass by;
whoever reached it when their block came is written down, and looked at again when there is no room left.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.kernels._jit import cold, entry, jit
from wsabie.kernels.byte_products import LABELS, block_products
from wsabie.kernels.topk import Heap, new_heap, sift_down

_LOWEST = np.finfo(np.float32).min
_TOGETHER = (None, None, None, None)  # so many queries share the codes that are read
_ONE = (None,)


class ByteCodes(NamedTuple):
    """Codes of labels, in blocks of LABELS; what is no label has an offset of -inf."""

    words: Any  # 1-D uint32: of a block for each four coordinates a word per label
    scales: Any  # (n_blocks * LABELS,) float32, s
    offsets: Any  # (n_blocks * LABELS,) float32, added to the inner product
    largest: Any  # (n_blocks, 2) float32: |r| / s, |c|


class ByteQueries(NamedTuple):
    """Queries in bytes, and what these leave out."""

    words: Any  # (n, n_words) uint32
    starts: Any  # (n,) int32, -128 times the sum of the bytes
    scales: Any  # (n,) float32, t
    lengths: Any  # (n,) float32, |q|
    missed: Any  # (n,) float32, |p|
    slack: Any  # (n,) float32


class InSight(NamedTuple):
    """Who may be among the best: of each query the lower ends, the bound, and a list."""

    lower: Heap  # (n, k)
    bounds: Any  # (n,) float32: upper ends below this are out
    labels: Any  # (n, room) int64
    upper: Any  # (n, room) float32
    counts: Any  # (n,) int64; -1: there was no room for all


def in_sight(n: int, k: int, room: int) -> InSight:
    """Nobody yet."""
    return InSight(
        new_heap(n, k),
        np.full(n, _LOWEST, np.float32),
        np.empty((n, room), np.int64),
        np.empty((n, room), np.float32),
        np.zeros(n, np.int64),
    )


@jit
def _any_reaches(sums, scales, offsets, unit, doubt, bound):
    """Whether an upper end of the block reaches the bound; a leaf of its own, or it is not vectorised."""
    reached = False
    for j in range(LABELS):
        reached |= (np.float32(sums[j]) * unit + doubt) * scales[j] + offsets[j] >= bound
    return reached


@cold
def _write_down(sums, scales, offsets, unit, doubt, first, found, i, slack):
    """Offer the labels of a block, whose first is `first`, one by one."""
    lower, names = found.lower.scores[i], found.lower.labels[i]
    labels, upper, count = found.labels[i], found.upper[i], found.counts[i]
    bound = found.bounds[i]
    for j in range(LABELS):
        value = (np.float32(sums[j]) * unit + doubt) * scales[j] + offsets[j]
        if not value >= bound:
            continue
        if count == len(labels):
            count = _cleared(labels, upper, count, bound)
            if 2 * count > len(labels):
                found.counts[i] = -1
                found.bounds[i] = np.float32(np.inf)
                return
        labels[count], upper[count] = first + j, value
        count += 1
        least = value - 2 * doubt * scales[j]
        if least > lower[0]:
            sift_down(lower, names, len(lower), 0, least, first + j)
            bound = max(bound, lower[0] - slack)
    found.counts[i], found.bounds[i] = count, bound


@jit
def _cleared(labels, upper, count, bound):
    """Drop from a list who falls short of the bound; returns how many stay."""
    kept = 0
    for p in range(count):
        if upper[p] >= bound:
            labels[kept], upper[kept] = labels[p], upper[p]
            kept += 1
    return kept


@jit
def _look(codes, queries, found, sums, block, i):
    here = slice(block * LABELS, (block + 1) * LABELS)
    scales, offsets, unit = codes.scales[here], codes.offsets[here], queries.scales[i]
    doubt = queries.lengths[i] * codes.largest[block, 0] + queries.missed[i] * codes.largest[block, 1]
    if _any_reaches(sums, scales, offsets, unit, doubt, found.bounds[i]):
        _write_down(sums, scales, offsets, unit, doubt, block * LABELS, found, i, queries.slack[i])


@entry
def screen(codes, queries, found, sums, lo, hi):
    """Write down who of the blocks lo..hi-1 may be among the best of each query.

    Parameters
    ----------
    codes : ByteCodes
    queries : ByteQueries
    found : InSight, changed in place
    sums : (4, LABELS) int32
        Room to work in.
    lo, hi : int
    """
    n, n_words = queries.words.shape
    whole = n - n % len(_TOGETHER)
    for block in range(lo, hi):
        start = block * n_words * LABELS
        for i in range(0, whole, len(_TOGETHER)):
            block_products(codes.words, start, queries.words, queries.starts, i, _TOGETHER, sums)
            for row in range(len(_TOGETHER)):
                _look(codes, queries, found, sums[row], block, i + row)
        for i in range(whole, n):
            block_products(codes.words, start, queries.words, queries.starts, i, _ONE, sums)
            _look(codes, queries, found, sums[0], block, i)


@entry
def settle(found, bounds):
    """Leave who reaches the bounds, (n,) float32, that all blocks together have brought; -1 behind them."""
    for i in range(len(found.counts)):
        labels = found.labels[i]
        count = max(found.counts[i], 0)
        count = _cleared(labels, found.upper[i], count, bounds[i])
        labels[count:] = -1
        if found.counts[i] >= 0:
            found.counts[i] = count
