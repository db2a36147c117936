"""Samplers of negatives, dispatched on their type by `draw_label(sampler, labels, q, counter, width)`.

Random numbers are a hash of a counter, so later draws are known beforehand where they do not depend on the query.
`prefetch_draws` fetches those labels into the cache while others are scored.

Uniform    every label alike: the only sampler whose number of draws estimates a rank
Weighted   with probabilities from an alias table (Walker 1977), such as frequency^p
Adaptive   a factor f with chance proportional to |q_f| sigma_f, then a rank r of the labels in the order of that
           factor, from the highest where q_f >= 0, else from the lowest (Guo et al. 2018, section 4;
           docs/reference/conventions.md)
Full sort  a rank r of the labels ordered by their score of q itself, which `AdaptiveSamplerState` approximates (Guo et
           al. 2018, section 3)
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import LANES, Float32, Int32, UInt64
from wsabie.kernels.compiler import jit, jit_noinline
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding.candidates import prefetch_label
from wsabie.kernels.embedding.similarity import score_label
from wsabie.kernels.primitives.random_numbers import advance_counter, draw_below, mix_bits

_LOW, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_UNIT = np.float32(2**-24)

PREFETCH_DISTANCE = 16
"""Draws that are prefetched at most: about as many as fit into the latency of memory."""


class AliasTable(NamedTuple):
    """Alias table of chances of 0 .. n - 1, the state of a weighted sampler; a draw reads one entry."""

    thresholds: UInt64  # (n,): a draw of i stays i if its low 32 bits are below thresholds[i] ...
    aliases: Int32  # (n,): ... and else becomes aliases[i]


class UniformSamplerState(NamedTuple):
    """State of a uniform sampler."""

    n_labels: np.int64


class AdaptiveSamplerState(NamedTuple):
    """State of the adaptive sampler: labels in the order of each factor, as far as the ranks reach."""

    factor_std: Float32  # (padded dim,): standard deviation of each factor over the labels
    highest_labels: Int32  # (dim, n_ranks): the labels of highest coordinate, highest first
    lowest_labels: Int32  # (dim, n_ranks): those of lowest coordinate, lowest first
    ranks: AliasTable  # chances of the ranks


class FullSortSamplerState(NamedTuple):
    """State of a sampler that sorts all labels by score for every draw."""

    scores: Float32  # (n_labels,), scratch
    order: Int32  # (n_labels,), scratch
    ranks: AliasTable


class PoolSamplerState(NamedTuple):
    """State of a uniform sampler over the slots of a block (`wsabie.kernels.embedding.candidates`)."""


@jit
def draw_from_alias(alias, counter):
    """Draw a number with the chances of the table."""
    bits = mix_bits(counter)
    i = np.int64(((bits >> _S32) * np.uint64(len(alias.thresholds))) >> _S32)
    return i if (bits & _LOW) < alias.thresholds[i] else np.int64(alias.aliases[i])


@jit
def draw_unit(counter):
    """Draw a number in [0, 1)."""
    return np.float32(mix_bits(counter) >> np.uint64(40)) * _UNIT


@dispatch("sampler")
def draw_label(sampler, labels, q, counter, width):
    """Draw a label."""


@dispatch("sampler", has_default=True)
def prefetch_draws(sampler, labels, counter, t, width):
    """Prefetch the labels of later draws of a search; `counter` is that of its t-th draw, from 0."""


@draw_label.register(UniformSamplerState)
def _draw_uniform(sampler, labels, q, counter, width):
    return draw_below(counter, sampler.n_labels)


@draw_label.register(AliasTable)
def _draw_weighted(sampler, labels, q, counter, width):
    return draw_from_alias(sampler, counter)


@jit
def draw_factor(factor_std, n_factors, q, counter, width):
    """Draw a factor with chance |q_f| sigma_f; every factor alike where all are 0."""
    total = np.float32(0)
    for k in range(LANES * len(width)):
        total += abs(q[k]) * factor_std[k]
    if not total > 0:
        return draw_below(counter, n_factors)
    remainder, f = draw_unit(counter) * total - abs(q[0]) * factor_std[0], 0
    while remainder >= 0 and f + 1 < n_factors:
        f += 1
        remainder -= abs(q[f]) * factor_std[f]
    return np.int64(f)


@draw_label.register(AdaptiveSamplerState)
def _draw_adaptive(sampler, labels, q, counter, width):
    f = draw_factor(sampler.factor_std, len(sampler.highest_labels), q, counter, width)
    r = draw_from_alias(sampler.ranks, mix_bits(counter))
    return np.int64(sampler.highest_labels[f, r]) if q[f] >= 0 else np.int64(sampler.lowest_labels[f, r])


@jit
def _is_ranked_before(scores, a, b):
    """Return True if label a comes before b: higher score, or the same and a lower number."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


@jit_noinline
def select_label_of_rank(scores, order, r):
    """Return the label of rank r, from 0, by quickselect; `order` is scratch."""
    for y in range(len(order)):
        order[y] = y
    lo, hi = 0, len(order) - 1
    while lo < hi:
        pivot, i, j = order[(lo + hi) >> 1], lo, hi
        while i <= j:
            while _is_ranked_before(scores, order[i], pivot):
                i += 1
            while _is_ranked_before(scores, pivot, order[j]):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if r <= j:
            hi = j
        elif r >= i:
            lo = i
        else:
            break
    return np.int64(order[r])


@draw_label.register(FullSortSamplerState)
def _draw_full_sort(sampler, labels, q, counter, width):
    for y in range(len(sampler.scores)):
        sampler.scores[y] = score_label(labels, q, y, width)
    return select_label_of_rank(sampler.scores, sampler.order, draw_from_alias(sampler.ranks, mix_bits(counter)))


@draw_label.register(PoolSamplerState)
def _draw_from_pool(sampler, labels, q, counter, width):
    return draw_below(counter, labels.n_drawable[0])


@prefetch_draws.register(UniformSamplerState)
def _prefetch_uniform(sampler, labels, counter, t, width):
    if t < PREFETCH_DISTANCE:  # two for each draw, so that a short search prefetches little in vain
        prefetch_label(labels, draw_below(advance_counter(counter, t + 1), sampler.n_labels), width)
        prefetch_label(labels, draw_below(advance_counter(counter, t + 2), sampler.n_labels), width)
    else:
        prefetch_label(labels, draw_below(advance_counter(counter, PREFETCH_DISTANCE + 1), sampler.n_labels), width)
