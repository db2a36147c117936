"""Best pairs of labels for pairs of items, and ranks of single pairs, without a table of all pairs.

The pair (i, j) scores (a[i] + b[j]) + e(i, j): the scores of two items for a label each, and the edge between the
labels, e(i, j) = sum_d W[i, d] * (weight * W[j, d]). Every function sums an edge from the first dimension to the last,
so that equal pairs have equal bits. The code of a pair is i * n_labels + j; ties go by it.

Twice an inner product is |u|^2 + |w|^2 - |u - w|^2, and minus twice it the same with |u + w|^2. So no pair scores more
than up(i) + up(j), an item's score plus |weight| |W_i|^2 / 2 each. With the labels in descending order of these, the
pairs that may still enter the best k are a staircase: the scan takes tiles of parts, and of each as many objects, four
at a time, as reach the worst of the k. That worst one rises meanwhile.
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.kernels.compiler import jit_entry, jit_noinline, jit_ordered
from wsabie.kernels.ranking.topk import sift_down

TILE = 64
QUAD = 4
BLOCK = 32
"""Objects whose edges to a tile of parts are kept while the queries pass by: 8 KiB."""


class LabelVectors(NamedTuple):
    """Label vectors; label y is table[y * stride : y * stride + dim]."""

    table: Float32  # (n_labels * stride,)
    stride: int
    n_labels: int
    dim: int
    weight: np.float32


class PairList(NamedTuple):
    """Pairs with their edges and extra scores, in the order of their codes."""

    codes: Int64  # (m,), ascending, no duplicates
    objects: Int64  # (m,)
    parts: Int64  # (m,)
    edges: Float32  # (m,)
    extra: Float32  # (m,), added to the score; -inf: no candidate


class PairQueries(NamedTuple):
    """Scores of the two items of each query."""

    a: Float32  # (n, n_labels)
    b: Float32  # (n, n_labels)


class LabelOrder(NamedTuple):
    """The labels of each query in descending order of their bounds."""

    objects: Int64  # (n, n_labels)
    parts: Int64  # (n, n_labels)
    up_a: Float32  # (n, n_labels), in the order of `objects`
    up_b: Float32  # (n, n_labels), in the order of `parts`
    slack: Float32  # (n,): by how much rounding may lift a score above the sum of its bounds, at most


class PairBounds(NamedTuple):
    """Bounds on the scores of an object with a tile of parts: the sum of the two and `slack`."""

    up_a: Float32  # (n, n_labels)
    up_b: Float32  # (n, number of tiles)
    slack: Float32  # (n,)


class EdgeTile(NamedTuple):
    """Scratch of one thread: up to TILE parts, one column each, and the edges from four objects to them."""

    values: Float32  # (dim, TILE), times the weight
    rows: Float32  # (QUAD, dim)
    edges: Float32  # (QUAD, TILE)
    b: Float32  # (TILE,), scores of the part's item, -inf where there is no part


class PairCounts(NamedTuple):
    """Counts for one pair of each query: pairs that score more, and other pairs that score the same."""

    n_above: Int64  # (n,)
    n_tied: Int64  # (n,)

    @property
    def ranks(self) -> Int64:
        """Ranks from 1, in the middle of ties, so that a constant scorer gets the rank of chance."""
        return 1 + self.n_above + (self.n_tied + 1) // 2


def allocate_tile(dim: int) -> EdgeTile:
    """Allocate scratch for vectors of `dim` dimensions, padded with zeros to a multiple of four."""
    padded = -(-dim // QUAD) * QUAD
    values, rows = np.zeros((padded, TILE), np.float32), np.zeros((QUAD, padded), np.float32)
    return EdgeTile(values, rows, np.zeros((QUAD, TILE), np.float32), np.zeros(TILE, np.float32))


@jit_noinline
def _fill(labels, tile, parts):
    """Load the vectors of these parts as columns."""
    for j in range(len(parts)):
        w = labels.table[parts[j] * labels.stride :]
        for d in range(labels.dim):
            tile.values[d, j] = labels.weight * w[d]


@jit_noinline
def _load(labels, tile, objects):
    """Load the vectors of up to four objects as rows."""
    for k in range(len(objects)):
        w = labels.table[objects[k] * labels.stride :]
        for d in range(labels.dim):
            tile.rows[k, d] = w[d]


@jit_ordered  # the one place that makes edges: equal pairs, equal bits
def _multiply(tile, out):
    """Write out[k, j] = row k . column j, always summed from the first dimension to the last."""
    q0, q1, q2, q3 = tile.rows[0], tile.rows[1], tile.rows[2], tile.rows[3]
    s0, s1, s2, s3 = out[0], out[1], out[2], out[3]
    for j in range(TILE):
        s0[j] = s1[j] = s2[j] = s3[j] = 0
    for d in range(0, len(tile.values), 4):
        u, v, w, x = tile.values[d], tile.values[d + 1], tile.values[d + 2], tile.values[d + 3]
        u0, u1, u2, u3 = q0[d], q1[d], q2[d], q3[d]
        v0, v1, v2, v3 = q0[d + 1], q1[d + 1], q2[d + 1], q3[d + 1]
        w0, w1, w2, w3 = q0[d + 2], q1[d + 2], q2[d + 2], q3[d + 2]
        x0, x1, x2, x3 = q0[d + 3], q1[d + 3], q2[d + 3], q3[d + 3]
        for j in range(TILE):
            s0[j] = s0[j] + u0 * u[j] + v0 * v[j] + w0 * w[j] + x0 * x[j]
            s1[j] = s1[j] + u1 * u[j] + v1 * v[j] + w1 * w[j] + x1 * x[j]
            s2[j] = s2[j] + u2 * u[j] + v2 * v[j] + w2 * w[j] + x2 * x[j]
            s3[j] = s3[j] + u3 * u[j] + v3 * v[j] + w3 * w[j] + x3 * x[j]


@jit_entry
def compute_edges(labels, objects, parts, tile, out):
    """Write out[p] = the edge of the pair (objects[p], parts[p])."""
    for start in range(0, len(out), TILE):
        stop = min(start + TILE, len(out))
        _fill(labels, tile, parts[start:stop])
        for first in range(start, stop, QUAD):
            last = min(first + QUAD, stop)
            _load(labels, tile, objects[first:last])
            _multiply(tile, tile.edges)
            for p in range(first, last):
                out[p] = tile.edges[p - first, p - start]


@jit_ordered
def _offer_listed(listed, a, b, scores, codes):
    """Offer all listed pairs to a heap."""
    for p in range(len(listed.codes)):
        score = ((a[listed.objects[p]] + b[listed.parts[p]]) + listed.edges[p]) + listed.extra[p]
        if score > scores[0] or (score == scores[0] and listed.codes[p] < codes[0]):
            sift_down(scores, codes, len(scores), 0, score, listed.codes[p])


@jit_noinline
def _is_listed(listed, code):
    place = np.searchsorted(listed.codes, code)
    return place < len(listed.codes) and listed.codes[place] == code


@jit_ordered
def _any_reaches(a, b, edges, worst):
    """Return True if a pair of an object with the tile scores `worst` or more."""
    reaches = False
    for j in range(TILE):
        reaches |= (a + b[j]) + edges[j] >= worst
    return reaches


@jit_ordered
def _offer(a, tile, k, first, parts, listed, scores, codes):
    """Offer the unlisted pairs of the k-th object with the tile; `first` + part is a pair's code."""
    for j in range(len(parts)):
        score = (a + tile.b[j]) + tile.edges[k, j]
        if score >= scores[0]:
            code = first + parts[j]
            if (score > scores[0] or code < codes[0]) and not _is_listed(listed, code):
                sift_down(scores, codes, len(scores), 0, score, code)


