"""What labels are to the step: they score a query, hand its gradient back, move, and are held to a norm.

    points (Dot, Euclidean, Cosine)   the query is a point        f_y = s(q, W_y)              ([W] eq. 2)
    Weights                           the query is the row        f_y = w_y . x                ([W] section 6.3)
    Summed                            the query is both           f_y = w_y . x + s(q, W_y)    ([W] eq. 1)
    Joined                            the query is two points     f_y = q1 . U_y + q2 . W_y    ([P] 6.2, unshared)
    Sketched                          points under Dot, and a sketch of each in bytes (`wsabie.kernels.sketches`)
    Pool                              labels are points of a tower, those of a block in slots (`wsabie.kernels.pools`)

A step looks at a label through `score`, `pull`, `push` and `limit` alone, which are dispatched on the labels' type; a
search asks first whether a label `falls_short`.
Only a pool has work to do around a block (`gather`, `spread_labels`), and numbers of its own (`place`, `name`,
`n_places`).

The weights of a label have as many numbers as there are features, and a step may touch those of the row's non-zeros
alone. So a label is stored as scale times table row, which makes decay and projection one multiplication, and its
squared length is carried along: |w + a x|^2 = |w|^2 + 2 a w.x + a^2 |x|^2, where w.x comes from the same pass that
moves the row.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from wsabie.base.arrays import LANES
from wsabie.kernels import similarity
from wsabie.kernels._jit import INLINE, cold, jit
from wsabie.kernels.pools import Pool, gather_pool, push_pool, spread_pool
from wsabie.kernels.similarity import Cosine, Dot, Euclidean
from wsabie.kernels.sketches import Sketched, ask_for_sketch, doubt_of_sketches, short_by_sketch, sketch
from wsabie.kernels.vector import add, dot, multiply, project

_SMALLEST = np.float32(1e-6)  # of a scale, before it is multiplied into its row


class Row(NamedTuple):
    """A query: the non-zeros of a sparse row."""

    indices: Any  # (nnz,) int32
    data: Any  # (nnz,) float32


class DenseRow(NamedTuple):
    """A query: all values of a dense row."""

    data: Any  # (n_features,) float32


class Two(NamedTuple):
    """A query: the point of a row, and the row."""

    point: Any
    row: Any


class Weights(NamedTuple):
    """Labels with a weight per feature."""

    table: Any  # (n_labels, n_features) float32: w_y / scale_y
    scale: Any  # (n_labels,) float32
    norm2: Any  # (n_labels,) float32: |w_y|^2
    bias: Any  # (n_labels,) float32


class Summed(NamedTuple):
    """Labels with a point and a weight per feature."""

    points: Any
    weights: Any


class Joined(NamedTuple):
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


_TIMES: dict[type, Callable[..., Any]] = {Row: _times_sparse, DenseRow: _times_dense}


def times(row: Any, q: Any) -> Any:
    """Inner product of the weights of a label and a row."""
    return _TIMES[type(q)](row, q)


@overload(times, jit_options=INLINE)
def _times(row, q):
    return _TIMES[q.instance_class]


def _score_point(labels, q, y, width):
    return similarity.score(labels, q, y, width)


def _score_weights(labels, q, y, width):
    return labels.scale[y] * times(labels.table[y], q) + labels.bias[y]


def _score_summed(labels, q, y, width):
    return score(labels.points, q.point, y, width) + score(labels.weights, q.row, y, width)


def _score_joined(labels, q, y, width):
    n, half = LANES * len(labels.half), labels.half
    return similarity.score(labels.points, q[:n], y, half) + dot(q[n:], labels.words[y], half)


def _score_inner(labels, q, y, width):
    return similarity.score(labels.points, q, y, width)


# ---- what tells without a score


def _ask_for_nothing(labels, y, width):
    return


def _no_doubt(labels, q, width):
    return np.float32(0)


def _may_be_any(labels, q, y, doubt, bound, width):
    return False


# ---- the direction of the query


def _pull_point(labels, q, y, v, weight, g, width):
    ay, by, _ = similarity.slopes(labels, q, y, width)
    av, bv, _ = similarity.slopes(labels, q, v, width)
    up, down = labels.table[y], labels.table[v]
    for k in range(LANES * len(width)):
        g[k] += weight * (ay * up[k] - av * down[k] + (by - bv) * q[k])


def _pull_weights(labels, q, y, v, weight, g, width):
    return


def _pull_summed(labels, q, y, v, weight, g, width):
    pull(labels.points, q.point, y, v, weight, g, width)


def _pull_joined(labels, q, y, v, weight, g, width):
    n, half = LANES * len(labels.half), labels.half
    pull(labels.points, q[:n], y, v, weight, g[:n], half)
    add(g[n:], weight, labels.words[y], half)
    add(g[n:], -weight, labels.words[v], half)


def _pull_inner(labels, q, y, v, weight, g, width):
    pull(labels.points, q, y, v, weight, g, width)


# ---- moves


def _push_point(labels, rule, y, q, weight, width):
    row, step = labels.table[y], rule.step_labels * weight
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, width)
    a, _, c = similarity.slopes(labels, q, y, width)
    for k in range(LANES * len(width)):
        row[k] += step * (a * q[k] + c * row[k])
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


def _add_sparse(row, step, q):
    before, length2 = np.float32(0), np.float32(0)
    for p in range(len(q.indices)):
        j, x = q.indices[p], q.data[p]
        before += row[j] * x
        length2 += x * x
        row[j] += step * x
    return before, length2


def _add_dense(row, step, q):
    before, length2 = np.float32(0), np.float32(0)
    for j in range(len(q.data)):
        x = q.data[j]
        before += row[j] * x
        length2 += x * x
        row[j] += step * x
    return before, length2


_ADD: dict[type, Callable[..., Any]] = {Row: _add_sparse, DenseRow: _add_dense}


def add_row(row: Any, step: Any, q: Any) -> Any:
    """row += step * q; returns the inner product before the move, and the squared length of q."""
    return _ADD[type(q)](row, step, q)


@overload(add_row, jit_options=INLINE)
def _add_row(row, step, q):
    return _ADD[q.instance_class]


@cold
def fold_scale(labels, y):
    """Multiply the scale of label y into its row."""
    row, scale = labels.table[y], labels.scale[y]
    for j in range(len(row)):
        row[j] *= scale
    labels.scale[y] = 1


@jit
def shrink(labels, y, factor):
    """w_y *= factor, without touching the row."""
    labels.scale[y] *= factor
    labels.norm2[y] *= factor * factor
    if labels.scale[y] < _SMALLEST:
        fold_scale(labels, y)


def _push_weights(labels, rule, y, q, weight, width):
    if rule.keep_weights != 1:
        shrink(labels, y, rule.keep_weights)
    step, scale = rule.step_weights * weight, labels.scale[y]
    before, length2 = add_row(labels.table[y], step / scale, q)
    labels.norm2[y] += step * (np.float32(2) * scale * before + step * length2)
    if rule.step_bias > 0:
        labels.bias[y] += rule.step_bias * weight


def _push_summed(labels, rule, y, q, weight, width):
    push(labels.points, rule, y, q.point, weight, width)
    push(labels.weights, rule, y, q.row, weight, width)


def _push_sketched(labels, rule, y, q, weight, width):
    push(labels.points, rule, y, q, weight, width)


def _push_joined(labels, rule, y, q, weight, width):
    n, half, row = LANES * len(labels.half), labels.half, labels.words[y]
    push(labels.points, rule, y, q[:n], weight, half)
    if rule.keep_labels != 1:
        multiply(row, rule.keep_labels, half)
    add(row, rule.step_labels * weight, q[n:], half)


# ---- limits


def _limit_point(labels, rule, y, width):
    project(labels.table[y], rule.max_norm_labels, width)


def _limit_weights(labels, rule, y, width):
    longest = rule.max_norm_weights
    if labels.norm2[y] > longest * longest:
        shrink(labels, y, longest / np.float32(math.sqrt(labels.norm2[y])))


def _limit_summed(labels, rule, y, width):
    limit(labels.points, rule, y, width)
    limit(labels.weights, rule, y, width)


def _limit_sketched(labels, rule, y, width):
    limit(labels.points, rule, y, width)
    sketch(labels, y, width)


def _limit_joined(labels, rule, y, width):
    limit(labels.points, rule, y, labels.half)
    project(labels.words[y], rule.max_norm_labels, labels.half)


def _limit_nothing(labels, rule, y, width):
    return


# ---- around a block


def _gather_nothing(labels, targets, rule, block, t, n, width):
    return False


def _spread_nothing(labels, block, rule, owner, n_owners, bounds, width):
    return


def _place_of_label(labels, targets, pair, at):
    return np.int64(targets.labels[pair])


def _place_in_pool(labels, targets, pair, at):
    return labels.n_sampled + at


def _name_of_label(labels, y):
    return y


def _name_in_pool(labels, y):
    return np.int64(labels.ids[y])


def _no_places(labels):
    return np.int64(0)


def _places_of_pool(labels):
    return np.int64(0) if labels.n_sampled > 0 else labels.drawn[0]


# ---- dispatch

_POINTS = (Dot, Euclidean, Cosine)
_SCORE: dict[type, Callable[..., Any]] = {
    **dict.fromkeys(_POINTS, _score_point),
    Weights: _score_weights, Summed: _score_summed, Joined: _score_joined, Sketched: _score_inner, Pool: _score_inner
}  # fmt: skip
_PULL: dict[type, Callable[..., Any]] = {
    **dict.fromkeys(_POINTS, _pull_point),
    Weights: _pull_weights, Summed: _pull_summed, Joined: _pull_joined, Sketched: _pull_inner, Pool: _pull_inner
}  # fmt: skip
_PUSH: dict[type, Callable[..., Any]] = {
    **dict.fromkeys(_POINTS, _push_point),
    Weights: _push_weights, Summed: _push_summed, Joined: _push_joined, Sketched: _push_sketched, Pool: push_pool
}  # fmt: skip
_LIMIT: dict[type, Callable[..., Any]] = {
    **dict.fromkeys(_POINTS, _limit_point),
    Weights: _limit_weights, Summed: _limit_summed, Joined: _limit_joined, Sketched: _limit_sketched,
    Pool: _limit_nothing
}  # fmt: skip
_TABLES = (*_POINTS, Weights, Summed, Joined, Sketched)
_EXACT = (*_POINTS, Weights, Summed, Joined, Pool)
_ASK_FOR: dict[type, Callable[..., Any]] = {**dict.fromkeys(_EXACT, _ask_for_nothing), Sketched: ask_for_sketch}
_DOUBT: dict[type, Callable[..., Any]] = {**dict.fromkeys(_EXACT, _no_doubt), Sketched: doubt_of_sketches}
_FALLS_SHORT: dict[type, Callable[..., Any]] = {**dict.fromkeys(_EXACT, _may_be_any), Sketched: short_by_sketch}
_GATHER: dict[type, Callable[..., Any]] = {**dict.fromkeys(_TABLES, _gather_nothing), Pool: gather_pool}
_SPREAD: dict[type, Callable[..., Any]] = {**dict.fromkeys(_TABLES, _spread_nothing), Pool: spread_pool}
_PLACE: dict[type, Callable[..., Any]] = {**dict.fromkeys(_TABLES, _place_of_label), Pool: _place_in_pool}
_NAME: dict[type, Callable[..., Any]] = {**dict.fromkeys(_TABLES, _name_of_label), Pool: _name_in_pool}
_N_PLACES: dict[type, Callable[..., Any]] = {**dict.fromkeys(_TABLES, _no_places), Pool: _places_of_pool}


def score(labels: Any, q: Any, y: Any, width: Any) -> Any:
    """f_y of the query."""
    return _SCORE[type(labels)](labels, q, y, width)


def ask_for(labels: Any, y: Any, width: Any) -> Any:
    """Have what `falls_short` reads of a label on its way into the cache."""
    return _ASK_FOR[type(labels)](labels, y, width)


def doubt_of(labels: Any, q: Any, width: Any) -> Any:
    """What `falls_short` takes, once for a query."""
    return _DOUBT[type(labels)](labels, q, width)


def falls_short(labels: Any, q: Any, y: Any, doubt: Any, bound: Any, width: Any) -> Any:
    """Whether it is certain, without the score itself, that f_y is no higher than `bound`."""
    return _FALLS_SHORT[type(labels)](labels, q, y, doubt, bound, width)


def pull(labels: Any, q: Any, y: Any, v: Any, weight: Any, g: Any, width: Any) -> Any:
    """g += weight * (df_y / dq - df_v / dq); nothing where the query is given and cannot move."""
    return _PULL[type(labels)](labels, q, y, v, weight, g, width)


def push(labels: Any, rule: Any, y: Any, q: Any, weight: Any, width: Any) -> Any:
    """Label y takes a step of its learning rate times `weight` up df_y, after its decay; not projected."""
    return _PUSH[type(labels)](labels, rule, y, q, weight, width)


def limit(labels: Any, rule: Any, y: Any, width: Any) -> Any:
    """Label y, which has moved, is cut to the maximal norm, and sketched anew where it has a sketch."""
    return _LIMIT[type(labels)](labels, rule, y, width)


def gather(labels: Any, targets: Any, rule: Any, block: Any, t: int, n: int, width: Any) -> Any:
    """What thread t of n does before the candidates of a block are looked at; True where the threads then meet."""
    return _GATHER[type(labels)](labels, targets, rule, block, t, n, width)


def spread_labels(labels: Any, block: Any, rule: Any, owner: int, n_owners: int, bounds: Any, width: Any) -> Any:
    """Hand the directions of a block's candidates back to the rows behind them that `owner` owns."""
    return _SPREAD[type(labels)](labels, block, rule, owner, n_owners, bounds, width)


