"""Exact ranks of chosen labels: for each, how many other labels score strictly above it and how many tie with it.

`count_ranks` takes scores; `rank_counts` takes queries and a label table and makes the scores itself, in an order of additions
that depends on nothing but the row's number, so that the bits are the same for any number of threads and any split of the rows
(validation figures steer training, so they must not depend on a threaded BLAS).

The product of `rank_counts` is register-blocked: four queries against a tile of 128 labels stored dimension by dimension, so
that the compiler vectorises over labels and no sum is ever reordered.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from wsabie.kernels._jit import FLAGS, entry, jit
from wsabie.kernels.similarity import Cosine, Dot, Euclidean

TILE = 128
QUAD = 4
_TINY = np.float32(1e-6)


class Lists(NamedTuple):
    """A list of label ids per row: `labels[indptr[i]:indptr[i + 1]]`, sorted, no duplicates."""

    indptr: Any  # (n_rows + 1,) int64
    labels: Any  # (nnz,) int32


class Counts(NamedTuple):
    """For each listed label of each row, in the order of `Lists.labels`."""

    above: Any  # (nnz,) int32: labels of the row with a strictly higher score
    tied: Any  # (nnz,) int32: other labels of the row with the same score


class Queries(NamedTuple):
    """Queries in quads that start at multiples of four."""

    rows: Any  # (n_rows_padded, dim_even) float32
    norms2: Any  # (n_rows_padded,) float32
    origin: Any  # number of the first row


class Tile(NamedTuple):
    """Up to TILE labels, one column each, and the four queries' scores for them."""

    values: Any  # (dim_even, TILE) float32
    bias: Any  # (TILE,) float32
    norm2: Any  # (TILE,) float32, squared lengths
    labels: Any  # (TILE,) int32
    scores: Any  # (QUAD, TILE) float32


@jit
def _compare(scores, width, score):
    """Labels strictly above `score` and labels equal to it; NaN counts as above, so that it never flatters."""
    above = 0
    tied = 0
    for j in range(width):
        above += not (scores[j] <= score)
        tied += scores[j] == score
    return above, tied


@jit
def _leave_out(counts, start, stop, own, other):
    """Take one label with score `other` out of the counts start..stop-1, whose own scores are `own`."""
    for p in range(start, stop):
        counts.above[p] -= not (other <= own[p - start])
        counts.tied[p] -= other == own[p - start]


def _make_count(checksum):
    def count_ranks(scores, listed, excluded, counts, lo, hi):
        """Count for the rows lo..hi-1 of a matrix of scores.

        Parameters
        ----------
        scores : (n_rows, n_labels) float32 or float64
        listed, excluded : Lists over the same rows
            Labels to rank, and labels that are no candidates; no label is in both.
        counts : Counts, aligned with `listed.labels`, filled in place
        lo, hi : int
        """
        _ = checksum
        for i in range(lo, hi):
            row = scores[i]
            start, stop = listed.indptr[i], listed.indptr[i + 1]
            own = row[listed.labels[start:stop]]
            for p in range(start, stop):
                above, tied = _compare(row, len(row), own[p - start])
                counts.above[p] = above
                counts.tied[p] = max(tied - 1, 0)
            for e in range(excluded.indptr[i], excluded.indptr[i + 1]):
                _leave_out(counts, start, stop, own, row[excluded.labels[e]])

    return count_ranks


