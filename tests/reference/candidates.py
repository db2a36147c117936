"""The slow twin of labels, be they points, weights or both: their scores, and how they move."""

import math
from typing import Any, NamedTuple

import numpy as np
from tests.reference.towers import clip_row_norm, decay_row

from wsabie.core.arrays import Float64
from wsabie.kernels.embedding.candidates import PointAndWeightLabels, TwoPointLabels, WeightLabels
from wsabie.kernels.embedding.similarity import Dot, Euclidean

TINY = float(np.float32(1e-6))
SHORTEST = float(np.float32(1e-3))


class PointQuery(NamedTuple):
    """A query that is a point and a row."""

    point: Float64
    row: Float64


def score_label(labels: Any, q: Any, y: int) -> float:
    """f_y = s(q, w_y) + b_y for points, w_y . x + b_y for weights, or the sum of both."""
    if isinstance(labels, PointAndWeightLabels):
        return score_label(labels.points, q.point, y) + score_label(labels.weights, q.row, y)
    if isinstance(labels, TwoPointLabels):
        first, second = np.split(q, 2)
        return score_label(labels.points, first, y) + float(second @ labels.words[y])
    if isinstance(labels, WeightLabels):
        return float(labels.scale[y] * labels.table[y, : len(q)] @ q + labels.bias[y])
    w, bias = labels.table[y], float(labels.bias[y])
    if isinstance(labels, Dot):
        return float(q @ w) + bias
    if isinstance(labels, Euclidean):
        return bias - max(float(np.linalg.norm(q - w)), TINY)
    return float(q @ w) / (max(float(np.linalg.norm(q)), SHORTEST) * max(float(np.linalg.norm(w)), SHORTEST)) + bias


def compute_slopes(labels: Any, q: Float64, y: int) -> tuple[float, float, float]:
    """(a, b, c) with ds/dq = a w + b q and ds/dw = a q + c w; a cosine's length held at SHORTEST has no slope."""
    w = labels.table[y]
    if isinstance(labels, Dot):
        return 1.0, 0.0, 0.0
    if isinstance(labels, Euclidean):
        inverse = 1 / max(float(np.linalg.norm(q - w)), TINY)
        return inverse, -inverse, -inverse
    qq, ww = float(q @ q), float(w @ w)
    a = 1 / math.sqrt(max(qq, SHORTEST**2) * max(ww, SHORTEST**2))
    s = float(q @ w) * a
    return a, -s / qq if qq > SHORTEST**2 else 0.0, -s / ww if ww > SHORTEST**2 else 0.0


def query_gradient(labels: Any, q: Any, y: int, v: int) -> Float64:
    """df_y / dq - df_v / dq, for the query's point; weights leave none."""
    if isinstance(labels, WeightLabels):
        return np.zeros(1)
    if isinstance(labels, PointAndWeightLabels):
        return query_gradient(labels.points, q.point, y, v)
    if isinstance(labels, TwoPointLabels):
        return np.concatenate([labels.points.table[y] - labels.points.table[v], labels.words[y] - labels.words[v]])
    (a_y, b_y, _), (a_v, b_v, _) = compute_slopes(labels, q, y), compute_slopes(labels, q, v)
    direction: Float64 = a_y * labels.table[y] + b_y * q - a_v * labels.table[v] - b_v * q
    return direction


def update_label(labels: Any, config: Any, y: int, q: Any, weight: float) -> None:
    """Label y decays and takes its step along df_y; not projected. Weights are kept with a scale of 1."""
    if isinstance(labels, PointAndWeightLabels):
        update_label(labels.points, config, y, q.point, weight)
        update_label(labels.weights, config, y, q.row, weight)
        return
    if isinstance(labels, TwoPointLabels):
        first, second = np.split(q, 2)
        update_label(labels.points, config, y, first, weight)
        decay_row(labels.words[y], config.decay_labels)
        labels.words[y] += float(config.learning_rate_labels) * weight * second
        return
    row = labels.table[y]
    if isinstance(labels, WeightLabels):
        decay_row(row, config.decay_weights)
        row[: len(q)] += float(config.learning_rate_weights) * weight * q
    else:
        decay_row(row, config.decay_labels)
        a, _, c = compute_slopes(labels, q, y)
        row += float(config.learning_rate_labels) * weight * (a * q + c * row)
    labels.bias[y] += float(config.learning_rate_bias) * weight


def clip_norm(labels: Any, config: Any, y: int) -> None:
    """Label y is cut to its longest norm."""
    if isinstance(labels, PointAndWeightLabels):
        clip_norm(labels.points, config, y)
        clip_norm(labels.weights, config, y)
        return
    if isinstance(labels, TwoPointLabels):
        clip_norm(labels.points, config, y)
        clip_row_norm(labels.words[y], float(config.max_norm_labels))
        return
    weights = isinstance(labels, WeightLabels)
    clip_row_norm(labels.table[y], float(config.max_norm_weights if weights else config.max_norm_labels))
