"""Towers encode entity i to a point q, and pass a gradient g back to its rows, dispatched on type.

Linear   q = sum_j x_ij V_j     rows of V move by step * x_ij * g, then each is projected
Dense    the same with every x_ij present
Lookup   q = T[ids_i]           one free vector per entity
Frozen   q = T[ids_i]           fixed vectors
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from wsabie.core.arrays import Float32, Int32, Int64, UInt8
from wsabie.kernels.compiler import jit, jit_entry
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.primitives.binary_search import find_first_at_least
from wsabie.kernels.primitives.vectors import clip_point_norm, clip_vector_norm, set_to_zero, step_point, step_vector
from wsabie.kernels.simd.vector_registers import add_scaled, load_point, make_zero, store_point

LINE = 64
"""Flags that are tested together."""

_TILE_BYTES = 1 << 18  # of a table: stays in the second cache level beside what else a block reads
_MIN_NONZEROS = 8  # of a row in a tile; fewer take less time than the search for them


class LinearTower(NamedTuple):
    """Tower V x for sparse x."""

    table: Float32  # V: (n_features, padded dim)
    indptr: Int64  # (n + 1,)
    indices: Int32  # (nnz,)
    data: Float32  # (nnz,)
    tile: int  # features that a block's rows are taken through at a time (`choose_tile_size`)


class DenseTower(NamedTuple):
    """Tower V x for dense x."""

    table: Float32  # V: (n_features, padded dim)
    rows: Float32  # (n, n_features)


class LookupTower(NamedTuple):
    """Tower of one free vector per entity."""

    table: Float32  # (n_entities, padded dim)
    ids: Int32  # (n,)


class FrozenTower(NamedTuple):
    """Tower of one fixed vector per entity."""

    table: Float32  # (n_entities, padded dim)
    ids: Int32  # (n,)


Tower: TypeAlias = LinearTower | DenseTower | LookupTower | FrozenTower


class TileScratch(NamedTuple):
    """Scratch for the tiles of a block."""

    cursors: Int64  # (threads, slots): next non-zero of each slot, for each thread
    moved_flags: UInt8  # (features, in whole lines): 1 for a row that has moved; zero between blocks


def allocate_tile_scratch(n_threads: int, slots: int, n_features: int) -> TileScratch:
    """Allocate scratch for the slots of a block."""
    return TileScratch(np.zeros((n_threads, slots), np.int64), np.zeros(-(-n_features // LINE) * LINE, np.uint8))


def choose_tile_size(table: Float32, indptr: Int64) -> int:
    """Return the number of features to take at a time."""
    n, width = map(int, table.shape)
    per_row = max(int(indptr[-1]) - int(indptr[0]), 1) / max(len(indptr) - 1, 1)
    return max(_TILE_BYTES // (4 * width), int(_MIN_NONZEROS * n / per_row), 1)


@dispatch("tower")
def encode_entity(tower, i, q, width):
    """Encode entity i to q."""


@encode_entity.register(LinearTower)
def _encode_linear(tower, i, q, width):
    point = make_zero(width)
    for p in range(tower.indptr[i], tower.indptr[i + 1]):
        point = add_scaled(point, tower.data[p], load_point(tower.table[tower.indices[p]], width))
    store_point(q, point)


@encode_entity.register(DenseTower)
def _encode_dense(tower, i, q, width):
    point = make_zero(width)
    for j in range(tower.rows.shape[1]):
        point = add_scaled(point, tower.rows[i, j], load_point(tower.table[j], width))
    store_point(q, point)


@encode_entity.register(LookupTower, FrozenTower)
def _encode_lookup(tower, i, q, width):
    store_point(q, load_point(tower.table[tower.ids[i]], width))


@dispatch("tower", has_default=True)
def backprop_entity(tower, i, g, config, width):
    """Decay the rows behind entity i, move them by rate * (d point / d row) * g and project them."""


@backprop_entity.register(LinearTower)
def _backprop_linear(tower, i, g, config, width):
    direction = load_point(g, width)
    for p in range(tower.indptr[i], tower.indptr[i + 1]):
        _step_row(tower.table[tower.indices[p]], tower.data[p], direction, config, width)


@backprop_entity.register(DenseTower)
def _backprop_dense(tower, i, g, config, width):
    direction = load_point(g, width)
    for j in range(tower.rows.shape[1]):
        _step_row(tower.table[j], tower.rows[i, j], direction, config, width)


@backprop_entity.register(LookupTower)
def _backprop_lookup(tower, i, g, config, width):
    _step_row(tower.table[tower.ids[i]], np.float32(1), load_point(g, width), config, width)


@jit
def _step_row(row, x, direction, config, width):
    step_vector(row, config.decay_rows, config.learning_rate_rows * x, direction, config.max_norm_rows, width)


@jit_entry
def encode_rows(tower, lo, hi, out, width):
    """Encode the entities lo..hi-1 to rows of out."""
    for i in range(lo, hi):
        encode_entity(tower, i, out[i], width)


@dispatch("tower", has_default=True)
def encode_block(tower, rows, block, lo, hi, t, width):
    """Encode a block's slots lo..hi-1, of the items in `rows`, into its queries, in thread t."""
    for b in range(lo, hi):
        encode_entity(tower, rows[block.order[b]], block.queries[b], width)


