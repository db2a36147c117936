"""The slow twin of towers: what makes the point of a thing, and how its rows move."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.kernels.towers import Dense, Frozen, Linear, Lookup


def features_of(tower: Any, i: int) -> list[tuple[int, float]]:
    """(row of the table, coefficient) of everything that makes the point of entity i."""
    if isinstance(tower, Linear):
        span = slice(tower.indptr[i], tower.indptr[i + 1])
        return [(int(j), float(x)) for j, x in zip(tower.indices[span], tower.data[span], strict=True)]
    if isinstance(tower, Dense):
        return [(j, float(x)) for j, x in enumerate(tower.rows[i])]
    return [(int(tower.ids[i]), 1.0)]


def encode(tower: Any, i: int) -> Float64:
    """The point of entity i: the sum of coefficient times row."""
    q = np.zeros(tower.table.shape[1])
    for j, x in features_of(tower, i):
        q += x * tower.table[j]
    return q


def project(row: Float64, max_norm: float) -> None:
    """Scale a row down to `max_norm` when it is longer."""
    length = float(np.linalg.norm(row))
    if length > max_norm:
        row *= max_norm / length


def decay(row: Float64, keep: Any) -> None:
    """What L2 regularisation takes."""
    row *= float(keep)


def backprop(tower: Any, i: int, g: Float64, rule: Any) -> None:
    """Every row behind entity i decays, moves by step_rows * coefficient * g and is projected."""
    apply_directions(tower, rule, [(i, g)])


def apply_directions(tower: Any, rule: Any, directions: list[tuple[int, Float64]]) -> None:
    """`backprop` of all directions of a block; rows behind features are projected once, after all their moves."""
    if tower is None or isinstance(tower, Frozen):
        return
    moved = set()
    for i, g in directions:
        for j, x in features_of(tower, i):
            decay(tower.table[j], rule.keep_rows)
            tower.table[j] += float(rule.step_rows) * x * g
            moved.add(j)
            if isinstance(tower, Lookup):
                project(tower.table[j], float(rule.max_norm_rows))
    for j in moved:
        project(tower.table[j], float(rule.max_norm_rows))
