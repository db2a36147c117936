"""The plain loop: Algorithm 1, one example after the other. Several threads on one space make it Hogwild."""

from typing import Any

from wsabie.kernels._jit import entry, jit
from wsabie.kernels.patterns import fold, spread
from wsabie.kernels.vector import project, zero
from wsabie.kernels.warp import add_label, propose


@jit
def move_label(labels, rule, y, q, weight, width):
    """One label takes its step and is projected."""
    add_label(labels, y, q, rule.step_labels * weight, width)
    project(labels.table[y], rule.max_norm_labels, width)
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


@entry
def run_visits(checksum: int) -> Any:
    def run_visits(pattern, labels, targets, rule, order, lo, hi, scratch, counters, loss, width):
        """Make visits order[lo:hi]; `scratch`, (2, padded dim) float32, `counters` and `loss` are the thread's own."""
        _ = checksum
        q, g = scratch[0], scratch[1]
        for position in range(lo, hi):
            visit = order[position]
            i = targets.rows[visit]
            fold(pattern, i, 0, q, width)
            zero(g, width)
            moved = False
            for pair in range(targets.starts[visit], targets.starts[visit + 1]):
                v, weight, lost = propose(targets, labels, rule, i, pair, q, g, counters, width)
                loss[0] += lost
                if v >= 0:
                    move_label(labels, rule, targets.labels[pair], q, weight, width)
                    move_label(labels, rule, v, q, -weight, width)
                    moved = True
            if moved:
                spread(pattern, i, 0, g, rule.step_rows, rule.max_norm_rows, width)

    return run_visits
