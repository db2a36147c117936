"""Labels in a training step: they score a query, return its gradient, move, and are clipped to a norm.

    Dot, Euclidean, Cosine   the query is a point     f_y = s(q, W_y)             (Weston et al. 2010, equation 2)
    WeightLabels             the query is the row     f_y = w_y . x               (Weston et al. 2010, section 6.3)
    PointAndWeightLabels     the query is both        f_y = w_y . x + s(q, W_y)   (Weston et al. 2010, equation 1)
    TwoPointLabels           the query is two points  f_y = q1 . U_y + q2 . W_y   (Mesnil et al. 2014, section 6.2)
    SketchedLabels           points under Dot with a byte sketch each (`wsabie.kernels.embedding.label_sketches`)
    CandidatePool            points of a tower, in a block's slots (`wsabie.kernels.embedding.candidate_pools`)

A step uses labels through `score_label`, `query_gradient`, `update_label` and `clip_norm` alone, which are dispatched
on the type of the labels; a search first asks `is_bounded_below`. Only a pool has work to do around a block
(`gather_candidates`, `backprop_candidates`), and numbers of its own (`locate_positive`, `get_label_id`,
`count_places`).

The weights of a label have as many numbers as there are features, and a step may touch those of the row's non-zeros
alone. So a label is stored as scale times table row, which makes decay and projection one multiplication, and its
squared length is carried along: |w + a x|^2 = |w|^2 + 2 a w.x + a^2 |x|^2, where w.x comes from the same pass that
moves the row.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import LANES
from wsabie.kernels.compiler import jit, jit_noinline
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding import similarity
from wsabie.kernels.embedding.candidate_pools import CandidatePool, backprop_pool, gather_pool, update_pool_candidate
from wsabie.kernels.embedding.label_sketches import (
    SketchedLabels,
    bound_sketch_error,
    is_bounded_by_sketch,
    prefetch_sketch,
    sketch_label,
)
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean
from wsabie.kernels.primitives.vectors import add, clip_vector_norm, dot, multiply

_SMALLEST = np.float32(1e-6)  # of a scale, before it is multiplied into its row


class SparseQuery(NamedTuple):
    """A query: the non-zeros of a sparse row."""

    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32


class DenseQuery(NamedTuple):
    """A query: all values of a dense row."""

    data: Any  # (n_features,) float32


class PointAndRowQuery(NamedTuple):
    """A query: the point of a row, and the row."""

    point: Any
    row: Any


class WeightLabels(NamedTuple):
    """Labels with a weight per feature."""

    table: Any  # (n_labels, n_features) float32: w_y / scale_y
    scale: Any  # (n_labels,) float32
    norm2: Any  # (n_labels,) float32: |w_y|^2
    bias: Any  # (n_labels,) float32


class PointAndWeightLabels(NamedTuple):
    """Labels with a point and a weight per feature."""

    points: Any
    weights: Any


class TwoPointLabels(NamedTuple):
    """Labels with two points: one for each half of the query."""

    points: Any  # Dot
    words: Any  # (n_labels, padded dim) float32
    half: Any  # width of either in the form of `width`


_POINTS = (Dot, Euclidean, Cosine)

# ---- scores


@dispatch("q")
def dot_row(row: Any, q: Any) -> Any:
    """Return the inner product of a label's weights and a row."""


@dot_row.register(SparseQuery)
def _dot_sparse(row, q):
    total = np.float32(0)
    for p in range(len(q.indices)):
        total += row[q.indices[p]] * q.data[p]
    return total


@dot_row.register(DenseQuery)
def _dot_dense(row, q):
    total = np.float32(0)
    for j in range(len(q.data)):
        total += row[j] * q.data[j]
    return total


@dispatch("labels")
def score_label(labels: Any, q: Any, y: Any, width: Any) -> Any:
    """Return the score f_y of a query."""


@score_label.register(*_POINTS)
def _score_point(labels, q, y, width):
    return similarity.score_similarity(labels, q, y, width)


@score_label.register(WeightLabels)
def _score_weights(labels, q, y, width):
    return labels.scale[y] * dot_row(labels.table[y], q) + labels.bias[y]


@score_label.register(PointAndWeightLabels)
def _score_summed(labels, q, y, width):
    return score_label(labels.points, q.point, y, width) + score_label(labels.weights, q.row, y, width)


