"""The deterministic loop: blocks of examples against frozen tables, then every table row moved by one owner.

Phase 1, parallel over examples: `propose_slots` computes query, violator, weight and direction of each example of the
block; no table moves. Phase 2, parallel over rows: `apply_labels` and the pattern's `spread_block` make all steps of
the rows of one owner, in the order of the examples. Which thread owns a row changes nothing in what becomes of it, so
the bits are the same for any number of threads, and no two threads write the same row of a table.
"""

from typing import Any, NamedTuple

from wsabie.kernels._jit import entry, jit
from wsabie.kernels.barrier import meet
from wsabie.kernels.candidates import gather, move_label, place, spread_labels
from wsabie.kernels.patterns import fold_block, recall, spread_block
from wsabie.kernels.vector import zero
from wsabie.kernels.warp import negatives_among, propose


class Block(NamedTuple):
    """Visits, and the proposals for them that the threads share. Slot b belongs to the block's b-th visit.

    The block of a whole pass has room for the proposals of its largest part only.
    """

    order: Any  # (slots,) int64: the visits of the block
    firsts: Any  # (slots + 1,) int64: slot b's pairs begin at firsts[b] - firsts[0] in the last three
    queries: Any  # (slots, padded dim) float32
    directions: Any  # (slots, padded dim) float32
    moved: Any  # (slots,) bool
    losses: Any  # (slots,) float64
    positives: Any  # (pairs,) int64
    violators: Any  # (pairs,) int64, -1 = no step
    weights: Any  # (pairs,) float32
    marks: Any  # `towers.Marks`


@entry
def run_blocks(
    pattern,
    labels,
    targets,
    rule,
    sampler,
    whole,
    cuts,
    lo,
    hi,
    bounds,
    label_bounds,
    counts,
    t,
    counters,
    loss,
    width,
):
    """The part of thread t in blocks lo..hi-1, which are whole.order[cuts[lo]:cuts[lo + 1]] and so on.

    Every thread of `counts` (`barrier.meet`) must be in here; when one will not come the others leave after the
    phase that they are in. `bounds` say which rows a thread owns of the query's tower, `label_bounds` of the
    candidates'; `counters` and `loss` are the thread's own.
    """
    n = len(counts) - 1
    for number in range(lo, hi):
        block = part_of(whole, cuts[number], cuts[number + 1])
        slots = len(block.order)
        first, last = slots * t // n, slots * (t + 1) // n
        gathered = gather(labels, targets, rule, block, t, n, width)
        if gathered and not meet(counts, t):
            return
        fold_block(pattern, targets.rows, 0, block, first, last, t, width)
        propose_slots(pattern, labels, targets, rule, sampler, block, first, last, counters, width)
        if not meet(counts, t):
            return
        apply_labels(pattern, labels, targets, rule, block, t, n, width)
        if gathered and not meet(counts, t):
            return
        spread_block(pattern, targets.rows, 0, block, rule, t, n, bounds, width)
        spread_labels(labels, block, rule, t, n, label_bounds, width)
        if t == 0:
            for b in range(slots):
                loss[0] += block.losses[b]
        if not meet(counts, t):
            return


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
        whole.positives,
        whole.violators,
        whole.weights,
        whole.marks,
    )


@jit
def propose_slots(pattern, labels, targets, rule, sampler, block, lo, hi, counters, width):
    """Fill slots lo..hi-1, whose queries are there."""
    for b in range(lo, hi):
        visit, at = block.order[b], block.firsts[b] - block.firsts[0]
        i = targets.rows[visit]
        q, g = recall(pattern, i, 0, block.queries[b], width), block.directions[b]
        zero(g, width)
        moved, loss, n = False, 0.0, negatives_among(targets, labels, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            y = place(labels, targets, pair, at)
            y, v, weight, lost = propose(targets, labels, rule, sampler, i, n, pair, y, q, g, counters, width)
            loss += lost
            block.positives[at] = y
            block.violators[at] = v
            block.weights[at] = weight
            moved = moved or v >= 0
            at += 1
        block.moved[b] = moved
        block.losses[b] = loss


@jit
def apply_labels(pattern, labels, targets, rule, block, owner, n_owners, width):
    """The steps of the labels that `owner` owns, one after the other."""
    for b in range(len(block.order)):
        q = recall(pattern, targets.rows[block.order[b]], 0, block.queries[b], width)
        for at in range(block.firsts[b] - block.firsts[0], block.firsts[b + 1] - block.firsts[0]):
            y, v, weight = block.positives[at], block.violators[at], block.weights[at]
            if v >= 0 and y % n_owners == owner:
                move_label(labels, rule, y, q, weight, width)
            if v >= 0 and v % n_owners == owner:
                move_label(labels, rule, v, q, -weight, width)
