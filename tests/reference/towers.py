"""The slow twin of towers: what makes the point of an item, and how its rows move."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.kernels.embedding.towers import DenseTower, FrozenTower, LinearTower, LookupTower


def list_features(tower: Any, i: int) -> list[tuple[int, float]]:
    """(row of the table, coefficient) of everything that makes the point of entity i."""
    if isinstance(tower, LinearTower):
        span = slice(tower.indptr[i], tower.indptr[i + 1])
        return [(int(j), float(x)) for j, x in zip(tower.indices[span], tower.data[span], strict=True)]
    if isinstance(tower, DenseTower):
        return [(j, float(x)) for j, x in enumerate(tower.rows[i])]
    return [(int(tower.ids[i]), 1.0)]


def encode_entity(tower: Any, i: int) -> Float64:
    """The point of entity i: the sum of coefficient times row."""
    q = np.zeros(tower.table.shape[1])
    for j, x in list_features(tower, i):
        q += x * tower.table[j]
    return q


def clip_row_norm(row: Float64, max_norm: float) -> None:
    """Scale a row down to `max_norm` when it is longer."""
    length = float(np.linalg.norm(row))
    if length > max_norm:
        row *= max_norm / length


def decay_row(row: Float64, keep: Any) -> None:
    """Shrink a row by L2 regularisation."""
    row *= float(keep)


def backprop_entity(tower: Any, i: int, g: Float64, config: Any) -> None:
    """Every row behind entity i decays, moves by step_rows * coefficient * g and is projected."""
    backprop_block(tower, config, [(i, g)])


def backprop_block(tower: Any, config: Any, directions: list[tuple[int, Float64]]) -> None:
    """`backprop_entity` of all directions of a block; rows behind features are projected once, after all their "
    "moves."""
    if tower is None or isinstance(tower, FrozenTower):
        return
    moved = set()
    for i, g in directions:
        for j, x in list_features(tower, i):
            decay_row(tower.table[j], config.decay_rows)
            tower.table[j] += float(config.learning_rate_rows) * x * g
            moved.add(j)
            if isinstance(tower, LookupTower):
                clip_row_norm(tower.table[j], float(config.max_norm_rows))
    for j in moved:
        clip_row_norm(tower.table[j], float(config.max_norm_rows))
