"""A space of `dim` dimensions in which items and labels are points.

Every relation pattern is a set of tables plus a way to encode all slots but one into a query
(`wsabie.kernels.embedding.relation_patterns`); see ARCHITECTURE.md. This module has the pair (item - label). Relations
between many kinds of items are such pairs over shared tables (`wsabie.embedding.relation_spaces`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wsabie.core.arrays import LANES, Array, Csr, Float32, count_rows, view_as_writable
from wsabie.embedding import tables
from wsabie.embedding.protocols import EntityInputs, KernelArrays, RangeRunner, TrainableTables, run_in_caller
from wsabie.kernels.embedding import towers
from wsabie.kernels.embedding.relation_patterns import TowerPattern
from wsabie.kernels.embedding.similarity import Cosine, Dot, Euclidean

SimilarityName = Literal["dot", "euclidean", "cosine"]
SIMILARITIES: tuple[SimilarityName, ...] = ("dot", "euclidean", "cosine")


@dataclass
class JointSpace(TrainableTables):
    """Space of items, encoded by a linear map, and labels.

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
    frozen : (bool, bool)
        True if the rows of `features`, or of `labels`, are given points that never move; `features` then has free
        vectors.
    """

    dim: int
    similarity: SimilarityName
    features: Float32
    labels: Float32
    bias: Float32
    candidates: EntityInputs | None = None
    negatives: int = 0
    frozen: tuple[bool, bool] = (False, False)

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
        """Return an untrained space: Gaussian tables with standard deviations "V" and "W", or 1/sqrt(dim)."""
        std = std or dict.fromkeys(("V", "W"), dim**-0.5)
        tables.require_memory(n_features + n_labels, dim)
        V = tables.draw_gaussian(n_features, dim, std["V"], rng)
        W = tables.draw_gaussian(n_labels, dim, std["W"], rng)
        return cls(dim, similarity, V, W, np.zeros(n_labels, np.float32))

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_labels(self) -> int:
        return len(self.labels) if self.candidates is None else count_rows(self.candidates)

    @property
    def nbytes(self) -> int:
        """Bytes of the points, without padding."""
        return self.dim * (4 * self.n_features + self.labels.itemsize * self.n_labels) + 4 * self.n_labels

    @property
    def width(self) -> tuple[None, ...]:
        """Padded width in the form that kernels take (a compile-time constant).

        Taken from `dim`: the label table of a loaded model is mapped from disk without its padding.
        """
        return (None,) * (tables.compute_padded_width(self.dim) // LANES)

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates, by name."""
        return {"features": self.features, "labels": self.labels, "bias": self.bias}

    def label_arrays(self) -> KernelArrays:
        """Return the labels as kernels take them; the type carries the similarity."""
        labels = view_as_writable(self.labels.astype(np.float32, copy=False))
        return self.build_scoring_arrays(labels, view_as_writable(self.bias))

    def build_scoring_arrays(self, table: Float32, bias: Float32) -> KernelArrays:
        """Return points and biases in the form that kernels score by the similarity of this space."""
        kinds = {"dot": Dot, "euclidean": Euclidean, "cosine": Cosine}
        return kinds[self.similarity](table, bias)

    def compute_points(self, inputs: EntityInputs, run: RangeRunner = run_in_caller) -> Float32:
        """Encode rows of features to points, (n, padded dim), summed in a fixed order.

        `run(work, n)` may spread `work(lo, hi)` over threads; each row is computed by one of them.
        """
        n = count_rows(inputs)
        out = tables.allocate_zeros(n, self.dim)
        tower, width = self.tower(inputs), self.width
        run(lambda lo, hi: towers.encode_rows(tower, lo, hi, out, width), n)
        return out

    def tower(self, inputs: EntityInputs) -> KernelArrays:
        """Return the tower over query items, as kernels take it."""
        tower = _build_tower(self.features, inputs)
        return towers.FrozenTower(*tower) if self.frozen[0] else tower

    def candidate_tower(self) -> KernelArrays:
        """Return the tower over the candidates, which must have features."""
        return _build_tower(self.labels, self.candidates)

    def pattern(self, inputs: EntityInputs) -> KernelArrays:
        """Return the relation pattern of these rows for the training loops: an item through V."""
        return TowerPattern(self.tower(inputs))

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Clip the rows of both tables, but for frozen ones, to the norm limit."""
        if not self.frozen[0]:
            tables.clip_row_norms(self.features, max_norm)
        if self.labels is not self.features and not self.frozen[1]:  # a second time would change last digits
            tables.clip_row_norms(self.labels, max_norm)

    def copy(self) -> "JointSpace":
        """Return a copy with memory of its own."""
        features, labels = (tables.pad_rows(table[:, : self.dim]) for table in (self.features, self.labels))
        return replace(self, features=features, labels=labels, bias=self.bias.copy())

    def with_more_labels(self, n: int, rng: np.random.Generator) -> "JointSpace":
        """Return the space with `n` new labels behind the old ones, which keep their numbers."""
        fresh = tables.draw_gaussian(n, self.dim, self.dim**-0.5, rng)
        labels = tables.append_rows(self.labels, self.dim, fresh)
        return replace(self, labels=labels, bias=np.append(self.bias, np.zeros(n, np.float32)))


def _build_tower(table: Float32, inputs: Any) -> KernelArrays:
    if isinstance(inputs, Csr):
        indptr, indices, data = map(view_as_writable, inputs)
        return towers.LinearTower(table, indptr, indices, data, towers.choose_tile_size(table, indptr))
    return (towers.LookupTower if inputs.ndim == 1 else towers.DenseTower)(table, view_as_writable(inputs))
