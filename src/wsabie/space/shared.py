"""One space for many kinds of things: a table for each kind, and relations that borrow two of them.

A kind of thing has a free vector for each of its things (artists, tags), or a map from features (tracks, documents);
several kinds may share a map. A relation asks for the things of one kind, given a thing of another or of the same one
([S], part II: track - artist, artist - track, artist - artist, track - track, track - genre).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.space import tables
from wsabie.space.joint import JointSpace, SimilarityName
from wsabie.space.protocol import Inputs, Traffic


class Ends(NamedTuple):
    """What a relation joins.

    Attributes
    ----------
    name : str
    query, target : str
        Tables by name.
    candidates : Csr, (n, n_features) float32 or None
        Rows of the things that are ranked, where those have features; None: they are the rows of the table.
    negatives : int
        Candidates with features that are drawn for a block of pairs; 0: only the positives of the same block.
    """

    name: str
    query: str
    target: str
    candidates: Inputs | None = None
    negatives: int = 0


@dataclass
class SharedSpace:
    """The tables of all kinds.

    Attributes
    ----------
    dim : int
    similarity : {"dot", "euclidean", "cosine"}
    tables : dict of str to (n, padded dim) float32
    given : set of str
        Tables whose rows are points that never move.
    """

    dim: int
    similarity: SimilarityName
    tables: dict[str, Float32]
    given: frozenset[str] = frozenset()

    @classmethod
    def random(
        cls,
        sizes: dict[str, int],
        dim: int,
        similarity: SimilarityName,
        rng: np.random.Generator,
        std: Mapping[str, float] | None = None,
    ) -> "SharedSpace":
        """Tables of so many rows each before training: Gaussian, standard deviation by table or 1/sqrt(dim)."""
        std = std or {}
        made = {name: tables.gaussian(n, dim, std.get(name, dim**-0.5), rng) for name, n in sizes.items()}
        return cls(dim, similarity, made)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables, without padding."""
        return 4 * self.dim * sum(map(len, self.tables.values()))

    def view(self, ends: Ends) -> JointSpace:
        """A relation; it shares the memory of the tables."""
        features, labels = self.tables[ends.query], self.tables[ends.target]
        bias = np.zeros(0 if ends.candidates is not None else len(labels), np.float32)
        given = ends.query in self.given, ends.target in self.given
        return JointSpace(self.dim, self.similarity, features, labels, bias, ends.candidates, ends.negatives, given)

    def arrays(self) -> dict[str, Any]:
        """Everything that training moves, by name."""
        return dict(self.tables)

    def settle(self, max_norm: float | None, max_norm_weights: float | None) -> None:
        """Hold the rows of the tables that move to the limit."""
        for name, table in self.tables.items():
            if name not in self.given:
                tables.project_rows(table, max_norm)

    def traffic(self, rows_per_pair: float) -> Traffic:
        """Rows read for a query, a draw and a step; a candidate with features counts as one row, that of its pool."""
        row = 4 * tables.padded_width(self.dim)
        return Traffic(row * rows_per_pair, row, 2 * row * (rows_per_pair + 2))

    def copy(self) -> "SharedSpace":
        """The same in memory of its own."""
        return replace(self, tables={name: tables.padded(table[:, : self.dim]) for name, table in self.tables.items()})

    def assign(self, other: "SharedSpace") -> None:
        """Overwrite with another space of the same shape."""
        for name, table in self.tables.items():
            table[:] = other.tables[name]
