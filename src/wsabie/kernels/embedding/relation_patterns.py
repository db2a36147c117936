"""Relation patterns: the entities that are scored together, of which all but one slot form a query.

`encode_query` returns the query of example i. `backprop_query` passes the gradient of that query
back to the entities behind it; `backprop_query_block` does so for all gradients of a block, for the rows of one owner.
The WARP step between the two never changes. `load_query` returns a query that was encoded before, from its memory.

`TowerPattern` (item - label) is the pattern of Weston et al. 2010. `Csr` and `DenseRowPattern` pass the row itself to
labels with a weight per feature, and have no entities that could move. `TowerAndRowPattern` does both (the full-rank
model of Weston et al. 2010). `CompositionPattern` (item and label - label) serves objects and their parts (Mesnil et
al. 2014, section 3):

    f_q(I_o, L_o, I_p, L_p) = f_I(I_o, L_o) + f_I(I_p, L_p) + r f_L(L_o, L_p)

When L_o is ranked and the rest is given, f_I(I_p, L_p) is the same for all candidates. The rest is one inner product
with the candidate L', so picture I_o and label L_p are encoded as one query (and I_p and L_o, for L_p):

    one table      (V I_o + r W_p) . W_L'                 q = V I_o + r W_p             labels: Dot(W)
    two tables     (V I_o) . U_L' + (r W_p) . W_L'        q = [ V I_o | r W_p ]         labels: TwoPointLabels(U, W)

An edge between pictures, s f_II(I_o, I_p) = s (V I_o) . (V I_p), drops out likewise, but a picture may be ranked: when
it is I_p, all candidates share f_I(I_o, L_o) and f_L, and the rest has the first form:

    (U_Lp + s V I_o) . (V I')                           q = V (s I_o) + 1 U_Lp         candidates: CandidatePool over V

An example is a picture and the other label, or a picture alone (-1), which is a query like that of `TowerPattern`.
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Csr, Float32, Int32
from wsabie.kernels.compiler import jit, jit_entry
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding.candidates import DenseQuery, PointAndRowQuery, SparseQuery
from wsabie.kernels.embedding.similarity import score_label
from wsabie.kernels.embedding.towers import Tower, backprop_block, backprop_entity, encode_block, encode_entity
from wsabie.kernels.primitives.vectors import Width, add, set_to_zero, step_vector
from wsabie.kernels.simd.vector_registers import load_point


class TowerPattern(NamedTuple):
    """An item and a label: f_y(x) = s(tower(x), W_y)."""

    tower: Tower


class DenseRowPattern(NamedTuple):
    """A dense row and a label: f_y(x) = w_y . x."""

    rows: Float32  # (n, n_features)


class TowerAndRowPattern(NamedTuple):
    """An item, its row and a label: f_y(x) = w_y . x + s(tower(x), W_y)."""

    tower: Tower
    row: Csr | DenseRowPattern


class CompositionPattern(NamedTuple):
    """An item and a paired label, whose points are added up or lie side by side in a query twice as wide."""

    tower: Tower  # over items
    item_ids: Int32  # (n,): item of each example
    visits: Int32  # (n_visits,): item of each visit
    label_ids: Int32  # (n,): paired label, -1 without one
    table: Float32  # W: (n_labels, padded dim)
    weight: np.float32  # r
    point_width: Width  # width of a point in the form of `width`
    label_start: int  # where the label's point begins in a query; 0: added to the item's


# ---- queries


@dispatch("pattern")
def encode_query(pattern, i, q, width):
    """Return the query of example i; points are written into q."""


@encode_query.register(TowerPattern)
def _encode_point(pattern, i, q, width):
    encode_entity(pattern.tower, i, q, width)
    return q


@encode_query.register(Csr)
def _encode_row(pattern, i, q, width):
    lo, hi = pattern.indptr[i], pattern.indptr[i + 1]
    return SparseQuery(pattern.indices[lo:hi], pattern.data[lo:hi])


@encode_query.register(DenseRowPattern)
def _encode_dense_row(pattern, i, q, width):
    return DenseQuery(pattern.rows[i])


@encode_query.register(TowerAndRowPattern)
def _encode_point_and_row(pattern, i, q, width):
    encode_entity(pattern.tower, i, q, width)
    return PointAndRowQuery(q, encode_query(pattern.row, i, q, width))


@encode_query.register(CompositionPattern)
def _encode_composition(pattern, i, q, width):
    """Encode the item's point, and r times the label's on top of it or behind it."""
    set_to_zero(q, width)
    encode_entity(pattern.tower, pattern.item_ids[i], q, pattern.point_width)
    if pattern.label_ids[i] >= 0:
        add(q[pattern.label_start :], pattern.weight, pattern.table[pattern.label_ids[i]], pattern.point_width)
    return q


@dispatch("pattern", has_default=True)
def load_query(pattern, i, q, width):
    """Return the query that was encoded into q before."""
    return q


load_query.register(Csr)(_encode_row)
load_query.register(DenseRowPattern)(_encode_dense_row)


@load_query.register(TowerAndRowPattern)
def _load_point_and_row(pattern, i, q, width):
    return PointAndRowQuery(q, encode_query(pattern.row, i, q, width))


@dispatch("pattern", has_default=True)
def encode_query_block(pattern, rows, block, lo, hi, t, width):
    """Encode the queries of a block's slots lo..hi-1 in thread t; `load_query` returns them."""
    for b in range(lo, hi):
        encode_query(pattern, rows[block.order[b]], block.queries[b], width)