@encode_block.register(LinearTower)
def _encode_block_linear(tower, rows, block, lo, hi, t, width):
    cursors = block.tile_scratch.cursors[t]
    for b in range(lo, hi):
        cursors[b] = tower.indptr[rows[block.order[b]]]
        set_to_zero(block.queries[b], width)
    for first in range(0, len(tower.table), tower.tile):
        for b in range(lo, hi):
            p, end = cursors[b], tower.indptr[rows[block.order[b]] + 1]
            point = load_point(block.queries[b], width)
            while p < end and tower.indices[p] < first + tower.tile:
                point = add_scaled(point, tower.data[p], load_point(tower.table[tower.indices[p]], width))
                p += 1
            store_point(block.queries[b], point)
            cursors[b] = p


@dispatch("tower", has_default=True)
def backprop_block(tower, rows, block, config, owner, n_owners, bounds, width):
    """Run `backprop_entity` on a block's directions in order, for the rows that `owner` owns.

    Rows behind features are projected once, after all their moves; free vectors after each. The owner has the features
    bounds[owner]..bounds[owner + 1] - 1, and the free vectors whose id modulo `n_owners` is `owner`.
    """


@backprop_block.register(LinearTower)
def _scatter_linear(tower, rows, block, config, owner, n_owners, bounds, width):
    cursors, moved_flags, end = block.tile_scratch.cursors[owner], block.tile_scratch.moved_flags, bounds[owner + 1]
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        cursors[b] = find_first_at_least(tower.indices, tower.indptr[i], tower.indptr[i + 1], bounds[owner])
    for first in range(bounds[owner], end, tower.tile):
        last, n_moved = min(first + tower.tile, end), 0
        for b in range(len(block.order)):
            if block.moved[b]:
                p, hi = cursors[b], tower.indptr[rows[block.order[b]] + 1]
                cursors[b] = _step_tile_rows(tower, p, hi, last, block.directions[b], moved_flags, config, width)
                n_moved += cursors[b] - p
        if (last - first) // LINE <= n_moved:
            _project_moved_rows(tower.table, moved_flags, first, last, config, width)
        else:  # so many features, and so few of them here, that the flags are the longer way
            for b in range(len(block.order)):
                if block.moved[b]:
                    lo = tower.indptr[rows[block.order[b]]]
                    _project_visited_rows(tower, lo, cursors[b], first, moved_flags, config, width)


@jit
def _step_tile_rows(tower, p, hi, last, g, moved_flags, config, width):
    """Step the rows of the non-zeros from p to hi or feature `last`; return the next non-zero."""
    direction = load_point(g, width)
    while p < hi and tower.indices[p] < last:
        j = tower.indices[p]
        row, step = tower.table[j], config.learning_rate_rows * tower.data[p]
        store_point(row, step_point(load_point(row, width), config.decay_rows, step, direction))
        moved_flags[j] = 1
        p += 1
    return p


@jit
def _project_moved_rows(table, moved_flags, first, last, config, width):
    """Project the rows first..last-1 that have moved, and clear their flags."""
    for line in range(first - first % LINE, last, LINE):
        any_moved = moved_flags[line]
        for j in range(line + 1, line + LINE):
            any_moved |= moved_flags[j]
        if any_moved:
            for j in range(max(line, first), min(line + LINE, last)):
                if moved_flags[j]:
                    clip_vector_norm(table[j], config.max_norm_rows, width)
                    moved_flags[j] = 0


@jit
def _project_visited_rows(tower, lo, p, first, moved_flags, config, width):
    """Project the moved rows of the non-zeros before p, down to lo or feature `first`."""
    while p > lo and tower.indices[p - 1] >= first:
        p -= 1
        j = tower.indices[p]
        if moved_flags[j]:
            clip_vector_norm(tower.table[j], config.max_norm_rows, width)
            moved_flags[j] = 0


@backprop_block.register(DenseTower)
def _scatter_dense(tower, rows, block, config, owner, n_owners, bounds, width):
    for j in range(bounds[owner], bounds[owner + 1]):
        point, any_moved = load_point(tower.table[j], width), False
        for b in range(len(block.order)):
            if block.moved[b]:
                x = tower.rows[rows[block.order[b]], j]
                point = step_point(
                    point, config.decay_rows, config.learning_rate_rows * x, load_point(block.directions[b], width)
                )
                any_moved = True
        if any_moved:
            store_point(tower.table[j], clip_point_norm(point, config.max_norm_rows))


@backprop_block.register(LookupTower)
def _scatter_lookup(tower, rows, block, config, owner, n_owners, bounds, width):
    for b in range(len(block.order)):
        i = rows[block.order[b]]
        if block.moved[b] and tower.ids[i] % n_owners == owner:
            backprop_entity(tower, i, block.directions[b], config, width)