@jit_noinline
def _scan_quad(labels, objects, parts, a, listed, tile, scores, codes):
    _load(labels, tile, objects)
    _multiply(tile, tile.edges)
    for k in range(len(objects)):
        i = objects[k]
        if _any_reaches(a[i], tile.b, tile.edges[k], scores[0]):
            _offer(a[i], tile, k, i * labels.n_labels, parts, listed, scores, codes)


@jit_noinline
def _next_tile(labels, tile, parts, b):
    _fill(labels, tile, parts)
    tile.b[:] = -np.inf
    for j in range(len(parts)):
        tile.b[j] = b[parts[j]]


@jit_entry
def collect_top_pairs(labels, queries, order, listed, tile, heap, n_scored):
    """Offer every pair that may be among the best to the heaps of the queries.

    Parameters
    ----------
    labels : LabelVectors
    queries : PairQueries
    order : LabelOrder
    listed : PairList
        Pairs whose edges are known, offered first and passed over in the scan.
    tile : EdgeTile
    heap : TopKHeap (n, k), changed in place; its labels are codes
    n_scored : (n,) int64, filled with the number of pairs that were scored
    """
    n = labels.n_labels
    for q in range(len(n_scored)):
        a, b, up_a, up_b = queries.a[q], queries.b[q], order.up_a[q], order.up_b[q]
        scores, codes = heap.scores[q], heap.labels[q]
        _offer_listed(listed, a, b, scores, codes)
        n_scored[q] = len(listed.codes)
        for start in range(0, n, TILE):
            if (up_a[0] + up_b[start]) + order.slack[q] < scores[0]:
                break
            parts = order.parts[q, start : min(start + TILE, n)]
            _next_tile(labels, tile, parts, b)
            for first in range(0, n, QUAD):
                if (up_a[first] + up_b[start]) + order.slack[q] < scores[0]:
                    break
                objects = order.objects[q, first : min(first + QUAD, n)]
                _scan_quad(labels, objects, parts, a, listed, tile, scores, codes)
                n_scored[q] += len(objects) * len(parts)