def _finish_dot(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        scores[j] += tile.bias[j]


def _finish_euclidean(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        squared = norm2 + tile.norm2[j] - scores[j] - scores[j]
        scores[j] = tile.bias[j] - np.float32(math.sqrt(max(squared, np.float32(0))))


def _finish_cosine(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        lengths = np.float32(math.sqrt(norm2 * tile.norm2[j]))
        scores[j] = scores[j] / max(lengths, _TINY) + tile.bias[j]


_FINISH: dict[type, Any] = {Dot: _finish_dot, Euclidean: _finish_euclidean, Cosine: _finish_cosine}


def _finish(labels: Any, tile: Any, norm2: Any, k: int) -> None:
    """Turn the inner products of query k into scores, by the type of `labels`."""
    _FINISH[type(labels)](labels, tile, norm2, k)


@overload(_finish, jit_options=FLAGS)
def _finish_of_type(labels, tile, norm2, k):
    return _FINISH[labels.instance_class]


@jit
def _new_tile(dim):
    even = dim + dim % 2
    values = np.zeros((even, TILE), np.float32)
    small = np.zeros((2, TILE), np.float32)
    return Tile(values, small[0], small[1], np.zeros(TILE, np.int32), np.zeros((QUAD, TILE), np.float32))


@jit
def _fill(tile, labels, width):
    """Load the rows named by tile.labels[:width]."""
    for j in range(width):
        y = tile.labels[j]
        tile.bias[j] = labels.bias[y]
        for d in range(labels.table.shape[1]):
            tile.values[d, j] = labels.table[y, d]
    tile.norm2[:] = 0
    for d in range(len(tile.values)):
        for j in range(TILE):
            tile.norm2[j] += tile.values[d, j] * tile.values[d, j]


@jit
def _multiply(queries, tile):
    """tile.scores[k, j] = queries[k] . column j, always summed from the first dimension to the last."""
    q0, q1, q2, q3 = queries[0], queries[1], queries[2], queries[3]
    s0, s1, s2, s3 = tile.scores[0], tile.scores[1], tile.scores[2], tile.scores[3]
    tile.scores[:] = 0
    for d in range(0, len(tile.values), 2):
        a, b = tile.values[d], tile.values[d + 1]
        a0, a1, a2, a3 = q0[d], q1[d], q2[d], q3[d]
        b0, b1, b2, b3 = q0[d + 1], q1[d + 1], q2[d + 1], q3[d + 1]
        for j in range(TILE):
            s0[j] += a0 * a[j] + b0 * b[j]
            s1[j] += a1 * a[j] + b1 * b[j]
            s2[j] += a2 * a[j] + b2 * b[j]
            s3[j] += a3 * a[j] + b3 * b[j]


@jit
def _score(labels, queries, norms2, tile):
    _multiply(queries, tile)
    for k in range(QUAD):
        _finish(labels, tile, norms2[k], k)


@jit
def _load_queries(queries, lo, hi):
    """Rows lo..hi-1 in quads that begin at multiples of four, missing rows and the odd dimension zero."""
    origin = lo // QUAD * QUAD
    dim = queries.shape[1]
    rows = np.zeros(((hi - origin + QUAD - 1) // QUAD * QUAD, dim + dim % 2), np.float32)
    rows[lo - origin : hi - origin, :dim] = queries[lo:hi]
    norms2 = np.zeros(len(rows), np.float32)
    for i in range(len(rows)):
        for d in range(dim):
            norms2[i] += rows[i, d] * rows[i, d]
    return Queries(rows, norms2, origin)


@jit
def _score_quad(labels, queries, first, tile):
    """Scores of the queries first..first+3 for the tile."""
    at = first - queries.origin
    _multiply(queries.rows[at : at + QUAD], tile)
    for k in range(QUAD):
        _finish(labels, tile, queries.norms2[at + k], k)


@jit
def _score_listed(labels, queries, lists, first, lo, hi, tile, out):
    """out[p - p0] = score of the p-th listed label, for the rows of the quad at `first`; p0 is the quad's first entry.

    Made by the same code as the scores they are compared with, so that a label always ties with itself.
    """
    lo, hi = max(lo, first), min(hi, first + QUAD)
    p0, stop = lists.indptr[lo], lists.indptr[hi]
    row = lo
    for start in range(p0, stop, TILE):
        width = min(TILE, stop - start)
        tile.labels[:width] = lists.labels[start : start + width]
        _fill(tile, labels, width)
        _score_quad(labels, queries, first, tile)
        for p in range(start, start + width):
            while p >= lists.indptr[row + 1]:
                row += 1
            out[p - p0] = tile.scores[row - first, p - start]


@jit
def _count_tile(lists, first, lo, hi, tile, width, own, counts):
    """Add the tile's labels to the counts of the quad at `first`."""
    for i in range(max(lo, first), min(hi, first + QUAD)):
        for p in range(lists.indptr[i], lists.indptr[i + 1]):
            above, tied = _compare(tile.scores[i - first], width, own[p])
            counts.above[p] += above
            counts.tied[p] += tied


@jit
def _drop_excluded(listed, excluded, lo, hi, own, other, counts):
    """Take the excluded labels, whose scores are `other` in the order of the lists, out of the counts."""
    e0 = excluded.indptr[lo]
    for i in range(lo, hi):
        start, stop = listed.indptr[i], listed.indptr[i + 1]
        for e in range(excluded.indptr[i], excluded.indptr[i + 1]):
            _leave_out(counts, start, stop, own[start - listed.indptr[lo] :], other[e - e0])
