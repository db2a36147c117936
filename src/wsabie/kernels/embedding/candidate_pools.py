"""Pools of candidates that are points of a tower; each block of examples encodes one.

A candidate with features (a document, a track) is no row of a table but a sum over its features, and every draw in
search of a violator would cost an encoding. So each block brings its candidates along:

    slots 0 .. n_sampled - 1     items drawn uniformly from all, from which the negatives of the block are drawn
    the slots after them         the positives of the block's pairs, in their order

Without sampled ones (n_sampled = 0) the positives of the block are each other's negatives, and ranks are ranks among
them. The step takes slots as labels, through the functions of `wsabie.kernels.embedding.candidates`. A moved slot adds
to its direction, and after the block the directions are scattered into the table behind the points.
"""

from typing import Any, NamedTuple

from wsabie.core.arrays import LANES
from wsabie.kernels.compiler import jit
from wsabie.kernels.embedding.similarity import compute_slopes
from wsabie.kernels.embedding.towers import backprop_block, encode_entity
from wsabie.kernels.primitives.random_numbers import advance_counter, draw_below, mix_bits, start_stream
from wsabie.kernels.primitives.vectors import set_to_zero


class CandidatePool(NamedTuple):
    """Candidates of a block, shared by threads."""

    points: Any  # Dot, Euclidean or Cosine over (slots, padded dim) float32
    tower: Any  # over all candidates
    ids: Any  # (slots,) int32: item of each slot
    directions: Any  # (slots, padded dim) float32
    moved: Any  # (slots,) bool
    order: Any  # (slots,) int64: 0, 1, 2 ...
    drawn: Any  # (1,) int64: negatives come from the slots below
    n_sampled: int
    marks: Any  # `towers.Marks`


class PoolStepConfig(NamedTuple):
    """Moved slots of a pool in the form of a block, for `towers.backprop_block`."""

    order: Any
    moved: Any
    directions: Any
    marks: Any


@jit
def count_block_pairs(block):
    """Count the pairs of a block."""
    return block.firsts[len(block.order)] - block.firsts[0]


@jit
def fill_slot(pool, slot, item, width):
    """Put an item into a slot."""
    pool.ids[slot] = item
    pool.moved[slot] = False
    encode_entity(pool.tower, item, pool.points.table[slot], width)
    set_to_zero(pool.directions[slot], width)


def gather_pool(labels, targets, rule, block, t, n, width):
    """Fill the slots of thread t of n; return True, since all threads must meet before the slots are used."""
    m = labels.n_sampled
    if t == 0:
        labels.drawn[0] = m if m > 0 else count_block_pairs(block)
    counter = mix_bits(~start_stream(rule.seed, rule.epoch, targets.first_pair + block.firsts[0]))
    for slot in range(m):
        counter = advance_counter(counter)
        if slot % n == t:
            fill_slot(labels, slot, draw_below(counter, targets.n_labels), width)
    for b in range(len(block.order)):
        slot = m + block.firsts[b] - block.firsts[0]
        first, last = targets.starts[block.order[b]], targets.starts[block.order[b] + 1]
        for pair in range(first, last):
            if slot % n == t:
                fill_slot(labels, slot, targets.labels[pair], width)
            slot += 1
    return True


def backprop_pool(labels, block, rule, owner, n_owners, bounds, width):
    """Scatter the directions of the slots into the rows of the table that `owner` owns."""
    slots = labels.n_sampled + count_block_pairs(block)
    moves = PoolStepConfig(labels.order[:slots], labels.moved, labels.directions, labels.marks)
    backprop_block(labels.tower, labels.ids, moves, rule, owner, n_owners, bounds, width)


def update_pool_candidate(labels, rule, y, q, weight, width):
    """Add a step to the direction of a candidate; scattering applies the rate."""
    point, direction = labels.points.table[y], labels.directions[y]
    a, _, c = compute_slopes(labels.points, q, y, width)
    for k in range(LANES * len(width)):
        direction[k] += weight * (a * q[k] + c * point[k])
    labels.moved[y] = True
