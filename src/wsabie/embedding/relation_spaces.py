"""One space for many kinds of items: a table for each kind, and relations between two tables.

A kind has a free vector for each of its items (artists, tags), or a map from features (tracks, documents). Several
kinds may share a map. A relation ranks the items of one kind for an item of another kind, or of the same kind: track -
artist, artist - track, artist - artist, track - track, track - genre (Bengio et al. 2012, part II).

The space of objects and their parts has three relations (Mesnil et al. 2014, section 3):

    f_I(I, L) = (V I) . W_L     or, with a table of its own, (V I) . U_L      fit of a label to an item
    f_L(L, M) = W_L . W_M                                                     fit of a label to another label
    f_II(I, J) = (V I) . (V J)                                                fit of an item to another item
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wsabie.core.arrays import LANES, Array, Float32, view_as_writable
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace, SimilarityName
from wsabie.embedding.protocols import ComposedInputs, KernelArrays, MemoryTraffic, RelationEnds, TrainableTables
from wsabie.kernels.embedding.candidates import TwoPointLabels
from wsabie.kernels.embedding.relation_patterns import CompositionPattern


@dataclass
class MultiRelationSpace(TrainableTables):
    """Space with a table for each kind of items.

    Attributes
    ----------
    dim : int
    similarity : {"dot", "euclidean", "cosine"}
    tables : dict of str to (n, padded dim) float32
    frozen : set of str
        Tables whose rows are points that never move.
    """

    dim: int
    similarity: SimilarityName
    tables: dict[str, Float32]
    frozen: frozenset[str] = frozenset()

    @classmethod
    def random(
        cls,
        sizes: dict[str, int],
        dim: int,
        similarity: SimilarityName,
        rng: np.random.Generator,
        std: Mapping[str, float] | None = None,
    ) -> "MultiRelationSpace":
        """Return untrained tables of these sizes: Gaussian, standard deviation by table or 1/sqrt(dim)."""
        std = std or {}
        rows = {name: tables.draw_gaussian(n, dim, std.get(name, dim**-0.5), rng) for name, n in sizes.items()}
        return cls(dim, similarity, rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables, without padding."""
        return 4 * self.dim * sum(map(len, self.tables.values()))

    def view(self, ends: RelationEnds | None) -> JointSpace:
        """Return the space of one relation, which shares the memory of the tables."""
        if ends is None:
            raise TypeError("tables of several kinds have no space without a relation")
        features, labels = self.tables[ends.query], self.tables[ends.target]
        bias = np.zeros(0 if ends.candidates is not None else len(labels), np.float32)
        frozen = ends.query in self.frozen, ends.target in self.frozen
        return JointSpace(self.dim, self.similarity, features, labels, bias, ends.candidates, ends.negatives, frozen)

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates, by name."""
        return dict(self.tables)

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Clip the rows of all tables, but for frozen ones, to the norm limit."""
        for name, table in self.tables.items():
            if name not in self.frozen:
                tables.clip_row_norms(table, max_norm)

    def copy(self) -> "MultiRelationSpace":
        """Return a copy with memory of its own."""
        copies = {name: tables.pad_rows(table[:, : self.dim]) for name, table in self.tables.items()}
        return replace(self, tables=copies)


@dataclass
class ItemSpace(JointSpace):
    """Space that ranks items for a label, or an item and a label: (V J) . (U_L + s V I), s V I = V (s I).

    `features` and `labels` are both V, `candidates` are the items, and a label has the point that it has for items.

    Attributes
    ----------
    label_points : (n_labels, padded dim) float32
        U.
    """

    label_points: Float32 = field(default_factory=lambda: np.zeros((1, LANES), np.float32))

    def pattern(self, inputs: Any) -> KernelArrays:
        """Return the relation pattern of items, already multiplied by s, with paired labels."""
        return _build_pattern(self, inputs, self.label_points, 1, 0)

    def copy(self) -> "ItemSpace":
        """Return a copy with memory of its own."""
        return ItemSpace(**{**vars(super().copy()), "label_points": self.label_points.copy()})


def _build_pattern(
    items: JointSpace, inputs: ComposedInputs, table: Float32, weight: float, label_start: int
) -> KernelArrays:
    """Return the pattern of items with paired labels, whose points are rows of a table times a weight."""
    item_ids, visits, label_ids, points = map(view_as_writable, (*inputs[1:], table))
    tower, r = items.tower(inputs.items), np.float32(weight)
    return CompositionPattern(tower, item_ids, visits, label_ids, points, r, items.width, label_start)


@dataclass
class PartsSpace(TrainableTables):
    """Space of items and labels, with a second table for labels among each other.

    Attributes
    ----------
    items : JointSpace
        V, and the labels as items see them: W, or U where that is a table of its own. Inner products.
    words : (n_labels, padded dim) float32
        W; the label table of `items` itself where it is shared.
    weight : float
        r, the weight of f_L against f_I.
    """

    items: JointSpace
    words: Float32
    weight: float

    def __post_init__(self) -> None:
        items, self.shared = self.items, self.words is self.items.labels
        self.dim, self.n_features, self.n_labels = items.dim, items.n_features, items.n_labels
        self.similarity = "dot" if self.shared else "dot of both halves"
        self.width = items.width * (1 if self.shared else 2)  # of a query: one point, or two side by side

    def list_arrays(self) -> dict[str, Array]:
        """Return the arrays that training updates, by name."""
        return self.items.list_arrays() | ({} if self.shared else {"words": self.words})

    def label_arrays(self) -> KernelArrays:
        """Return the labels as kernels take them."""
        points = self.items.label_arrays()
        return points if self.shared else TwoPointLabels(points, view_as_writable(self.words), self.items.width)

    def view(self, ends: RelationEnds | None) -> "PartsSpace | ItemSpace":
        """Return the space that ranks the candidates of a relation: labels or items. It shares the memory."""
        if ends is None or ends.candidates is None:
            return self
        V, none = self.items.features, np.zeros(0, np.float32)
        return ItemSpace(self.dim, "dot", V, V, none, ends.candidates, ends.negatives, label_points=self.items.labels)

    def pattern(self, inputs: ComposedInputs) -> KernelArrays:
        """Return the relation pattern of items with paired labels, as the loops take it."""
        label_start = 0 if self.shared else LANES * len(self.items.width)
        return _build_pattern(self.items, inputs, self.words, self.weight, label_start)

    def finish_epoch(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Clip the rows of all tables to the norm limit."""
        self.items.finish_epoch(max_norm, max_norm_weights)
        if not self.shared:  # a second time would change last digits
            tables.clip_row_norms(self.words, max_norm)

    def traffic(self, rows_per_pair: float) -> MemoryTraffic:
        """Estimate the memory traffic; a step moves one more label, a draw reads two rows of unshared tables."""
        row = 4 * LANES * len(self.items.width)
        tables_of_labels = 1 if self.shared else 2
        step = 2 * row * (rows_per_pair + 2 * tables_of_labels + 1)
        return MemoryTraffic(row * (rows_per_pair + 1), row * tables_of_labels, step)

    def copy(self) -> "PartsSpace":
        """Return a copy with memory of its own."""
        items = self.items.copy()
        return replace(self, items=items, words=items.labels if self.shared else self.words.copy())
