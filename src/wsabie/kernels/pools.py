"""Candidates that are points of a tower: for a block of examples a pool of them is encoded, and negatives come from it.

Where things with features are ranked (documents, tracks), a candidate is no row of a table but a sum over its features,
and every draw in search of a violator would cost an encoding. So each block brings its candidates along:

    slots 0 .. n_sampled - 1     things drawn uniformly from all, which the negatives of the block are drawn from
    the slots after them         the positives of the block's pairs, in their order

Without sampled ones (n_sampled = 0) the positives of the block are each other's negatives, and ranks are ranks among
them. Slots are labels to the step, which looks at them through the functions of `wsabie.kernels.candidates`; moving one
adds to its direction, and after the block the directions are scattered into the table behind the points.
"""

from typing import Any, NamedTuple

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import jit
from wsabie.kernels.rng import advance, below, mix, stream
from wsabie.kernels.similarity import slopes
from wsabie.kernels.towers import encode, scatter
from wsabie.kernels.vector import zero


class Pool(NamedTuple):
    """The candidates of a block; threads share them."""

    points: Any  # Dot, Euclidean or Cosine over (slots, padded dim) float32
    tower: Any  # over all things that may be ranked
    ids: Any  # (slots,) int32: which thing a slot holds
    directions: Any  # (slots, padded dim) float32
    moved: Any  # (slots,) bool
    order: Any  # (slots,) int64: 0, 1, 2 ...
    drawn: Any  # (1,) int64: negatives come from the slots below
    n_sampled: int
    marks: Any  # `towers.Marks`


class Moves(NamedTuple):
    """What `towers.scatter` asks of a block."""

    order: Any
    moved: Any
    directions: Any
    marks: Any


@jit
def n_pairs_of(block):
    """Pairs of a block."""
    return block.firsts[len(block.order)] - block.firsts[0]


@jit
def fill(pool, slot, thing, width):
    """Put a thing into a slot."""
    pool.ids[slot] = thing
    pool.moved[slot] = False
    encode(pool.tower, thing, pool.points.table[slot], width)
    zero(pool.directions[slot], width)


def gather_pool(labels, targets, rule, block, t, n, width):
    """Thread t of n fills its share of the slots; returns that all threads have to meet before they are used."""
    m = labels.n_sampled
    if t == 0:
        labels.drawn[0] = m if m > 0 else n_pairs_of(block)
    counter = mix(~stream(rule.seed, rule.epoch, targets.first_pair + block.firsts[0]))
    for slot in range(m):
        counter = advance(counter)
        if slot % n == t:
            fill(labels, slot, below(counter, targets.n_labels), width)
    for b in range(len(block.order)):
        slot = m + block.firsts[b] - block.firsts[0]
        first, last = targets.starts[block.order[b]], targets.starts[block.order[b] + 1]
        for pair in range(first, last):
            if slot % n == t:
                fill(labels, slot, targets.labels[pair], width)
            slot += 1
    return True


def spread_pool(labels, block, rule, owner, n_owners, bounds, width):
    """Scatter the directions of the slots into the rows of the table that `owner` owns."""
    slots = labels.n_sampled + n_pairs_of(block)
    moves = Moves(labels.order[:slots], labels.moved, labels.directions, labels.marks)
    scatter(labels.tower, labels.ids, moves, rule, owner, n_owners, bounds, width)


def push_pool(labels, rule, y, q, weight, width):
    """A candidate's direction takes a step; the rate comes with the scattering."""
    point, direction = labels.points.table[y], labels.directions[y]
    a, _, c = slopes(labels.points, q, y, width)
    for k in range(LANES * len(width)):
        direction[k] += weight * (a * q[k] + c * point[k])
    labels.moved[y] = True
