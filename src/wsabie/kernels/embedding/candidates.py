"""Labels in a training step: they score a query, return its gradient, move, and are clipped to a norm.

    Dot, Euclidean, Cosine   the query is a point     f_y = s(q, W_y)             (Weston et al. 2010, equation 2)
    WeightLabels             the query is the row     f_y = w_y . x               (Weston et al. 2010, section 6.3)
    PointAndWeightLabels     the query is both        f_y = w_y . x + s(q, W_y)   (Weston et al. 2010, equation 1)
    TwoPointLabels           the query is two points  f_y = q1 . U_y + q2 . W_y   (Mesnil et al. 2014, section 6.2)
    SketchedLabels           points under Dot with a byte sketch each (`wsabie.kernels.embedding.label_sketches`)
    CandidatePool            points of a tower, in a block's slots

A step uses labels through `score_label`, `query_gradient`, `update_label` and `clip_norm` alone, which are dispatched
on the type of the labels; a search first asks `is_bounded_below`. Only a pool has work to do around a block
(`gather_candidates`, `backprop_candidates`), and slots as labels (`locate_positive`, `get_label_id`,
`count_ranked_slots`).

The weights of a label have as many numbers as there are features, and a step may touch those of the row's non-zeros
alone. So a label is stored as scale times table row, which makes decay and projection one multiplication, and its
squared length is carried along: |w + a x|^2 = |w|^2 + 2 a w.x + a^2 |x|^2, where w.x comes from the same pass that
moves the row.

A candidate with features (a document, a track) is not a row of a table but a sum over its features, and every draw in
search of a violator would cost an encoding. So each block brings its candidates along:

    slots 0 .. n_sampled - 1     items drawn uniformly from all, from which the negatives of the block are drawn
    the slots after them         the positives of the block's pairs, in their order

Without sampled ones (n_sampled = 0) the positives of the block are each other's negatives, and ranks are ranks among
them. A moved slot adds
to its direction, and after the block the directions are scattered into the table behind the points.
"""

import math
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import LANES, Bool, Float32, Int32, Int64
from wsabie.kernels.compiler import jit, jit_noinline
from wsabie.kernels.dispatch import dispatch
from wsabie.kernels.embedding import label_sketches
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean, Similarity, compute_slopes, score_label
from wsabie.kernels.embedding.towers import TileScratch, Tower, backprop_block, encode_entity
from wsabie.kernels.primitives.random_numbers import advance_counter, draw_below, mix_bits, start_stream
from wsabie.kernels.primitives.vectors import Width, add, clip_vector_norm, dot, multiply, set_to_zero

_SMALLEST = np.float32(1e-6)  # of a scale, before it is multiplied into its row
_POINTS = (Dot, Euclidean, Cosine, label_sketches.SketchedLabels)


class SparseQuery(NamedTuple):
    """A query: the non-zeros of a sparse row."""

    indices: Int32  # (nnz,)
    data: Float32  # (nnz,)


class DenseQuery(NamedTuple):
    """A query: all values of a dense row."""

    data: Float32  # (n_features,)


class PointAndRowQuery(NamedTuple):
    """A query: the point of a row, and the row."""

    point: Float32  # (padded dim,)
    row: SparseQuery | DenseQuery


class WeightLabels(NamedTuple):
    """Labels with a weight per feature."""

    table: Float32  # (n_labels, n_features): w_y / scale_y
    scale: Float32  # (n_labels,)
    norm2: Float32  # (n_labels,): |w_y|^2
    bias: Float32  # (n_labels,)


class PointAndWeightLabels(NamedTuple):
    """Labels with a point and a weight per feature."""

    points: Similarity
    weights: WeightLabels


class TwoPointLabels(NamedTuple):
    """Labels with two points: one for each half of the query."""

    points: Dot
    words: Float32  # (n_labels, padded dim)
    half: Width  # width of either in the form of `width`


class CandidatePool(NamedTuple):
    """Candidates of a block, shared by threads."""

    points: Similarity  # over (slots, padded dim)
    tower: Tower  # over all candidates
    ids: Int32  # (slots,): item of each slot
    directions: Float32  # (slots, padded dim)
    moved: Bool  # (slots,)
    order: Int64  # (slots,): 0, 1, 2 ...
    n_drawable: Int64  # (1,): number of the first slots, from which negatives are drawn
    n_sampled: int
    tile_scratch: TileScratch


class PoolMoves(NamedTuple):
    """Moved slots of a pool in the form of a block, for `towers.backprop_block`."""

    order: Int64
    moved: Bool
    directions: Float32
    tile_scratch: TileScratch


# ---- scores


@dispatch("q")
def dot_row(row, q):
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


@score_label.register(WeightLabels)
def _score_weights(labels, q, y, width):
    return labels.scale[y] * dot_row(labels.table[y], q) + labels.bias[y]


