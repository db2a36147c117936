"""A kind of items in a fitted `Space`: names, scaling of features, points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Float32, Int64, Matrix, allocate_array, count_rows, iterate_slices
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.embedding.joint_space import SimilarityName
from wsabie.embedding.protocols import EntityInputs, RangeRunner, RelationEnds, run_in_caller
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.models.base.feature_matrix import slice_rows
from wsabie.models.base.row_scaling import Method, RowScaling
from wsabie.models.entity_space.relations import (
    EntityKind,
    Relation,
    build_pair_matrix,
    build_pair_targets,
    collect_kinds,
    compute_pair_weights,
    number_names,
)
from wsabie.storage.schema_validation import Count, check_array
from wsabie.training.training_data import RowBlock
from wsabie.vocabulary.label_names import Vocabulary

_ENCODED_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class EntitiesConfig:
    """The part of a folder's config about a kind."""

    names: list[str]
    table: str
    n_features: Count
    scaling: Method | None


@dataclass
class FittedEntities:
    """A kind of items in a fitted space.

    Attributes
    ----------
    name : str
    vocabulary : Vocabulary
        Names and numbers; a number never changes.
    table : str
        Table of the space: the map from features to points, or the points themselves.
    n_features : int
        0 without features.
    scaling : RowScaling or None
    points : (n, dim) float32 or None
        Points of items with features; the features are not kept.
    """

    name: str
    vocabulary: Vocabulary
    table: str
    n_features: int = 0
    scaling: RowScaling | None = None
    points: Float32 | None = None

    @property
    def n_rows(self) -> int:
        """Rows of its table: one for each feature, or for each item."""
        return len(self.vocabulary) if self.scaling is None else self.n_features + self.scaling.n_added

    def inputs(self, X: Matrix, input_name: str = "X") -> EntityInputs:
        """Return scaled rows of features; None stands for all items of a kind with free vectors.

        Raises
        ------
        InputError
            Features for a kind without any, no features for a kind with some, another width, or infinite values.
        """
        if self.scaling is None:
            require(X is None, f"entities of the kind {self.name!r} have no features; give their names or numbers")
            return np.arange(len(self.vocabulary), dtype=np.int32)
        owner = f"the kind {self.name!r}"
        return self.scaling(check_features(X, n_features=self.n_features, input_name=input_name, model_name=owner))

    def ids(self, items: Any) -> Int64:
        """Return the numbers of items from names or numbers.

        Raises
        ------
        InputError
            An item is unknown.
        """
        require(not hasattr(items, "tocsr"), f"the entities are {type(items).__name__}; give names or numbers")
        listed = list(items) if isinstance(items, Iterable) and not isinstance(items, str) else [items]
        names = [entity for entity in listed if isinstance(entity, str)]
        if names and len(names) == len(listed):
            return number_names(names, self.vocabulary, self.name)
        are_numbers = [isinstance(entity, (int, np.integer)) and not isinstance(entity, bool) for entity in listed]
        require(
            all(are_numbers), f"entities of the kind {self.name!r} are names or whole numbers; these are {items!r:.80}"
        )
        outside = next((number for number in listed if not 0 <= number < len(self.vocabulary)), None)
        problem = f"there is no {self.name} number {outside}; the {len(self.vocabulary):,} are numbered from 0"
        require(outside is None, problem)
        return np.array(listed, np.int64)

    def compute_points(
        self, space: MultiRelationSpace, rows: EntityInputs | None, run: RangeRunner = run_in_caller
    ) -> Float32:
        """Return the points (n, dim) float32 of scaled rows, or of all items of the kind, by threads of `run`."""
        if rows is None:
            return space.tables[self.table][:, : space.dim] if self.points is None else self.points
        view = space.view(RelationEnds(self.name, self.table, self.table))
        points = allocate_array((count_rows(rows), space.dim), np.float32)
        for part in iterate_slices(len(points), _ENCODED_AT_ONCE):
            points[part] = view.compute_points(slice_rows(rows, part.start, part.stop), run)[:, : space.dim]
        return points

    def dump(self) -> tuple[JsonObject, dict[str, Array]]:
        """Return the config and the arrays of the kind for a folder."""
        config = {"names": list(self.vocabulary), "table": self.table, "n_features": self.n_features, "scaling": None}
        tensors: dict[str, Array] = {}
        if self.scaling is not None:
            config["scaling"] = self.scaling.method
            tensors = {f"{self.name}/{name}": array for name, array in self.scaling.tensors().items()}
        if self.points is not None:
            tensors[f"{self.name}/points"] = self.points
        return config, tensors

    @classmethod
    def restore(cls, name: str, config: EntitiesConfig, tensors: Mapping[str, Array]) -> Self:
        """Restore a kind from the config and arrays of `dump`; points stay memory-mapped."""
        entities = cls(name, Vocabulary(config.names), config.table, config.n_features)
        if config.scaling is not None:
            start = f"{name}/"
            kind_tensors = {key.removeprefix(start): array for key, array in tensors.items() if key.startswith(start)}
            entities.scaling = RowScaling.from_tensors(config.scaling, kind_tensors, entities.n_features)
            entities.points = check_array(kind_tensors, "points", "float32", (len(entities.vocabulary), None))
        elif config.n_features:
            raise ValueError(f"the kind {name!r} has n_features and no scaling")
        return entities


