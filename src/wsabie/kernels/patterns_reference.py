"""The slow twin of patterns: which query an example folds into, and who is behind it."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.kernels.beside import Apart, Beside
from wsabie.kernels.candidates_reference import Point
from wsabie.kernels.patterns import Both, Given, GivenDense
from wsabie.kernels.towers_reference import apply_directions, decay, encode, project


def fold(pattern: Any, i: int) -> Any:
    """The query of example i: its point, its row, or both."""
    if isinstance(pattern, (Beside, Apart)):
        other = pattern.other[i]
        label = float(pattern.weight) * pattern.table[other] if other >= 0 else np.zeros(pattern.table.shape[1])
        point = encode(pattern.tower, pattern.who[i])
        return point + label if isinstance(pattern, Beside) else np.concatenate([point, label])
    if isinstance(pattern, Both):
        return Point(fold(pattern.pair, i), fold(pattern.given, i))
    if isinstance(pattern, GivenDense):
        return np.asarray(pattern.rows[i], np.float64)
    if isinstance(pattern, Given):
        span = slice(pattern.indptr[i], pattern.indptr[i + 1])
        row = np.zeros(int(pattern.indices.max(initial=-1)) + 1)
        row[pattern.indices[span]] = pattern.data[span]
        return row
    return encode(pattern.tower, i)


def tower_of(pattern: Any) -> Any:
    """The tower behind the query's point; None when there is none."""
    return pattern.pair.tower if isinstance(pattern, Both) else getattr(pattern, "tower", None)


def spread(pattern: Any, directions: list[tuple[int, Float64]], rule: Any) -> None:
    """Hand directions of queries back, one after the other."""
    if isinstance(pattern, (Beside, Apart)):
        halves = [np.split(g, 2) if isinstance(pattern, Apart) else (g, g) for _, g in directions]
        things = [(int(pattern.who[i]), g) for (i, _), (g, _) in zip(directions, halves, strict=True)]
        apply_directions(pattern.tower, rule, things)
        labels = [(pattern.other[i], g) for (i, _), (_, g) in zip(directions, halves, strict=True)]
        labels = [(label, g) for label, g in labels if label >= 0]
        for label, g in labels:
            decay(pattern.table[label], rule.keep_labels)
            pattern.table[label] += float(rule.step_labels) * float(pattern.weight) * g
            project(pattern.table[label], float(rule.max_norm_labels))
        return
    apply_directions(tower_of(pattern), rule, directions)
