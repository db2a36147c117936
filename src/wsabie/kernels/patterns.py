"""Relation patterns: which entities are scored together, and how everything but one slot folds into one query.

A pattern answers `fold(pattern, i, slot, q)`: the query of example i when `slot` is the one to be ranked, and
`spread(pattern, i, slot, g)`: the gradient on that query handed back to the entities behind it. The WARP step between
the two never changes. `Pair` (thing - label) is the first paper's pattern.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from wsabie.kernels._jit import INLINE
from wsabie.kernels.towers import backprop, encode


class Pair(NamedTuple):
    """A thing and a label: f_y(x) = s(tower(x), W_y). Slot 0 is the label."""

    tower: Any


def _fold_pair(pattern, i, slot, q, width):
    encode(pattern.tower, i, q, width)


def _spread_pair(pattern, i, slot, g, step, max_norm, width):
    backprop(pattern.tower, i, g, step, max_norm, width)


_FOLD: dict[type, Callable[..., Any]] = {Pair: _fold_pair}
_SPREAD: dict[type, Callable[..., Any]] = {Pair: _spread_pair}


def fold(pattern: Any, i: int, slot: int, q: Any, width: Any) -> Any:
    """q = the query that ranks the candidates of `slot` in example i."""
    return _FOLD[type(pattern)](pattern, i, slot, q, width)


def spread(pattern: Any, i: int, slot: int, g: Any, step: float, max_norm: float, width: Any) -> Any:
    """Hand the gradient g of the query back to the entities that were folded into it."""
    return _SPREAD[type(pattern)](pattern, i, slot, g, step, max_norm, width)


@overload(fold, jit_options=INLINE)
def _fold(pattern, i, slot, q, width):
    return _FOLD[pattern.instance_class]


@overload(spread, jit_options=INLINE)
def _spread(pattern, i, slot, g, step, max_norm, width):
    return _SPREAD[pattern.instance_class]