def fit_entities(kinds: Mapping[str, EntityKind]) -> dict[str, FittedEntities]:
    """Fit the scaling of each kind; the first kind of a map fits that of the map.

    Raises
    ------
    InputError
        Kinds of one map have different numbers of features, or a map has the name of a kind without features.
    """
    fitted_kinds: dict[str, FittedEntities] = {}
    scalings: dict[str, tuple[RowScaling, int]] = {}
    for name, kind in kinds.items():
        entities = fitted_kinds[name] = FittedEntities(name, kind.names(), kind.mapped_by)
        if kind.X is None:
            continue
        inputs = check_features(kind.X, input_name=f"the features of {name!r}", model_name="this space")
        n, width = kind.X.shape
        require(n * width > 0, f"the kind {name!r} has {n:,} rows of {width:,} features; give at least one of each")
        if entities.table not in scalings:
            scalings[entities.table] = RowScaling.fit(inputs, width, kind.scaling, constant=True), width
        entities.scaling, entities.n_features = scalings[entities.table]
        if entities.n_features != width:
            fact = f"the kinds of the map {entities.table!r} have {entities.n_features:,} and {width:,} features"
            raise InputError(f"{fact}; give them the same features, or leave map out")
    free = {entities.table for entities in fitted_kinds.values() if entities.scaling is None}
    clash = next((table for table in scalings if table in free), None)
    require(clash is None, f"{clash!r} is a map of features and a kind without them; call the map otherwise")
    return fitted_kinds


def find_kind(name: str, entities: Mapping[str, FittedEntities]) -> FittedEntities:
    """Return a kind of a space; InputError if it has none of that name."""
    require(name in entities, f"the space knows no kind {name!r}; it knows {', '.join(entities)}")
    return entities[name]


def restore_tables(
    tensors: Mapping[str, Array], dim: int, similarity: SimilarityName, kinds: Iterable[FittedEntities]
) -> MultiRelationSpace:
    """Restore the tables from a folder in padded memory; ValueError if sizes do not agree."""
    padded_tables = {}
    for kind in kinds:
        table = check_array(tensors, f"tables/{kind.table}", "float32", (kind.n_rows, dim))
        if kind.points is not None and kind.points.shape[1] != dim:
            raise ValueError(f"the sizes of the points of {kind.name!r} do not agree with the rest")
        padded_tables[kind.table] = tables.pad_rows(table)
    return MultiRelationSpace(dim, similarity, padded_tables)


class SpaceGrowth(NamedTuple):
    """Items and pairs that a space gets.

    Attributes
    ----------
    kinds : dict of str to FittedEntities
    points : MultiRelationSpace
        Points of the kinds that the relations name: free vectors, and fixed points of items with features.
    blocks : list of RowBlock
        Pairs of the relations in which a free vector can move.
    """

    kinds: dict[str, FittedEntities]
    points: MultiRelationSpace
    blocks: list[RowBlock]


