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
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba.extending import overload

from wsabie.core.arrays import LANES
from wsabie.kernels.compiler import INLINE, jit, jit_noinline
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


# ---- scores


def _times_sparse(row, q):
    total = np.float32(0)
    for p in range(len(q.indices)):
        total += row[q.indices[p]] * q.data[p]
    return total


def _times_dense(row, q):
    total = np.float32(0)
    for j in range(len(q.data)):
        total += row[j] * q.data[j]
    return total


_TIMES: dict[type, Callable[..., Any]] = {SparseQuery: _times_sparse, DenseQuery: _times_dense}


def dot_row(row: Any, q: Any) -> Any:
    """Return the inner product of a label's weights and a row."""
    return _TIMES[type(q)](row, q)


@overload(dot_row, jit_options=INLINE)
def _times(row, q):
    return _TIMES[q.instance_class]


def _score_point(labels, q, y, width):
    return similarity.score_similarity(labels, q, y, width)


def _score_weights(labels, q, y, width):
    return labels.scale[y] * dot_row(labels.table[y], q) + labels.bias[y]


def _score_summed(labels, q, y, width):
    return score_label(labels.points, q.point, y, width) + score_label(labels.weights, q.row, y, width)


def _score_joined(labels, q, y, width):
    n, half = LANES * len(labels.half), labels.half
    return similarity.score_similarity(labels.points, q[:n], y, half) + dot(q[n:], labels.words[y], half)


def _score_inner(labels, q, y, width):
    return similarity.score_similarity(labels.points, q, y, width)


# ---- bounds without a score


def _prefetch_nothing(labels, y, width):
    return


def _no_error(labels, q, width):
    return np.float32(0)


def _is_never_bounded(labels, q, y, doubt, bound, width):
    return False


# ---- the direction of the query


def _gradient_point(labels, q, y, v, weight, g, width):
    ay, by, _ = similarity.compute_slopes(labels, q, y, width)
    av, bv, _ = similarity.compute_slopes(labels, q, v, width)
    up, down = labels.table[y], labels.table[v]
    for k in range(LANES * len(width)):
        g[k] += weight * (ay * up[k] - av * down[k] + (by - bv) * q[k])


def _gradient_weights(labels, q, y, v, weight, g, width):
    return


def _gradient_summed(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q.point, y, v, weight, g, width)


def _gradient_joined(labels, q, y, v, weight, g, width):
    n, half = LANES * len(labels.half), labels.half
    query_gradient(labels.points, q[:n], y, v, weight, g[:n], half)
    add(g[n:], weight, labels.words[y], half)
    add(g[n:], -weight, labels.words[v], half)


def _gradient_inner(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q, y, v, weight, g, width)


# ---- moves


def _update_point(labels, rule, y, q, weight, width):
    row, step = labels.table[y], rule.step_labels * weight
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, width)
    a, _, c = similarity.compute_slopes(labels, q, y, width)
    for k in range(LANES * len(width)):
        row[k] += step * (a * q[k] + c * row[k])
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


def _add_sparse(row, step, q):
    product, length2 = np.float32(0), np.float32(0)
    for p in range(len(q.indices)):
        j, x = q.indices[p], q.data[p]
        product += row[j] * x
        length2 += x * x
        row[j] += step * x
    return product, length2


def _add_dense(row, step, q):
    product, length2 = np.float32(0), np.float32(0)
    for j in range(len(q.data)):
        x = q.data[j]
        product += row[j] * x
        length2 += x * x
        row[j] += step * x
    return product, length2


_ADD: dict[type, Callable[..., Any]] = {SparseQuery: _add_sparse, DenseQuery: _add_dense}


def add_row(row: Any, step: Any, q: Any) -> Any:
    """Add step * q to row; return the inner product before, and the squared length of q."""
    return _ADD[type(q)](row, step, q)


@overload(add_row, jit_options=INLINE)
def _add_row(row, step, q):
    return _ADD[q.instance_class]


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


def _update_weights(labels, rule, y, q, weight, width):
    if rule.keep_weights != 1:
        shrink_weights(labels, y, rule.keep_weights)
    step, scale = rule.step_weights * weight, labels.scale[y]
    product, length2 = add_row(labels.table[y], step / scale, q)
    labels.norm2[y] += step * (np.float32(2) * scale * product + step * length2)
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


def _update_summed(labels, rule, y, q, weight, width):
    update_label(labels.points, rule, y, q.point, weight, width)
    update_label(labels.weights, rule, y, q.row, weight, width)


def _update_sketched(labels, rule, y, q, weight, width):
    update_label(labels.points, rule, y, q, weight, width)


