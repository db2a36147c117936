"""Exact ranks of listed labels: counts of other labels that score strictly above each, and of ties.

`count_ranks` takes scores; `score_listed_labels` and `count_query_ranks` take queries and a label table and make the
scores themselves, in an order of additions that depends on nothing but the row's number, so that the bits are
the same for any number of threads and any split of the rows (validation figures steer training, so they must
not depend on a threaded BLAS).

The product of `count_query_ranks` is register-blocked: four queries against a tile of 128 labels stored dimension
by dimension, so that the compiler vectorises over labels and no sum is ever reordered.
"""

import math
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Float32, Int32
from wsabie.kernels.compiler import FLAGS, jit, jit_entry, jit_noinline
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding.similarity import SHORTEST, Cosine, Dot, Euclidean

TILE = 128
QUAD = 4


class RankCounts(NamedTuple):
    """Counts for each listed label of each row, in the order of `LabelLists.labels`."""

    n_above: Array  # (nnz,) int32: labels of the row with a strictly higher score
    n_tied: Array  # (nnz,) int32: other labels of the row with the same score


class LabelTile(NamedTuple):
    """Up to TILE labels, one column each, and the four queries' scores for them."""

    values: Float32  # (dim_even, TILE)
    bias: Float32  # (TILE,)
    norm2: Float32  # (TILE,), squared lengths
    labels: Int32  # (TILE,)
    scores: Float32  # (QUAD, TILE)


class RankScratch(NamedTuple):
    """Scratch of one thread, since kernels allocate nothing."""

    rows: Float32  # (n_rows_padded, dim_even), queries in quads that start at multiples of four
    norms2: Float32  # (n_rows_padded,)
    tile: LabelTile


