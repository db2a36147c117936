"""Deterministic training loop: blocks against frozen tables, then moves by one owner per row.

Phase 1, parallel over examples: `fill_slots` computes query, violator, weight and direction of each example of the
block; no table moves. Phase 2, parallel over rows: `apply_label_steps` and the pattern's `backprop_query_block` make
all steps of the rows of one owner, in the order of the examples. The owner of a row does not change its steps, so the
bits are the same for any number of threads, and no two threads write the same row of a table.

The threads meet after each phase (`wait_for_threads`) without leaving the kernel.
"""

from typing import NamedTuple

from wsabie.core.arrays import Bool, Float32, Float64, Int64
from wsabie.kernels.compiler import jit, jit_entry, jit_noinline
from wsabie.kernels.embedding import candidates
from wsabie.kernels.embedding.relation_patterns import backprop_query_block, encode_query_block, load_query
from wsabie.kernels.embedding.towers import TileScratch
from wsabie.kernels.primitives.vectors import set_to_zero
from wsabie.kernels.simd.thread_counters import read_counter, write_counter, yield_core
from wsabie.kernels.training.warp import count_negatives, warp_step

_MAX_SPINS = 1000
"""Reads of a counter before the thread yields its core; there may be fewer cores than threads."""


@jit_noinline
def wait_for_threads(counts, t):
    """Wait until every thread has arrived as often as thread t; return False if a thread will not come.

    `counts` comes from `allocate_counters`. Any other number than 0 in its last row cancels the wait.
    """
    n = len(counts) - 1
    turn = read_counter(counts, t) + 1
    write_counter(counts, t, turn)
    for u in range(n):
        spins = 0
        while read_counter(counts, u) < turn:
            if read_counter(counts, n) != 0:
                return False
            spins += 1
            if spins > _MAX_SPINS:
                yield_core()
    return read_counter(counts, n) == 0


class ExampleBlock(NamedTuple):
    """Visits with their proposed steps, shared by threads; slot b belongs to the block's b-th visit.

    The block of a whole pass has room for the proposals of its largest part only.
    """

    order: Int64  # (slots,): the visits of the block
    pair_starts: Int64  # (slots + 1,): slot b's pairs begin at pair_starts[b] - pair_starts[0] in positives
    queries: Float32  # (slots, padded dim)
    directions: Float32  # (slots, padded dim)
    moved: Bool  # (slots,)
    losses: Float64  # (slots,)
    positives: Int64  # (pairs,)
    violators: Int64  # (pairs,), -1 = no step
    weights: Float32  # (pairs,)
    tile_scratch: TileScratch


@jit_entry
def run_blocks(
    pattern, labels, targets, config, sampler, visits, cuts, bounds, label_bounds, counts, t, counters, loss, width
):
    """Run the part of thread t in the blocks of the visits visits.order[cuts[k]:cuts[k + 1]].

    Every thread of `counts` (`wait_for_threads`) must run this function; when one fails, the others leave after their
    phase. `bounds` delimit the rows of the query's tower that a thread owns, `label_bounds` those of the candidates;
    `counters` and `loss` belong to the thread.
    """
    n = len(counts) - 1
    for number in range(len(cuts) - 1):
        block = slice_block(visits, cuts[number], cuts[number + 1])
        slots = len(block.order)
        first, last = slots * t // n, slots * (t + 1) // n
        gathered = candidates.gather_candidates(labels, targets, config, block, t, n, width)
        if gathered and not wait_for_threads(counts, t):
            return
        encode_query_block(pattern, targets.rows, block, first, last, t, width)
        fill_slots(pattern, labels, targets, config, sampler, block, first, last, counters, width)
        if not wait_for_threads(counts, t):
            return
        apply_label_steps(pattern, labels, targets, config, block, t, n, width)
        if gathered and not wait_for_threads(counts, t):
            return
        backprop_query_block(pattern, targets.rows, block, config, t, n, bounds, width)
        candidates.backprop_candidates(labels, block, config, t, n, label_bounds, width)
        if t == 0:
            for b in range(slots):
                loss[0] += block.losses[b]
        if not wait_for_threads(counts, t):
            return


@jit
def slice_block(visits, lo, hi):
    """Return the visits lo..hi-1 as a block."""
    return ExampleBlock(visits.order[lo:hi], visits.pair_starts[lo : hi + 1], *visits[2:])


@jit
def fill_slots(pattern, labels, targets, config, sampler, block, lo, hi, counters, width):
    """Fill slots lo..hi-1, whose queries are encoded already."""
    for b in range(lo, hi):
        visit, k = block.order[b], block.pair_starts[b] - block.pair_starts[0]
        i = targets.rows[visit]
        q, g = load_query(pattern, i, block.queries[b], width), block.directions[b]
        set_to_zero(g, width)
        has_step, loss, n = False, 0.0, count_negatives(targets, labels, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            y = candidates.locate_positive(labels, targets, pair, k)
            y, v, weight, pair_loss = warp_step(targets, labels, config, sampler, i, n, pair, y, q, g, counters, width)
            loss += pair_loss
            block.positives[k] = y
            block.violators[k] = v
            block.weights[k] = weight
            has_step = has_step or v >= 0
            k += 1
        block.moved[b] = has_step
        block.losses[b] = loss


@jit
def apply_label_steps(pattern, labels, targets, config, block, owner, n_owners, width):
    """Apply the steps of the labels that `owner` owns, one after the other."""
    for b in range(len(block.order)):
        q = load_query(pattern, targets.rows[block.order[b]], block.queries[b], width)
        start, stop = block.pair_starts[b] - block.pair_starts[0], block.pair_starts[b + 1] - block.pair_starts[0]
        for k in range(start, stop):
            y, v, weight = block.positives[k], block.violators[k], block.weights[k]
            if v >= 0 and y % n_owners == owner:
                candidates.update_and_clip_label(labels, config, y, q, weight, width)
            if v >= 0 and v % n_owners == owner:
                candidates.update_and_clip_label(labels, config, v, q, -weight, width)