@jit_entry
def collect_top_listed_pairs(queries, listed, heap):
    """Offer the listed pairs, and no others, to the heaps of the queries."""
    for q in range(len(queries.a)):
        _offer_listed(listed, queries.a[q], queries.b[q], heap.scores[q], heap.labels[q])


@jit_ordered
def _compare(a, b, edges, score):
    """Count the pairs of an object with the parts of `b` that score more, and those that score the same."""
    n_above = np.int32(0)
    tied = np.int32(0)
    for j in range(len(b)):
        value = (a + b[j]) + edges[j]
        n_above = np.int32(n_above + (value > score))
        tied = np.int32(tied + (value == score))
    return n_above, tied


@jit_noinline
def _count_block(queries, bounds, pair_scores, edges, first, last, start, counts):
    """Count the pairs of the objects first..last-1 with the tile of parts from `start` on."""
    stop, tile = min(start + TILE, queries.b.shape[1]), start // TILE
    for q in range(len(pair_scores)):
        reach = bounds.up_b[q, tile] + bounds.slack[q]
        for i in range(first, last):
            if bounds.up_a[q, i] + reach >= pair_scores[q]:
                n_above, tied = _compare(queries.a[q, i], queries.b[q, start:stop], edges[i - first], pair_scores[q])
                counts.n_above[q] += n_above
                counts.n_tied[q] += tied


@jit_noinline
def _any_counts(bounds, pair_scores, first, last, tile):
    """Return True if a pair of the objects first..last-1 with the tile may reach its query's score."""
    for q in range(len(pair_scores)):
        reach = bounds.up_b[q, tile] + bounds.slack[q]
        for i in range(first, last):
            if bounds.up_a[q, i] + reach >= pair_scores[q]:
                return True
    return False


@jit_entry
def count_pairs(labels, queries, bounds, pair_scores, order, tile, edges, counts):
    """Count all pairs against `pair_scores`, the score of one pair of each query, included.

    Parameters
    ----------
    labels : LabelVectors
    queries : PairQueries
    bounds : PairBounds
    pair_scores : (n,) float32
    order : (n_labels,) int64
        0, 1, 2 ...
    tile : EdgeTile
    edges : (BLOCK, TILE) float32
        Scratch.
    counts : PairCounts, added to in place
    """
    n = labels.n_labels
    for start in range(0, n, TILE):
        filled = False
        for first in range(0, n, BLOCK):
            last = min(first + BLOCK, n)
            if not _any_counts(bounds, pair_scores, first, last, start // TILE):
                continue
            if not filled:
                _fill(labels, tile, order[start : min(start + TILE, n)])
                filled = True
            for i in range(first, last, QUAD):
                _load(labels, tile, order[i : min(i + QUAD, last)])
                _multiply(tile, edges[i - first : i - first + QUAD])
            _count_block(queries, bounds, pair_scores, edges, first, last, start, counts)


@jit_entry
def count_listed_pairs(queries, listed, pair_scores, subtract_plain, counts):
    """Count the listed pairs; with `subtract_plain` take out their counts without `extra`."""
    for q in range(len(pair_scores)):
        _count_list(queries.a[q], queries.b[q], listed, pair_scores[q], subtract_plain, counts, q)


@jit_ordered
def _count_list(a, b, listed, score, subtract_plain, counts, q):
    for p in range(len(listed.codes)):
        plain = (a[listed.objects[p]] + b[listed.parts[p]]) + listed.edges[p]
        value = plain + listed.extra[p]
        counts.n_above[q] += value > score
        counts.n_tied[q] += value == score
        if subtract_plain:
            counts.n_above[q] -= plain > score
            counts.n_tied[q] -= plain == score
