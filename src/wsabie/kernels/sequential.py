"""The plain loop: Algorithm 1, one example after the other. Several threads on one space make it Hogwild."""

from wsabie.kernels._jit import entry
from wsabie.kernels.candidates import move_label, place
from wsabie.kernels.patterns import fold, spread
from wsabie.kernels.vector import zero
from wsabie.kernels.warp import negatives_among, propose


@entry
def run_visits(pattern, labels, targets, rule, sampler, order, lo, hi, scratch, counters, loss, width):
    """Make visits order[lo:hi]; `scratch`, (2, padded dim) float32, `counters` and `loss` are the thread's own."""
    g = scratch[1]
    for position in range(lo, hi):
        visit = order[position]
        i = targets.rows[visit]
        q = fold(pattern, i, 0, scratch[0], width)
        zero(g, width)
        moved, n = False, negatives_among(targets, labels, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            y = place(labels, targets, pair, 0)
            y, v, weight, lost = propose(targets, labels, rule, sampler, i, n, pair, y, q, g, counters, width)
            loss[0] += lost
            if v >= 0:
                move_label(labels, rule, y, q, weight, width)
                move_label(labels, rule, v, q, -weight, width)
                moved = True
        if moved:
            spread(pattern, i, 0, g, rule, width)
