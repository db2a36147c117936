"""One space for many kinds of items: a table for each kind, and relations between two tables.

A kind has a free vector for each of its items (artists, tags), or a map from features (tracks, documents). Several
kinds may share a map. A relation ranks the items of one kind for an item of another kind, or of the same kind: track -
artist, artist - track, artist - artist, track - track, track - genre (Bengio et al. 2012, part II).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace, SimilarityName
from wsabie.embedding.protocols import EntityInputs, TrainableTables


class RelationEnds(NamedTuple):
    """Tables and candidates that a relation joins.

    Attributes
    ----------
    name : str
    query, target : str
        Tables by name.
    candidates : Csr, (n, n_features) float32 or None
        Rows of the ranked items, where those have features; None: they are the rows of the table.
    negatives : int
        Candidates with features that are drawn for a block of pairs; 0: only the positives of the same block.
    """

    name: str
    query: str
    target: str
    candidates: EntityInputs | None = None
    negatives: int = 0


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

    def view(self, ends: RelationEnds) -> JointSpace:
        """Return the space of one relation, which shares the memory of the tables."""
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
        return replace(
            self, tables={name: tables.pad_rows(table[:, : self.dim]) for name, table in self.tables.items()}
        )
