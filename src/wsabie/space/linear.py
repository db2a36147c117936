"""Labels with a weight per feature and no point: f_y(x) = w_y . x ([W] section 6.3), alone or beside points (eq. 1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsabie.base import mapped
from wsabie.base.arrays import LANES, Csr, Float32, under_one_type
from wsabie.base.errors import InputError
from wsabie.base.machine import available_memory
from wsabie.space.joint import JointSpace
from wsabie.space.protocol import Inputs, Traffic

Run = Callable[[Callable[[int, int], None], int], None]
_ROWS_AT_ONCE = 64  # rows of features that stay in cache while a label's weights pass by


def _table(n_labels: int, n_features: int) -> Float32:
    if 4 * n_labels * n_features > available_memory():
        raise InputError(
            f"a weight for each of {n_labels:,} labels and {n_features:,} features needs "
            f"{4 * n_labels * n_features / 1e9:,.1f} GB, and there are {available_memory() / 1e9:,.1f} GB of memory; "
            "use fewer of either, or an embedding"
        )
    return np.zeros((n_labels, n_features), np.float32)


@dataclass
class LinearSpace:
    """A weight per label and feature.

    Attributes
    ----------
    weights : (n_labels, n_features) float32
        The one large array: training touches a row's non-zeros alone, and the best epoch is kept on disk.
    bias : (n_labels,) float32
    scale, norm2 : (n_labels,) float32
        Kept beside the weights inside an epoch (`wsabie.kernels.candidates`); `settle` makes the scale 1 again.
    """

    weights: Float32
    bias: Float32
    scale: Float32 = field(init=False)
    norm2: Float32 = field(init=False)
    similarity = "weights"
    dim = 0
    candidates = None
    given = (False, False)

    def __post_init__(self) -> None:
        self.scale, self.norm2 = np.ones(self.n_labels, np.float32), np.zeros(self.n_labels, np.float32)

    @classmethod
    def zeros(cls, n_features: int, n_labels: int) -> "LinearSpace":
        """A space before training; memory is taken as weights are written."""
        return cls(_table(n_labels, n_features), np.zeros(n_labels, np.float32))

    @property
    def n_features(self) -> int:
        return int(self.weights.shape[1])

    @property
    def n_labels(self) -> int:
        return len(self.weights)

    @property
    def nbytes(self) -> int:
        """Bytes that a prediction needs."""
        return int(self.weights.nbytes + self.bias.nbytes)

    @property
    def width(self) -> tuple[None, ...]:
        """Of the scratch that a point would need; not looked at."""
        return (None,)

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves."""
        return {"weights": self.weights, "bias": self.bias, "norm2": self.norm2}

    def label_arrays(self) -> Any:
        """The labels as kernels take them."""
        from wsabie.kernels.candidates import Weights

        return Weights(*map(under_one_type, (self.weights, self.scale, self.norm2, self.bias)))

    def pattern(self, inputs: Inputs) -> Any:
        """The rows themselves."""
        from wsabie.kernels.patterns import Given, GivenDense

        if isinstance(inputs, Csr):
            return Given(*map(under_one_type, inputs))
        return GivenDense(under_one_type(inputs))

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Multiply the scales into the weights, hold them to the limit, and take their lengths anew."""
        for label in np.flatnonzero(self.scale != 1):
            self.weights[label] *= self.scale[label]
        self.scale[:] = 1
        if max_norm_weights is not None:
            for y in range(self.n_labels):
                self.norm2[y] = np.dot(self.weights[y], self.weights[y])
            for label in np.flatnonzero(self.norm2 > max_norm_weights**2):
                self.weights[label] *= max_norm_weights / np.sqrt(self.norm2[label])
                self.norm2[label] = max_norm_weights**2

    def traffic(self, rows_per_pair: float) -> Traffic:
        """A weight is 4 bytes; a step reads and writes those of two labels."""
        return Traffic(4 * rows_per_pair, 4 * rows_per_pair, 16 * rows_per_pair)

    def copy(self) -> "LinearSpace":
        """The same with large weights in a file without a name, so that memory holds them once."""
        kept = LinearSpace(mapped.copy(self.weights), self.bias.copy())
        kept.scale[:], kept.norm2[:] = self.scale, self.norm2
        return kept

    def assign(self, other: "LinearSpace") -> None:
        """Overwrite with another space of the same shape."""
        for mine, theirs in zip(
            (self.weights, self.bias, self.scale, self.norm2),
            (other.weights, other.bias, other.scale, other.norm2),
            strict=True,
        ):
            mine[:] = theirs

    def toy(self) -> "LinearSpace":
        """One feature and two labels."""
        return LinearSpace.zeros(1, 2)

    def scores(self, inputs: Inputs, run: Run | None = None) -> Float32:
        """All scores of a block of rows, (n, n_labels), summed in a fixed order; `run` may share labels out."""
        return _scores(self.pattern(inputs), self.label_arrays(), np.zeros((1, LANES), np.float32), inputs, self, run)


@dataclass
class FullSpace:
    """Points and weights at once: f_y(x) = w_y . x + s(V x, W_y), trained together ([W] section 3, the alternative)."""

    joint: JointSpace
    linear: LinearSpace
    candidates = None
    given = (False, False)

    @property
    def similarity(self) -> str:
        return f"{self.joint.similarity} and weights"

    @property
    def dim(self) -> int:
        return self.joint.dim

    @property
    def n_features(self) -> int:
        return self.joint.n_features

    @property
    def n_labels(self) -> int:
        return self.joint.n_labels

    @property
    def width(self) -> tuple[None, ...]:
        return self.joint.width

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves; a label's bias is the sum of both."""
        linear = self.linear.arrays()
        return {**self.joint.arrays(), **linear, "bias": self.joint.bias, "weights_bias": linear["bias"]}

    def label_arrays(self) -> Any:
        """The labels as kernels take them."""
        from wsabie.kernels.candidates import Summed

        return Summed(self.joint.label_arrays(), self.linear.label_arrays())

    def pattern(self, inputs: Inputs) -> Any:
        """The point of a row, and the row."""
        from wsabie.kernels.patterns import Both

        return Both(self.joint.pattern(inputs), self.linear.pattern(inputs))

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Of both parts."""
        self.joint.settle(max_norm, max_norm_weights)
        self.linear.settle(max_norm, max_norm_weights)

    def traffic(self, rows_per_pair: float) -> Traffic:
        """The sum of both."""
        mine, theirs = self.joint.traffic(rows_per_pair), self.linear.traffic(rows_per_pair)
        return Traffic(mine.pair + theirs.pair, mine.draw + theirs.draw, mine.step + theirs.step)

    def copy(self) -> "FullSpace":
        """The same in memory, and weights on disk."""
        return FullSpace(self.joint.copy(), self.linear.copy())

    def assign(self, other: "FullSpace") -> None:
        """Overwrite with another space of the same shape."""
        self.joint.assign(other.joint)
        self.linear.assign(other.linear)

    def toy(self) -> "FullSpace":
        """One feature and two labels."""
        return FullSpace(self.joint.toy(), self.linear.toy())

    def scores(self, inputs: Inputs, run: Run | None = None) -> Float32:
        """All scores of a block of rows, as `LinearSpace.scores`."""
        points = self.joint.points(inputs, run)
        return _scores(self.pattern(inputs), self.label_arrays(), points, inputs, self, run)


def _scores(pattern: Any, labels: Any, points: Float32, inputs: Inputs, space: Any, run: Run | None) -> Float32:
    from wsabie.kernels.scoring import score_rows_of

    n = inputs.n_rows if isinstance(inputs, Csr) else len(inputs)
    out = np.empty((n, space.n_labels), np.float32)

    def work(lo: int, hi: int) -> None:
        for first in range(0, n, _ROWS_AT_ONCE):
            score_rows_of(pattern, labels, points, out, first, min(first + _ROWS_AT_ONCE, n), lo, hi, space.width)

    if run is None:
        work(0, space.n_labels)
    else:
        run(work, space.n_labels)
    return out
