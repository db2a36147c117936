"""Evaluation of a space on held-out pairs, during training and afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.validation import require
from wsabie.embedding.multi_relation_space import MultiRelationSpace, RelationEnds
from wsabie.embedding.protocols import Inputs
from wsabie.evaluation import metrics
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.evaluation.score_evaluation import Evaluation, evaluate_scores
from wsabie.models.base.feature_matrix import iterate_row_ranges, take_rows
from wsabie.models.base.hyperparameters import compute_checksum
from wsabie.models.entity_space.fitted_entities import FittedEntities
from wsabie.training.kernel_threads import KernelThreads

MOST_SCORES = 50_000_000
"""Most scores for a figure after an epoch (queries at even steps times candidates)."""


class EntityRows(NamedTuple):
    """Some items of a kind.

    Attributes
    ----------
    kind : FittedEntities
    rows : Csr, (n, n_features) float32 or None
        Scaled features of the items; None: all items of the kind.
    """

    kind: FittedEntities
    rows: Inputs | None

    def points(self, space: MultiRelationSpace, threads: KernelThreads, row_ids: Int64 | None = None) -> Float32:
        """Return the points of all rows or of those in `row_ids`, (n, dim) float32 in C order."""
        if self.rows is None or row_ids is None:
            points = self.kind.points_of(space, self.rows, threads)
            return np.ascontiguousarray(points if row_ids is None else points[row_ids])
        return self.kind.points_of(space, take_rows(self.rows, row_ids), threads)


@dataclass(frozen=True)
class HoldoutPairs:
    """Held-out pairs of a relation.

    Attributes
    ----------
    name : str
    queries, candidates : EntityRows
    Y : csr_matrix (n_chosen, n_candidates)
    exclude : csr_matrix (n_chosen, n_candidates) or None
        Pairs of training, and the query itself, which are no candidates.
    query_ids : (n_chosen,) int64
        Numbers of the queries that have a pair.
    """

    name: str
    queries: EntityRows
    candidates: EntityRows
    Y: Matrix
    exclude: Matrix | None
    query_ids: Int64

    @classmethod
    def of(
        cls, name: str, queries: EntityRows, candidates: EntityRows, Y: Matrix, exclude: Matrix | None
    ) -> "HoldoutPairs":
        """Return the pairs of the queries that have one which is not excluded."""
        if exclude is not None:
            Y = Y - Y.multiply(exclude != 0)
            Y.eliminate_zeros()
        query_rows = np.flatnonzero(np.diff(Y.indptr)).astype(np.int64)
        return cls(name, queries, candidates, Y, exclude, np.arange(Y.shape[0])).take(query_rows)

    @property
    def sides(self) -> tuple[EntityRows, EntityRows]:
        return self.queries, self.candidates

    def take(self, rows: Int64) -> "HoldoutPairs":
        """Return the pairs of some of the queries."""
        exclude = None if self.exclude is None else self.exclude[rows]
        return replace(self, Y=self.Y[rows], exclude=exclude, query_ids=self.query_ids[rows])

    def points(self, space: MultiRelationSpace, threads: KernelThreads) -> tuple[Any, Float32]:
        """Return the candidates for the scoring kernels, and the points of the queries."""
        table = self.candidates.points(space, threads)
        scored = space.view(RelationEnds(self.name, self.queries.kind.table, self.candidates.kind.table)).scored
        queries = self.queries.points(space, threads, self.query_ids)
        return scored(table, np.zeros(len(table), np.float32)), queries


class SpaceMonitor:
    """Mean average precision of each relation on held-out pairs, and their mean.

    Parameters
    ----------
    holdouts : sequence of HoldoutPairs
    stop_on : str
        Figure that chooses the epoch: "mean", or the name of a relation.

    Raises
    ------
    InputError
        There is no held-out pair, or no such relation.
    """

    def __init__(self, holdouts: Sequence[HoldoutPairs], threads: int, stop_on: str = "mean") -> None:
        names = [pairs.name for pairs in holdouts]
        require(
            stop_on == "mean" or stop_on in names,
            f"no epoch can be chosen by {stop_on!r}: choose mean, or a relation with such pairs ({', '.join(names)})",
        )
        empty = next((pairs.name for pairs in holdouts if not pairs.Y.nnz), None)
        require(
            empty is None,
            f"no held-out pair of {empty!r} is of known things and not one of training; give others",
        )
        self.holdouts = [_limit_queries(pairs) for pairs in holdouts]
        self.threads, self.stop_on = threads, stop_on

    def identity(self) -> list[Any]:
        """Return values that must equal a checkpoint's to resume from it, JSON-able."""
        numbers = np.zeros(0, np.int32)
        checksums = [
            [
                pairs.name,
                *(compute_checksum(numbers if side.rows is None else side.rows, pairs.Y, None) for side in pairs.sides),
            ]
            for pairs in self.holdouts
        ]
        return [self.stop_on, *checksums]

    def figures(self, space: MultiRelationSpace) -> dict[str, float]:
        """Return figures by name; the one that chooses the epoch comes first."""
        figures = {pairs.name: self._map(pairs, space) for pairs in self.holdouts}
        figures = {"mean": float(np.mean(list(figures.values()))), **figures}
        return {self.stop_on: figures.pop(self.stop_on), **figures}

    def _map(self, pairs: HoldoutPairs, space: MultiRelationSpace) -> float:
        with KernelThreads(self.threads) as threads:
            labels, queries = pairs.points(space, threads)
        ranks = rank_embeddings(labels, queries, pairs.Y, exclude=pairs.exclude, threads=self.threads)
        return float(metrics.average_precision(ranks).mean())


def _limit_queries(pairs: HoldoutPairs) -> HoldoutPairs:
    """Reduce the queries at even steps, so that there are at most MOST_SCORES scores."""
    n = pairs.Y.shape[0]
    most = max(1, MOST_SCORES // max(pairs.Y.shape[1], 1))
    return pairs if n <= most else pairs.take(np.linspace(0, n - 1, most).astype(int))


def evaluate_relation(
    pairs: HoldoutPairs, space: MultiRelationSpace, threads: int, ks: Sequence[int], kinship: Mapping[str, Any]
) -> Evaluation:
    """Return all figures of a relation, of queries with a pair; `kinship` goes to `evaluate_scores`."""
    from wsabie.search.dense_scores import compute_all_scores

    require(len(pairs.query_ids) > 0, f"no pair of {pairs.name!r} names things that the space knows; give others")
    with KernelThreads(threads) as pool:
        labels, queries = pairs.points(space, pool)

    def blocks() -> Iterator[tuple[int, Float32]]:
        for lo, hi in iterate_row_ranges(len(queries), len(labels.table)):
            yield lo, compute_all_scores(labels, queries[lo:hi], threads=threads)

    return evaluate_scores(blocks(), pairs.Y, ks=ks, exclude=pairs.exclude, **kinship)