def grow_space(
    kinds: dict[str, FittedEntities], space: MultiRelationSpace, relations: Sequence[Relation], seed: int
) -> SpaceGrowth:
    """Return copies of the kinds and points of a space with the items and the pairs of some relations.

    Raises
    ------
    InputError
        A new kind has features, a kind without features has the name of a map, or pairs cannot be used.
    """
    relation_kinds = collect_kinds(relations)
    kinds = {
        name: replace(kind, vocabulary=kind.vocabulary.copy()) if name in relation_kinds else kind
        for name, kind in kinds.items()
    }
    for name, kind in relation_kinds.items():
        if kind.X is not None:
            require(name in kinds, f"the space knows no kind {name!r}; fit it again to learn a map of its features")
            kinds[name] = add_entities(kinds[name], kind, space)
        elif name not in kinds:
            require(name not in space.tables, f"{name!r} is a map of features in this space; rename the new kind")
            kinds[name] = FittedEntities(name, Vocabulary(), name)
    pairs = {relation: _renumber_pairs(relation, relation_kinds, kinds) for relation in relations}
    points = _collect_points({name: kinds[name] for name in relation_kinds}, space, pairs, seed)
    blocks, first = [], 0
    for relation, Y in pairs.items():
        query, target = kinds[relation.query_kind], kinds[relation.target_kind]
        if not {query.name, target.name} <= points.frozen:
            weights = compute_pair_weights(Y)
            targets = build_pair_targets(Y, first, is_within_kind=query is target, weights=weights)
            ends = RelationEnds(relation.name, query.name, target.name)
            ids = np.arange(Y.shape[0], dtype=np.int32)
            blocks.append(RowBlock(ids, targets, ends, relation.weight, 1))
            first += Y.nnz
    return SpaceGrowth(kinds, points, blocks)


def add_entities(entities: FittedEntities, kind: EntityKind, space: MultiRelationSpace) -> FittedEntities:
    """Add items to a kind at the points of their features; items that it has already move there."""
    if entities.points is None:
        raise InputError(f"entities of the kind {kind.name!r} have no features; give their names alone")
    names = list(kind.names())
    entities.vocabulary.add([name for name in names if name not in entities.vocabulary])
    points = np.zeros((len(entities.vocabulary), space.dim), np.float32)
    points[: len(entities.points)] = entities.points
    inputs = entities.inputs(kind.X, f"the features of {kind.name!r}")
    points[entities.vocabulary.ids(names)] = entities.compute_points(space, inputs)
    return replace(entities, points=points)


def _renumber_pairs(
    relation: Relation, relation_kinds: dict[str, EntityKind], kinds: dict[str, FittedEntities]
) -> Matrix:
    """Return the pairs with the numbers that items have in the space."""
    sides = [relation_kinds[relation.query_kind], relation_kinds[relation.target_kind]]
    ends = [kinds[side.name] for side in sides]
    names = [end.vocabulary if side.X is None else side.names() for side, end in zip(sides, ends, strict=True)]
    if sides[0] is sides[1]:
        names[1] = names[0]  # such pairs have no direction
    Y = build_pair_matrix(relation, names[0], names[1], (not ends[0].n_features, not ends[1].n_features)).tocoo()
    rows, columns = (
        numbers if side_names is end.vocabulary else end.vocabulary.ids(side_names)[numbers]
        for numbers, side_names, end in zip((Y.row, Y.col), names, ends, strict=True)
    )
    return csr_matrix((Y.data, (rows, columns)), (len(ends[0].vocabulary), len(ends[1].vocabulary)))


def _collect_points(
    kinds: dict[str, FittedEntities], space: MultiRelationSpace, pairs: dict[Relation, Matrix], seed: int
) -> MultiRelationSpace:
    """Return the points of some kinds; new free vectors point to their partners at the mean length."""
    points: dict[str, Float32] = {}
    for name, kind in kinds.items():
        table = space.tables.get(kind.table, tables.allocate_zeros(0, space.dim))
        old_points = table if kind.points is None else kind.points
        points[name] = tables.allocate_zeros(len(kind.vocabulary), space.dim)
        points[name][: len(old_points), : space.dim] = old_points[:, : space.dim]
    for relation, Y in pairs.items():  # later relations may have added items
        Y.resize(len(points[relation.query_kind]), len(points[relation.target_kind]))
    free = [name for name, kind in kinds.items() if not kind.n_features]
    n_old = {name: len(space.tables.get(name, ())) for name in free}
    sums = {name: _sum_partner_points(name, n_old[name], pairs, points) for name in free}
    rng = np.random.default_rng([seed, 2])
    for name in free:
        old_points, new_points = points[name][: n_old[name]], points[name][n_old[name] :]
        lengths = np.sqrt(np.einsum("ij,ij->i", sums[name], sums[name]))[:, None]
        norm = float(np.sqrt(np.einsum("ij,ij->i", old_points, old_points)).mean()) if len(old_points) else 1.0
        random_points = tables.draw_gaussian(len(new_points), space.dim, space.dim**-0.5, rng)
        new_points[:] = np.where(lengths > 0, sums[name] * (norm / np.maximum(lengths, 1e-12)), random_points)
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
