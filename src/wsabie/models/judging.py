"""How well a space finds held-out pairs: figures that steer training, and the evaluation of every relation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.validation import require
from wsabie.evaluation import metrics
from wsabie.evaluation.evaluate import Evaluation, evaluate_scores
from wsabie.evaluation.ranking import ranks_of_points
from wsabie.models.inputs import row_ranges, take_rows
from wsabie.models.known import KnownKind
from wsabie.models.parameters import checksum
from wsabie.space.protocol import Inputs
from wsabie.space.shared import Ends, SharedSpace
from wsabie.training.threads import Threads

MOST_SCORES = 50_000_000
"""Scores that a figure after an epoch is made of, at most: queries at even steps times candidates."""


class Things(NamedTuple):
    """Some things of a kind.

    Attributes
    ----------
    kind : KnownKind
    rows : Csr, (n, n_features) float32 or None
        Their scaled features; None: all that are known.
    """

    kind: KnownKind
    rows: Inputs | None

    def points(self, space: SharedSpace, threads: Threads, chosen: Int64 | None = None) -> Float32:
        """Their points, or those of the chosen ones, (n, dim) float32 in C order."""
        if self.rows is None or chosen is None:
            points = self.kind.points_of(space, self.rows, threads)
            return np.ascontiguousarray(points if chosen is None else points[chosen])
        return self.kind.points_of(space, take_rows(self.rows, chosen), threads)


@dataclass(frozen=True)
class Judged:
    """Held-out pairs of a relation.

    Attributes
    ----------
    name : str
    queries, candidates : Things
    Y : csr_matrix (n_chosen, n_candidates)
    exclude : csr_matrix (n_chosen, n_candidates) or None
        What is no candidate of a query: the pairs of training, and itself.
    chosen : (n_chosen,) int64
        Numbers of the queries that count: those with a pair.
    """

    name: str
    queries: Things
    candidates: Things
    Y: Matrix
    exclude: Matrix | None
    chosen: Int64

    @classmethod
    def of(cls, name: str, queries: Things, candidates: Things, Y: Matrix, exclude: Matrix | None) -> "Judged":
        """The queries that have a pair which is not excluded."""
        if exclude is not None:
            Y = Y - Y.multiply(exclude != 0)
            Y.eliminate_zeros()
        asked = np.flatnonzero(np.diff(Y.indptr)).astype(np.int64)
        return cls(name, queries, candidates, Y, exclude, np.arange(Y.shape[0])).take(asked)

    @property
    def sides(self) -> tuple[Things, Things]:
        return self.queries, self.candidates

    def take(self, rows: Int64) -> "Judged":
        """Some of the queries."""
        exclude = None if self.exclude is None else self.exclude[rows]
        return replace(self, Y=self.Y[rows], exclude=exclude, chosen=self.chosen[rows])

    def points(self, space: SharedSpace, threads: Threads) -> tuple[Any, Float32]:
        """The candidates as kernels score them, and the points of the queries."""
        table = self.candidates.points(space, threads)
        scored = space.view(Ends(self.name, self.queries.kind.table, self.candidates.kind.table)).scored
        queries = self.queries.points(space, threads, self.chosen)
        return scored(table, np.zeros(len(table), np.float32)), queries


class SpaceMonitor:
    """Mean average precision of each relation on held-out pairs, and their mean.

    Parameters
    ----------
    judged : sequence of Judged
    stop_on : str
        The figure that decides: "mean", or the name of a relation.

    Raises
    ------
    InputError
        No held-out pair, or no such relation.
    """

    def __init__(self, judged: Sequence[Judged], threads: int, stop_on: str = "mean") -> None:
        names = [one.name for one in judged]
        require(
            stop_on == "mean" or stop_on in names,
            f"no epoch can be chosen by {stop_on!r}: choose mean, or a relation with such pairs ({', '.join(names)})",
        )
        empty = next((one.name for one in judged if not one.Y.nnz), None)
        require(
            empty is None,
            f"no held-out pair of {empty!r} is of known things and not one of training; give others",
        )
        self.judged = [_fewer(one) for one in judged]
        self.threads, self.stop_on = threads, stop_on

    def identity(self) -> list[Any]:
        """What a run that goes on must be judged by too, JSON-able."""
        numbers = np.zeros(0, np.int32)
        judged = [
            [one.name, *(checksum(numbers if side.rows is None else side.rows, one.Y, None) for side in one.sides)]
            for one in self.judged
        ]
        return [self.stop_on, *judged]

    def figures(self, space: SharedSpace) -> dict[str, float]:
        """By name, the deciding one first."""
        found = {one.name: self._map(one, space) for one in self.judged}
        found = {"mean": float(np.mean(list(found.values()))), **found}
        return {self.stop_on: found.pop(self.stop_on), **found}

    def _map(self, one: Judged, space: SharedSpace) -> float:
        with Threads(self.threads) as threads:
            labels, queries = one.points(space, threads)
        ranks = ranks_of_points(labels, queries, one.Y, exclude=one.exclude, threads=self.threads)
        return float(metrics.average_precision(ranks).mean())


def _fewer(one: Judged) -> Judged:
    """As many queries as make MOST_SCORES, at even steps."""
    n = one.Y.shape[0]
    most = max(1, MOST_SCORES // max(one.Y.shape[1], 1))
    return one if n <= most else one.take(np.linspace(0, n - 1, most).astype(int))


def evaluate_judged(
    one: Judged, space: SharedSpace, threads: int, ks: Sequence[int], kinship: Mapping[str, Any]
) -> Evaluation:
    """All figures of a relation; queries without a pair do not count; `kinship` goes to `evaluate_scores`."""
    from wsabie.search.dense import all_scores

    require(len(one.chosen) > 0, f"no pair of {one.name!r} names things that the space knows; give others")
    with Threads(threads) as pool:
        labels, queries = one.points(space, pool)

    def blocks() -> Iterator[tuple[int, Float32]]:
        for lo, hi in row_ranges(len(queries), len(labels.table)):
            yield lo, all_scores(labels, queries[lo:hi], threads=threads)

    return evaluate_scores(blocks(), one.Y, ks=ks, exclude=one.exclude, **kinship)
