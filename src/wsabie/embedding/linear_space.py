"""Labels with a weight per feature: f_y(x) = w_y . x, alone or added to points.

Weston et al. 2010, section 6.3 and equation 1.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from wsabie.core.arrays import LANES, Array, Csr, Float32, copy_array, count_rows, view_as_writable
from wsabie.core.errors import require
from wsabie.core.machine import get_available_memory
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import (
    EntityInputs,
    KernelArrays,
    MemoryTraffic,
    RangeRunner,
    TrainableTables,
    run_in_caller,
)
from wsabie.kernels.embedding.candidates import PointAndWeightLabels, WeightLabels
from wsabie.kernels.embedding.relation_patterns import DenseRowPattern, TowerAndRowPattern, score_rows

_ROWS_AT_ONCE = 64  # rows of features that stay in cache while a label's weights pass by


@dataclass
class LinearSpace(TrainableTables):
    """Space with a weight per label and feature.

    Attributes
    ----------
    weights : (n_labels, n_features) float32
        The one large array: training touches a row's non-zeros alone, and the best epoch is kept on disk.
    bias : (n_labels,) float32
    scale, norm2 : (n_labels,) float32
        Kept beside the weights inside an epoch (`wsabie.kernels.embedding.candidates`); `finish_epoch` resets the
        scale to 1.
    """

    weights: Float32
    bias: Float32
    scale: Float32 = field(init=False)
    norm2: Float32 = field(init=False)
    similarity = "weights"
    dim = 0
    width = (None,)  # of the scratch row that a point would need; unused

    def __post_init__(self) -> None:
        self.n_labels, self.n_features = map(int, self.weights.shape)
        self.scale, self.norm2 = np.ones(self.n_labels, np.float32), np.zeros(self.n_labels, np.float32)

    @classmethod
    def zeros(cls, n_features: int, n_labels: int) -> "LinearSpace":
        """Return an untrained space; memory is taken as weights are written."""
        n_bytes, available = 4 * n_labels * n_features, get_available_memory()
        require(
            n_bytes <= available,
            f"a weight for each of {n_labels:,} labels and {n_features:,} features needs {n_bytes / 1e9:,.1f} GB, and "
            f"there are {available / 1e9:,.1f} GB of memory; use fewer of either, or an embedding",
        )
        return cls(np.zeros((n_labels, n_features), np.float32), np.zeros(n_labels, np.float32))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that a prediction needs."""
        return int(self.weights.nbytes + self.bias.nbytes)

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates, by name."""
        return {"weights": self.weights, "bias": self.bias, "norm2": self.norm2}

    def label_arrays(self) -> KernelArrays:
        """Return the labels as kernels take them."""
        return WeightLabels(*map(view_as_writable, (self.weights, self.scale, self.norm2, self.bias)))

    def pattern(self, inputs: EntityInputs) -> KernelArrays:
        """Return the relation pattern of these rows, which are queries as they are."""
        if isinstance(inputs, Csr):
            return Csr(*map(view_as_writable, inputs))
        return DenseRowPattern(view_as_writable(inputs))

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Multiply the scales into the weights, clip their norms and recompute their squared lengths."""
        for label in np.flatnonzero(self.scale != 1):
            self.weights[label] *= self.scale[label]
        self.scale[:] = 1
        if max_norm_weights is not None:
            for y in range(self.n_labels):
                self.norm2[y] = np.dot(self.weights[y], self.weights[y])
            for label in np.flatnonzero(self.norm2 > max_norm_weights**2):
                self.weights[label] *= max_norm_weights / np.sqrt(self.norm2[label])
                self.norm2[label] = max_norm_weights**2

    def traffic(self, rows_per_pair: float) -> MemoryTraffic:
        """Estimate the memory traffic; a step reads and writes the weights (4 bytes each) of two labels."""
        return MemoryTraffic(4 * rows_per_pair, 4 * rows_per_pair, 16 * rows_per_pair)

    def copy(self) -> "LinearSpace":
        """Return a copy whose large weights lie in an unnamed file, so that memory holds them once."""
        duplicate = LinearSpace(copy_array(self.weights), self.bias.copy())
        duplicate.scale[:], duplicate.norm2[:] = self.scale, self.norm2
        return duplicate

    def assign(self, space: Self) -> None:
        """Copy the values of another space of the same shape, its scales too."""
        super().assign(space)
        self.scale[:] = space.scale

    def scores(self, inputs: EntityInputs, run: RangeRunner = run_in_caller) -> Float32:
        """Return all scores of rows, (n, n_labels), summed in a fixed order; `run` may use threads."""
        return _scores(self, inputs, np.zeros((1, LANES), np.float32), run)


@dataclass
class JointLinearSpace(TrainableTables):
    """Space of points and weights, trained together: f_y(x) = w_y . x + s(V x, W_y).

    The alternative to training them apart in Weston et al. 2010, section 3.
    """

    joint: JointSpace
    linear: LinearSpace

    def __post_init__(self) -> None:
        joint = self.joint
        self.similarity, self.dim, self.width = f"{joint.similarity} and weights", joint.dim, joint.width
        self.n_features, self.n_labels = joint.n_features, joint.n_labels

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates; a label's bias is the sum of both biases."""
        linear = self.linear.list_arrays()
        return {**self.joint.list_arrays(), **linear, "bias": self.joint.bias, "weights_bias": linear["bias"]}

    def label_arrays(self) -> KernelArrays:
        """Return the labels as kernels take them."""
        return PointAndWeightLabels(self.joint.label_arrays(), self.linear.label_arrays())

    def pattern(self, inputs: EntityInputs) -> KernelArrays:
        """Return the relation pattern of these rows: the point of each row, and the row."""
        return TowerAndRowPattern(self.joint.pattern(inputs).tower, self.linear.pattern(inputs))

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Apply the norm limits to the embedding and to the linear part."""
        self.joint.finish_epoch(max_norm, max_norm_weights)
        self.linear.finish_epoch(max_norm, max_norm_weights)

    def traffic(self, rows_per_pair: float) -> MemoryTraffic:
        """Return the memory traffic of both parts together."""
        points, weights = self.joint.traffic(rows_per_pair), self.linear.traffic(rows_per_pair)
        return MemoryTraffic(points.pair + weights.pair, points.draw + weights.draw, points.step + weights.step)

    def copy(self) -> "JointLinearSpace":
        """Return a copy; its large weights lie in an unnamed file."""
        return JointLinearSpace(self.joint.copy(), self.linear.copy())

    def assign(self, space: Self) -> None:
        """Copy the values of another space of the same shape."""
        self.joint.assign(space.joint)
        self.linear.assign(space.linear)

    def scores(self, inputs: EntityInputs, run: RangeRunner = run_in_caller) -> Float32:
        """Return all scores of a block of rows, as `LinearSpace.scores`."""
        return _scores(self, inputs, self.joint.compute_points(inputs, run), run)


def _scores(space: LinearSpace | JointLinearSpace, inputs: EntityInputs, points: Float32, run: RangeRunner) -> Float32:
    n, pattern, labels = count_rows(inputs), space.pattern(inputs), space.label_arrays()
    out = np.empty((n, space.n_labels), np.float32)

    def work(lo: int, hi: int) -> None:
        for first in range(0, n, _ROWS_AT_ONCE):
            score_rows(pattern, labels, points, out, first, min(first + _ROWS_AT_ONCE, n), lo, hi, space.width)

    run(work, space.n_labels)
    return out
