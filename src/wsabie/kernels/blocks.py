"""The deterministic loop: blocks of examples against frozen tables, then every table row summed by one owner.

Phase 1, parallel over examples: `propose_slots` computes query, violator, weight and direction of each example of the
block; no table moves. Phase 2, parallel over rows: `apply_labels` and the pattern's `spread_block` add up all
contributions to the rows of one owner, in the order of the examples, and project once. Which thread owns a row changes
nothing in the sum, so the bits are the same for any number of threads. No two threads write the same row of a table,
and a feature row that many examples of a block share is read and written once.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.kernels._jit import entry, jit
from wsabie.kernels.barrier import meet
from wsabie.kernels.patterns import fold, spread_block
from wsabie.kernels.vector import project, zero
from wsabie.kernels.warp import add_label, propose


class Block(NamedTuple):
    """Visits, and the proposals for them that the threads share. Slot b belongs to the block's b-th visit.

    The block of a whole pass has room for the proposals of its largest part only.
    """

    order: Any  # (slots,) int64: the visits of the block
    firsts: Any  # (slots + 1,) int64: slot b's pairs begin at firsts[b] - firsts[0] in `violators` and `weights`
    queries: Any  # (slots, padded dim) float32
    directions: Any  # (slots, padded dim) float32
    moved: Any  # (slots,) bool
    losses: Any  # (slots,) float64
    violators: Any  # (pairs,) int64, -1 = no step
    weights: Any  # (pairs,) float32


@entry
def run_blocks(checksum: int) -> Any:
    def run_blocks(pattern, labels, targets, rule, whole, cuts, lo, hi, work, counts, t, counters, loss, width):
        """The part of thread t in blocks lo..hi-1, which are whole.order[cuts[lo]:cuts[lo + 1]] and so on.

        Every thread of `counts` (`barrier.meet`) must be in here; when one will not come the others leave after the
        phase that they are in. `work`, `counters` and `loss` are the thread's own.
        """
        _ = checksum
        n = len(counts) - 1
        for number in range(lo, hi):
            block = part_of(whole, cuts[number], cuts[number + 1])
            slots = len(block.order)
            propose_slots(pattern, labels, targets, rule, block, slots * t // n, slots * (t + 1) // n, counters, width)
            if not meet(counts, t):
                return
            apply_labels(labels, targets, rule, block, t, n, width)
            spread_block(pattern, targets.rows, 0, block, rule, t, n, work, width)
            if t == 0:
                for b in range(slots):
                    loss[0] += block.losses[b]
            if not meet(counts, t):
                return

    return run_blocks


@jit
def part_of(whole, lo, hi):
    """Visits lo..hi-1 as a block."""
    return Block(
        whole.order[lo:hi],
        whole.firsts[lo : hi + 1],
        whole.queries,
        whole.directions,
        whole.moved,
        whole.losses,
        whole.violators,
        whole.weights,
    )


@jit
def propose_slots(pattern, labels, targets, rule, block, lo, hi, counters, width):
    """Fill slots lo..hi-1."""
    for b in range(lo, hi):
        visit, at = block.order[b], block.firsts[b] - block.firsts[0]
        i = targets.rows[visit]
        q, g = block.queries[b], block.directions[b]
        fold(pattern, i, 0, q, width)
        zero(g, width)
        moved, loss = False, 0.0
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            v, weight, lost = propose(targets, labels, rule, i, pair, q, g, counters, width)
            loss += lost
            block.violators[at] = v
            block.weights[at] = weight
            moved = moved or v >= 0
            at += 1
        block.moved[b] = moved
        block.losses[b] = loss


@jit
def apply_labels(labels, targets, rule, block, owner, n_owners, width):
    """First every step of the block, then one projection of every row that moved."""
    for b in range(len(block.order)):
        pair = targets.starts[block.order[b]]
        for at in range(block.firsts[b] - block.firsts[0], block.firsts[b + 1] - block.firsts[0]):
            v, weight = block.violators[at], block.weights[at]
            if v >= 0:
                move_owned(labels, rule, targets.labels[pair], block.queries[b], weight, owner, n_owners, width)
                move_owned(labels, rule, v, block.queries[b], -weight, owner, n_owners, width)
            pair += 1
    for b in range(len(block.order)):
        pair = targets.starts[block.order[b]]
        for at in range(block.firsts[b] - block.firsts[0], block.firsts[b + 1] - block.firsts[0]):
            if block.violators[at] >= 0:
                project_owned(labels, rule, targets.labels[pair], owner, n_owners, width)
                project_owned(labels, rule, block.violators[at], owner, n_owners, width)
            pair += 1


@jit
def move_owned(labels, rule, y, q, weight, owner, n_owners, width):
    """Label y takes its step if it is the owner's."""
    if np.int64(y) % n_owners == owner:
        add_label(labels, y, q, rule.step_labels * weight, width)
        if rule.step_bias > 0:
            labels.bias[y] += rule.step_bias * weight


@jit
def project_owned(labels, rule, y, owner, n_owners, width):
    """Label y is cut to the maximal norm if it is the owner's."""
    if np.int64(y) % n_owners == owner:
        project(labels.table[y], rule.max_norm_labels, width)