@score_label.register(TwoPointLabels)
def _score_joined(labels, q, y, width):
    n, half = LANES * len(labels.half), labels.half
    return similarity.score_similarity(labels.points, q[:n], y, half) + dot(q[n:], labels.words[y], half)


@score_label.register(SketchedLabels, CandidatePool)
def _score_inner(labels, q, y, width):
    return similarity.score_similarity(labels.points, q, y, width)


# ---- bounds without a score


@dispatch("labels", has_default=True)
def prefetch_label(labels: Any, y: Any, width: Any) -> Any:
    """Prefetch what `is_bounded_below` reads of a label."""


@dispatch("labels", has_default=True)
def bound_error(labels: Any, q: Any, width: Any) -> Any:
    """Return the error bound of a query for `is_bounded_below`."""
    return np.float32(0)


@dispatch("labels", has_default=True)
def is_bounded_below(labels: Any, q: Any, y: Any, doubt: Any, bound: Any, width: Any) -> Any:
    """Return True if f_y is certainly at most `bound`, without computing it."""
    return False


prefetch_label.register(SketchedLabels)(prefetch_sketch)
bound_error.register(SketchedLabels)(bound_sketch_error)
is_bounded_below.register(SketchedLabels)(is_bounded_by_sketch)


# ---- the direction of the query


@dispatch("labels")
def query_gradient(labels: Any, q: Any, y: Any, v: Any, weight: Any, g: Any, width: Any) -> Any:
    """Add weight * (df_y / dq - df_v / dq) to g; nothing where the query cannot move."""


@query_gradient.register(*_POINTS)
def _gradient_point(labels, q, y, v, weight, g, width):
    ay, by, _ = similarity.compute_slopes(labels, q, y, width)
    av, bv, _ = similarity.compute_slopes(labels, q, v, width)
    up, down = labels.table[y], labels.table[v]
    for k in range(LANES * len(width)):
        g[k] += weight * (ay * up[k] - av * down[k] + (by - bv) * q[k])


@query_gradient.register(WeightLabels)
def _gradient_weights(labels, q, y, v, weight, g, width):
    return


@query_gradient.register(PointAndWeightLabels)
def _gradient_summed(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q.point, y, v, weight, g, width)


@query_gradient.register(TwoPointLabels)
def _gradient_joined(labels, q, y, v, weight, g, width):
    n, half = LANES * len(labels.half), labels.half
    query_gradient(labels.points, q[:n], y, v, weight, g[:n], half)
    add(g[n:], weight, labels.words[y], half)
    add(g[n:], -weight, labels.words[v], half)


@query_gradient.register(SketchedLabels, CandidatePool)
def _gradient_inner(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q, y, v, weight, g, width)


# ---- moves


@dispatch("labels")
def update_label(labels: Any, rule: Any, y: Any, q: Any, weight: Any, width: Any) -> Any:
    """Move label y up df_y by its learning rate times `weight`, after its decay, without projection."""


update_label.register(CandidatePool)(update_pool_candidate)


@update_label.register(*_POINTS)
def _update_point(labels, rule, y, q, weight, width):
    row, step = labels.table[y], rule.step_labels * weight
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, width)
    a, _, c = similarity.compute_slopes(labels, q, y, width)
    for k in range(LANES * len(width)):
        row[k] += step * (a * q[k] + c * row[k])
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


@dispatch("q")
def add_row(row: Any, step: Any, q: Any) -> Any:
    """Add step * q to row; return the inner product before, and the squared length of q."""


@add_row.register(SparseQuery)
def _add_sparse(row, step, q):
    product, length2 = np.float32(0), np.float32(0)
    for p in range(len(q.indices)):
        j, x = q.indices[p], q.data[p]
        product += row[j] * x
        length2 += x * x
        row[j] += step * x
    return product, length2


@add_row.register(DenseQuery)
def _add_dense(row, step, q):
    product, length2 = np.float32(0), np.float32(0)
    for j in range(len(q.data)):
        x = q.data[j]
        product += row[j] * x
        length2 += x * x
        row[j] += step * x
    return product, length2


@jit_noinline
def apply_scale(labels, y):
    """Multiply the scale of label y into its row."""
    row, scale = labels.table[y], labels.scale[y]
    for j in range(len(row)):
        row[j] *= scale
    labels.scale[y] = 1


@jit
def shrink_weights(labels, y, factor):
    """Multiply w_y by a factor without touching the row."""
    labels.scale[y] *= factor
    labels.norm2[y] *= factor * factor
    if labels.scale[y] < _SMALLEST:
        apply_scale(labels, y)


