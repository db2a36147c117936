"""A thing and a label beside it, that ask together for another label: objects and their parts ([P] section 3).

    f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p)

When L_o is ranked and the rest is given, f_I(I_p, L_p) is the same for all candidates. What is left is one inner
product with the candidate L', so that picture I_o and label L_p fold into one query (and I_p and L_o, for L_p):

    shared     (V I_o + r W_p) . W_L'                     q = V I_o + r W_p             labels: Dot(W)
    unshared   (V I_o) . U_L' + (r W_p) . W_L'            q = [ V I_o | r W_p ]         labels: Joined(U, W)

Where the pictures have an edge too, s f_II(I_o, I_p) = s (V I_o) . (V I_p), it falls out likewise, but a picture may be
ranked: when it is I_p, all candidates share f_I(I_o, L_o) and f_L, and what is left is of the first form:

    (U_Lp + s V I_o) . (V I')                           q = V (s I_o) + 1 U_Lp         candidates: a Pool over V

An example is a picture and the other label, or a picture alone (-1): then it asks as a `Pair` does.
"""

from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import jit
from wsabie.kernels.registers import load
from wsabie.kernels.towers import backprop, encode, scatter
from wsabie.kernels.vector import add, move, zero


class Beside(NamedTuple):
    """A thing and a label over tables that are shared: both are points of one space."""

    tower: Any  # over things
    who: Any  # (n,) int32: the thing of an example
    visits: Any  # (n_visits,) int32: the thing of a visit
    other: Any  # (n,) int32: the label beside it, -1 without one
    table: Any  # W: (n_labels, padded dim) float32
    weight: np.float32  # r


class Apart(NamedTuple):
    """The same over tables of their own: the thing has the first half of the query, the label the second."""

    tower: Any
    who: Any
    visits: Any
    other: Any
    table: Any
    weight: np.float32
    half: Any  # width of the table in the form of `width`


def fold_beside(pattern, i, slot, q, width):
    """The thing's point plus r times the label's."""
    encode(pattern.tower, pattern.who[i], q, width)
    if pattern.other[i] >= 0:
        add(q, pattern.weight, pattern.table[pattern.other[i]], width)
    return q


def fold_apart(pattern, i, slot, q, width):
    """The thing's point, and r times the label's behind it."""
    n = LANES * len(pattern.half)
    encode(pattern.tower, pattern.who[i], q[:n], pattern.half)
    zero(q[n:], pattern.half)
    if pattern.other[i] >= 0:
        add(q[n:], pattern.weight, pattern.table[pattern.other[i]], pattern.half)
    return q


@jit
def _move_label(pattern, i, g, rule, width):
    """The label beside the thing takes its step at the rate of labels, and is projected."""
    if pattern.other[i] >= 0:
        row = pattern.table[pattern.other[i]]
        move(row, rule.keep_labels, rule.step_labels * pattern.weight, load(g, width), rule.max_norm_labels, width)


def spread_beside(pattern, i, slot, g, rule, width):
    """The gradient of the query is that of the point, and r times it that of the label."""
    backprop(pattern.tower, pattern.who[i], g, rule, width)
    _move_label(pattern, i, g, rule, width)


def spread_apart(pattern, i, slot, g, rule, width):
    """The halves of the gradient belong to the thing and to the label."""
    backprop(pattern.tower, pattern.who[i], g, rule, pattern.half)
    _move_label(pattern, i, g[LANES * len(pattern.half) :], rule, pattern.half)


@jit
def _move_labels(pattern, rows, block, rule, first, owner, n_owners, width):
    """The block's steps of the labels that `owner` owns; directions begin at `first`."""
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and pattern.other[i] % n_owners == owner:
            _move_label(pattern, i, block.directions[b][first:], rule, width)


def spread_block_beside(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    """Directions of a block to the rows behind the things, and to the labels beside them."""
    scatter(pattern.tower, pattern.visits, block, rule, owner, n_owners, bounds, width)
    _move_labels(pattern, rows, block, rule, 0, owner, n_owners, width)


def spread_block_apart(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    """First halves to the rows behind the things, second halves to the labels."""
    half = pattern.half
    scatter(pattern.tower, pattern.visits, block, rule, owner, n_owners, bounds, half)
    _move_labels(pattern, rows, block, rule, LANES * len(half), owner, n_owners, half)
