"""Sequential training loop (Algorithm 1); several threads on one space make it Hogwild.

With `ViolatorScores` in the place of a sampler it is OWPC by exact ranks (Usunier, Buffoni and Gallinari 2009), which
WARP estimates by sampling (Weston et al. 2010, section 3 and Figure 2): every step scores all labels, and all that
violate the margin move at once. Loss of one pair, equation 5, with r = number of violators:

    L(r) / r * sum over violators v of (margin - f_y + f_v)
"""

from typing import NamedTuple

from wsabie.core.arrays import Float32
from wsabie.kernels.compiler import jit, jit_entry
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding.candidates import locate_positive, query_gradient, update_and_clip_label
from wsabie.kernels.embedding.relation_patterns import backprop_query, encode_query
from wsabie.kernels.embedding.similarity import score_label
from wsabie.kernels.primitives.vectors import set_to_zero
from wsabie.kernels.training import warp


@dispatch("sampler", has_default=True)
def train_pair(labels, targets, config, sampler, i, n_negatives, pair, q, g, counters, width):
    """Move the labels of a pair's step and add the direction of the query to g.

    Return (True if the query has to move, loss).
    """
    y = locate_positive(labels, targets, pair, 0)
    y, v, weight, loss = warp.warp_step(
        targets, labels, config, sampler, i, n_negatives, pair, y, q, g, counters, width
    )
    if v >= 0:
        update_and_clip_label(labels, config, y, q, weight, width)
        update_and_clip_label(labels, config, v, q, -weight, width)
    return v >= 0, loss


@jit_entry
def run_visits(pattern, labels, targets, config, sampler, order, lo, hi, scratch, counters, loss, width):
    """Make visits order[lo:hi]; `scratch` (2, padded dim), `counters` and `loss` belong to the thread."""
    g = scratch[1]
    for position in range(lo, hi):
        visit = order[position]
        i = targets.rows[visit]
        q = encode_query(pattern, i, scratch[0], width)
        set_to_zero(g, width)
        has_step, n = False, warp.count_negatives(targets, labels, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            is_step, pair_loss = train_pair(labels, targets, config, sampler, i, n, pair, q, g, counters, width)
            loss[0] += pair_loss
            has_step = has_step or is_step
        if has_step:
            backprop_query(pattern, i, g, config, width)


class ViolatorScores(NamedTuple):
    """Scratch in the place of a sampler: all violators are known, and none is drawn."""

    excess: Float32  # (n_labels,) how far each violator lies above the threshold, or 0


@train_pair.register(ViolatorScores)
def _move_violators(labels, targets, config, sampler, i, n_negatives, pair, q, g, counters, width):
    """Move every violator by its share of the step, the true label by their sum."""
    y, total = targets.labels[pair], 0.0
    rank = count_violators(labels, targets, config, i, n_negatives, pair, q, sampler.excess, counters, width)
    if rank > 0:
        share = config.losses[rank] / rank * targets.weights[pair]
        for v in range(targets.n_labels):
            if sampler.excess[v] > 0:
                query_gradient(labels, q, y, v, share, g, width)
                update_and_clip_label(labels, config, v, q, -share, width)
                total += share * sampler.excess[v]
        update_and_clip_label(labels, config, y, q, share * rank, width)
    return rank > 0, total


@jit
def count_violators(labels, targets, config, i, n_negatives, pair, q, scores, counters, width):
    """Count the violators; `scores` then holds the excess of each over the threshold, or 0."""
    counters[warp.VISITED] += 1
    if n_negatives <= 0 or targets.weights[pair] == 0:
        counters[warp.SKIPPED] += 1
        return 0
    counters[warp.DRAWS] += n_negatives
    threshold = score_label(labels, q, targets.labels[pair], width) - config.margin
    rank = 0
    for y in range(targets.n_labels):
        over = score_label(labels, q, y, width) - threshold
        violates = over > 0 and not warp.is_positive(targets, i, y)
        scores[y] = over if violates else 0
        rank += violates
    if rank > 0:
        counters[warp.UPDATES] += 1
        counters[warp.HISTOGRAM + warp.floor_log2(rank)] += 1
    return rank
