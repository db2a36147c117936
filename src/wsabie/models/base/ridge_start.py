"""Start of training: both tables at a reduced-rank ridge regression of the labels on the rows.

Izenman (1975) gives the solution without penalty: the leading directions of the fitted targets. Mukherjee and Zhu
(2011) add the penalty. Here conjugate gradients solve in the space of the rows, which are sampled where there are many,
so that no matrix of rows by labels or of features by features is built.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Csr, Float32, Matrix, count_rows
from wsabie.core.label_lists import count_label_rows
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import RangeRunner
from wsabie.models.base.feature_matrix import FeatureMatrix, RowParts, convert_from_matrix, convert_to_matrix, take_rows
from wsabie.models.base.row_scaling import RowScaling
from wsabie.models.base.training_rows import TrainingRows

MAX_ROWS = 1 << 14
"""Rows whose regression gives the feature table; the label table is fitted to all rows."""
ROUNDS, STEPS = 2, 2
"""Rounds of the subspace iteration, and steps of conjugate gradients in each."""
PENALTY = 20.0
"""Ridge penalty, as a multiple of the mean eigenvalue of Z'Z for rows Z."""
LEAST_PENALTY = 6.0
"""Least penalty, as a multiple of the mean squared length of rows; it counts where rows are fewer than features."""
LABEL_POWER = 0.5
"""Power of the singular values that the label table keeps: similar labels have similar points."""
_LEAST_EIGENVALUE = 1e-6
_GAP_SCORES = 1 << 22
"""Most scores that the scale of the points is measured on."""


def place_at_ridge(
    space: JointSpace, rows: TrainingRows, scaling: RowScaling, margin: float, run: RangeRunner, seed: int
) -> None:
    """Move the tables of a random space to a reduced-rank ridge regression of the labels on the rows.

    Labels have a median length of 1; one with few rows is shorter, as the root of its ridge head. With inner products
    the own labels of a row score one margin above the mean of all labels, in the median; with other similarities the
    points of rows have a median length of 1. What the rows do not determine stays random: labels without a row, and
    dimensions beyond the number of labels.

    Parameters
    ----------
    space : JointSpace
        Changed in place.
    rows : TrainingRows
        Scaled rows, or rows that `scaling` scales when they are read. Weights and explicit negatives count.
    scaling : RowScaling
    margin : float
    run : callable
        Spreads work over threads; their number does not change a bit of the result.
    seed : int
        Seed of the sampled rows and of the first directions.
    """
    rng = np.random.default_rng([seed, 3])
    with threadpool_limits(1):
        inputs, targets, weights = rows.sample(scaling, MAX_ROWS, rng)
        V = _find_features(_RowProducts(*_weigh(inputs, targets, weights), space, run), rng)
        few_inputs, few_targets = take_few_rows(inputs, targets)
        is_whole = count_rows(inputs) == rows.shape.n_rows
        parts = iter([(inputs, targets)]) if is_whole else rows.iterate_parts(scaling)
        del inputs, targets  # memory for the parts
        features, W = _fit_labels(V, parts, rows.weights, space, run)
        lengths, rank = np.linalg.norm(W, axis=1, keepdims=True), W.shape[1]
        has_rows = lengths[:, 0] > 0
        lengths, W = lengths[has_rows], W[has_rows]
        space.labels[~has_rows] /= np.linalg.norm(space.labels[~has_rows], axis=1, keepdims=True)
        space.labels[has_rows] = 0
        space.labels[has_rows, :rank] = W / np.sqrt(lengths * np.median(lengths) if len(lengths) else 1)
        space.features[:, :rank] = features
        scale = _compute_scale(space, few_inputs, few_targets, margin, run)
        space.features[:, :rank] *= scale


class _RowProducts:
    """Products of rows Z with tables of the width of a space, in a fixed order of sums."""

    def __init__(self, inputs: FeatureMatrix, targets: Matrix, space: JointSpace, run: RangeRunner) -> None:
        self.inputs, self.space, self.run = inputs, space, run  # of the space only the width is read
        self.transposed: FeatureMatrix
        if isinstance(inputs, Csr):
            self.transposed = convert_from_matrix(csr_matrix(convert_to_matrix(inputs, space.n_features).T))
        else:
            self.transposed = inputs.T
        factors = 1 / np.sqrt(np.maximum(count_label_rows(targets), 1))
        self.targets = targets @ diags_array(factors.astype(np.float32))

    def to_rows(self, table: Float32) -> Float32:
        """Return Z times a table of features."""
        return self._multiply(self.inputs, table)

    def to_features(self, table: Float32) -> Float32:
        """Return Z' times a table of rows."""
        return self._multiply(self.transposed, table)

    def _multiply(self, inputs: FeatureMatrix, table: Float32) -> Float32:
        if isinstance(inputs, Csr):
            return replace(self.space, features=table).compute_points(inputs, self.run)
        return inputs @ table

    def regress(self, right: Float32) -> Float32:
        """Return Z' (Z Z' + penalty)^-1 times a table of rows, by a few conjugate gradient steps a column."""
        n_rows = count_rows(self.inputs)
        penalty = np.float32(_compute_penalty(_sum_all_squares(self.inputs), n_rows, self.space.n_features))
        residual = direction = right
        squares, solution = _sum_squares(right), np.zeros_like(self.space.features)
        for number in range(STEPS):
            image = self.to_features(direction)
            step = _divide(squares, _sum_squares(image) + penalty * _sum_squares(direction))
            solution += step * image
            if number + 1 < STEPS:
                residual = residual - step * (self.to_rows(image) + penalty * direction)
                squares, old_squares = _sum_squares(residual), squares
                direction = residual + _divide(squares, old_squares) * direction
        return solution