@score_label.register(PointAndWeightLabels)
def _score_point_and_weights(labels, q, y, width):
    return score_label(labels.points, q.point, y, width) + score_label(labels.weights, q.row, y, width)


@score_label.register(TwoPointLabels)
def _score_two_points(labels, q, y, width):
    n, half = LANES * len(labels.half), labels.half
    return score_label(labels.points, q[:n], y, half) + dot(q[n:], labels.words[y], half)


@score_label.register(CandidatePool)
def _score_pool(labels, q, y, width):
    return score_label(labels.points, q, y, width)


# ---- bounds without a score


@dispatch("labels", has_default=True)
def prefetch_label(labels, y, width):
    """Prefetch what `is_bounded_below` reads of a label."""


@dispatch("labels", has_default=True)
def bound_error(labels, q, width):
    """Return the error bound of a query for `is_bounded_below`."""
    return np.float32(0)


@dispatch("labels", has_default=True)
def is_bounded_below(labels, q, y, error_bound, bound, width):
    """Return True if f_y is certainly at most `bound`, without computing it."""
    return False


prefetch_label.register(label_sketches.SketchedLabels)(label_sketches.prefetch_sketch)
bound_error.register(label_sketches.SketchedLabels)(label_sketches.bound_sketch_error)
is_bounded_below.register(label_sketches.SketchedLabels)(label_sketches.is_bounded_by_sketch)


# ---- the direction of the query


@dispatch("labels", has_default=True)
def query_gradient(labels, q, y, v, weight, g, width):
    """Add weight * (df_y / dq - df_v / dq) to g; nothing where the query is a row, which cannot move."""


@query_gradient.register(*_POINTS)
def _gradient_point(labels, q, y, v, weight, g, width):
    ay, by, _ = compute_slopes(labels, q, y, width)
    av, bv, _ = compute_slopes(labels, q, v, width)
    up, down = labels.table[y], labels.table[v]
    for k in range(LANES * len(width)):
        g[k] += weight * (ay * up[k] - av * down[k] + (by - bv) * q[k])


@query_gradient.register(PointAndWeightLabels)
def _gradient_point_and_weights(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q.point, y, v, weight, g, width)


@query_gradient.register(TwoPointLabels)
def _gradient_two_points(labels, q, y, v, weight, g, width):
    n, half = LANES * len(labels.half), labels.half
    query_gradient(labels.points, q[:n], y, v, weight, g[:n], half)
    add(g[n:], weight, labels.words[y], half)
    add(g[n:], -weight, labels.words[v], half)


@query_gradient.register(CandidatePool)
def _gradient_pool(labels, q, y, v, weight, g, width):
    query_gradient(labels.points, q, y, v, weight, g, width)


# ---- moves


@dispatch("labels")
def update_label(labels, config, y, q, weight, width):
    """Move label y up df_y by its learning rate times `weight`, after its decay, without projection."""


@update_label.register(*_POINTS)
def _update_point(labels, config, y, q, weight, width):
    row, step = labels.table[y], config.learning_rate_labels * weight
    if config.decay_labels != 1:
        multiply(row, config.decay_labels, width)
    a, _, c = compute_slopes(labels, q, y, width)
    for k in range(LANES * len(width)):
        row[k] += step * (a * q[k] + c * row[k])
    if config.learning_rate_bias > 0:
        labels.bias[y] += config.learning_rate_bias * weight


@dispatch("q")
def add_row(row, step, q):
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
def _update_weights(labels, config, y, q, weight, width):
    if config.decay_weights != 1:
        shrink_weights(labels, y, config.decay_weights)
    step, scale = config.learning_rate_weights * weight, labels.scale[y]
    product, length2 = add_row(labels.table[y], step / scale, q)
    labels.norm2[y] += step * (np.float32(2) * scale * product + step * length2)
    if config.learning_rate_bias > 0:
        labels.bias[y] += config.learning_rate_bias * weight


@update_label.register(PointAndWeightLabels)
def _update_point_and_weights(labels, config, y, q, weight, width):
    update_label(labels.points, config, y, q.point, weight, width)
    update_label(labels.weights, config, y, q.row, weight, width)


@update_label.register(TwoPointLabels)
def _update_two_points(labels, config, y, q, weight, width):
    n, half, row = LANES * len(labels.half), labels.half, labels.words[y]
    update_label(labels.points, config, y, q[:n], weight, half)
    if config.decay_labels != 1:
        multiply(row, config.decay_labels, half)
    add(row, config.learning_rate_labels * weight, q[n:], half)


# ---- norm limits


@dispatch("labels", has_default=True)
def clip_norm(labels, config, y, width):
    """Clip the moved label y, if it is a table row, to the maximal norm, and renew its sketch."""


@clip_norm.register(Dot, Euclidean, Cosine)
def _clip_point(labels, config, y, width):
    clip_vector_norm(labels.table[y], config.max_norm_labels, width)


