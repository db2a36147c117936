"""The slow twin of the WARP step: find a violator, weigh it by its estimated rank; nothing moves."""

import math
from typing import Any, NamedTuple

import numpy as np
from tests.reference.candidates import query_gradient, score_label
from tests.reference.negative_samplers import draw_label
from tests.reference.random_numbers import MASK_64, advance_counter, draw_below, draw_unit, mix_bits, start_stream

from wsabie.core.arrays import Float64
from wsabie.kernels.training.warp import DRAWS, EXACT, HISTOGRAM, REJECTED, SKIPPED, UPDATES, VISITED


def list_positives(targets: Any, i: int) -> set[int]:
    """The true labels of example i."""
    return {int(y) for y in targets.indices[targets.indptr[i] : targets.indptr[i + 1]]}


def list_explicit_negatives(targets: Any, i: int) -> list[int]:
    """Labels that are known not to hold for example i."""
    return [int(y) for y in targets.explicit_negatives[targets.explicit_indptr[i] : targets.explicit_indptr[i + 1]]]


class ViolatorSearch(NamedTuple):
    """End of the search for a violator."""

    violator: int  # -1: none
    n_draws: int  # negatives
    rejected: int  # draws that were true labels


def find_violator(
    targets: Any, labels: Any, config: Any, sampler: Any, i: int, q: Any, threshold: float, counter: int
) -> ViolatorSearch:
    """One explicit negative, if there is one above the threshold (no draw); else labels from the sampler until one is.

    The logistic surrogate takes the first of the sampler's, whatever it scores.

    At most T = min(max_sampled, negatives there are) negatives and 2T + 10 labels in all are drawn.
    """
    positives, explicit_negatives = list_positives(targets, i), list_explicit_negatives(targets, i)
    if explicit_negatives:
        v = explicit_negatives[draw_below(counter, len(explicit_negatives))]
        if score_label(labels, q, v) > threshold:
            return ViolatorSearch(v, 0, 0)
    lowest = -math.inf if config.logistic else threshold
    limit = min(int(config.max_sampled), targets.n_labels - len(positives))
    n_draws = rejected = 0
    for _ in range(2 * limit + 10):
        counter = advance_counter(counter)
        v = draw_label(sampler, labels, q, counter)
        if v in positives:
            rejected += 1
            continue
        n_draws += 1
        if score_label(labels, q, v) > lowest:
            return ViolatorSearch(v, n_draws, rejected)
        if n_draws >= limit:
            break
    return ViolatorSearch(-1, n_draws, rejected)


def estimate_margin_rank(
    targets: Any, labels: Any, config: Any, i: int, q: Any, threshold: float, search: ViolatorSearch, counter: int
) -> int:
    """floor(negatives there are / drawn), 1 for an explicit negative; or violators counted in all or in a sample."""
    positives = list_positives(targets, i)
    n_negatives = targets.n_labels - len(positives)
    if config.rank_sample == 0:
        return n_negatives // search.n_draws if search.n_draws else 1
    if config.rank_sample == EXACT:
        return max(1, sum(score_label(labels, q, y) > threshold for y in range(targets.n_labels) if y not in positives))
    n_above = n_draws = 0
    counter = mix_bits(counter)
    for _ in range(2 * int(config.rank_sample) + 10):
        counter = advance_counter(counter)
        y = draw_below(counter, targets.n_labels)
        if y in positives:
            continue
        n_draws, n_above = n_draws + 1, n_above + int(score_label(labels, q, y) > threshold)
        if n_draws == config.rank_sample:
            break
    return max(1, int(n_above * n_negatives // max(n_draws, 1)))


def sample_positive(targets: Any, labels: Any, config: Any, i: int, pair: int, q: Any, counter: int) -> int:
    """The pair's label; or of n drawn positives the one at a drawn place in the order of their scores."""
    if len(config.order_statistic_cdf) == 1:
        return int(targets.labels[pair])
    counter = mix_bits(counter ^ MASK_64)
    place = int(np.searchsorted(config.order_statistic_cdf[:-1], draw_unit(counter), side="right"))
    positives = targets.indices[targets.indptr[i] : targets.indptr[i + 1]]
    draws = []
    for _ in config.order_statistic_cdf:
        counter = advance_counter(counter)
        draws.append(int(positives[draw_below(counter, len(positives))]))
    return sorted(draws, key=lambda y: -score_label(labels, q, y))[place]


class StepProposal(NamedTuple):
    """One pair's step, not taken yet."""

    positive: int
    violator: int  # -1: no step
    weight: float
    direction: Float64  # of the query's point
    loss: float


def warp_step(
    targets: Any, labels: Any, config: Any, sampler: Any, i: int, pair: int, q: Any, counters: Any
) -> StepProposal:
    """L(rank) * pair weight * loss of the two labels, and its descent direction for the query."""
    y, none = int(targets.labels[pair]), np.zeros(1)
    counters[VISITED] += 1
    if len(list_positives(targets, i)) >= targets.n_labels or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return StepProposal(y, -1, 0.0, none, 0.0)
    counter = start_stream(config.seed, config.epoch, targets.first_pair + pair)
    y = sample_positive(targets, labels, config, i, pair, q, counter)
    base = score_label(labels, q, y)
    threshold = base - float(config.margin)
    search = find_violator(targets, labels, config, sampler, i, q, threshold, counter)
    counters[DRAWS] += search.n_draws
    counters[REJECTED] += search.rejected
    if search.violator < 0:
        counters[SKIPPED] += search.n_draws == 0
        return StepProposal(y, -1, 0.0, none, 0.0)
    rank = estimate_margin_rank(targets, labels, config, i, q, threshold, search, counter)
    counters[UPDATES] += 1
    counters[HISTOGRAM + rank.bit_length() - 1] += 1
    weight = float(config.losses[rank]) * float(targets.weights[pair])
    gap = score_label(labels, q, search.violator) - base
    slope, loss = (1 / (1 + math.exp(-gap)), math.log1p(math.exp(gap))) if config.logistic else (1, gap + config.margin)
    direction = query_gradient(labels, q, y, search.violator)
    return StepProposal(y, search.violator, weight * slope, weight * slope * direction, weight * float(loss))
