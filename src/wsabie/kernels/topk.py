"""Best k of a row of scores, kept in one heap per row while tiles of labels pass by.

A heap slot is a (score, label) pair; the root is the worst of the k. A pair is better when its score is
higher, or equal with a lower label id. Tiles come in ascending order of their labels, so a later label must
be strictly better than the root to enter. Minus infinity marks what is no candidate: it never enters, and
empty slots keep label -1 and score -inf.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import INLINE, cold, entry, jit
from wsabie.kernels.halves import number
from wsabie.kernels.registers import any_beyond, load

CHUNK = 64
"""Scores compared with the k-th best at once; one vectorised test sends most chunks away."""
_WIDTH = (None,) * (CHUNK // LANES)


class Heap(NamedTuple):
    """The k best of each row: a heap while scanning, best first after `sort_topk`."""

    scores: Any  # (n_rows, k), dtype of the scores
    labels: Any  # (n_rows, k) int64


def new_heap(n_rows: int, k: int, dtype: Any = np.float32) -> Heap:
    """An empty heap: scores -inf, labels -1.

    Examples
    --------
    >>> new_heap(1, 2).labels
    array([[-1, -1]])
    """
    return Heap(np.full((n_rows, k), -np.inf, dtype), np.full((n_rows, k), -1, np.int64))


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


@cold
def _offer(row, start, stop, first, scores, labels):
    """Offer row[start:stop] to the heap one by one; returns how many were NaN."""
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
    """Whether a score of the chunk is better than `worst`, or NaN, which must not pass unseen."""
    beyond = False
    for j in range(start, start + CHUNK):
        beyond |= not (row[j] <= worst)
    return beyond


@overload(_chunk_beyond, jit_options=INLINE)
def _(row, start, worst):
    if row.dtype == types.float32:  # the compiler itself needs five times as long, or more
        return lambda row, start, worst: any_beyond(load(row[start : start + CHUNK], _WIDTH), worst)
    return _chunk_beyond


@jit
def _scan_row(row, first, scores, labels):
    bad = 0
    whole = len(row) // CHUNK * CHUNK
    for start in range(0, whole, CHUNK):
        if _chunk_beyond(row, start, scores[0]):
            bad += _offer(row, start, start + CHUNK, first, scores, labels)
    return bad + _offer(row, whole, len(row), first, scores, labels)


@entry
def scan_topk(tile, first, heap, lo, hi):
    """Offer the tile's rows lo..hi-1 to the same rows of the heap; column 0 is label `first`.

    Parameters
    ----------
    tile : (n_rows, width) float32 or float64
    first : int
    heap : Heap with n_rows rows, changed in place
    lo, hi : int
        So that several threads can share one tile.

    Returns
    -------
    int
        How many scores were NaN (they never enter the heap).
    """
    bad = 0
    for i in range(lo, hi):
        bad += _scan_row(tile[i], first, heap.scores[i], heap.labels[i])
    return bad


@entry
def sort_topk(heap, lo, hi):
    """Order the rows lo..hi-1 in place: best first, ties by label id, empty slots last. They need be no heaps."""
    for i in range(lo, hi):
        scores, labels = heap.scores[i], heap.labels[i]
        for hole in range(len(scores) // 2 - 1, -1, -1):
            sift_down(scores, labels, len(scores), hole, scores[hole], labels[hole])
        for size in range(len(scores) - 1, 0, -1):
            score, label = scores[size], labels[size]
            scores[size], labels[size] = scores[0], labels[0]
            sift_down(scores, labels, size, 0, score, label)


@entry
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


@entry
def score_pairs(table, stride, queries, labels, distances, out, lo, hi):
    """Inner products, or squared distances, of the rows lo..hi-1 with the labels listed for each.

    The order of the sum depends on nothing but the number of dimensions: equal vectors have equal bits, wherever
    they stand and whoever stands beside them, which a matrix product does not promise.

    Parameters
    ----------
    table : 1-D float32, or halves (`kernels.halves`)
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
    """The inner products of two vectors with four queries; each number read is used more than once."""
    v0 = v1 = v2 = v3 = w0 = w1 = w2 = w3 = np.float32(0)
    for d in range(len(q0)):
        v0 += number(v[d]) * q0[d]
        v1 += number(v[d]) * q1[d]
        v2 += number(v[d]) * q2[d]
        v3 += number(v[d]) * q3[d]
        w0 += number(w[d]) * q0[d]
        w1 += number(w[d]) * q1[d]
        w2 += number(w[d]) * q2[d]
        w3 += number(w[d]) * q3[d]
    return v0, v1, v2, v3, w0, w1, w2, w3


@entry
def score_few(table, stride, first, queries, out):
    """Inner products of few queries with the labels first, first + 1, ...

    A matrix product brings the table into an order of its own before it begins, which takes longer than so little
    to do: this reads each label's vector once, where it lies. The order of a sum differs at the edges.

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
    whole, pairs = n - n % 4, width - width % 2
    for j in range(0, pairs, 2):
        v = table[(first + j) * stride :]
        w = table[(first + j + 1) * stride :]
        for i in range(0, whole, 4):
            (
                out[i, j], out[i + 1, j], out[i + 2, j], out[i + 3, j],
                out[i, j + 1], out[i + 1, j + 1], out[i + 2, j + 1], out[i + 3, j + 1],
            ) = _two_with_four(v, w, queries[i], queries[i + 1], queries[i + 2], queries[i + 3])  # fmt: skip
        for i in range(whole, n):
            out[i, j] = _product(queries[i], v)
            out[i, j + 1] = _product(queries[i], w)
    for j in range(pairs, width):
        for i in range(n):
            out[i, j] = _product(queries[i], table[(first + j) * stride :])


@jit
def _score_one(table, stride, first, q, out):
    """`score_few` of a single query: four vectors at a time, so that its numbers are read once for them."""
    fours = len(out) - len(out) % 4
    for j in range(0, fours, 4):
        at = (first + j) * stride
        t, u, v, w = table[at:], table[at + stride :], table[at + 2 * stride :], table[at + 3 * stride :]
        a = b = c = d = np.float32(0)
        for k in range(len(q)):
            a += number(t[k]) * q[k]
            b += number(u[k]) * q[k]
            c += number(v[k]) * q[k]
            d += number(w[k]) * q[k]
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
    for j in range(fours, len(out)):
        out[j] = _product(q, table[(first + j) * stride :])


@jit
def _product(q, w):
    total = np.float32(0)
    for d in range(len(q)):
        total += q[d] * number(w[d])
    return total


@jit
def _squared_distance(q, w):
    total = np.float32(0)
    for d in range(len(q)):
        gap = q[d] - number(w[d])
        total += gap * gap
    return total
