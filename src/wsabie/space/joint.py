"""One space of `dim` dimensions in which things and labels are points.

Four patterns were drawn before this file was written; all of them are tables plus a way to fold everything but one
slot into a query (`wsabie.kernels.patterns`), see ARCHITECTURE.md. The pair (thing - label) is built here; relations
between many kinds of things are such pairs over shared tables (`wsabie.space.shared`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wsabie.base.arrays import LANES, Csr, Float32, under_one_type
from wsabie.space import tables
from wsabie.space.protocol import Inputs, Sides, Traffic

SimilarityName = Literal["dot", "euclidean", "cosine"]
SIMILARITIES: tuple[SimilarityName, ...] = ("dot", "euclidean", "cosine")


@dataclass
class JointSpace:
    """Things through a linear map, and labels.

    Attributes
    ----------
    dim : int
        Coordinates of a point.
    similarity : {"dot", "euclidean", "cosine"}
    features : (n_features, padded dim) float32
        V: row j is what feature j adds to a point.
    labels : (n_labels, padded dim) float32
        W: row y is the point of label y. Of a loaded model without padding, and perhaps float16.
    bias : (n_labels,) float32
        Added to every score of a label; zeros unless the model has biases.
    candidates : Csr, (n, n_features) float32 or None
        Rows of what is ranked where that has features; `labels` is then the map of these features, and `bias` empty.
    negatives : int
        Such candidates that are drawn for a block of pairs; 0: the positives of the block are each other's negatives.
    given : (bool, bool)
        Whether the rows of `features` and of `labels` are given points that never move; `features` then has free
        vectors.
    """

    dim: int
    similarity: SimilarityName
    features: Float32
    labels: Float32
    bias: Float32
    candidates: Inputs | None = None
    negatives: int = 0
    given: tuple[bool, bool] = (False, False)

    @classmethod
    def random(
        cls,
        n_features: int,
        n_labels: int,
        dim: int,
        similarity: SimilarityName,
        rng: np.random.Generator,
        std: Mapping[str, float] | None = None,
    ) -> "JointSpace":
        """A space before training: both tables Gaussian, with the standard deviations "V" and "W" or 1/sqrt(dim)."""
        std = std or dict.fromkeys(("V", "W"), dim**-0.5)
        tables.require_memory(n_features + n_labels, dim)
        V = tables.gaussian(n_features, dim, std["V"], rng)
        W = tables.gaussian(n_labels, dim, std["W"], rng)
        return cls(dim, similarity, V, W, np.zeros(n_labels, np.float32))

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_labels(self) -> int:
        return len(self.labels) if self.candidates is None else n_things(self.candidates)

    @property
    def nbytes(self) -> int:
        """Bytes of the points, without padding."""
        return self.dim * (4 * self.n_features + self.labels.itemsize * self.n_labels) + 4 * self.n_labels

    @property
    def width(self) -> tuple[None, ...]:
        """The padded width in the form that kernels take (a compile-time constant).

        Taken from `dim`: the label table of a loaded model is mapped from disk without its padding.
        """
        return (None,) * (tables.padded_width(self.dim) // LANES)

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves."""
        return {"features": self.features, "labels": self.labels, "bias": self.bias}

    def label_arrays(self) -> Any:
        """The labels as kernels take them; the type carries the similarity."""
        return self.scored(under_one_type(self.labels.astype(np.float32, copy=False)), under_one_type(self.bias))

    def scored(self, table: Float32, bias: Float32) -> Any:
        """Any points as kernels score them by this space's similarity."""
        from wsabie.kernels import similarity

        kinds: dict[str, Callable[..., Any]] = {
            "dot": similarity.Dot,
            "euclidean": similarity.Euclidean,
            "cosine": similarity.Cosine,
        }
        return kinds[self.similarity](table, bias)

    def points(self, inputs: Inputs, run: Callable[[Callable[[int, int], None], int], None] | None = None) -> Float32:
        """Points of rows of features, (n, padded dim), summed in a fixed order.

        `run(work, n)` may spread `work(lo, hi)` over threads; each row is computed by one of them.
        """
        from wsabie.kernels.towers import encode_rows

        n = n_things(inputs)
        out = tables.zeros(n, self.dim)
        tower, width = self.tower(inputs), self.width
        if run is None:
            encode_rows(tower, 0, n, out, width)
        else:
            run(lambda lo, hi: encode_rows(tower, lo, hi, out, width), n)
        return out

    def tower(self, inputs: Inputs) -> Any:
        """The tower over things that ask, as kernels take it."""
        tower = _tower(self.features, inputs)
        return _frozen(tower) if self.given[0] else tower

    def candidate_tower(self) -> Any:
        """The tower over the candidates, where they have features."""
        return _tower(self.labels, self.candidates)

    def pattern(self, inputs: Inputs) -> Any:
        """What is scored against the labels for these rows, as the loops of training take it: a thing through V."""
        from wsabie.kernels.patterns import Pair

        return Pair(self.tower(inputs))

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Hold the rows of both tables that move to the limit."""
        if not self.given[0]:
            tables.project_rows(self.features, max_norm)
        if self.labels is not self.features and not self.given[1]:  # a second time would change last digits
            tables.project_rows(self.labels, max_norm)

    def traffic(self, rows_per_pair: float) -> Traffic:
        """Rows of both tables; a step reads and writes those of two labels and of every feature."""
        row = 4 * tables.padded_width(self.dim)
        return Traffic(row * rows_per_pair, row, 2 * row * (rows_per_pair + 2))

    def copy(self) -> "JointSpace":
        """The same points in memory of their own."""
        return replace(
            self,
            features=tables.padded(self.features[:, : self.dim]),
            labels=tables.padded(self.labels[:, : self.dim]),
            bias=self.bias.copy(),
        )

    def assign(self, other: "JointSpace") -> None:
        """Overwrite the points with those of another space of the same shape."""
        self.features[:], self.labels[:], self.bias[:] = other.features, other.labels, other.bias

    def toy(self) -> "JointSpace":
        """One feature and two labels."""
        toy = replace(JointSpace.random(1, 2, self.dim, self.similarity, np.random.default_rng(0)), given=self.given)
        if self.candidates is None:
            return toy
        two = toy_things(self.candidates, 2)
        return replace(toy, labels=toy.labels[:1], bias=toy.bias[:0], candidates=two, negatives=self.negatives)

    def with_more_labels(self, n: int, rng: np.random.Generator) -> "JointSpace":
        """The same space with `n` fresh labels behind the old ones, whose numbers stay."""
        fresh = tables.gaussian(n, self.dim, self.dim**-0.5, rng)
        labels = tables.grown(self.labels, self.dim, fresh)
        return replace(self, labels=labels, bias=np.append(self.bias, np.zeros(n, np.float32)))


def _tower(table: Float32, inputs: Inputs | None) -> Any:
    from wsabie.kernels import towers

    if isinstance(inputs, Csr):
        indptr, indices, data = map(under_one_type, inputs)
        return towers.Linear(table, indptr, indices, data, towers.tile_of(table, indptr))
    if inputs is None:
        raise TypeError("no things")
    return (towers.Lookup if inputs.ndim == 1 else towers.Dense)(table, under_one_type(inputs))


def _frozen(tower: Any) -> Any:
    """The same free vectors, never moved."""
    from wsabie.kernels.towers import Frozen

    return Frozen(*tower)


def n_things(inputs: Inputs) -> int:
    """Things that inputs stand for."""
    return inputs.n_rows if isinstance(inputs, Csr) else len(inputs)


def toy_things(inputs: Any, n: int) -> Any:
    """Things of the same type with one feature, or the free vector 0: for compilation."""
    if isinstance(inputs, Sides):
        none = np.zeros(n, np.int32)
        return Sides(toy_things(inputs.things, n), none, none, none)
    if isinstance(inputs, Csr):
        return Csr(np.arange(n + 1), np.zeros(n, np.int32), np.ones(n, np.float32))
    return np.zeros(n, np.int32) if inputs.ndim == 1 else np.ones((n, 1), np.float32)
