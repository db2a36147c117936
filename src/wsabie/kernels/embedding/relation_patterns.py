"""Relation patterns: the entities that are scored together, of which all but one slot form a query.

`encode_query` returns the query of example i when `slot` is ranked. `backprop_query` passes the gradient of that query
back to the entities behind it; `backprop_query_block` does so for all gradients of a block, for the rows of one owner.
The WARP step between the two never changes. `load_query` returns a query that was encoded before, from its memory.

`TowerPattern` (item - label) is the pattern of Weston et al. 2010. `SparseRowPattern` passes the row itself to labels
with a weight per feature, and has no entities that could move. `TowerAndRowPattern` does both (the full-rank model of
Weston et al. 2010). `SharedCompositionPattern` and `SplitCompositionPattern` (item and label - label) serve objects and
their parts (`wsabie.kernels.embedding.composed_queries`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from wsabie.kernels.compiler import INLINE, jit_entry
from wsabie.kernels.embedding import composed_queries
from wsabie.kernels.embedding.candidates import DenseQuery, PointAndRowQuery, SparseQuery, score_label
from wsabie.kernels.embedding.composed_queries import SharedCompositionPattern, SplitCompositionPattern
from wsabie.kernels.embedding.towers import backprop_block, backprop_entity, encode_block, encode_entity


class TowerPattern(NamedTuple):
    """An item and a label: f_y(x) = s(tower(x), W_y). Slot 0 is the label."""

    tower: Any


class SparseRowPattern(NamedTuple):
    """A sparse row and a label: f_y(x) = w_y . x."""

    indptr: Any  # (n + 1,) int64
    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32


class DenseRowPattern(NamedTuple):
    """A dense row and a label: f_y(x) = w_y . x."""

    rows: Any  # (n, n_features) float32


class TowerAndRowPattern(NamedTuple):
    """An item, its row and a label: f_y(x) = w_y . x + s(tower(x), W_y)."""

    pair: TowerPattern
    row: Any


def _encode_point(pattern, i, slot, q, width):
    encode_entity(pattern.tower, i, q, width)
    return q


def _encode_row(pattern, i, slot, q, width):
    lo, hi = pattern.indptr[i], pattern.indptr[i + 1]
    return SparseQuery(pattern.indices[lo:hi], pattern.data[lo:hi])


def _encode_dense_row(pattern, i, slot, q, width):
    return DenseQuery(pattern.rows[i])


def _encode_both(pattern, i, slot, q, width):
    return PointAndRowQuery(encode_query(pattern.pair, i, slot, q, width), encode_query(pattern.row, i, slot, q, width))


def _encode_block_point(pattern, rows, slot, block, lo, hi, t, width):
    encode_block(pattern.tower, rows, block, lo, hi, t, width)


def _encode_block_row(pattern, rows, slot, block, lo, hi, t, width):
    return


def _encode_block_both(pattern, rows, slot, block, lo, hi, t, width):
    encode_query_block(pattern.pair, rows, slot, block, lo, hi, t, width)


def _encode_block_one_by_one(pattern, rows, slot, block, lo, hi, t, width):
    for b in range(lo, hi):
        encode_query(pattern, rows[block.order[b]], slot, block.queries[b], width)


def _load_point(pattern, i, slot, q, width):
    return q


def _load_both(pattern, i, slot, q, width):
    return PointAndRowQuery(q, encode_query(pattern.row, i, slot, q, width))


def _backprop_point(pattern, i, slot, g, rule, width):
    backprop_entity(pattern.tower, i, g, rule, width)


def _backprop_row(pattern, i, slot, g, rule, width):
    return


def _backprop_both(pattern, i, slot, g, rule, width):
    backprop_query(pattern.pair, i, slot, g, rule, width)


def _backprop_block_point(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    backprop_block(pattern.tower, rows, block, rule, owner, n_owners, bounds, width)


def _backprop_block_row(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    return


def _backprop_block_both(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    backprop_query_block(pattern.pair, rows, slot, block, rule, owner, n_owners, bounds, width)


_ENCODE: dict[type, Callable[..., Any]] = {
    TowerPattern: _encode_point,
    SparseRowPattern: _encode_row,
    DenseRowPattern: _encode_dense_row,
    TowerAndRowPattern: _encode_both,
    SharedCompositionPattern: composed_queries.encode_shared_query,
    SplitCompositionPattern: composed_queries.encode_split_query,
}
_ENCODE_BLOCK: dict[type, Callable[..., Any]] = {
    TowerPattern: _encode_block_point,
    SparseRowPattern: _encode_block_row,
    DenseRowPattern: _encode_block_row,
    TowerAndRowPattern: _encode_block_both,
    SharedCompositionPattern: _encode_block_one_by_one,
    SplitCompositionPattern: _encode_block_one_by_one,
}
_LOAD: dict[type, Callable[..., Any]] = {
    **_ENCODE,
    **dict.fromkeys((TowerPattern, SharedCompositionPattern, SplitCompositionPattern), _load_point),
    TowerAndRowPattern: _load_both,
}
_BACKPROP: dict[type, Callable[..., Any]] = {
    TowerPattern: _backprop_point,
    SparseRowPattern: _backprop_row,
    DenseRowPattern: _backprop_row,
    TowerAndRowPattern: _backprop_both,
    SharedCompositionPattern: composed_queries.backprop_shared_query,
    SplitCompositionPattern: composed_queries.backprop_split_query,
}
_BACKPROP_BLOCK: dict[type, Callable[..., Any]] = {
    TowerPattern: _backprop_block_point,
    SparseRowPattern: _backprop_block_row,
    DenseRowPattern: _backprop_block_row,
    TowerAndRowPattern: _backprop_block_both,
    SharedCompositionPattern: composed_queries.backprop_shared_query_block,
    SplitCompositionPattern: composed_queries.backprop_split_query_block,
}


def encode_query(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """Return the query that ranks the candidates of `slot` in example i; points are written into q."""
    return _ENCODE[type(pattern)](pattern, i, slot, q, width)


def encode_query_block(pattern: Any, rows: Any, slot: int, block: Any, lo: int, hi: int, t: int, width: Any) -> Any:
    """Encode the queries of a block's slots lo..hi-1 in thread t; `load_query` returns them."""
    return _ENCODE_BLOCK[type(pattern)](pattern, rows, slot, block, lo, hi, t, width)