def allocate_scratch(n_rows: int, dim: int) -> RankScratch:
    """Allocate scratch for `n_rows` queries, wherever they begin."""
    even, padded = dim + dim % 2, (n_rows // QUAD + 2) * QUAD
    values = np.zeros((even, TILE), np.float32)
    bias, norm2 = np.zeros((2, TILE), np.float32)
    tile = LabelTile(values, bias, norm2, np.zeros(TILE, np.int32), np.zeros((QUAD, TILE), np.float32))
    return RankScratch(np.zeros((padded, even), np.float32), np.zeros(padded, np.float32), tile)


@jit
def _compare(scores, width, score):
    """Count the labels strictly above `score` and those equal to it; NaN counts as above."""
    n_above = 0
    tied = 0
    for j in range(width):
        n_above += not (scores[j] <= score)
        tied += scores[j] == score
    return n_above, tied


@jit_entry
def count_ranks(scores, listed, listed_scores, counts, lo, hi):
    """Count for the rows lo..hi-1 of a matrix of scores.

    Parameters
    ----------
    scores : (n_rows, n_labels) float32 or float64
    listed : LabelLists over the same rows
        The labels to rank.
    listed_scores : (nnz,) dtype of the scores
        Filled in place with the scores of the listed labels.
    counts : RankCounts, aligned with `listed.labels`, filled in place
    lo, hi : int
    """
    for i in range(lo, hi):
        row = scores[i]
        for p in range(listed.indptr[i], listed.indptr[i + 1]):
            listed_scores[p] = row[listed.labels[p]]
            n_above, tied = _compare(row, len(row), listed_scores[p])
            counts.n_above[p], counts.n_tied[p] = n_above, tied - 1


@dispatch("labels", flags=FLAGS)
def _finish(labels, tile, norm2, k):
    """Turn the inner products of query k into scores, by the type of `labels`."""


@_finish.register(Dot)
def _finish_dot(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        scores[j] += tile.bias[j]


@_finish.register(Euclidean)
def _finish_euclidean(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        squared = norm2 + tile.norm2[j] - scores[j] - scores[j]
        scores[j] = tile.bias[j] - np.float32(math.sqrt(max(squared, np.float32(0))))


@_finish.register(Cosine)
def _finish_cosine(labels, tile, norm2, k):
    scores = tile.scores[k]
    for j in range(TILE):
        squares = max(norm2, SHORTEST * SHORTEST) * max(tile.norm2[j], SHORTEST * SHORTEST)
        scores[j] = scores[j] / np.float32(math.sqrt(squares)) + tile.bias[j]


@jit_noinline
def _fill(tile, labels, width):
    """Load the rows named by tile.labels[:width]."""
    for j in range(width):
        y = tile.labels[j]
        tile.bias[j] = labels.bias[y]
        for d in range(labels.table.shape[1]):
            tile.values[d, j] = labels.table[y, d]
    for j in range(TILE):
        tile.norm2[j] = 0
    for d in range(len(tile.values)):
        for j in range(TILE):
            tile.norm2[j] += tile.values[d, j] * tile.values[d, j]


@jit_noinline
def _fill_from(tile, labels, start):
    """Load the rows from `start` on that have room; return how many."""
    width = min(TILE, len(labels.table) - start)
    for j in range(width):
        tile.labels[j] = start + j
    _fill(tile, labels, width)
    return width


@jit
def _multiply(queries, tile):
    """Write tile.scores[k, j] = queries[k] . column j, summed from the first dimension to the last."""
    q0, q1, q2, q3 = queries[0], queries[1], queries[2], queries[3]
    s0, s1, s2, s3 = tile.scores[0], tile.scores[1], tile.scores[2], tile.scores[3]
    for j in range(TILE):
        s0[j] = s1[j] = s2[j] = s3[j] = 0
    for d in range(0, len(tile.values), 2):
        a, b = tile.values[d], tile.values[d + 1]
        a0, a1, a2, a3 = q0[d], q1[d], q2[d], q3[d]
        b0, b1, b2, b3 = q0[d + 1], q1[d + 1], q2[d + 1], q3[d + 1]
        for j in range(TILE):
            s0[j] += a0 * a[j] + b0 * b[j]
            s1[j] += a1 * a[j] + b1 * b[j]
            s2[j] += a2 * a[j] + b2 * b[j]
            s3[j] += a3 * a[j] + b3 * b[j]


@jit_noinline
def _load_queries(queries, lo, hi, scratch):
    """Load rows lo..hi-1, with zeros in the odd dimension; return the first row of the first quad."""
    origin = lo // QUAD * QUAD
    rows, norms2 = scratch.rows, scratch.norms2
    for i in range(lo - origin, hi - origin):
        norms2[i] = 0
        for d in range(queries.shape[1]):
            rows[i, d] = queries[origin + i, d]
            norms2[i] += rows[i, d] * rows[i, d]
    return origin


@jit_noinline  # one piece of machine code for listed labels and for tiles: equal vectors, equal bits
def _score_quad(labels, scratch, offset):
    """Score the four loaded queries from `offset` on for the tile."""
    _multiply(scratch.rows[offset : offset + QUAD], scratch.tile)
    for k in range(QUAD):
        _finish(labels, scratch.tile, scratch.norms2[offset + k], k)


@jit_entry
def score_listed_labels(labels, queries, lists, out, lo, hi, scratch):
    """Write out[p] = score of the p-th listed label, for the rows lo..hi-1 of a matrix of queries.

    Parameters
    ----------
    labels : Dot, Euclidean or Cosine
        `table` (n_labels, dim) float32 and `bias` (n_labels,) float32.
    queries : (n_rows, dim) float32
    lists : LabelLists over the rows of `queries`
    out : (nnz,) float32, aligned with `lists.labels`, filled in place
    lo, hi : int
    scratch : RankScratch for hi - lo rows or more
    """
    origin, tile = _load_queries(queries, lo, hi, scratch), scratch.tile
    for first in range(origin, hi, QUAD):
        row, last = max(lo, first), min(hi, first + QUAD)
        stop = lists.indptr[last]
        for start in range(lists.indptr[row], stop, TILE):
            width = min(TILE, stop - start)
            for j in range(width):
                tile.labels[j] = lists.labels[start + j]
            _fill(tile, labels, width)
            _score_quad(labels, scratch, first - origin)
            for p in range(start, start + width):
                while p >= lists.indptr[row + 1]:
                    row += 1
                out[p] = tile.scores[row - first, p - start]


@jit
def _count_row(scores, start, width, listed, listed_scores, counts, i):
    """Compare the labels start..start+width-1 with the listed labels of row i, each with all but itself."""
    for p in range(listed.indptr[i], listed.indptr[i + 1]):
        n_above, tied = _compare(scores, width, listed_scores[p])
        j = listed.labels[p] - start
        if 0 <= j < width:
            n_above -= not (scores[j] <= listed_scores[p])
            tied -= scores[j] == listed_scores[p]
        counts.n_above[p] += n_above
        counts.n_tied[p] += tied


@jit_entry
def count_query_ranks(labels, queries, listed, listed_scores, counts, lo, hi, scratch):
    """Count for the rows lo..hi-1 of a matrix of queries; chunks of 256 rows or more amortise the tiles.

    Parameters
    ----------
    labels, queries : as for `score_listed_labels`
    listed : LabelLists over the rows of `queries`
        The labels to rank.
    listed_scores : (nnz,) float32
        Their scores, by `score_listed_labels`.
    counts : RankCounts, aligned with `listed.labels`, zero at the start, added to in place
    lo, hi : int
        So that several threads can share the rows; the result does not depend on how they are split.
    scratch : RankScratch for hi - lo rows or more
    """
    origin, tile = _load_queries(queries, lo, hi, scratch), scratch.tile
    for start in range(0, len(labels.table), TILE):
        width = _fill_from(tile, labels, start)
        for first in range(origin, hi, QUAD):
            row, last = max(lo, first), min(hi, first + QUAD)
            if listed.indptr[row] == listed.indptr[last]:
                continue
            _score_quad(labels, scratch, first - origin)
            for i in range(row, last):
                _count_row(tile.scores[i - first], start, width, listed, listed_scores, counts, i)


@jit_entry
def score_rows(labels, queries, out, lo, hi, scratch):
    """Write out[i, y] = score of label y for the rows lo..hi-1; bits equal those of `score_listed_labels`.

    Parameters
    ----------
    labels, queries : as for `score_listed_labels`
    out : (n_rows, n_labels) float32, filled in place
    lo, hi : int
    scratch : RankScratch for hi - lo rows or more
    """
    origin, tile = _load_queries(queries, lo, hi, scratch), scratch.tile
    for start in range(0, len(labels.table), TILE):
        width = _fill_from(tile, labels, start)
        for first in range(origin, hi, QUAD):
            _score_quad(labels, scratch, first - origin)
            for i in range(max(lo, first), min(hi, first + QUAD)):
                for j in range(width):
                    out[i, start + j] = tile.scores[i - first, j]


@jit_entry
def subtract_excluded_labels(listed, listed_scores, excluded, excluded_scores, counts, lo, hi):
    """Take the excluded labels of the rows lo..hi-1 out of the counts of the listed ones.

    `listed_scores` and `excluded_scores` are aligned with the lists of the same labels.
    """
    for i in range(lo, hi):
        for e in range(excluded.indptr[i], excluded.indptr[i + 1]):
            for p in range(listed.indptr[i], listed.indptr[i + 1]):
                counts.n_above[p] -= not (excluded_scores[e] <= listed_scores[p])
                counts.n_tied[p] -= excluded_scores[e] == listed_scores[p]
