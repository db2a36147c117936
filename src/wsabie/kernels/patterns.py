"""Relation patterns: which entities are scored together, and how everything but one slot folds into one query.

A pattern answers `fold(pattern, i, slot, q)`: the query of example i when `slot` is the one to be ranked, and
`spread(pattern, i, slot, g)`: the gradient on that query handed back to the entities behind it; `spread_block` does so
for all gradients of a block, as far as they concern the rows of one owner. The WARP step between the two never changes.
A query that was folded once comes back by `recall`, out of the memory that it was folded into.

`Pair` (thing - label) is the first paper's pattern. `Given` hands the row itself to labels that have a weight per
feature, and has nothing behind it that could move; `Both` does the two at once (the paper's full-rank model). `Beside`
and `Apart` (thing and label - label) are those of objects and their parts, `wsabie.kernels.beside`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from wsabie.kernels import beside
from wsabie.kernels._jit import INLINE
from wsabie.kernels.beside import Apart, Beside
from wsabie.kernels.candidates import DenseRow, Row, Two
from wsabie.kernels.towers import backprop, encode, encode_block, scatter


class Pair(NamedTuple):
    """A thing and a label: f_y(x) = s(tower(x), W_y). Slot 0 is the label."""

    tower: Any


class Given(NamedTuple):
    """A sparse row and a label: f_y(x) = w_y . x."""

    indptr: Any  # (n + 1,) int64
    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32


class GivenDense(NamedTuple):
    """The same with dense rows."""

    rows: Any  # (n, n_features) float32


class Both(NamedTuple):
    """A thing, its row and a label: f_y(x) = w_y . x + s(tower(x), W_y)."""

    pair: Pair
    given: Any


def _fold_pair(pattern, i, slot, q, width):
    encode(pattern.tower, i, q, width)
    return q


def _fold_given(pattern, i, slot, q, width):
    lo, hi = pattern.indptr[i], pattern.indptr[i + 1]
    return Row(pattern.indices[lo:hi], pattern.data[lo:hi])


def _fold_given_dense(pattern, i, slot, q, width):
    return DenseRow(pattern.rows[i])


def _fold_both(pattern, i, slot, q, width):
    return Two(fold(pattern.pair, i, slot, q, width), fold(pattern.given, i, slot, q, width))


def _fold_block_pair(pattern, rows, slot, block, lo, hi, t, width):
    encode_block(pattern.tower, rows, block, lo, hi, t, width)


def _fold_block_given(pattern, rows, slot, block, lo, hi, t, width):
    return


def _fold_block_both(pattern, rows, slot, block, lo, hi, t, width):
    fold_block(pattern.pair, rows, slot, block, lo, hi, t, width)


def _fold_block_singly(pattern, rows, slot, block, lo, hi, t, width):
    for b in range(lo, hi):
        fold(pattern, rows[block.order[b]], slot, block.queries[b], width)


def _recall_point(pattern, i, slot, q, width):
    return q


def _recall_both(pattern, i, slot, q, width):
    return Two(q, fold(pattern.given, i, slot, q, width))


def _spread_pair(pattern, i, slot, g, rule, width):
    backprop(pattern.tower, i, g, rule, width)


def _spread_given(pattern, i, slot, g, rule, width):
    return


def _spread_both(pattern, i, slot, g, rule, width):
    spread(pattern.pair, i, slot, g, rule, width)


def _spread_block_pair(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    scatter(pattern.tower, rows, block, rule, owner, n_owners, bounds, width)


def _spread_block_given(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    return


def _spread_block_both(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    spread_block(pattern.pair, rows, slot, block, rule, owner, n_owners, bounds, width)


_FOLD: dict[type, Callable[..., Any]] = {
    Pair: _fold_pair,
    Given: _fold_given,
    GivenDense: _fold_given_dense,
    Both: _fold_both,
    Beside: beside.fold_beside,
    Apart: beside.fold_apart,
}
_FOLD_BLOCK: dict[type, Callable[..., Any]] = {
    Pair: _fold_block_pair,
    Given: _fold_block_given,
    GivenDense: _fold_block_given,
    Both: _fold_block_both,
    Beside: _fold_block_singly,
    Apart: _fold_block_singly,
}
_RECALL: dict[type, Callable[..., Any]] = {
    **_FOLD, **dict.fromkeys((Pair, Beside, Apart), _recall_point), Both: _recall_both
}  # fmt: skip
_SPREAD: dict[type, Callable[..., Any]] = {
    Pair: _spread_pair,
    Given: _spread_given,
    GivenDense: _spread_given,
    Both: _spread_both,
    Beside: beside.spread_beside,
    Apart: beside.spread_apart,
}
_SPREAD_BLOCK: dict[type, Callable[..., Any]] = {
    Pair: _spread_block_pair,
    Given: _spread_block_given,
    GivenDense: _spread_block_given,
    Both: _spread_block_both,
    Beside: beside.spread_block_beside,
    Apart: beside.spread_block_apart,
}


def fold(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """The query that ranks the candidates of `slot` in example i; a point is written into q."""
    return _FOLD[type(pattern)](pattern, i, slot, q, width)


def fold_block(pattern: Any, rows: Any, slot: int, block: Any, lo: int, hi: int, t: int, width: Any) -> Any:
    """`fold` of a block's slots lo..hi-1 into its queries, by thread t; `recall` gives them back."""
    return _FOLD_BLOCK[type(pattern)](pattern, rows, slot, block, lo, hi, t, width)


def recall(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """The query that was folded into q before."""
    return _RECALL[type(pattern)](pattern, i, slot, q, width)


def spread(pattern: Any, i: int, slot: int, g: Any, rule: Any, width: Any) -> Any:
    """Hand the gradient g of the query back to the entities that were folded into it."""
    return _SPREAD[type(pattern)](pattern, i, slot, g, rule, width)


def spread_block(
    pattern: Any, rows: Any, slot: int, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any
) -> Any:
    """Hand the gradients of a block's visits back, in their order, to the rows that `owner` owns.

    `rows` says of every visit which example it is of; `bounds` are those of `towers.scatter`.
    """
    return _SPREAD_BLOCK[type(pattern)](pattern, rows, slot, block, rule, owner, n_owners, bounds, width)


@overload(fold, jit_options=INLINE)
def _fold(pattern, i, slot, q, width):
    return _FOLD[pattern.instance_class]


@overload(fold_block, jit_options=INLINE)
def _fold_block(pattern, rows, slot, block, lo, hi, t, width):
    return _FOLD_BLOCK[pattern.instance_class]


@overload(recall, jit_options=INLINE)
def _recall(pattern, i, slot, q, width):
    return _RECALL[pattern.instance_class]


@overload(spread, jit_options=INLINE)
def _spread(pattern, i, slot, g, rule, width):
    return _SPREAD[pattern.instance_class]


@overload(spread_block, jit_options=INLINE)
def _spread_block(pattern, rows, slot, block, rule, owner, n_owners, bounds, width):
    return _SPREAD_BLOCK[pattern.instance_class]
