"""OWPC by exact ranks: all labels are scored at every step, and all that violate the margin move at once.

What WARP estimates by sampling ([W] section 3 and Figure 2; the loss of Usunier, Buffoni and Gallinari 2009). Loss of
one pair, eq. 5, with r = number of violators:

    L(r) / r * sum over violators v of (margin - f_y + f_v)

A step costs a pass over the labels, whatever has been learned. One example after the other, as in Algorithm 1.
"""

from wsabie.kernels._jit import entry, jit
from wsabie.kernels.candidates import limit, pull, push, score
from wsabie.kernels.patterns import fold, spread
from wsabie.kernels.vector import zero
from wsabie.kernels.warp import DRAWS, HISTOGRAM, SKIPPED, UPDATES, VISITED, is_positive, log2_floor


@entry
def run_visits_owpc(pattern, labels, targets, rule, order, lo, hi, scores, scratch, counters, loss, width):
    """Make visits order[lo:hi]; `scores`, (n_labels,) float32, and the rest as for `sequential.run_visits`."""
    g = scratch[1]
    for position in range(lo, hi):
        visit = order[position]
        i = targets.rows[visit]
        q = fold(pattern, i, 0, scratch[0], width)
        zero(g, width)
        moved = False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            rank = margin_rank(labels, targets, rule, i, pair, q, scores, counters, width)
            if rank > 0:
                loss[0] += move_all(labels, targets, rule, pair, q, g, scores, rank, width)
                moved = True
        if moved:
            spread(pattern, i, 0, g, rule, width)


@jit
def margin_rank(labels, targets, rule, i, pair, q, scores, counters, width):
    """How many negatives violate; `scores` then holds what each exceeds the threshold by, 0 where it does not."""
    counters[VISITED] += 1
    n_negatives = targets.n_labels - (targets.indptr[i + 1] - targets.indptr[i])
    if n_negatives <= 0 or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return 0
    counters[DRAWS] += n_negatives
    threshold = score(labels, q, targets.labels[pair], width) - rule.margin
    rank = 0
    for y in range(targets.n_labels):
        over = score(labels, q, y, width) - threshold
        violates = over > 0 and not is_positive(targets, i, y)
        scores[y] = over if violates else 0
        rank += violates
    if rank > 0:
        counters[UPDATES] += 1
        counters[HISTOGRAM + log2_floor(rank)] += 1
    return rank


@jit
def move_all(labels, targets, rule, pair, q, g, scores, rank, width):
    """Every violator takes its share of the step, the true label the sum of them; returns the loss."""
    y = targets.labels[pair]
    share, total = rule.losses[rank] / rank * targets.weights[pair], 0.0
    for v in range(targets.n_labels):
        if scores[v] > 0:
            pull(labels, q, y, v, share, g, width)
            push(labels, rule, v, q, -share, width)
            limit(labels, rule, v, width)
            total += share * scores[v]
    push(labels, rule, y, q, share * rank, width)
    limit(labels, rule, y, width)
    return total