def _update_joined(labels, rule, y, q, weight, width):
    n, half, row = LANES * len(labels.half), labels.half, labels.words[y]
    update_label(labels.points, rule, y, q[:n], weight, half)
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, half)
    add(row, rule.step_labels * weight, q[n:], half)


# ---- norm limits


def _clip_point(labels, rule, y, width):
    clip_vector_norm(labels.table[y], rule.max_norm_labels, width)


def _clip_weights(labels, rule, y, width):
    longest = rule.max_norm_weights
    if labels.norm2[y] > longest * longest:
        shrink_weights(labels, y, longest / np.float32(math.sqrt(labels.norm2[y])))


def _clip_summed(labels, rule, y, width):
    clip_norm(labels.points, rule, y, width)
    clip_norm(labels.weights, rule, y, width)


def _clip_sketched(labels, rule, y, width):
    clip_norm(labels.points, rule, y, width)
    sketch_label(labels, y, width)


def _clip_joined(labels, rule, y, width):
    clip_norm(labels.points, rule, y, labels.half)
    clip_vector_norm(labels.words[y], rule.max_norm_labels, labels.half)


def _clip_nothing(labels, rule, y, width):
    return


# ---- around a block


def _gather_nothing(labels, targets, rule, block, t, n, width):
    return False


def _backprop_nothing(labels, block, rule, owner, n_owners, bounds, width):
    return


def _locate_in_table(labels, targets, pair, at):
    return np.int64(targets.labels[pair])


def _locate_in_pool(labels, targets, pair, at):
    return labels.n_sampled + at


def _id_in_table(labels, y):
    return y


def _id_in_pool(labels, y):
    return np.int64(labels.ids[y])


def _count_no_places(labels):
    return np.int64(0)


def _count_pool_places(labels):
    return np.int64(0) if labels.n_sampled > 0 else labels.drawn[0]


# ---- dispatch

_Dispatch: TypeAlias = dict[type, Callable[..., Any]]
_POINTS = (Dot, Euclidean, Cosine)
_SCORE: _Dispatch = {
    **dict.fromkeys(_POINTS, _score_point), WeightLabels: _score_weights, PointAndWeightLabels: _score_summed,
    TwoPointLabels: _score_joined, SketchedLabels: _score_inner, CandidatePool: _score_inner,
}  # fmt: skip
_GRADIENT: _Dispatch = {
    **dict.fromkeys(_POINTS, _gradient_point), **dict.fromkeys((SketchedLabels, CandidatePool), _gradient_inner),
    WeightLabels: _gradient_weights, PointAndWeightLabels: _gradient_summed, TwoPointLabels: _gradient_joined,
}  # fmt: skip
_UPDATE: _Dispatch = {
    **dict.fromkeys(_POINTS, _update_point), WeightLabels: _update_weights, PointAndWeightLabels: _update_summed,
    TwoPointLabels: _update_joined, SketchedLabels: _update_sketched, CandidatePool: update_pool_candidate,
}  # fmt: skip
_CLIP: _Dispatch = {
    **dict.fromkeys(_POINTS, _clip_point), WeightLabels: _clip_weights, PointAndWeightLabels: _clip_summed,
    TwoPointLabels: _clip_joined, SketchedLabels: _clip_sketched, CandidatePool: _clip_nothing,
}  # fmt: skip
_TABLES = (*_POINTS, WeightLabels, PointAndWeightLabels, TwoPointLabels, SketchedLabels)
_EXACT = (*_POINTS, WeightLabels, PointAndWeightLabels, TwoPointLabels, CandidatePool)
_PREFETCH: _Dispatch = {**dict.fromkeys(_EXACT, _prefetch_nothing), SketchedLabels: prefetch_sketch}
_ERROR_BOUND: _Dispatch = {**dict.fromkeys(_EXACT, _no_error), SketchedLabels: bound_sketch_error}
_IS_BOUNDED: _Dispatch = {**dict.fromkeys(_EXACT, _is_never_bounded), SketchedLabels: is_bounded_by_sketch}
_GATHER: _Dispatch = {**dict.fromkeys(_TABLES, _gather_nothing), CandidatePool: gather_pool}
_BACKPROP: _Dispatch = {**dict.fromkeys(_TABLES, _backprop_nothing), CandidatePool: backprop_pool}
_LOCATE: _Dispatch = {**dict.fromkeys(_TABLES, _locate_in_table), CandidatePool: _locate_in_pool}
_ID: _Dispatch = {**dict.fromkeys(_TABLES, _id_in_table), CandidatePool: _id_in_pool}
_COUNT: _Dispatch = {**dict.fromkeys(_TABLES, _count_no_places), CandidatePool: _count_pool_places}