@encode_query_block.register(TowerPattern, TowerAndRowPattern)
def _encode_block_point(pattern, rows, block, lo, hi, t, width):
    encode_block(pattern.tower, rows, block, lo, hi, t, width)


@encode_query_block.register(Csr, DenseRowPattern)
def _encode_block_row(pattern, rows, block, lo, hi, t, width):
    return


# ---- gradients


@dispatch("pattern", has_default=True)
def backprop_query(pattern, i, g, config, width):
    """Pass the gradient g of a query back to its entities; rows have none that could move."""


@backprop_query.register(TowerPattern, TowerAndRowPattern)
def _backprop_point(pattern, i, g, config, width):
    backprop_entity(pattern.tower, i, g, config, width)


@jit
def _step_paired_label(pattern, i, g, config):
    """Move the paired label at the rate of labels, and project it."""
    if pattern.label_ids[i] >= 0:
        row, step = pattern.table[pattern.label_ids[i]], config.learning_rate_labels * pattern.weight
        direction = load_point(g[pattern.label_start :], pattern.point_width)
        step_vector(row, config.decay_labels, step, direction, config.max_norm_labels, pattern.point_width)


@backprop_query.register(CompositionPattern)
def _backprop_composition(pattern, i, g, config, width):
    """Pass the gradient of the item's point back, and r times that of the label's."""
    backprop_entity(pattern.tower, pattern.item_ids[i], g, config, pattern.point_width)
    _step_paired_label(pattern, i, g, config)


@dispatch("pattern", has_default=True)
def backprop_query_block(pattern, rows, block, config, owner, n_owners, bounds, width):
    """Pass the gradients of a block's visits back, in their order, to the rows that `owner` owns.

    `rows` holds the example of every visit; `bounds` are those of `towers.backprop_block`.
    """


@backprop_query_block.register(TowerPattern, TowerAndRowPattern)
def _backprop_block_point(pattern, rows, block, config, owner, n_owners, bounds, width):
    backprop_block(pattern.tower, rows, block, config, owner, n_owners, bounds, width)


@backprop_query_block.register(CompositionPattern)
def _backprop_block_composition(pattern, rows, block, config, owner, n_owners, bounds, width):
    """Pass the directions of a block to the rows behind the items, and to the paired labels."""
    backprop_block(pattern.tower, pattern.visits, block, config, owner, n_owners, bounds, pattern.point_width)
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and pattern.label_ids[i] % n_owners == owner:
            _step_paired_label(pattern, i, block.directions[b], config)


@jit_entry
def score_rows(pattern, labels, points, out, first, last, lo, hi, width):
    """Write out[i, y] = f_y of row i, for the rows first..last-1 and the labels lo..hi-1.

    `points` holds the points of the rows, (n, padded dim) float32, or any row where the pattern has none.
    """
    for y in range(lo, hi):
        for i in range(first, last):
            q = load_query(pattern, i, points[min(i, len(points) - 1)], width)
            out[i, y] = score_label(labels, q, y, width)
