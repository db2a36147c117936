"""Queries of an item and a paired label: objects and their parts (Mesnil et al. 2014, section 3).

    f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p)

When L_o is ranked and the rest is given, f_I(I_p, L_p) is the same for all candidates. The rest is one inner product
with the candidate L', so picture I_o and label L_p are encoded as one query (and I_p and L_o, for L_p):

    shared     (V I_o + r W_p) . W_L'                     q = V I_o + r W_p             labels: Dot(W)
    split      (V I_o) . U_L' + (r W_p) . W_L'            q = [ V I_o | r W_p ]         labels: TwoPointLabels(U, W)

An edge between pictures, s f_II(I_o, I_p) = s (V I_o) . (V I_p), drops out likewise, but a picture may be ranked: when
it is I_p, all candidates share f_I(I_o, L_o) and f_L, and the rest has the first form:

    (U_Lp + s V I_o) . (V I')                           q = V (s I_o) + 1 U_Lp         candidates: CandidatePool over V

An example is a picture and the other label, or a picture alone (-1), which is a query like that of `TowerPattern`.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import LANES
from wsabie.kernels.compiler import jit
from wsabie.kernels.embedding.towers import backprop_block, backprop_entity, encode_entity
from wsabie.kernels.primitives.vector_registers import load_point
from wsabie.kernels.primitives.vectors import add, set_to_zero, step_vector


class SharedCompositionPattern(NamedTuple):
    """An item and a paired label, both points of one space."""

    tower: Any  # over items
    item_ids: Any  # (n,) int32: item of each example
    visits: Any  # (n_visits,) int32: item of each visit
    label_ids: Any  # (n,) int32: paired label, -1 without one
    table: Any  # W: (n_labels, padded dim) float32
    weight: np.float32  # r


class SplitCompositionPattern(NamedTuple):
    """An item and a paired label over separate tables, in the first and the second half of the query."""

    tower: Any
    item_ids: Any
    visits: Any
    label_ids: Any
    table: Any
    weight: np.float32
    half: Any  # width of the table in the form of `width`


def encode_shared_query(pattern, i, slot, q, width):
    """Encode the item's point plus r times the label's."""
    encode_entity(pattern.tower, pattern.item_ids[i], q, width)
    if pattern.label_ids[i] >= 0:
        add(q, pattern.weight, pattern.table[pattern.label_ids[i]], width)
    return q


def encode_split_query(pattern, i, slot, q, width):
    """Encode the item's point, and r times the label's behind it."""
    n = LANES * len(pattern.half)
    encode_entity(pattern.tower, pattern.item_ids[i], q[:n], pattern.half)
    set_to_zero(q[n:], pattern.half)
    if pattern.label_ids[i] >= 0:
        add(q[n:], pattern.weight, pattern.table[pattern.label_ids[i]], pattern.half)
    return q


@jit
def _move_label(pattern, i, g, rule, width):
    """Move the paired label at the rate of labels, and project it."""
    if pattern.label_ids[i] >= 0:
        row = pattern.table[pattern.label_ids[i]]
        step_vector(
            row, rule.keep_labels, rule.step_labels * pattern.weight, load_point(g, width), rule.max_norm_labels, width
        )


def backprop_shared_query(pattern, i, slot, g, rule, width):
    """Pass the gradient of the query to the point, and r times it to the label."""
    backprop_entity(pattern.tower, pattern.item_ids[i], g, rule, width)
    _move_label(pattern, i, g, rule, width)


def backprop_split_query(pattern, i, slot, g, rule, width):
    """Pass the halves of the gradient to the item and to the label."""
    backprop_entity(pattern.tower, pattern.item_ids[i], g, rule, pattern.half)
    _move_label(pattern, i, g[LANES * len(pattern.half) :], rule, pattern.half)


@jit
def _move_labels(pattern, rows, block, rule, first, owner, n_owners, width):
    """Move the paired labels of a block that `owner` owns; directions begin at `first`."""
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and pattern.label_ids[i] % n_owners == owner:
            _move_label(pattern, i, block.directions[b][first:], rule, width)


def backprop_shared_query_block(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    """Pass the directions of a block to the rows behind the items, and to the paired labels."""
    backprop_block(pattern.tower, pattern.visits, block, rule, owner, n_owners, bounds, width)
    _move_labels(pattern, rows, block, rule, 0, owner, n_owners, width)


def backprop_split_query_block(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    """Pass the first halves of the directions to the rows behind the items, the second to the labels."""
    half = pattern.half
    backprop_block(pattern.tower, pattern.visits, block, rule, owner, n_owners, bounds, half)
    _move_labels(pattern, rows, block, rule, LANES * len(half), owner, n_owners, half)