@update_label.register(WeightLabels)
def _update_weights(labels, rule, y, q, weight, width):
    if rule.keep_weights != 1:
        shrink_weights(labels, y, rule.keep_weights)
    step, scale = rule.step_weights * weight, labels.scale[y]
    product, length2 = add_row(labels.table[y], step / scale, q)
    labels.norm2[y] += step * (np.float32(2) * scale * product + step * length2)
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


@update_label.register(PointAndWeightLabels)
def _update_summed(labels, rule, y, q, weight, width):
    update_label(labels.points, rule, y, q.point, weight, width)
    update_label(labels.weights, rule, y, q.row, weight, width)


@update_label.register(SketchedLabels)
def _update_sketched(labels, rule, y, q, weight, width):
    update_label(labels.points, rule, y, q, weight, width)


@update_label.register(TwoPointLabels)
def _update_joined(labels, rule, y, q, weight, width):
    n, half, row = LANES * len(labels.half), labels.half, labels.words[y]
    update_label(labels.points, rule, y, q[:n], weight, half)
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, half)
    add(row, rule.step_labels * weight, q[n:], half)


# ---- norm limits


@dispatch("labels")
def clip_norm(labels: Any, rule: Any, y: Any, width: Any) -> Any:
    """Clip the moved label y to the maximal norm, and renew its sketch where it has one."""


@clip_norm.register(*_POINTS)
def _clip_point(labels, rule, y, width):
    clip_vector_norm(labels.table[y], rule.max_norm_labels, width)


@clip_norm.register(WeightLabels)
def _clip_weights(labels, rule, y, width):
    longest = rule.max_norm_weights
    if labels.norm2[y] > longest * longest:
        shrink_weights(labels, y, longest / np.float32(math.sqrt(labels.norm2[y])))


@clip_norm.register(PointAndWeightLabels)
def _clip_summed(labels, rule, y, width):
    clip_norm(labels.points, rule, y, width)
    clip_norm(labels.weights, rule, y, width)


@clip_norm.register(SketchedLabels)
def _clip_sketched(labels, rule, y, width):
    clip_norm(labels.points, rule, y, width)
    sketch_label(labels, y, width)


@clip_norm.register(TwoPointLabels)
def _clip_joined(labels, rule, y, width):
    clip_norm(labels.points, rule, y, labels.half)
    clip_vector_norm(labels.words[y], rule.max_norm_labels, labels.half)


@clip_norm.register(CandidatePool)
def _clip_nothing(labels, rule, y, width):
    return


# ---- around a block


@dispatch("labels", has_default=True)
def gather_candidates(labels: Any, targets: Any, rule: Any, block: Any, t: int, n: int, width: Any) -> Any:
    """Prepare a block's candidates in thread t of n; return True where the threads must meet afterwards."""
    return False


@dispatch("labels", has_default=True)
def backprop_candidates(labels: Any, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any) -> Any:
    """Scatter the directions of a block's candidates into the rows behind them that `owner` owns."""


@dispatch("labels", has_default=True)
def locate_positive(labels: Any, targets: Any, pair: int, at: int) -> Any:
    """Return the place of a pair's true label among the labels; the pair is the at-th of its block."""
    return np.int64(targets.labels[pair])


@dispatch("labels", has_default=True)
def get_label_id(labels: Any, y: Any) -> Any:
    """Return the label at place y."""
    return y


@dispatch("labels", has_default=True)
def count_places(labels: Any) -> Any:
    """Count the places, where they alone are ranked; 0 where every label is ranked."""
    return np.int64(0)


gather_candidates.register(CandidatePool)(gather_pool)
backprop_candidates.register(CandidatePool)(backprop_pool)


@locate_positive.register(CandidatePool)
def _locate_in_pool(labels, targets, pair, at):
    return labels.n_sampled + at


@get_label_id.register(CandidatePool)
def _id_in_pool(labels, y):
    return np.int64(labels.ids[y])


@count_places.register(CandidatePool)
def _count_pool_places(labels):
    return np.int64(0) if labels.n_sampled > 0 else labels.drawn[0]


@jit
def update_and_clip_label(labels, rule, y, q, weight, width):
    """Move one label and project it."""
    update_label(labels, rule, y, q, weight, width)
    clip_norm(labels, rule, y, width)
