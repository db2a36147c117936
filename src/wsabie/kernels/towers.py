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
from wsabie.kernels.vector import add, add4, add_project, multiply, project, zero


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


def _backprop_linear(tower, i, g, rule, width):
    table, indices, data = tower.table, tower.indices, tower.data
    if rule.keep_rows != 1:
        for p in range(tower.indptr[i], tower.indptr[i + 1]):
            multiply(table[indices[p]], rule.keep_rows, width)
    for p in range(tower.indptr[i], tower.indptr[i + 1]):
        add_project(table[indices[p]], rule.step_rows * data[p], g, rule.max_norm_rows, width)


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


class Work(NamedTuple):
    """Scratch of one owner for the counting sort of a block's non-zeros by feature."""

    starts: Any  # (n_features,) int32, all zero between calls
    touched: Any  # (n_features + 1,) int32
    slots: Any  # (capacity,) int32
    values: Any  # (capacity,) float32
    bounds: Any  # (n_owners + 1,) int64: owner o has features bounds[o]..bounds[o + 1] - 1


@jit
def _first_at_least(indices, lo, hi, value):
    while lo < hi:
        middle = (lo + hi) >> 1
        if indices[middle] < value:
            lo = middle + 1
        else:
            hi = middle
    return lo


@jit
def _count(tower, i, first, last, work, n_touched):
    """Count the non-zeros of row i per owned feature; returns how many features have been touched so far."""
    lo = _first_at_least(tower.indices, tower.indptr[i], tower.indptr[i + 1], first)
    hi = _first_at_least(tower.indices, lo, tower.indptr[i + 1], last)
    for p in range(lo, hi):
        j = tower.indices[p]
        work.touched[n_touched] = j
        n_touched += work.starts[j] == 0
        work.starts[j] += 1
    return n_touched


@jit
def _place(tower, i, b, first, last, work):
    """Put the non-zeros of row i, block slot b, where their features' turns are."""
    lo = _first_at_least(tower.indices, tower.indptr[i], tower.indptr[i + 1], first)
    hi = _first_at_least(tower.indices, lo, tower.indptr[i + 1], last)
    for p in range(lo, hi):
        j = tower.indices[p]
        at = work.starts[j]
        work.slots[at] = b
        work.values[at] = tower.data[p]
        work.starts[j] = at + 1


@jit
def _sum_into(row, work, directions, p, hi, step, width):
    """row += step * sum of values * directions over the sorted entries p..hi-1, in their order."""
    slots, values = work.slots, work.values
    while p + 4 <= hi:
        add4(
            row,
            step * values[p],
            directions[slots[p]],
            step * values[p + 1],
            directions[slots[p + 1]],
            step * values[p + 2],
            directions[slots[p + 2]],
            step * values[p + 3],
            directions[slots[p + 3]],
            width,
        )
        p += 4
    while p < hi:
        add(row, step * values[p], directions[slots[p]], width)
        p += 1


@jit
def _begin_runs(work, n_touched):
    """Turn counts into the start of each touched feature's run of entries."""
    total = 0
    for t in range(n_touched):
        j = work.touched[t]
        here = work.starts[j]
        work.starts[j] = total
        total += here


def _scatter_linear(tower, rows, block, rule, owner, n_owners, work, width):
    first, last = work.bounds[owner], work.bounds[owner + 1]
    n_touched = 0
    for b in range(len(block.order)):
        if block.moved[b]:
            n_touched = _count(tower, rows[block.order[b]], first, last, work, n_touched)
    _begin_runs(work, n_touched)
    for b in range(len(block.order)):
        if block.moved[b]:
            _place(tower, rows[block.order[b]], b, first, last, work)
    lo = 0
    for t in range(n_touched):
        j = work.touched[t]
        hi = work.starts[j]
        work.starts[j] = 0
        if rule.keep_rows != 1:
            multiply(tower.table[j], rule.keep_rows ** (hi - lo), width)
        _sum_into(tower.table[j], work, block.directions, lo, hi, rule.step_rows, width)
        project(tower.table[j], rule.max_norm_rows, width)
        lo = hi


def _scatter_dense(tower, rows, block, rule, owner, n_owners, work, width):
    for j in range(work.bounds[owner], work.bounds[owner + 1]):
        for b in range(len(block.order)):
            if block.moved[b]:
                if rule.keep_rows != 1:
                    multiply(tower.table[j], rule.keep_rows, width)
                add(
                    tower.table[j],
                    rule.step_rows * tower.rows[rows[block.order[b]], j],
                    block.directions[b],
                    width,
                )
        project(tower.table[j], rule.max_norm_rows, width)


def _scatter_lookup(tower, rows, block, rule, owner, n_owners, work, width):
    for b in range(len(block.order)):
        row = tower.ids[rows[block.order[b]]]
        if block.moved[b] and row % n_owners == owner:
            if rule.keep_rows != 1:
                multiply(tower.table[row], rule.keep_rows, width)
            add(tower.table[row], rule.step_rows, block.directions[b], width)
    for b in range(len(block.order)):
        row = tower.ids[rows[block.order[b]]]
        if block.moved[b] and row % n_owners == owner:
            project(tower.table[row], rule.max_norm_rows, width)


def _scatter_frozen(tower, rows, block, rule, owner, n_owners, work, width):
    return


_SCATTER: dict[type, Callable[..., Any]] = {
    Linear: _scatter_linear,
    Dense: _scatter_dense,
    Lookup: _scatter_lookup,
    Frozen: _scatter_frozen,
}


def scatter(tower: Any, rows: Any, block: Any, rule: Any, owner: int, n_owners: int, work: Any, width: Any) -> Any:
    """Add a block's directions into the rows of the tower that `owner` owns."""
    return _SCATTER[type(tower)](tower, rows, block, rule, owner, n_owners, work, width)


@overload(scatter, jit_options=INLINE)
def _scatter(tower, rows, block, rule, owner, n_owners, work, width):
    return _SCATTER[tower.instance_class]
