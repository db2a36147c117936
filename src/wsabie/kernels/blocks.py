"""The deterministic loop: blocks of examples against frozen tables, then every table row summed by one owner.

Phase 1, parallel over examples: `propose_block` computes query, violator, weight and direction of each example of the
block; no table moves. Phase 2, parallel over rows: `apply_labels` and `apply_features` add up all contributions to the
rows they own, in the order of the examples, and project once. Which thread owns a row changes nothing in the sum, so
the bits are the same for any number of threads. No two threads write the same cache line, and a feature row that many
examples of a block share is read and written once.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.kernels._jit import entry, jit
from wsabie.kernels.patterns import fold
from wsabie.kernels.towers import scatter
from wsabie.kernels.vector import project
from wsabie.kernels.warp import add_label, propose


class Block(NamedTuple):
    """The proposals of one block, shared by the threads; slot b belongs to the block's b-th example."""

    queries: Any  # (block, padded dim) float32
    directions: Any  # (block, padded dim) float32
    violators: Any  # (block,) int64, -1 = no step
    weights: Any  # (block,) float32


@entry
def propose_block(checksum: int) -> Any:
    def propose_block(pattern, labels, targets, rule, order, lo, hi, start, block, counters, loss, width):
        """Fill the slots of pairs order[lo:hi] of the block that begins at `start`."""
        _ = checksum
        for position in range(lo, hi):
            pair, b = order[position], position - start
            q, g = block.queries[b], block.directions[b]
            i = targets.rows[pair]
            fold(pattern, i, 0, q, width)
            v, weight = propose(targets, labels, rule, pair, q, g, counters, loss, width)
            block.violators[b] = v
            block.weights[b] = weight

    return propose_block


@entry
def apply_block(checksum: int) -> Any:
    def apply_block(pattern, labels, targets, rule, order, start, stop, block, owner, n_owners, work, width):
        """Sum the block's contributions into the rows of `owner`, project, write."""
        _ = checksum
        apply_labels(labels, targets, rule, order, start, stop, block, owner, n_owners, width)
        scatter(pattern.tower, targets.rows, order, start, stop, block, rule, owner, n_owners, work, width)

    return apply_block


@jit
def apply_labels(labels, targets, rule, order, start, stop, block, owner, n_owners, width):
    """First every step of the block, then one projection of every row that moved."""
    for position in range(start, stop):
        b = position - start
        v, weight = block.violators[b], block.weights[b]
        if v >= 0:
            y = np.int64(targets.labels[order[position]])
            if y % n_owners == owner:
                add_label(labels, y, block.queries[b], rule.step_labels * weight, width)
                labels.bias[y] += rule.step_bias * weight
            if v % n_owners == owner:
                add_label(labels, v, block.queries[b], -rule.step_labels * weight, width)
                labels.bias[v] -= rule.step_bias * weight
    for position in range(start, stop):
        v = block.violators[position - start]
        if v >= 0:
            y = np.int64(targets.labels[order[position]])
            if y % n_owners == owner:
                project(labels.table[y], rule.max_norm_labels, width)
            if v % n_owners == owner:
                project(labels.table[v], rule.max_norm_labels, width)
