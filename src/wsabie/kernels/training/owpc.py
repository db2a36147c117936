"""OWPC by exact ranks: every step scores all labels, and all that violate the margin move at once.

The loss of Usunier, Buffoni and Gallinari 2009, which WARP estimates by sampling (Weston et al. 2010, section 3 and
Figure 2). Loss of one pair, equation 5, with r = number of violators:

    L(r) / r * sum over violators v of (margin - f_y + f_v)

A step costs a pass over all labels. One example after the other, as in Algorithm 1.
"""

from wsabie.kernels.compiler import jit, jit_entry
from wsabie.kernels.embedding.candidates import clip_norm, query_gradient, score_label, update_label
from wsabie.kernels.embedding.relation_patterns import backprop_query, encode_query
from wsabie.kernels.primitives.vectors import set_to_zero
from wsabie.kernels.training.warp import DRAWS, HISTOGRAM, SKIPPED, UPDATES, VISITED, floor_log2, is_positive


@jit_entry
def run_owpc_visits(pattern, labels, targets, rule, order, lo, hi, scores, scratch, counters, loss, width):
    """Make visits order[lo:hi]; `scores`, (n_labels,) float32, is scratch; see `run_visits`."""
    g = scratch[1]
    for position in range(lo, hi):
        visit = order[position]
        i = targets.rows[visit]
        q = encode_query(pattern, i, 0, scratch[0], width)
        set_to_zero(g, width)
        moved = False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            rank = count_violators(labels, targets, rule, i, pair, q, scores, counters, width)
            if rank > 0:
                loss[0] += move_violators(labels, targets, rule, pair, q, g, scores, rank, width)
                moved = True
        if moved:
            backprop_query(pattern, i, 0, g, rule, width)


@jit
def count_violators(labels, targets, rule, i, pair, q, scores, counters, width):
    """Count the violators; `scores` then holds the excess of each over the threshold, or 0."""
    counters[VISITED] += 1
    n_negatives = targets.n_labels - (targets.indptr[i + 1] - targets.indptr[i])
    if n_negatives <= 0 or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return 0
    counters[DRAWS] += n_negatives
    threshold = score_label(labels, q, targets.labels[pair], width) - rule.margin
    rank = 0
    for y in range(targets.n_labels):
        over = score_label(labels, q, y, width) - threshold
        violates = over > 0 and not is_positive(targets, i, y)
        scores[y] = over if violates else 0
        rank += violates
    if rank > 0:
        counters[UPDATES] += 1
        counters[HISTOGRAM + floor_log2(rank)] += 1
    return rank


@jit
def move_violators(labels, targets, rule, pair, q, g, scores, rank, width):
    """Move every violator by its share of the step, the true label by their sum; return the loss."""
    y = targets.labels[pair]
    share, total = rule.losses[rank] / rank * targets.weights[pair], 0.0
    for v in range(targets.n_labels):
        if scores[v] > 0:
            query_gradient(labels, q, y, v, share, g, width)
            update_label(labels, rule, v, q, -share, width)
            clip_norm(labels, rule, v, width)
            total += share * scores[v]
    update_label(labels, rule, y, q, share * rank, width)
    clip_norm(labels, rule, y, width)
    return total