def score_label(labels: Any, q: Any, y: Any, width: Any) -> Any:
    """Return the score f_y of a query."""
    return _SCORE[type(labels)](labels, q, y, width)


def prefetch_label(labels: Any, y: Any, width: Any) -> Any:
    """Prefetch what `is_bounded_below` reads of a label."""
    return _PREFETCH[type(labels)](labels, y, width)


def bound_error(labels: Any, q: Any, width: Any) -> Any:
    """Return the error bound of a query for `is_bounded_below`."""
    return _ERROR_BOUND[type(labels)](labels, q, width)


def is_bounded_below(labels: Any, q: Any, y: Any, doubt: Any, bound: Any, width: Any) -> Any:
    """Return True if f_y is certainly at most `bound`, without computing it."""
    return _IS_BOUNDED[type(labels)](labels, q, y, doubt, bound, width)


def query_gradient(labels: Any, q: Any, y: Any, v: Any, weight: Any, g: Any, width: Any) -> Any:
    """Add weight * (df_y / dq - df_v / dq) to g; nothing where the query cannot move."""
    return _GRADIENT[type(labels)](labels, q, y, v, weight, g, width)


def update_label(labels: Any, rule: Any, y: Any, q: Any, weight: Any, width: Any) -> Any:
    """Move label y up df_y by its learning rate times `weight`, after its decay, without projection."""
    return _UPDATE[type(labels)](labels, rule, y, q, weight, width)


def clip_norm(labels: Any, rule: Any, y: Any, width: Any) -> Any:
    """Clip the moved label y to the maximal norm, and renew its sketch where it has one."""
    return _CLIP[type(labels)](labels, rule, y, width)


def gather_candidates(labels: Any, targets: Any, rule: Any, block: Any, t: int, n: int, width: Any) -> Any:
    """Prepare a block's candidates in thread t of n; return True where the threads must meet afterwards."""
    return _GATHER[type(labels)](labels, targets, rule, block, t, n, width)


def backprop_candidates(labels: Any, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any) -> Any:
    """Scatter the directions of a block's candidates into the rows behind them that `owner` owns."""
    return _BACKPROP[type(labels)](labels, block, rule, owner, n_owners, bounds, width)


def locate_positive(labels: Any, targets: Any, pair: int, at: int) -> Any:
    """Return the place of a pair's true label among the labels; the pair is the at-th of its block."""
    return _LOCATE[type(labels)](labels, targets, pair, at)


def get_label_id(labels: Any, y: Any) -> Any:
    """Return the label at place y."""
    return _ID[type(labels)](labels, y)


def count_places(labels: Any) -> Any:
    """Count the places, where they alone are ranked; 0 where every label is ranked."""
    return _COUNT[type(labels)](labels)


@overload(score_label, jit_options=INLINE)
def _score(labels, q, y, width):
    return _SCORE[labels.instance_class]


@overload(prefetch_label, jit_options=INLINE)
def _prefetch(labels, y, width):
    return _PREFETCH[labels.instance_class]


@overload(bound_error, jit_options=INLINE)
def _error_bound(labels, q, width):
    return _ERROR_BOUND[labels.instance_class]


@overload(is_bounded_below, jit_options=INLINE)
def _is_bounded(labels, q, y, doubt, bound, width):
    return _IS_BOUNDED[labels.instance_class]


@overload(query_gradient, jit_options=INLINE)
def _gradient(labels, q, y, v, weight, g, width):
    return _GRADIENT[labels.instance_class]


@overload(update_label, jit_options=INLINE)
def _update(labels, rule, y, q, weight, width):
    return _UPDATE[labels.instance_class]


@overload(clip_norm, jit_options=INLINE)
def _clip(labels, rule, y, width):
    return _CLIP[labels.instance_class]


@overload(gather_candidates, jit_options=INLINE)
def _gather(labels, targets, rule, block, t, n, width):
    return _GATHER[labels.instance_class]


@overload(backprop_candidates, jit_options=INLINE)
def _backprop(labels, block, rule, owner, n_owners, bounds, width):
    return _BACKPROP[labels.instance_class]


@overload(locate_positive, jit_options=INLINE)
def _locate(labels, targets, pair, at):
    return _LOCATE[labels.instance_class]


@overload(get_label_id, jit_options=INLINE)
def _id(labels, y):
    return _ID[labels.instance_class]


@overload(count_places, jit_options=INLINE)
def _count(labels):
    return _COUNT[labels.instance_class]


@jit
def update_and_clip_label(labels, rule, y, q, weight, width):
    """Move one label and project it."""
    update_label(labels, rule, y, q, weight, width)
    clip_norm(labels, rule, y, width)