@clip_norm.register(WeightLabels)
def _clip_weights(labels, config, y, width):
    longest = config.max_norm_weights
    if labels.norm2[y] > longest * longest:
        shrink_weights(labels, y, longest / np.float32(math.sqrt(labels.norm2[y])))


@clip_norm.register(PointAndWeightLabels)
def _clip_point_and_weights(labels, config, y, width):
    clip_norm(labels.points, config, y, width)
    clip_norm(labels.weights, config, y, width)


@clip_norm.register(label_sketches.SketchedLabels)
def _clip_sketched(labels, config, y, width):
    clip_vector_norm(labels.table[y], config.max_norm_labels, width)
    label_sketches.sketch_label(labels, y, width)


@clip_norm.register(TwoPointLabels)
def _clip_two_points(labels, config, y, width):
    clip_norm(labels.points, config, y, labels.half)
    clip_vector_norm(labels.words[y], config.max_norm_labels, labels.half)


# ---- around a block


@dispatch("labels", has_default=True)
def gather_candidates(labels, targets, config, block, t, n, width):
    """Prepare a block's candidates in thread t of n; return True if the threads must meet afterwards."""
    return False


@dispatch("labels", has_default=True)
def backprop_candidates(labels, block, config, owner, n_owners, bounds, width):
    """Scatter the directions of a block's candidates into the rows behind them that `owner` owns."""


@dispatch("labels", has_default=True)
def locate_positive(labels, targets, pair, k):
    """Return the table row or slot of a pair's true label; the pair is the k-th of its block."""
    return np.int64(targets.labels[pair])


@dispatch("labels", has_default=True)
def get_label_id(labels, y):
    """Return the label id of table row or slot y."""
    return y


@dispatch("labels", has_default=True)
def count_ranked_slots(labels):
    """Count the slots if they alone are ranked; 0 if every label is ranked."""
    return np.int64(0)


@jit
def count_block_pairs(block):
    """Count the pairs of a block."""
    return block.pair_starts[len(block.order)] - block.pair_starts[0]


@jit
def fill_slot(pool, slot, item, width):
    """Put an item into a slot."""
    pool.ids[slot] = item
    pool.moved[slot] = False
    encode_entity(pool.tower, item, pool.points.table[slot], width)
    set_to_zero(pool.directions[slot], width)


@gather_candidates.register(CandidatePool)
def _gather_pool(labels, targets, config, block, t, n, width):
    """Fill the slots of thread t of n; return True, since all threads must meet before the slots are used."""
    m = labels.n_sampled
    if t == 0:
        labels.n_drawable[0] = m if m > 0 else count_block_pairs(block)
    counter = mix_bits(~start_stream(config.seed, config.epoch, targets.first_pair + block.pair_starts[0]))
    for slot in range(m):
        counter = advance_counter(counter)
        if slot % n == t:
            fill_slot(labels, slot, draw_below(counter, targets.n_labels), width)
    for b in range(len(block.order)):
        slot = m + block.pair_starts[b] - block.pair_starts[0]
        first, last = targets.starts[block.order[b]], targets.starts[block.order[b] + 1]
        for pair in range(first, last):
            if slot % n == t:
                fill_slot(labels, slot, targets.labels[pair], width)
            slot += 1
    return True


@backprop_candidates.register(CandidatePool)
def _backprop_pool(labels, block, config, owner, n_owners, bounds, width):
    """Scatter the directions of the slots into the rows of the table that `owner` owns."""
    slots = labels.n_sampled + count_block_pairs(block)
    moves = PoolMoves(labels.order[:slots], labels.moved, labels.directions, labels.tile_scratch)
    backprop_block(labels.tower, labels.ids, moves, config, owner, n_owners, bounds, width)


@update_label.register(CandidatePool)
def _update_pool_candidate(labels, config, y, q, weight, width):
    """Add a step to the direction of a candidate; scattering applies the rate."""
    point, direction = labels.points.table[y], labels.directions[y]
    a, _, c = compute_slopes(labels.points, q, y, width)
    for k in range(LANES * len(width)):
        direction[k] += weight * (a * q[k] + c * point[k])
    labels.moved[y] = True


@locate_positive.register(CandidatePool)
def _locate_in_pool(labels, targets, pair, k):
    return labels.n_sampled + k


@get_label_id.register(CandidatePool)
def _id_in_pool(labels, y):
    return np.int64(labels.ids[y])


@count_ranked_slots.register(CandidatePool)
def _count_pool_slots(labels):
    return np.int64(0) if labels.n_sampled > 0 else labels.n_drawable[0]


@jit
def update_and_clip_label(labels, config, y, q, weight, width):
    """Move one label and project it."""
    update_label(labels, config, y, q, weight, width)
    clip_norm(labels, config, y, width)
