"""More items and pairs for a fitted space.

Maps from features stay fixed, so that all points keep their meaning. The map gives new items with features their
points. New items without features begin among those that they are paired with. Then the free vectors of all given pairs
are trained further, against the points of all items of the space.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.validation import require
from wsabie.embedding import tables
from wsabie.embedding.multi_relation_space import MultiRelationSpace, RelationEnds
from wsabie.models.entity_space.fitted_entities import FittedEntities
from wsabie.models.entity_space.relation_data import build_self_exclusion, compute_pair_weights
from wsabie.models.entity_space.relations import EntityKind, Relation, build_pair_matrix, collect_kinds
from wsabie.training.targets import RowBlock, build_targets
from wsabie.vocabulary.label_names import Vocabulary


@dataclass(frozen=True)
class SpaceGrowth:
    """A space with more items.

    Attributes
    ----------
    kinds : dict of str to FittedEntities
    space : MultiRelationSpace
        The old tables; those of free vectors have more rows.
    points : MultiRelationSpace
        Points of the kinds that the relations name: free vectors, and fixed points of items with features.
    blocks : list of RowBlock
        Pairs of the relations in which a free vector can move.
    """

    kinds: dict[str, FittedEntities]
    space: MultiRelationSpace
    points: MultiRelationSpace
    blocks: list[RowBlock]

    def trained_space(self) -> MultiRelationSpace:
        """Return the space with the free vectors that training has moved."""
        moved = {name: table for name, table in self.points.tables.items() if name not in self.points.given}
        return replace(self.space, tables=self.space.tables | moved)


def grow_space(
    kinds: dict[str, FittedEntities], space: MultiRelationSpace, relations: Sequence[Relation], seed: int
) -> SpaceGrowth:
    """Return a copy of a space with the items and the pairs of some relations.

    Raises
    ------
    InputError
        A new kind has features, a kind without features has the name of a map, or pairs cannot be used.
    """
    relation_kinds = collect_kinds(relations)
    kinds = {
        name: replace(kind, things=kind.things.copy()) if name in relation_kinds else kind
        for name, kind in kinds.items()
    }
    for name, kind in relation_kinds.items():
        if kind.X is not None:
            require(name in kinds, f"the space knows no kind {name!r}; fit it anew to learn a map of its features")
            kinds[name] = add_entities(kinds[name], kind, space)
        elif name not in kinds:
            require(
                name not in space.tables, f"{name!r} is a map of features in this space; call the new kind otherwise"
            )
            kinds[name] = FittedEntities(name, Vocabulary(), name)
    pairs = {relation: _renumber_pairs(relation, relation_kinds, kinds) for relation in relations}
    points = _collect_points({name: kinds[name] for name in relation_kinds}, space, pairs, seed)
    blocks, first = [], 0
    for relation, Y in pairs.items():
        query, target = kinds[relation.query_kind], kinds[relation.target_kind]
        if not {query.name, target.name} <= points.given:
            targets = build_targets(
                Y, compute_pair_weights(Y), "mean", first, build_self_exclusion(Y) if query is target else None
            )
            ends = RelationEnds(relation.name, query.name, target.name)
            ids = np.arange(Y.shape[0], dtype=np.int32)
            blocks.append(RowBlock(ids, targets, ends, relation.weight, 1))
            first += Y.nnz
    return SpaceGrowth(kinds, space, points, blocks)


def add_entities(entities: FittedEntities, kind: EntityKind, space: MultiRelationSpace) -> FittedEntities:
    """Add items to a kind at the points of their features; items that it has already move there."""
    if entities.points is None:
        raise InputError(f"things of the kind {kind.name!r} have no features; give their names alone")
    names = list(kind.names())
    entities.things.add([name for name in names if name not in entities.things])
    points = np.zeros((len(entities.things), space.dim), np.float32)
    points[: len(entities.points)] = entities.points
    points[entities.things.ids(names)] = entities.points_of(
        space, entities.inputs(kind.X, f"the features of {kind.name!r}")
    )
    return replace(entities, points=points)


def _renumber_pairs(
    relation: Relation, relation_kinds: dict[str, EntityKind], kinds: dict[str, FittedEntities]
) -> Matrix:
    """Return the pairs with the numbers that items have in the space."""
    from scipy.sparse import csr_matrix

    sides = [relation_kinds[relation.query_kind], relation_kinds[relation.target_kind]]
    fitted_kinds = [kinds[side.name] for side in sides]
    vocabularies = [
        kind.things if side.X is None else side.names() for side, kind in zip(sides, fitted_kinds, strict=True)
    ]
    if sides[0] is sides[1]:
        vocabularies[1] = vocabularies[0]  # such pairs have no direction
    Y = build_pair_matrix(
        relation, vocabularies[0], vocabularies[1], (not fitted_kinds[0].n_features, not fitted_kinds[1].n_features)
    ).tocoo()
    rows, columns = (
        _renumber(n, side, kind) for n, side, kind in zip((Y.row, Y.col), sides, fitted_kinds, strict=True)
    )
    return csr_matrix((Y.data, (rows, columns)), (len(fitted_kinds[0].things), len(fitted_kinds[1].things)))


def _renumber(numbers: Any, side: EntityKind, kind: FittedEntities) -> Int64:
    if side.X is None:
        return np.asarray(numbers, np.int64)
    ids: Int64 = kind.things.ids(side.names())[numbers]
    return ids


def _collect_points(
    kinds: dict[str, FittedEntities], space: MultiRelationSpace, pairs: dict[Relation, Matrix], seed: int
) -> MultiRelationSpace:
    """Return the points of some kinds; new free vectors point to their partners at the mean length."""
    points: dict[str, Float32] = {}
    for name, kind in kinds.items():
        old = (
            kind.points
            if kind.points is not None
            else space.tables.get(kind.table, tables.allocate_zeros(0, space.dim))
        )
        points[name] = tables.allocate_zeros(len(kind.things), space.dim)
        points[name][: len(old), : space.dim] = old[:, : space.dim]
    for relation, Y in pairs.items():  # later relations may have added items
        Y.resize(len(points[relation.query_kind]), len(points[relation.target_kind]))
    free = [name for name, kind in kinds.items() if not kind.n_features]
    n_old = {name: len(space.tables.get(name, ())) for name in free}
    sums = {name: _sum_partner_points(name, n_old[name], pairs, points) for name in free}
    rng = np.random.default_rng([seed, 2])
    for name in free:
        old_points, fresh = points[name][: n_old[name]], points[name][n_old[name] :]
        lengths = np.sqrt(np.einsum("ij,ij->i", sums[name], sums[name]))[:, None]
        norm = float(np.sqrt(np.einsum("ij,ij->i", old_points, old_points)).mean()) if len(old_points) else 1.0
        anywhere = tables.draw_gaussian(len(fresh), space.dim, space.dim**-0.5, rng)
        fresh[:] = np.where(lengths > 0, sums[name] * (norm / np.maximum(lengths, 1e-12)), anywhere)
    return MultiRelationSpace(space.dim, space.similarity, points, frozenset(kinds) - frozenset(free))


def _sum_partner_points(name: str, n_old: int, pairs: dict[Relation, Matrix], points: dict[str, Float32]) -> Float32:
    """Return the sum of the points that each new item of a kind is paired with."""
    total = np.zeros_like(points[name][n_old:])
    for relation, Y in pairs.items():
        if relation.query_kind == name:
            total += Y[n_old:].astype(np.float32) @ points[relation.target_kind]
        if relation.target_kind == name:
            total += Y[:, n_old:].T.astype(np.float32) @ points[relation.query_kind]
    return total
