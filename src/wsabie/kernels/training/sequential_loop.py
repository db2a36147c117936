"""Sequential training loop (Algorithm 1); several threads on one space make it Hogwild."""

from wsabie.kernels.compiler import jit_entry
from wsabie.kernels.embedding.candidates import locate_positive, update_and_clip_label
from wsabie.kernels.embedding.relation_patterns import backprop_query, encode_query
from wsabie.kernels.primitives.vectors import set_to_zero
from wsabie.kernels.training.warp import count_negatives, warp_step


@jit_entry
def run_visits(pattern, labels, targets, rule, sampler, order, lo, hi, scratch, counters, loss, width):
    """Make visits order[lo:hi]; `scratch` (2, padded dim), `counters` and `loss` belong to the thread."""
    g = scratch[1]
    for position in range(lo, hi):
        visit = order[position]
        i = targets.rows[visit]
        q = encode_query(pattern, i, 0, scratch[0], width)
        set_to_zero(g, width)
        moved, n = False, count_negatives(targets, labels, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            y = locate_positive(labels, targets, pair, 0)
            y, v, weight, lost = warp_step(targets, labels, rule, sampler, i, n, pair, y, q, g, counters, width)
            loss[0] += lost
            if v >= 0:
                update_and_clip_label(labels, rule, y, q, weight, width)
                update_and_clip_label(labels, rule, v, q, -weight, width)
                moved = True
        if moved:
            backprop_query(pattern, i, 0, g, rule, width)