def _find_features(products: _RowProducts, rng: np.random.Generator) -> Float32:
    """Return features that span the leading directions of the fitted targets, (n_features, width)."""
    targets, width = products.targets, products.space.features.shape[1]
    directions = rng.standard_normal((targets.shape[1], width), dtype=np.float32)
    for number in range(ROUNDS):
        V = products.regress(np.ascontiguousarray(targets @ directions))
        if number + 1 < ROUNDS:
            basis, _ = np.linalg.qr(targets.T @ products.to_rows(V))
            directions = np.zeros_like(directions)
            directions[:, : basis.shape[1]] = basis
    return V


def _fit_labels(
    V: Float32, parts: RowParts, weights: Float32 | None, space: JointSpace, run: RangeRunner
) -> tuple[Float32, Float32]:
    """Fit ridge heads of all labels to rows' points; return V (d, rank) and W (n_labels, rank)."""
    # each table gets the root of the singular values; a label without a row has a W of 0
    encoder, width = replace(space, features=V), V.shape[1]
    gram, heads = np.zeros((width, width)), np.zeros((space.n_labels, width), np.float32)
    counts, n_rows, squares = np.zeros(space.n_labels, np.int64), 0, 0.0
    for inputs, targets in parts:
        weighted, shares = _weigh(inputs, targets, weights)
        points = encoder.compute_points(weighted, run)
        gram += points.T @ points
        heads += shares.T @ points
        counts += count_label_rows(targets)
        n_rows += count_rows(weighted)
        squares += _sum_all_squares(weighted)
    heads /= np.sqrt(np.maximum(counts, 1)).astype(np.float32)[:, None]
    penalty = _compute_penalty(squares, n_rows, space.n_features)
    eigenvalues, vectors = np.linalg.eigh(gram + penalty * (V.T @ V))
    is_significant = eigenvalues > _LEAST_EIGENVALUE * eigenvalues[-1]
    whitening = vectors[:, is_significant] / np.sqrt(eigenvalues[is_significant])
    variances, rotation = np.linalg.eigh(whitening.T @ (heads.T @ heads) @ whitening)
    best = np.argsort(-variances, kind="stable")[: space.dim]
    best = best[variances[best] > _LEAST_EIGENVALUE * variances.max(initial=0)]
    singular_values, rotation = np.sqrt(variances[best]), rotation[:, best]
    relative = singular_values / singular_values.max(initial=np.finfo(float).tiny)
    split = relative ** (1 - LABEL_POWER)
    to_features, to_labels = whitening @ (rotation * split), whitening @ (rotation / split)
    return V @ to_features.astype(np.float32), heads @ to_labels.astype(np.float32)


def _weigh(inputs: FeatureMatrix, targets: Matrix, weights: Float32 | None) -> tuple[FeatureMatrix, Matrix]:
    """Return rows times the root of their weights, and their targets, divided by the labels of the row."""
    factors = 1 / np.maximum(np.diff((targets > 0).indptr), 1)
    if weights is not None:
        roots = np.sqrt(np.asarray(weights, np.float32))
        factors = factors * roots
        if isinstance(inputs, Csr):
            inputs = inputs._replace(data=inputs.data * np.repeat(roots, np.diff(inputs.indptr)))
        else:
            inputs = inputs * roots[:, None]
    return inputs, csr_matrix(diags_array(factors.astype(np.float32)) @ targets)


def _sum_all_squares(inputs: FeatureMatrix) -> float:
    values = inputs.data if isinstance(inputs, Csr) else inputs.ravel()
    return float(values @ values)


def _compute_penalty(squares: float, n_rows: int, n_features: int) -> float:
    """Return the ridge penalty for rows whose values have this sum of squares."""
    return squares * max(PENALTY / n_features, LEAST_PENALTY / max(n_rows, 1))


def _divide(a: Float32, b: Float32) -> Float32:
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _sum_squares(table: Float32) -> Float32:
    """Return the sum of squares of each column."""
    squares: Float32 = np.einsum("ij,ij->j", table, table)
    return squares


def take_few_rows(inputs: FeatureMatrix, targets: Matrix) -> tuple[FeatureMatrix, Matrix]:
    """Return evenly spread rows for `compute_margin_scale`, so few that scores of all labels fit."""
    n, n_labels = targets.shape
    row_ids = np.arange(0, n, -(-n * n_labels // _GAP_SCORES))
    return take_rows(inputs, row_ids), targets[row_ids]


def _compute_scale(space: JointSpace, inputs: FeatureMatrix, targets: Matrix, margin: float, run: RangeRunner) -> float:
    """Return the factor of the points of rows that `place_at_ridge` documents."""
    points = space.compute_points(inputs, run)
    lengths = np.linalg.norm(points, axis=1)
    if space.similarity != "dot":
        return _invert_median(lengths[lengths > 0])
    return compute_margin_scale(points @ space.labels.T, targets, margin)


def compute_margin_scale(scores: Float32, targets: Matrix, margin: float) -> float:
    """Return the score factor that puts own labels one margin above the mean of all, in the median."""
    pairs = targets.tocoo()
    has_scores = np.asarray(scores.any(axis=1))
    is_used = (pairs.data > 0) & has_scores[pairs.row]
    rows, label_ids = pairs.row[is_used], pairs.col[is_used]
    return margin * _invert_median(scores[rows, label_ids] - scores.mean(axis=1)[rows])


def _invert_median(values: Float32) -> float:
    median = float(np.median(values)) if len(values) else 0.0
    return 1 / median if median > 0 else 1.0
