"""A kind of items in a fitted `Space`: names, scaling of features, points."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.core import file_backed_arrays
from wsabie.core.arrays import Float32, Int64
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.core.validation import check_features, require
from wsabie.embedding import tables
from wsabie.embedding.multi_relation_space import MultiRelationSpace, RelationEnds
from wsabie.embedding.protocols import Inputs
from wsabie.models.base.feature_matrix import count_rows, slice_rows
from wsabie.models.base.row_scaling import Method, RowScaling
from wsabie.models.entity_space.relations import EntityKind
from wsabie.storage.schema_validation import Count, check_array
from wsabie.training.kernel_threads import KernelThreads
from wsabie.vocabulary.label_names import Vocabulary, format_unknown_label

_ENCODED_AT_ONCE = 1 << 14


@dataclass
class FittedEntities:
    """A kind of items in a fitted space.

    Attributes
    ----------
    name : str
    things : Vocabulary
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
    things: Vocabulary
    table: str
    n_features: int = 0
    scaling: RowScaling | None = None
    points: Float32 | None = None

    @property
    def n_rows(self) -> int:
        """Rows of its table: one for each feature, or for each item."""
        return len(self.things) if self.scaling is None else self.n_features + self.scaling.n_added

    def inputs(self, X: Any, input_name: str = "X") -> Inputs:
        """Return scaled rows of features; None stands for all items of a kind with free vectors.

        Raises
        ------
        InputError
            Features for a kind without any, no features for a kind with some, another width, or infinite values.
        """
        if self.scaling is None:
            require(X is None, f"things of the kind {self.name!r} have no features; give their names or numbers")
            return np.arange(len(self.things), dtype=np.int32)
        return self.scaling(
            check_features(X, n_features=self.n_features, what=input_name, who=f"the kind {self.name!r}")
        )

    def ids(self, things: Any) -> Int64:
        """Return the numbers of items from names or numbers.

        Raises
        ------
        InputError
            An item is unknown.
        """
        require(not hasattr(things, "tocsr"), f"the things are {type(things).__name__}; give names or numbers")
        listed = list(things) if isinstance(things, Iterable) and not isinstance(things, str) else [things]
        names = [thing for thing in listed if isinstance(thing, str)]
        if names and len(names) == len(listed):
            missing = next((thing for thing in names if thing not in self.things), None)
            if missing is not None:
                raise UnknownLabelError(format_unknown_label(missing, list(self.things), self.name))
            return self.things.ids(names)
        are_numbers = [isinstance(thing, (int, np.integer)) and not isinstance(thing, bool) for thing in listed]
        require(
            all(are_numbers), f"things of the kind {self.name!r} are names or whole numbers; these are {things!r:.80}"
        )
        outside = next((number for number in listed if not 0 <= number < len(self.things)), None)
        require(
            outside is None, f"there is no {self.name} number {outside}; the {len(self.things):,} are numbered from 0"
        )
        return np.array(listed, np.int64)

    def points_of(
        self, space: MultiRelationSpace, rows: Inputs | None, threads: KernelThreads | None = None
    ) -> Float32:
        """Return the points (n, dim) float32 of scaled rows, or of all items of the kind."""
        if rows is None:
            return space.tables[self.table][:, : space.dim] if self.points is None else self.points
        view = space.view(RelationEnds(self.name, self.table, self.table))
        split = None if threads is None else threads.split
        points = file_backed_arrays.allocate_array((count_rows(rows), space.dim), np.float32)
        for part in file_backed_arrays.iterate_slices(len(points), _ENCODED_AT_ONCE):
            points[part] = view.points(slice_rows(rows, part.start, part.stop), split)[:, : space.dim]
        return points


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
        inputs = check_features(kind.X, what=f"the features of {name!r}", who="this space")
        n, width = kind.X.shape
        require(n * width > 0, f"the kind {name!r} has {n:,} rows of {width:,} features; give at least one of each")
        if entities.table not in scalings:
            scalings[entities.table] = RowScaling.learned(inputs, width, kind.rows, constant=True), width
        entities.scaling, entities.n_features = scalings[entities.table]
        if entities.n_features != width:
            raise InputError(
                f"the kinds of the map {entities.table!r} have {entities.n_features:,} and {width:,} features; "
                "describe them alike, or leave `map` out"
            )
    free = {entities.table for entities in fitted_kinds.values() if entities.scaling is None}
    clash = next((table for table in scalings if table in free), None)
    require(clash is None, f"{clash!r} is a map of features and a kind without them; call the map otherwise")
    return fitted_kinds


def dump_entities(kind: FittedEntities) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the config and the arrays of a kind for a folder."""
    config = {"things": list(kind.things), "table": kind.table, "n_features": kind.n_features, "scaling": None}
    tensors: dict[str, Any] = {}
    if kind.scaling is not None:
        config["scaling"] = kind.scaling.method
        tensors = {f"{kind.name}/{name}": array for name, array in kind.scaling.tensors().items()}
    if kind.points is not None:
        tensors[f"{kind.name}/points"] = kind.points
    return config, tensors


@dataclass(frozen=True)
class EntitiesConfig:
    """The part of a folder's config about a kind."""

    things: list[str]
    table: str
    n_features: Count
    scaling: Method | None


def restore_entities(name: str, config: EntitiesConfig, tensors: Mapping[str, Any]) -> FittedEntities:
    """Restore a kind from the config and arrays of `dump_entities`; points stay memory-mapped."""
    entities = FittedEntities(name, Vocabulary(config.things), config.table, config.n_features)
    if config.scaling is not None:
        kind_tensors = {
            key.removeprefix(f"{name}/"): array for key, array in tensors.items() if key.startswith(f"{name}/")
        }
        entities.scaling = RowScaling.restored(config.scaling, kind_tensors, entities.n_features)
        entities.points = check_array(kind_tensors, "points", "float32", (len(entities.things), None))
    elif config.n_features:
        raise ValueError(f"the kind {name!r} has n_features and no scaling")
    return entities


def restore_tables(
    tensors: Mapping[str, Any], dim: int, similarity: Any, kinds: Iterable[FittedEntities]
) -> MultiRelationSpace:
    """Restore the tables from a folder in padded memory; ValueError if sizes do not agree."""
    padded_tables = {}
    for kind in kinds:
        table = check_array(tensors, f"tables/{kind.table}", "float32", (kind.n_rows, dim))
        if kind.points is not None and kind.points.shape[1] != dim:
            raise ValueError(f"the sizes of the points of {kind.name!r} do not agree with the rest")
        padded_tables[kind.table] = tables.pad_rows(table)
    return MultiRelationSpace(dim, similarity, padded_tables)
