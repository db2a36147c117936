"""The WARP step: given a query, its positive and a table of labels, find a violator of the margin and weigh it.

Loss of one example (Weston, Bengio and Usunier 2011, section 3; conventions in docs/conventions.md):

    L(rank) * max(0, margin - f_y + f_v),     L(k) = sum of the first k rank weights
    rank ~ floor(n_negatives / N),            N = negatives drawn until the first violator v

With s = similarity and (a, b, c) its slopes, the descent direction is

    query      g   = w * ((a_y y + b_y q) - (a_v v + b_v q))
    positive   y  += lr * w * (a_y q + c_y y)
    violator   v  -= lr * w * (a_v q + c_v v)          w = L(rank) * example weight

`propose` computes, `add_label` applies: the sequential loop calls them one after the other, the block-synchronous
loop keeps all proposals of a block before anything moves.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import cold, jit
from wsabie.kernels.rng import advance, below, stream
from wsabie.kernels.similarity import score, slopes

# Counters, one row per thread (128 bytes and more apart, so that threads share no cache line).
VISITED, SKIPPED, UPDATES, DRAWS, REJECTED = range(5)
HISTOGRAM = 8  # bin b counts estimated ranks in [2^b, 2^(b+1))
N_COUNTERS = HISTOGRAM + 32


class Targets(NamedTuple):
    """True pairs (example, label), in visits of a few pairs of one example, and what must not be drawn against them.

    The pairs of a visit share one query and one gradient: a picture with 120 labels is encoded 15 times an epoch
    instead of 120.
    """

    rows: Any  # (n_visits,) int32: which example
    starts: Any  # (n_visits + 1,) int64: visit t has pairs starts[t]..starts[t + 1] - 1
    labels: Any  # (n_pairs,) int32: the true label
    weights: Any  # (n_pairs,) float32
    indptr: Any  # (n + 1,) int64: all positives of an example, sorted
    indices: Any  # int32
    masks: Any  # uint64: a hash set of the positives of each example, 16 bits a label
    mask_starts: Any  # (n + 1,) int64: example i has words mask_starts[i]..mask_starts[i + 1] - 1, at least one
    against_indptr: Any  # (n + 1,) int64: explicit negatives of an example
    against: Any  # int32
    first_pair: int  # number of pair 0 in the whole collection: the key of its random stream


class Rule(NamedTuple):
    """The loss and the step."""

    margin: np.float32
    losses: Any  # (n_labels + 1,) float32: L(k), k = 0 .. n_labels
    max_trials: int
    step_rows: np.float32  # learning rate of what is behind the query
    step_labels: np.float32
    max_norm_rows: np.float32  # inf = free
    max_norm_labels: np.float32
    step_bias: np.float32
    seed: int
    epoch: int


def bit_of(y: Any, n_words: Any) -> Any:
    """The bit of label y in a hash set of `n_words` words of 64 bits; of many at once with arrays."""
    hashed = (np.uint64(y) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (hashed * (np.uint64(n_words) << np.uint64(6))) >> np.uint64(32)


_bit_of = jit(bit_of)


@cold
def contains(sorted_ids, lo, hi, y):
    """Whether y is among sorted_ids[lo:hi], by bisection."""
    end = hi
    while lo < hi:
        middle = (lo + hi) >> 1
        if sorted_ids[middle] < y:
            lo = middle + 1
        else:
            hi = middle
    return lo < end and sorted_ids[lo] == y


@jit
def is_positive(targets, i, y):
    """Whether y is a true label of example i: the hash set denies it nearly always, else bisection decides."""
    first = targets.mask_starts[i]
    bit = _bit_of(y, targets.mask_starts[i + 1] - first)
    if (targets.masks[first + np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & np.uint64(1) == np.uint64(0):
        return False
    return contains(targets.indices, targets.indptr[i], targets.indptr[i + 1], y)


@jit
def draw_against(targets, i, counter):
    """One of the explicit negatives of example i, or -1 when it has none."""
    lo, hi = targets.against_indptr[i], targets.against_indptr[i + 1]
    if hi == lo:
        return np.int64(-1)
    return np.int64(targets.against[lo + below(counter, hi - lo)])


@jit
def find_violator(targets, labels, rule, i, q, threshold, n_negatives, counter, counters, width):
    """Draw labels uniformly until one scores above `threshold`; positives are thrown back and do not count.

    Returns (violator or -1, negatives drawn). An explicit negative, when there is one, is tried first: it counts no
    draw, because a label that was not drawn uniformly says nothing about the rank.
    """
    n_labels = len(labels.table)
    v = draw_against(targets, i, counter)
    if v >= 0 and score(labels, q, v, width) > threshold:
        return v, 0
    limit = min(rule.max_trials, n_negatives)
    drawn = 0
    for _ in range(2 * limit + 10):
        counter = advance(counter)
        v = below(counter, n_labels)
        if is_positive(targets, i, v):
            counters[REJECTED] += 1
            continue
        drawn += 1
        if score(labels, q, v, width) > threshold:
            return v, drawn
        if drawn >= limit:
            break
    return np.int64(-1), drawn


@jit
def propose(targets, labels, rule, i, pair, q, g, counters, width):
    """One WARP step without moving anything: adds the descent direction of the query to g.

    Returns (violator, weight, loss); violator -1 means no step.
    """
    y = targets.labels[pair]
    n_negatives = len(labels.table) - (targets.indptr[i + 1] - targets.indptr[i])
    counters[VISITED] += 1
    if n_negatives <= 0 or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return np.int64(-1), np.float32(0), np.float32(0)
    threshold = score(labels, q, y, width) - rule.margin
    counter = stream(rule.seed, rule.epoch, targets.first_pair + pair)
    v, drawn = find_violator(targets, labels, rule, i, q, threshold, n_negatives, counter, counters, width)
    counters[DRAWS] += drawn
    if v < 0:
        return v, np.float32(0), np.float32(0)
    rank = n_negatives // drawn if drawn > 0 else 1  # an explicit negative stands for rank 1
    counters[UPDATES] += 1
    counters[HISTOGRAM + log2_floor(rank)] += 1
    weight = rule.losses[rank] * targets.weights[pair]
    loss = weight * (score(labels, q, v, width) - threshold)
    add_query_direction(labels, q, y, v, weight, g, width)
    return v, weight, loss


@jit
def log2_floor(n):
    """floor(log2(n)) for n >= 1."""
    b = 0
    while n > 1:
        n >>= 1
        b += 1
    return b


@jit
def add_query_direction(labels, q, y, v, weight, g, width):
    """g += weight * (ds(q, y)/dq - ds(q, v)/dq)."""
    ay, by, _ = slopes(labels, q, y, width)
    av, bv, _ = slopes(labels, q, v, width)
    up, down = labels.table[y], labels.table[v]
    for k in range(LANES * len(width)):
        g[k] += weight * (ay * up[k] - av * down[k] + (by - bv) * q[k])


@jit
def add_label(labels, y, q, step, width):
    """Row y of the labels moves along ds/dw by `step`, not projected yet."""
    a, _, c = slopes(labels, q, y, width)
    row = labels.table[y]
    for k in range(LANES * len(width)):
        row[k] += step * (a * q[k] + c * row[k])
