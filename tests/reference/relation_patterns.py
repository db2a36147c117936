"""The slow twin of patterns: which query an example folds into, and who is behind it."""

from typing import Any

import numpy as np
from tests.reference.candidates import PointQuery
from tests.reference.towers import backprop_block, clip_row_norm, decay_row, encode_entity

from wsabie.core.arrays import Csr, Float64
from wsabie.kernels.embedding.relation_patterns import CompositionPattern, DenseRowPattern, TowerAndRowPattern


def encode_query(pattern: Any, i: int) -> Any:
    """The query of example i: its point, its row, or both."""
    if isinstance(pattern, CompositionPattern):
        label_id = pattern.label_ids[i]
        label = float(pattern.weight) * pattern.table[label_id] if label_id >= 0 else np.zeros(pattern.table.shape[1])
        point = encode_entity(pattern.tower, pattern.item_ids[i])
        return np.concatenate([point, label]) if pattern.label_start else point + label
    if isinstance(pattern, TowerAndRowPattern):
        return PointQuery(encode_entity(pattern.tower, i), encode_query(pattern.row, i))
    if isinstance(pattern, DenseRowPattern):
        return np.asarray(pattern.rows[i], np.float64)
    if isinstance(pattern, Csr):
        span = slice(pattern.indptr[i], pattern.indptr[i + 1])
        row = np.zeros(int(pattern.indices.max(initial=-1)) + 1)
        row[pattern.indices[span]] = pattern.data[span]
        return row
    return encode_entity(pattern.tower, i)


def get_tower(pattern: Any) -> Any:
    """The tower behind the query's point; None when there is none."""
    return getattr(pattern, "tower", None)


def backprop_queries(pattern: Any, directions: list[tuple[int, Float64]], config: Any) -> None:
    """Hand directions of queries back, one after the other."""
    if isinstance(pattern, CompositionPattern):
        halves = [np.split(g, 2) if pattern.label_start else (g, g) for _, g in directions]
        items = [(int(pattern.item_ids[i]), g) for (i, _), (g, _) in zip(directions, halves, strict=True)]
        backprop_block(pattern.tower, config, items)
        labels = [(pattern.label_ids[i], g) for (i, _), (_, g) in zip(directions, halves, strict=True)]
        labels = [(label, g) for label, g in labels if label >= 0]
        for label, g in labels:
            decay_row(pattern.table[label], config.decay_labels)
            pattern.table[label] += float(config.learning_rate_labels) * float(pattern.weight) * g
            clip_row_norm(pattern.table[label], float(config.max_norm_labels))
        return
    backprop_block(get_tower(pattern), config, directions)
