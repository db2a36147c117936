"""Estimated training times of the default members of a fusion, by which a budget chooses among them."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.models.base.hyperparameters import WEIGHT_TRIALS, TrainingShape, default_epochs, default_linear_epochs
from wsabie.models.base.label_matrix import count_label_rows
from wsabie.models.base.label_model import LabelModel
from wsabie.models.linear_ranker import RIDGE_DIRECTIONS, LinearRanker
from wsabie.models.nearest_mean import NearestMean
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.ridge import MAX_EXACT_FEATURES, Ridge
from wsabie.models.wsabie.estimator import Wsabie

SECONDS_PER_PRODUCT = 1.5e-9
"""Of a number of a sparse row with a number of a table that the cache does not hold, on one core."""
SECONDS_PER_DENSE_PRODUCT = 2e-11
"""Of two numbers that lie side by side with others."""
SECONDS_PER_DRAW = 2.2e-10
"""Of a drawn label, for each dimension."""
SECONDS_PER_VISIT = 4e-7
"""Of a pair in training, beside products and draws."""
MAX_BYTES = 100_000_000
"""Largest one-versus-rest that is tried."""
COST_SHARE = 0.25
"""Part of the estimate of `OneVsRest.work` that it takes: that one is for refusing jobs of hours."""
SECONDS_PER_HOLDOUT_ROW = 2.5e-4
"""Of the search for weights, and of intervals."""
LABELS_PER_DRAW = 30
"""Labels of which one draw on average is a violator."""


class DataSize(NamedTuple):
    """Size of training data: the rows of each label, and the stored values of the rows."""

    shape: TrainingShape
    label_rows: Int64
    n_values: int
    is_sparse: bool

    @classmethod
    def measure(cls, rows: Matrix, targets: Matrix) -> "DataSize":
        """Measure rows and their signed label matrix."""
        label_rows, is_sparse = count_label_rows(targets), hasattr(rows, "tocsr")
        shape = TrainingShape(rows.shape[0], int(label_rows.sum()), targets.shape[1], rows.shape[1])
        return cls(shape, label_rows, rows.nnz if is_sparse else rows.size, is_sparse)

    @property
    def row_values(self) -> float:
        """Mean number of stored values of a row."""
        return self.n_values / max(self.shape.n_rows, 1)

    def count_draws(self, most: float) -> float:
        """Return the mean number of draws of a visit."""
        return min(most, 1 + self.shape.n_labels / LABELS_PER_DRAW)


@singledispatch
def estimate_seconds(model: LabelModel, size: DataSize) -> float:
    """Return the estimated seconds of a fit on one core of 2.5 GHz, and of scoring a fifth of the rows.

    The estimate comes from constants, so that every machine chooses alike; a fit may take half or twice as long.
    """
    raise NotImplementedError(type(model).__name__)


@estimate_seconds.register(Wsabie)
def _estimate_embedding(model: Any, size: DataSize) -> float:
    per_dimension = SECONDS_PER_DENSE_PRODUCT * 3 * size.row_values + SECONDS_PER_DRAW * size.count_draws(1000)
    visit = SECONDS_PER_VISIT + model.dim * per_dimension
    return float(default_epochs(size.shape) * size.shape.n_pairs * visit)


@estimate_seconds.register(LinearRanker)
def _estimate_linear(model: Any, size: DataSize) -> float:
    products = size.row_values * size.count_draws(WEIGHT_TRIALS)
    per_product = SECONDS_PER_PRODUCT if size.is_sparse else SECONDS_PER_DENSE_PRODUCT
    visit = SECONDS_PER_VISIT + 2 * per_product * products
    return _estimate_ridge(model, size) + default_linear_epochs(size.shape) * size.shape.n_pairs * visit


@estimate_seconds.register(Ridge)
def _estimate_ridge(model: Any, size: DataSize) -> float:
    n, _, n_labels, width = size.shape
    if size.is_sparse and width > MAX_EXACT_FEATURES:
        return SECONDS_PER_PRODUCT * RIDGE_DIRECTIONS * 6 * size.n_values
    side = min(n, width)
    solution = SECONDS_PER_DENSE_PRODUCT * (side**3 / 3 + side**2 * n_labels)
    if size.is_sparse:
        return solution + SECONDS_PER_PRODUCT * size.n_values * size.row_values + _estimate_sums(model, size)
    return solution + SECONDS_PER_DENSE_PRODUCT * n * width * side + _estimate_sums(model, size)


@estimate_seconds.register(NearestMean)
def _estimate_sums(model: Any, size: DataSize) -> float:
    return 10 * SECONDS_PER_PRODUCT * size.n_values * size.shape.n_pairs / max(size.shape.n_rows, 1)


@estimate_seconds.register(NearestNeighbours)
def _estimate_neighbours(model: Any, size: DataSize) -> float:
    per_product = SECONDS_PER_PRODUCT if size.is_sparse else SECONDS_PER_DENSE_PRODUCT
    return per_product * size.n_values / 5 * size.n_values / size.shape.n_features


@estimate_seconds.register(OneVsRest)
def _estimate_one_vs_rest(model: Any, size: DataSize) -> float:
    cost = OneVsRest(threads=1).work(size.n_values, size.shape.n_features, size.label_rows, size.shape.n_rows)
    return cost.seconds * COST_SHARE if cost.n_bytes <= MAX_BYTES else np.inf
