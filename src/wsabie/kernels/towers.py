"""Towers: entity i to a point q, and a gradient g on the point back to the rows that made it, dispatched on type.

Linear   q = sum_j x_ij V_j     rows of V move by step * x_ij * g, then each is projected
Dense    the same with every x_ij present
Lookup   q = T[ids_i]           one free vector per entity
Frozen   q = T[ids_i]           given vectors, never moved
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from wsabie.kernels._jit import INLINE, entry, jit
from wsabie.kernels.bisection import first_at_least
from wsabie.kernels.registers import load, nothing, plus, store
from wsabie.kernels.vector import move, moved, project, shortened, zero

LINE = 64
"""Marks that are looked at together."""

_TILE_BYTES = 1 << 18  # of a table: stays in the second cache level beside what else a block reads
_LEAST = 8  # non-zeros of a row in a tile, or looking for them takes longer than they do


class Linear(NamedTuple):
    """V x for sparse x."""

    table: Any  # V: (n_features, padded dim) float32
    indptr: Any  # (n + 1,) int64
    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32
    tile: int  # features that a block's rows are taken through at a time (`tile_of`)


class Dense(NamedTuple):
    """V x for dense x."""

    table: Any  # V: (n_features, padded dim) float32
    rows: Any  # (n, n_features) float32


class Lookup(NamedTuple):
    """One free vector per entity."""

    table: Any  # (n_entities, padded dim) float32
    ids: Any  # (n,) int32


class Frozen(NamedTuple):
    """A given vector per entity."""

    table: Any  # (n_entities, padded dim) float32
    ids: Any  # (n,) int32


class Marks(NamedTuple):
    """Scratch of what goes through a block in tiles."""

    places: Any  # (threads, slots) int64: how far a thread has come in the non-zeros of each slot
    touched: Any  # (features, in whole lines) uint8: whose rows have moved; zero between blocks


def new_marks(n_threads: int, slots: int, n_features: int) -> Marks:
    """Room for the slots of a block."""
    return Marks(np.zeros((n_threads, slots), np.int64), np.zeros(-(-n_features // LINE) * LINE, np.uint8))


def tile_of(table: Any, indptr: Any) -> int:
    """How many features to take at a time."""
    n, width = map(int, table.shape)
    per_row = max(int(indptr[-1]) - int(indptr[0]), 1) / max(len(indptr) - 1, 1)
    return max(_TILE_BYTES // (4 * width), int(_LEAST * n / per_row), 1)


def _encode_linear(tower, i, q, width):
    point = nothing(width)
    for p in range(tower.indptr[i], tower.indptr[i + 1]):
        point = plus(point, tower.data[p], load(tower.table[tower.indices[p]], width))
    store(q, point)


def _encode_dense(tower, i, q, width):
    point = nothing(width)
    for j in range(tower.rows.shape[1]):
        point = plus(point, tower.rows[i, j], load(tower.table[j], width))
    store(q, point)


def _encode_lookup(tower, i, q, width):
    store(q, load(tower.table[tower.ids[i]], width))


def _backprop_linear(tower, i, g, rule, width):
    direction = load(g, width)
    for p in range(tower.indptr[i], tower.indptr[i + 1]):
        _move(tower.table[tower.indices[p]], tower.data[p], direction, rule, width)


def _backprop_dense(tower, i, g, rule, width):
    direction = load(g, width)
    for j in range(tower.rows.shape[1]):
        _move(tower.table[j], tower.rows[i, j], direction, rule, width)


def _backprop_lookup(tower, i, g, rule, width):
    _move(tower.table[tower.ids[i]], np.float32(1), load(g, width), rule, width)


@jit
def _move(row, x, direction, rule, width):
    move(row, rule.keep_rows, rule.step_rows * x, direction, rule.max_norm_rows, width)


def _backprop_frozen(tower, i, g, rule, width):
    return


_ENCODE: dict[type, Callable[..., Any]] = {
    Linear: _encode_linear,
    Dense: _encode_dense,
    Lookup: _encode_lookup,
    Frozen: _encode_lookup,
}
_BACKPROP: dict[type, Callable[..., Any]] = {
    Linear: _backprop_linear,
    Dense: _backprop_dense,
    Lookup: _backprop_lookup,
    Frozen: _backprop_frozen,
}


def encode(tower: Any, i: int, q: Any, width: Any) -> Any:
    """q = the point of entity i."""
    return _ENCODE[type(tower)](tower, i, q, width)


def backprop(tower: Any, i: int, g: Any, rule: Any, width: Any) -> Any:
    """Decay the rows behind entity i, move them by step_rows * (d point / d row) * g and project them."""
    return _BACKPROP[type(tower)](tower, i, g, rule, width)


@overload(encode, jit_options=INLINE)
def _encode(tower, i, q, width):
    return _ENCODE[tower.instance_class]


@overload(backprop, jit_options=INLINE)
def _backprop(tower, i, g, rule, width):
    return _BACKPROP[tower.instance_class]


@entry
def encode_rows(tower, lo, hi, out, width):
    """out[i] = the point of entity i, for i in lo..hi-1."""
    for i in range(lo, hi):
        encode(tower, i, out[i], width)


def _encode_block_linear(tower, rows, block, lo, hi, t, width):
    places = block.marks.places[t]
    for b in range(lo, hi):
        places[b] = tower.indptr[rows[block.order[b]]]
        zero(block.queries[b], width)
    for first in range(0, len(tower.table), tower.tile):
        for b in range(lo, hi):
            p, end = places[b], tower.indptr[rows[block.order[b]] + 1]
            point = load(block.queries[b], width)
            while p < end and tower.indices[p] < first + tower.tile:
                point = plus(point, tower.data[p], load(tower.table[tower.indices[p]], width))
                p += 1
            store(block.queries[b], point)
            places[b] = p


def _encode_block_singly(tower, rows, block, lo, hi, t, width):
    for b in range(lo, hi):
        encode(tower, rows[block.order[b]], block.queries[b], width)


def _scatter_linear(tower, rows, block, rule, owner, n_owners, bounds, width):
    places, touched, end = block.marks.places[owner], block.marks.touched, bounds[owner + 1]
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        places[b] = first_at_least(tower.indices, tower.indptr[i], tower.indptr[i + 1], bounds[owner])
    for first in range(bounds[owner], end, tower.tile):
        last, n_moved = min(first + tower.tile, end), 0
        for b in range(len(block.order)):
            if block.moved[b]:
                p, hi = places[b], tower.indptr[rows[block.order[b]] + 1]
                places[b] = _move_some(tower, p, hi, last, block.directions[b], touched, rule, width)
                n_moved += places[b] - p
        if (last - first) // LINE <= n_moved:
            _project_touched(tower.table, touched, first, last, rule, width)
        else:  # so many features, and so few of them here, that the marks are the longer way
            for b in range(len(block.order)):
                if block.moved[b]:
                    lo = tower.indptr[rows[block.order[b]]]
                    _project_before(tower, lo, places[b], first, touched, rule, width)


@jit
def _move_some(tower, p, hi, last, g, touched, rule, width):
    """Move the rows of the non-zeros from p on, up to hi or feature `last`; returns where the next one stands."""
    direction = load(g, width)
    while p < hi and tower.indices[p] < last:
        j = tower.indices[p]
        row = tower.table[j]
        store(row, moved(load(row, width), rule.keep_rows, rule.step_rows * tower.data[p], direction))
        touched[j] = 1
        p += 1
    return p


@jit
def _project_touched(table, touched, first, last, rule, width):
    """Project the rows first..last-1 that have moved, and forget that they have."""
    for line in range(first - first % LINE, last, LINE):
        any_moved = touched[line]
        for j in range(line + 1, line + LINE):
            any_moved |= touched[j]
        if any_moved:
            for j in range(max(line, first), min(line + LINE, last)):
                if touched[j]:
                    project(table[j], rule.max_norm_rows, width)
                    touched[j] = 0


@jit
def _project_before(tower, lo, p, first, touched, rule, width):
    """The same for the rows of the non-zeros before p, down to lo or feature `first`."""
    while p > lo and tower.indices[p - 1] >= first:
        p -= 1
        j = tower.indices[p]
        if touched[j]:
            project(tower.table[j], rule.max_norm_rows, width)
            touched[j] = 0


def _scatter_dense(tower, rows, block, rule, owner, n_owners, bounds, width):
    for j in range(bounds[owner], bounds[owner + 1]):
        point, any_moved = load(tower.table[j], width), False
        for b in range(len(block.order)):
            if block.moved[b]:
                x = tower.rows[rows[block.order[b]], j]
                point = moved(point, rule.keep_rows, rule.step_rows * x, load(block.directions[b], width))
                any_moved = True
        if any_moved:
            store(tower.table[j], shortened(point, rule.max_norm_rows))


def _scatter_lookup(tower, rows, block, rule, owner, n_owners, bounds, width):
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and tower.ids[i] % n_owners == owner:
            backprop(tower, i, block.directions[b], rule, width)


def _scatter_frozen(tower, rows, block, rule, owner, n_owners, bounds, width):
    return


_ENCODE_BLOCK: dict[type, Callable[..., Any]] = {
    Linear: _encode_block_linear,
    Dense: _encode_block_singly,
    Lookup: _encode_block_singly,
    Frozen: _encode_block_singly,
}
_SCATTER: dict[type, Callable[..., Any]] = {
    Linear: _scatter_linear,
    Dense: _scatter_dense,
    Lookup: _scatter_lookup,
    Frozen: _scatter_frozen,
}


def encode_block(tower: Any, rows: Any, block: Any, lo: int, hi: int, t: int, width: Any) -> Any:
    """The points of a block's slots lo..hi-1, whose things `rows` says, into its queries, by thread t."""
    return _ENCODE_BLOCK[type(tower)](tower, rows, block, lo, hi, t, width)


def scatter(tower: Any, rows: Any, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any) -> Any:
    """`backprop` of a block's directions, one after the other, as far as `owner` owns the rows of the table.

    Rows behind features are projected once, after all their moves; free vectors after each.
    Its features are bounds[owner]..bounds[owner + 1] - 1, its free vectors those whose number leaves the rest `owner`.
    """
    return _SCATTER[type(tower)](tower, rows, block, rule, owner, n_owners, bounds, width)


@overload(encode_block, jit_options=INLINE)
def _encode_block(tower, rows, block, lo, hi, t, width):
    return _ENCODE_BLOCK[tower.instance_class]


@overload(scatter, jit_options=INLINE)
def _scatter(tower, rows, block, rule, owner, n_owners, bounds, width):
    return _SCATTER[tower.instance_class]
