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
from wsabie.kernels.vector import add, add4, add_project, add_square, multiply, shorten, zero


class Linear(NamedTuple):
    """V x for sparse x."""

    table: Any  # V: (n_features, padded dim) float32
    indptr: Any  # (n + 1,) int64
    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32


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


def _encode_linear(tower, i, q, width):
    zero(q, width)
    table, indices, data = tower.table, tower.indices, tower.data
    p, hi = tower.indptr[i], tower.indptr[i + 1]
    while p + 4 <= hi:
        add4(
            q,
            data[p],
            table[indices[p]],
            data[p + 1],
            table[indices[p + 1]],
            data[p + 2],
            table[indices[p + 2]],
            data[p + 3],
            table[indices[p + 3]],
            width,
        )
        p += 4
    while p < hi:
        add(q, data[p], table[indices[p]], width)
        p += 1


def _encode_dense(tower, i, q, width):
    zero(q, width)
    for j in range(tower.rows.shape[1]):
        add(q, tower.rows[i, j], tower.table[j], width)


def _encode_lookup(tower, i, q, width):
    zero(q, width)
    add(q, np.float32(1), tower.table[tower.ids[i]], width)


@jit
def _move_rows(tower, lo, hi, g, rule, width):
    """Decay, move and project the rows of the non-zeros lo..hi-1, of one entity, whose features are all different.

    A row is shortened after the next one has moved, so that nobody waits for the sum of its squares.
    """
    table, indices, data = tower.table, tower.indices, tower.data
    if rule.keep_rows != 1:
        for p in range(lo, hi):
            multiply(table[indices[p]], rule.keep_rows, width)
    before = np.float32(0)
    for p in range(lo, hi):
        norm2 = add_square(table[indices[p]], rule.step_rows * data[p], g, width)
        if p > lo:
            shorten(table[indices[p - 1]], before, rule.max_norm_rows, width)
        before = norm2
    if hi > lo:
        shorten(table[indices[hi - 1]], before, rule.max_norm_rows, width)


def _backprop_linear(tower, i, g, rule, width):
    _move_rows(tower, tower.indptr[i], tower.indptr[i + 1], g, rule, width)


def _backprop_dense(tower, i, g, rule, width):
    for j in range(tower.rows.shape[1]):
        if rule.keep_rows != 1:
            multiply(tower.table[j], rule.keep_rows, width)
        add_project(tower.table[j], rule.step_rows * tower.rows[i, j], g, rule.max_norm_rows, width)


def _backprop_lookup(tower, i, g, rule, width):
    row = tower.table[tower.ids[i]]
    if rule.keep_rows != 1:
        multiply(row, rule.keep_rows, width)
    add_project(row, rule.step_rows, g, rule.max_norm_rows, width)


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
def encode_rows(checksum: int) -> Any:
    def encode_rows(tower, lo, hi, out, width):
        """out[i] = the point of entity i, for i in lo..hi-1."""
        _ = checksum
        for i in range(lo, hi):
            encode(tower, i, out[i], width)

    return encode_rows


@jit
def _first_at_least(indices, lo, hi, value):
    while lo < hi:
        middle = (lo + hi) >> 1
        if indices[middle] < value:
            lo = middle + 1
        else:
            hi = middle
    return lo


def _scatter_linear(tower, rows, block, rule, owner, n_owners, bounds, width):
    for b in range(len(block.order)):
        if block.moved[b]:
            i = rows[block.order[b]]
            lo = _first_at_least(tower.indices, tower.indptr[i], tower.indptr[i + 1], bounds[owner])
            hi = _first_at_least(tower.indices, lo, tower.indptr[i + 1], bounds[owner + 1])
            _move_rows(tower, lo, hi, block.directions[b], rule, width)


def _scatter_dense(tower, rows, block, rule, owner, n_owners, bounds, width):
    for j in range(bounds[owner], bounds[owner + 1]):
        row = tower.table[j]
        for b in range(len(block.order)):
            if block.moved[b]:
                if rule.keep_rows != 1:
                    multiply(row, rule.keep_rows, width)
                x = tower.rows[rows[block.order[b]], j]
                add_project(row, rule.step_rows * x, block.directions[b], rule.max_norm_rows, width)


def _scatter_lookup(tower, rows, block, rule, owner, n_owners, bounds, width):
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and tower.ids[i] % n_owners == owner:
            backprop(tower, i, block.directions[b], rule, width)


def _scatter_frozen(tower, rows, block, rule, owner, n_owners, bounds, width):
    return


_SCATTER: dict[type, Callable[..., Any]] = {
    Linear: _scatter_linear,
    Dense: _scatter_dense,
    Lookup: _scatter_lookup,
    Frozen: _scatter_frozen,
}


def scatter(tower: Any, rows: Any, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any) -> Any:
    """`backprop` of a block's directions, one after the other, as far as `owner` owns the rows of the table.

    Its features are bounds[owner]..bounds[owner + 1] - 1, its free vectors those whose number leaves the rest `owner`.
    """
    return _SCATTER[type(tower)](tower, rows, block, rule, owner, n_owners, bounds, width)


@overload(scatter, jit_options=INLINE)
def _scatter(tower, rows, block, rule, owner, n_owners, bounds, width):
    return _SCATTER[tower.instance_class]
