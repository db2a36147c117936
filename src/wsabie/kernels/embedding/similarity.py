"""Similarities of a query q and a label row w, dispatched on their type.

Every similarity here has a gradient inside the plane of its two vectors,

    ds/dq = a w + b q,    ds/dw = a q + c w,

so `compute_slopes` returns (a, b, c) and one WARP step serves them all:

    dot        s = q.w                 a = 1             b = 0             c = 0
    Euclidean  s = -||q - w||          a = 1 / r         b = c = -1 / r          with r = max(||q - w||, tiny)
    cosine     s = q.w / (|q| |w|)     a = 1 / (|q||w|)  b = -s / |q|^2    c = -s / |w|^2

For the cosine |q| and |w| are at least `SHORTEST`; a length held there does not change with its vector, so b or c is 0.
"""

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from wsabie.core.arrays import LANES, Float32
from wsabie.kernels.compiler import jit
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding.label_sketches import SketchedLabels
from wsabie.kernels.primitives.vectors import dot

_TINY = np.float32(1e-6)
SHORTEST = np.float32(1e-3)
"""Least length of a vector for the cosine: below it the direction is noise, and the slope has no bounds."""


class Dot(NamedTuple):
    """Inner product plus a bias per label (all zeros unless `label_bias`)."""

    table: Float32  # (n_labels, padded dim)
    bias: Float32  # (n_labels,)


class Euclidean(NamedTuple):
    """Negative distance, plus a bias per label."""

    table: Float32
    bias: Float32


class Cosine(NamedTuple):
    """Cosine of the angle, plus a bias per label."""

    table: Float32
    bias: Float32


Similarity: TypeAlias = Dot | Euclidean | Cosine


@jit
def _distance(q, w, width):
    total = np.float32(0)
    for k in range(LANES * len(width)):
        gap = q[k] - w[k]
        total += gap * gap
    return max(np.float32(math.sqrt(total)), _TINY)


@jit
def _squared_length(v, width):
    return max(dot(v, v, width), SHORTEST * SHORTEST)


@jit
def _inverse_lengths(q, w, width):
    return np.float32(1) / np.float32(math.sqrt(_squared_length(q, width) * _squared_length(w, width)))


@jit
def _slope_in_length(s, square):
    """Return the slope of the cosine s in the vector's length; 0 where the length is held at the shortest."""
    return -s / square if square > SHORTEST * SHORTEST else np.float32(0)


@dispatch("labels")
def score_label(labels, q, y, width):
    """Return the score f_y of a query."""


@score_label.register(Dot, SketchedLabels)
def _score_dot(labels, q, y, width):
    return dot(q, labels.table[y], width) + labels.bias[y]


@score_label.register(Euclidean)
def _score_euclidean(labels, q, y, width):
    return labels.bias[y] - _distance(q, labels.table[y], width)


@score_label.register(Cosine)
def _score_cosine(labels, q, y, width):
    w = labels.table[y]
    return dot(q, w, width) * _inverse_lengths(q, w, width) + labels.bias[y]


@dispatch("labels")
def compute_slopes(labels, q, y, width):
    """Return (a, b, c) of the gradient at (q, row y)."""


@compute_slopes.register(Dot, SketchedLabels)
def _slopes_dot(labels, q, y, width):
    unit, zero = np.float32(1), np.float32(0)
    return unit, zero, zero


@compute_slopes.register(Euclidean)
def _slopes_euclidean(labels, q, y, width):
    a = np.float32(1) / _distance(q, labels.table[y], width)
    return a, -a, -a


@compute_slopes.register(Cosine)
def _slopes_cosine(labels, q, y, width):
    w = labels.table[y]
    a = _inverse_lengths(q, w, width)
    s = dot(q, w, width) * a
    return a, _slope_in_length(s, _squared_length(q, width)), _slope_in_length(s, _squared_length(w, width))
