"""Relation patterns: which entities are scored together, and how everything but one slot folds into one query.

A pattern answers `fold(pattern, i, slot, q)`: the query of example i when `slot` is the one to be ranked, and
`spread(pattern, i, slot, g)`: the gradient on that query handed back to the entities behind it; `spread_block` does so
for all gradients of a block, as far as they concern the rows of one owner. The WARP step between the two never changes.
`Pair` (thing - label) is the first paper's pattern.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from wsabie.kernels._jit import INLINE
from wsabie.kernels.towers import backprop, encode, scatter


class Pair(NamedTuple):
    """A thing and a label: f_y(x) = s(tower(x), W_y). Slot 0 is the label."""

    tower: Any


def _fold_pair(pattern, i, slot, q, width):
    encode(pattern.tower, i, q, width)


def _spread_pair(pattern, i, slot, g, step, max_norm, width):
    backprop(pattern.tower, i, g, step, max_norm, width)


def _spread_block_pair(pattern, rows, slot, block, rule, owner, n_owners, work, width):
    scatter(pattern.tower, rows, block, rule, owner, n_owners, work, width)


_FOLD: dict[type, Callable[..., Any]] = {Pair: _fold_pair}
_SPREAD: dict[type, Callable[..., Any]] = {Pair: _spread_pair}
_SPREAD_BLOCK: dict[type, Callable[..., Any]] = {Pair: _spread_block_pair}


def fold(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """q = the query that ranks the candidates of `slot` in example i."""
    return _FOLD[type(pattern)](pattern, i, slot, q, width)


def spread(pattern: Any, i: int, slot: int, g: Any, step: float, max_norm: float, width: Any) -> Any:
    """Hand the gradient g of the query back to the entities that were folded into it."""
    return _SPREAD[type(pattern)](pattern, i, slot, g, step, max_norm, width)


def spread_block(
    pattern: Any, rows: Any, slot: int, block: Any, rule: Any, owner: int, n_owners: int, work: Any, width: Any
) -> Any:
    """Hand the gradients of a block's visits back, in their order, to the rows that `owner` owns, and project those.

    `rows` says of every visit which example it is of; `work` is the owner's scratch (`towers.Work`).
    """
    return _SPREAD_BLOCK[type(pattern)](pattern, rows, slot, block, rule, owner, n_owners, work, width)


@overload(fold, jit_options=INLINE)
def _fold(pattern, i, slot, q, width):
    return _FOLD[pattern.instance_class]


@overload(spread, jit_options=INLINE)
def _spread(pattern, i, slot, g, step, max_norm, width):
    return _SPREAD[pattern.instance_class]


@overload(spread_block, jit_options=INLINE)
def _spread_block(pattern, rows, slot, block, rule, owner, n_owners, work, width):
    return _SPREAD_BLOCK[pattern.instance_class]
