"""More things and pairs for a fitted space: maps from features stay as they are, so that all points keep their meaning.

New things with features are where the map puts them. New things without are put among those that they are paired with,
and then the free vectors of all given pairs are trained on, against the points of everything known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.validation import require
from wsabie.labels.names import Vocabulary
from wsabie.models.known import KnownKind
from wsabie.models.relations import Kind, Relation, kinds_of, pair_matrix
from wsabie.models.told import itself, pair_weights
from wsabie.space import tables
from wsabie.space.shared import Ends, SharedSpace
from wsabie.training.targets import RowBlock, build_targets


@dataclass(frozen=True)
class Grown:
    """A space with more things in it.

    Attributes
    ----------
    kinds : dict of str to KnownKind
    space : SharedSpace
        The old tables, those of free vectors with more rows.
    points : SharedSpace
        Of the kinds that the relations name: free vectors, and as given ones the points of the things with features.
    blocks : list of RowBlock
        The pairs of the relations that have a free vector to move.
    """

    kinds: dict[str, KnownKind]
    space: SharedSpace
    points: SharedSpace
    blocks: list[RowBlock]

    def settled(self) -> SharedSpace:
        """The space with the free vectors that training has moved."""
        moved = {name: table for name, table in self.points.tables.items() if name not in self.points.given}
        return replace(self.space, tables=self.space.tables | moved)


def grown(kinds: dict[str, KnownKind], space: SharedSpace, relations: Sequence[Relation], seed: int) -> Grown:
    """A copy of a space with the things and the pairs of some relations.

    Raises
    ------
    InputError
        A kind with features that the space does not know, one without that is called as a map is, or pairs that cannot
        be used.
    """
    told = kinds_of(relations)
    kinds = {name: replace(kind, things=kind.things.copy()) if name in told else kind for name, kind in kinds.items()}
    for name, kind in told.items():
        if kind.X is not None:
            require(name in kinds, f"the space knows no kind {name!r}; fit it anew to learn a map of its features")
            kinds[name] = with_things(kinds[name], kind, space)
        elif name not in kinds:
            require(
                name not in space.tables, f"{name!r} is a map of features in this space; call the new kind otherwise"
            )
            kinds[name] = KnownKind(name, Vocabulary(), name)
    pairs = {relation: _pairs(relation, told, kinds) for relation in relations}
    points = _points({name: kinds[name] for name in told}, space, pairs, seed)
    blocks, first = [], 0
    for relation, Y in pairs.items():
        query, target = kinds[relation.query_kind], kinds[relation.target_kind]
        if not {query.name, target.name} <= points.given:
            targets = build_targets(Y, pair_weights(Y), "mean", first, itself(Y) if query is target else None)
            ends = Ends(relation.name, query.name, target.name)
            ids = np.arange(Y.shape[0], dtype=np.int32)
            blocks.append(RowBlock(ids, targets, ends, relation.weight, 1))
            first += Y.nnz
    return Grown(kinds, space, points, blocks)


def with_things(known: KnownKind, kind: Kind, space: SharedSpace) -> KnownKind:
    """The kind with more things, at the points of their features, which known ones move to."""
    if known.points is None:
        raise InputError(f"things of the kind {kind.name!r} have no features; give their names alone")
    names = list(kind.names())
    known.things.add([name for name in names if name not in known.things])
    points = np.zeros((len(known.things), space.dim), np.float32)
    points[: len(known.points)] = known.points
    points[known.things.ids(names)] = known.points_of(space, known.inputs(kind.X, f"the features of {kind.name!r}"))
    return replace(known, points=points)


def _pairs(relation: Relation, told: dict[str, Kind], kinds: dict[str, KnownKind]) -> Matrix:
    """The pairs by the numbers that things have in the space."""
    from scipy.sparse import csr_matrix

    sides = [told[relation.query_kind], told[relation.target_kind]]
    known = [kinds[side.name] for side in sides]
    own = [kind.things if side.X is None else side.names() for side, kind in zip(sides, known, strict=True)]
    if sides[0] is sides[1]:
        own[1] = own[0]  # being together has no direction then
    Y = pair_matrix(relation, own[0], own[1], (not known[0].n_features, not known[1].n_features)).tocoo()
    rows, columns = (_renumbered(n, side, kind) for n, side, kind in zip((Y.row, Y.col), sides, known, strict=True))
    return csr_matrix((Y.data, (rows, columns)), (len(known[0].things), len(known[1].things)))


def _renumbered(numbers: Any, side: Kind, kind: KnownKind) -> Int64:
    if side.X is None:
        return np.asarray(numbers, np.int64)
    ids: Int64 = kind.things.ids(side.names())[numbers]
    return ids


def _points(kinds: dict[str, KnownKind], space: SharedSpace, pairs: dict[Relation, Matrix], seed: int) -> SharedSpace:
    """The things of some kinds as points; a new free vector points to what it is paired with, at a usual length."""
    made: dict[str, Float32] = {}
    for name, kind in kinds.items():
        old = kind.points if kind.points is not None else space.tables.get(kind.table, tables.zeros(0, space.dim))
        made[name] = tables.zeros(len(kind.things), space.dim)
        made[name][: len(old), : space.dim] = old[:, : space.dim]
    for relation, Y in pairs.items():  # later relations may have brought more things
        Y.resize(len(made[relation.query_kind]), len(made[relation.target_kind]))
    free = [name for name, kind in kinds.items() if not kind.n_features]
    n_old = {name: len(space.tables.get(name, ())) for name in free}
    sums = {name: _sums(name, n_old[name], pairs, made) for name in free}
    rng = np.random.default_rng([seed, 2])
    for name in free:
        known, fresh = made[name][: n_old[name]], made[name][n_old[name] :]
        lengths = np.sqrt(np.einsum("ij,ij->i", sums[name], sums[name]))[:, None]
        norm = float(np.sqrt(np.einsum("ij,ij->i", known, known)).mean()) if len(known) else 1.0
        anywhere = tables.gaussian(len(fresh), space.dim, space.dim**-0.5, rng)
        fresh[:] = np.where(lengths > 0, sums[name] * (norm / np.maximum(lengths, 1e-12)), anywhere)
    return SharedSpace(space.dim, space.similarity, made, frozenset(kinds) - frozenset(free))


def _sums(name: str, n_old: int, pairs: dict[Relation, Matrix], points: dict[str, Float32]) -> Float32:
    """For each new thing of a kind, the sum of the points that it is paired with."""
    total = np.zeros_like(points[name][n_old:])
    for relation, Y in pairs.items():
        if relation.query_kind == name:
            total += Y[n_old:].astype(np.float32) @ points[relation.target_kind]
        if relation.target_kind == name:
            total += Y[:, n_old:].T.astype(np.float32) @ points[relation.query_kind]
    return total