def place(labels: Any, targets: Any, pair: int, at: int) -> Any:
    """Where the true label of a pair, the block's at-th, stands among the labels."""
    return _PLACE[type(labels)](labels, targets, pair, at)


def name(labels: Any, y: Any) -> Any:
    """Which label stands at place y."""
    return _NAME[type(labels)](labels, y)


def n_places(labels: Any) -> Any:
    """How many places there are, where they are all that is ranked; 0 where every label is."""
    return _N_PLACES[type(labels)](labels)


@overload(score, jit_options=INLINE)
def _score(labels, q, y, width):
    return _SCORE[labels.instance_class]


@overload(ask_for, jit_options=INLINE)
def _ask_for(labels, y, width):
    return _ASK_FOR[labels.instance_class]


@overload(doubt_of, jit_options=INLINE)
def _doubt_of(labels, q, width):
    return _DOUBT[labels.instance_class]


@overload(falls_short, jit_options=INLINE)
def _falls_short(labels, q, y, doubt, bound, width):
    return _FALLS_SHORT[labels.instance_class]


@overload(pull, jit_options=INLINE)
def _pull(labels, q, y, v, weight, g, width):
    return _PULL[labels.instance_class]


@overload(push, jit_options=INLINE)
def _push(labels, rule, y, q, weight, width):
    return _PUSH[labels.instance_class]


@overload(limit, jit_options=INLINE)
def _limit(labels, rule, y, width):
    return _LIMIT[labels.instance_class]


@overload(gather, jit_options=INLINE)
def _gather(labels, targets, rule, block, t, n, width):
    return _GATHER[labels.instance_class]


@overload(spread_labels, jit_options=INLINE)
def _spread_labels(labels, block, rule, owner, n_owners, bounds, width):
    return _SPREAD[labels.instance_class]


@overload(place, jit_options=INLINE)
def _place(labels, targets, pair, at):
    return _PLACE[labels.instance_class]


@overload(name, jit_options=INLINE)
def _name(labels, y):
    return _NAME[labels.instance_class]


@overload(n_places, jit_options=INLINE)
def _n_places(labels):
    return _N_PLACES[labels.instance_class]


@jit
def move_label(labels, rule, y, q, weight, width):
    """One label takes its step and is projected."""
    push(labels, rule, y, q, weight, width)
    limit(labels, rule, y, width)
