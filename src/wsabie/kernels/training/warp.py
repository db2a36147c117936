"""The WARP step: draw a violator for a query and its positive, estimate the rank, weigh the update.

Loss of one example (Weston, Bengio and Usunier 2011, section 3; conventions in docs/reference/conventions.md):

    L(rank) * max(0, margin - f_y + f_v),     L(k) = sum of the first k rank weights
    rank ~ floor(n_negatives / N),            N = negatives drawn until the first violator v

With s = similarity and (a, b, c) its slopes, the descent direction is

    query      g   = w * ((a_y y + b_y q) - (a_v v + b_v q))
    positive   y  += lr * w * (a_y q + c_y y)
    violator   v  -= lr * w * (a_v q + c_v v)          w = L(rank) * example weight

`warp_step` computes, `candidates.update_label` applies: the sequential loop calls them one after the other, the
block-synchronous loop keeps all proposals of a block before anything moves.

Variants, all decided by the `StepConfig` and the sampler: one draw and no search (max_sampled 1); the logistic
surrogate log(1 + exp(f_v - f_y)) in place of the hinge; the rank counted exactly or over a uniform sample, where
draws are not uniform and their number says nothing; and, for rows with several true labels, one
of a drawn rank among a few of them (the k-order statistic loss of Weston, Yee and Weiss, RecSys 2013).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64, UInt64
from wsabie.kernels.compiler import jit, jit_noinline
from wsabie.kernels.embedding.candidates import (
    bound_error,
    count_ranked_slots,
    get_label_id,
    is_bounded_below,
    query_gradient,
)
from wsabie.kernels.embedding.similarity import score_label
from wsabie.kernels.primitives.binary_search import find_first_at_least
from wsabie.kernels.primitives.random_numbers import advance_counter, draw_below, mix_bits, start_stream
from wsabie.kernels.training.negative_samplers import draw_label, draw_unit, prefetch_draws

# Counters, one row per thread (128 bytes and more apart, so that threads share no cache line).
VISITED, SKIPPED, UPDATES, DRAWS, REJECTED = range(5)
HISTOGRAM = 8  # bin b counts estimated ranks in [2^b, 2^(b+1))
N_COUNTERS = HISTOGRAM + 32
EXACT = -1
"""`rank_sample` that counts all labels."""


class TrainingTargets(NamedTuple):
    """True pairs (example, label), in visits of one example, and the labels not to draw against them.

    The pairs of a visit share one query and one gradient: a picture with 120 labels is encoded 15 times an epoch
    instead of 120.
    """

    rows: Int32  # (n_visits,): which example
    starts: Int64  # (n_visits + 1,): visit t has pairs starts[t]..starts[t + 1] - 1
    labels: Int32  # (n_pairs,): the true label
    weights: Float32  # (n_pairs,)
    indptr: Int64  # (n + 1,): what is never drawn against an example: its positives and itself, sorted
    indices: Int32
    masks: UInt64  # a hash set of the positives of each example, 16 bits a label
    mask_starts: Int64  # (n + 1,): example i has words mask_starts[i]..mask_starts[i + 1] - 1, at least one
    explicit_indptr: Int64  # (n + 1,): explicit negatives of an example
    explicit_negatives: Int32
    first_pair: int  # number of pair 0 in the whole collection: the key of its random stream
    n_labels: int


class StepConfig(NamedTuple):
    """The loss and the step."""

    margin: np.float32
    losses: Float32  # (n_labels + 1,): L(k), k = 0 .. n_labels
    max_sampled: int
    learning_rate_rows: np.float32  # of the table rows behind the query
    learning_rate_labels: np.float32  # of labels' points
    learning_rate_weights: np.float32  # of labels' weights
    max_norm_rows: np.float32  # inf = free
    max_norm_labels: np.float32
    max_norm_weights: np.float32
    decay_rows: np.float32  # factor of a row that moves, by L2 regularisation; 1 = none
    decay_labels: np.float32
    decay_weights: np.float32
    learning_rate_bias: np.float32
    logistic: bool
    rank_sample: int  # 0: the draws estimate the rank; m > 0: m uniform labels do; EXACT: it is counted
    order_statistic_cdf: (
        Float32  # (n,): chances of the highest of n positives, of the two highest ...; (1,): the pair's
    )
    seed: int
    epoch: int


def hash_to_bit(y: Any, n_words: Any) -> Any:
    """Return the bit of label y, or of an array, in a hash set of `n_words` words of 64 bits."""
    hashed = (np.uint64(y) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (hashed * (np.uint64(n_words) << np.uint64(6))) >> np.uint64(32)


_bit_of = jit(hash_to_bit)


@jit_noinline
def is_in_sorted(sorted_ids, lo, hi, y):
    """Return True if y is among sorted_ids[lo:hi], by bisection."""
    position = find_first_at_least(sorted_ids, lo, hi, y)
    return position < hi and sorted_ids[position] == y


@jit
def is_positive(targets, i, y):
    """Return True if y is a true label of example i; the hash set rules it out nearly always."""
    first = targets.mask_starts[i]
    bit = _bit_of(y, targets.mask_starts[i + 1] - first)
    if (targets.masks[first + np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & np.uint64(1) == np.uint64(0):
        return False
    return is_in_sorted(targets.indices, targets.indptr[i], targets.indptr[i + 1], y)


@jit
def count_negatives(targets, labels, i):
    """Count the negatives that a rank of example i refers to.

    Where only the positives of a block are ranked, count the negatives among them, since the others are never drawn.
    Repeated items count each time, up to the number of all negatives, where `StepConfig.losses` ends.
    """
    n = targets.n_labels - (targets.indptr[i + 1] - targets.indptr[i])
    n_slots, n_ranked = count_ranked_slots(labels), 0
    if n_slots == 0:
        return n
    for y in range(n_slots):
        n_ranked += not is_positive(targets, i, get_label_id(labels, y))
    return min(n_ranked, n)


@jit
def draw_explicit_negative(targets, i, counter):
    """Draw one of the explicit negatives of example i; return -1 when it has none."""
    lo, hi = targets.explicit_indptr[i], targets.explicit_indptr[i + 1]
    if hi == lo:
        return np.int64(-1)
    return np.int64(targets.explicit_negatives[lo + draw_below(counter, hi - lo)])


@jit
def find_violator(targets, labels, config, sampler, i, q, threshold, n_negatives, counter, counters, width):
    """Draw negatives until one scores above `threshold` (logistic: take the first).

    Return (violator or -1, negatives drawn). An explicit negative, where there is one, comes first and must exceed the
    threshold whatever the surrogate is, or no other label would be tried. It counts no draw, because a label that was
    not drawn uniformly says nothing about the rank.
    """
    v = draw_explicit_negative(targets, i, counter)
    if v >= 0 and score_label(labels, q, v, width) > threshold:
        return v, 0
    lowest = np.float32(-np.inf) if config.logistic else threshold
    limit, error_bound = min(config.max_sampled, n_negatives), bound_error(labels, q, width)
    n_drawn = 0
    for t in range(2 * limit + 10):
        counter = advance_counter(counter)
        prefetch_draws(sampler, labels, counter, t, width)
        v = draw_label(sampler, labels, q, counter, width)
        if is_positive(targets, i, get_label_id(labels, v)):
            counters[REJECTED] += 1
            continue
        n_drawn += 1
        if not is_bounded_below(labels, q, v, error_bound, lowest, width) and score_label(labels, q, v, width) > lowest:
            return v, n_drawn
        if n_drawn >= limit:
            break
    return np.int64(-1), n_drawn


@jit_noinline
def count_margin_rank(targets, labels, i, q, threshold, width):
    """Return the margin rank: the number of negatives that score above `threshold`, at least 1."""
    rank = 0
    for y in range(targets.n_labels):
        if score_label(labels, q, y, width) > threshold and not is_positive(targets, i, y):
            rank += 1
    return max(rank, 1)


@jit_noinline
def estimate_margin_rank(targets, labels, config, i, q, threshold, n_negatives, counter, width):
    """Estimate the margin rank from violators among `rank_sample` uniform negatives; at least 1."""
    n_above, n_sampled, counter = 0, 0, mix_bits(counter)
    for _ in range(2 * config.rank_sample + 10):
        counter = advance_counter(counter)
        y = draw_below(counter, targets.n_labels)
        if is_positive(targets, i, y):
            continue
        n_above += score_label(labels, q, y, width) > threshold
        n_sampled += 1
        if n_sampled == config.rank_sample:
            break
    return max(n_above * n_negatives // max(n_sampled, 1), 1)


@jit_noinline
def sample_positive(targets, labels, config, i, q, counter, width):
    """Draw n positives; return the one whose rank by score is drawn from `order_statistic_cdf`."""
    lo, n, n_drawn = targets.indptr[i], targets.indptr[i + 1] - targets.indptr[i], len(config.order_statistic_cdf)
    u, rank = draw_unit(counter), 0
    while rank + 1 < n_drawn and u >= config.order_statistic_cdf[rank]:
        rank += 1
    last_score, last_draw, y = np.float32(np.inf), -1, np.int64(-1)
    for _ in range(rank + 1):
        best_score, best_draw = np.float32(-np.inf), n_drawn
        c = counter
        for t in range(n_drawn):
            c = advance_counter(c)
            candidate = np.int64(targets.indices[lo + draw_below(c, n)])
            s = score_label(labels, q, candidate, width)
            later = s < last_score or (s == last_score and t > last_draw)
            if later and (s > best_score or (s == best_score and t < best_draw)):
                best_score, best_draw, y = s, t, candidate
        last_score, last_draw = best_score, best_draw
    return y


@jit
def compute_surrogate(config, gap):
    """Return (slope, loss) of a negative that scores `gap` above the threshold (logistic: the positive)."""
    if config.logistic:
        e = np.float32(math.exp(-abs(gap)))
        slope = np.float32(1) / (np.float32(1) + e) if gap > 0 else e / (np.float32(1) + e)
        return slope, np.float32(math.log1p(e)) + max(gap, np.float32(0))
    return np.float32(1), gap


@jit
def warp_step(targets, labels, config, sampler, i, n_negatives, pair, y, q, g, counters, width):
    """Compute one step without moving a label: add the descent direction of the query to g.

    `n_negatives` comes from `count_negatives`; `y` is the table row or slot of the pair's label. Return
    (positive, violator, weight, loss); violator -1 means no step.
    """
    counters[VISITED] += 1
    if n_negatives <= 0 or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return y, np.int64(-1), np.float32(0), np.float32(0)
    counter = start_stream(config.seed, config.epoch, targets.first_pair + pair)
    if len(config.order_statistic_cdf) > 1:
        y = sample_positive(targets, labels, config, i, q, mix_bits(~counter), width)
    base = score_label(labels, q, y, width)
    threshold = base - config.margin
    v, n_drawn = find_violator(targets, labels, config, sampler, i, q, threshold, n_negatives, counter, counters, width)
    counters[DRAWS] += n_drawn
    if v < 0:
        counters[SKIPPED] += n_drawn == 0  # every draw was a true label
        return y, v, np.float32(0), np.float32(0)
    if config.rank_sample == 0:
        rank = n_negatives // n_drawn if n_drawn > 0 else 1  # an explicit negative stands for rank 1
    elif config.rank_sample == EXACT:
        rank = count_margin_rank(targets, labels, i, q, threshold, width)
    else:
        rank = estimate_margin_rank(targets, labels, config, i, q, threshold, n_negatives, counter, width)
    counters[UPDATES] += 1
    counters[HISTOGRAM + floor_log2(rank)] += 1
    slope, loss = compute_surrogate(config, score_label(labels, q, v, width) - (base if config.logistic else threshold))
    weight = config.losses[rank] * targets.weights[pair]
    query_gradient(labels, q, y, v, weight * slope, g, width)
    return y, v, weight * slope, weight * loss


@jit
def floor_log2(n):
    """Return floor(log2(n)) for n >= 1."""
    b = 0
    while n > 1:
        n >>= 1
        b += 1
    return b