def load_query(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """Return the query that was encoded into q before."""
    return _LOAD[type(pattern)](pattern, i, slot, q, width)


def backprop_query(pattern: Any, i: int, slot: int, g: Any, rule: Any, width: Any) -> Any:
    """Pass the gradient g of a query back to its entities."""
    return _BACKPROP[type(pattern)](pattern, i, slot, g, rule, width)


def backprop_query_block(
    pattern: Any, rows: Any, slot: int, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any
) -> Any:
    """Pass the gradients of a block's visits back, in their order, to the rows that `owner` owns.

    `rows` holds the example of every visit; `bounds` are those of `towers.backprop_block`.
    """
    return _BACKPROP_BLOCK[type(pattern)](pattern, rows, slot, block, rule, owner, n_owners, bounds, width)


@overload(encode_query, jit_options=INLINE)
def _encode(pattern, i, slot, q, width):
    return _ENCODE[pattern.instance_class]


@overload(encode_query_block, jit_options=INLINE)
def _encode_block(pattern, rows, slot, block, lo, hi, t, width):
    return _ENCODE_BLOCK[pattern.instance_class]


@overload(load_query, jit_options=INLINE)
def _load(pattern, i, slot, q, width):
    return _LOAD[pattern.instance_class]


@overload(backprop_query, jit_options=INLINE)
def _backprop(pattern, i, slot, g, rule, width):
    return _BACKPROP[pattern.instance_class]


@overload(backprop_query_block, jit_options=INLINE)
def _backprop_block(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    return _BACKPROP_BLOCK[pattern.instance_class]


@jit_entry
def score_rows(pattern, labels, points, out, first, last, lo, hi, width):
    """Write out[i, y] = f_y of row i, for the rows first..last-1 and the labels lo..hi-1.

    `points` holds the points of the rows, (n, padded dim) float32, or any row where the pattern has none.
    """
    for y in range(lo, hi):
        for i in range(first, last):
            q = load_query(pattern, i, 0, points[min(i, len(points) - 1)], width)
            out[i, y] = score_label(labels, q, y, width)
