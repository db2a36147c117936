"""What a fitted `Space` knows of a kind of things: their names, how features are scaled, where their points are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.base import mapped
from wsabie.base.arrays import Float32, Int64
from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.base.validation import check_features, require
from wsabie.labels.names import Vocabulary, unknown_label
from wsabie.models.inputs import n_rows, rows_between
from wsabie.models.relations import Kind
from wsabie.models.scaling import Method, RowScaling
from wsabie.space import tables
from wsabie.space.protocol import Inputs
from wsabie.space.shared import Ends, SharedSpace
from wsabie.storage.schema import Count, check_array
from wsabie.training.threads import Threads

_ENCODED_AT_ONCE = 1 << 14


@dataclass
class KnownKind:
    """A kind of things in a fitted space.

    Attributes
    ----------
    name : str
    things : Vocabulary
        Names and numbers; a number never changes.
    table : str
        Of the space: the map from features that is behind its points, or the points themselves.
    n_features : int
        0 without features.
    scaling : RowScaling or None
    points : (n, dim) float32 or None
        Of the things with features, which are not kept.
    """

    name: str
    things: Vocabulary
    table: str
    n_features: int = 0
    scaling: RowScaling | None = None
    points: Float32 | None = None

    @property
    def n_rows(self) -> int:
        """Rows of its table: one for each feature, or for each thing."""
        return len(self.things) if self.scaling is None else self.n_features + self.scaling.n_added

    def inputs(self, X: Any, what: str = "X") -> Inputs:
        """Scaled rows of features; None stands for all known things, which have free vectors.

        Raises
        ------
        InputError
            Features for a kind that has none, or the other way round; of another width, or not finite.
        """
        if self.scaling is None:
            require(X is None, f"things of the kind {self.name!r} have no features; give their names or numbers")
            return np.arange(len(self.things), dtype=np.int32)
        return self.scaling(check_features(X, n_features=self.n_features, what=what, who=f"the kind {self.name!r}"))

    def ids(self, things: Any) -> Int64:
        """Numbers of things from names or numbers.

        Raises
        ------
        InputError
            A thing that is not known.
        """
        require(not hasattr(things, "tocsr"), f"the things are {type(things).__name__}; give names or numbers")
        listed = list(things) if isinstance(things, Iterable) and not isinstance(things, str) else [things]
        named = [thing for thing in listed if isinstance(thing, str)]
        if named and len(named) == len(listed):
            missing = next((thing for thing in named if thing not in self.things), None)
            if missing is not None:
                raise UnknownLabelError(unknown_label(missing, list(self.things), self.name))
            return self.things.ids(named)
        whole = [isinstance(thing, (int, np.integer)) and not isinstance(thing, bool) for thing in listed]
        require(all(whole), f"things of the kind {self.name!r} are names or whole numbers; these are {things!r:.80}")
        outside = next((number for number in listed if not 0 <= number < len(self.things)), None)
        require(
            outside is None, f"there is no {self.name} number {outside}; the {len(self.things):,} are numbered from 0"
        )
        return np.array(listed, np.int64)

    def points_of(self, space: SharedSpace, rows: Inputs | None, threads: Threads | None = None) -> Float32:
        """Points (n, dim) float32 of scaled rows, or of all known things."""
        if rows is None:
            return space.tables[self.table][:, : space.dim] if self.points is None else self.points
        view = space.view(Ends(self.name, self.table, self.table))
        split = None if threads is None else threads.split
        points = mapped.empty((n_rows(rows), space.dim), np.float32)
        for part in mapped.parts(len(points), _ENCODED_AT_ONCE):
            points[part] = view.points(rows_between(rows, part.start, part.stop), split)[:, : space.dim]
        return points


def known_kinds(kinds: Mapping[str, Kind]) -> dict[str, KnownKind]:
    """What is known of kinds before pairs are looked at; scaling is learned by the first kind of each map.

    Raises
    ------
    InputError
        Kinds of one map with features of different numbers, or a map that is called as a kind without features is.
    """
    found: dict[str, KnownKind] = {}
    scalings: dict[str, tuple[RowScaling, int]] = {}
    for name, kind in kinds.items():
        known = found[name] = KnownKind(name, kind.names(), kind.mapped_by)
        if kind.X is None:
            continue
        inputs = check_features(kind.X, what=f"the features of {name!r}", who="this space")
        n, width = kind.X.shape
        require(n * width > 0, f"the kind {name!r} has {n:,} rows of {width:,} features; give at least one of each")
        if known.table not in scalings:
            scalings[known.table] = RowScaling.learned(inputs, width, kind.rows, constant=True), width
        known.scaling, known.n_features = scalings[known.table]
        if known.n_features != width:
            raise InputError(
                f"the kinds of the map {known.table!r} have {known.n_features:,} and {width:,} features; "
                "describe them alike, or leave `map` out"
            )
    free = {known.table for known in found.values() if known.scaling is None}
    clash = next((table for table in scalings if table in free), None)
    require(clash is None, f"{clash!r} is a map of features and a kind without them; call the map otherwise")
    return found


def kind_parts(kind: KnownKind) -> tuple[dict[str, Any], dict[str, Any]]:
    """The config and the arrays that a kind is saved with."""
    config = {"things": list(kind.things), "table": kind.table, "n_features": kind.n_features, "scaling": None}
    tensors: dict[str, Any] = {}
    if kind.scaling is not None:
        config["scaling"] = kind.scaling.method
        tensors = {f"{kind.name}/{name}": array for name, array in kind.scaling.tensors().items()}
    if kind.points is not None:
        tensors[f"{kind.name}/points"] = kind.points
    return config, tensors


@dataclass(frozen=True)
class KindConfig:
    """The part of a folder's config about a kind."""

    things: list[str]
    table: str
    n_features: Count
    scaling: Method | None


def kind_from(name: str, config: KindConfig, tensors: Mapping[str, Any]) -> KnownKind:
    """The kind that `kind_parts` described; points stay mapped from the file."""
    known = KnownKind(name, Vocabulary(config.things), config.table, config.n_features)
    if config.scaling is not None:
        own = {key.removeprefix(f"{name}/"): array for key, array in tensors.items() if key.startswith(f"{name}/")}
        known.scaling = RowScaling.restored(config.scaling, own, known.n_features)
        known.points = check_array(own, "points", "float32", (len(known.things), None))
    elif config.n_features:
        raise ValueError(f"the kind {name!r} has n_features and no scaling")
    return known


def space_from(tensors: Mapping[str, Any], dim: int, similarity: Any, kinds: Iterable[KnownKind]) -> SharedSpace:
    """The tables out of a folder, in padded memory of their own; sizes that do not agree raise ValueError."""
    found = {}
    for kind in kinds:
        table = check_array(tensors, f"tables/{kind.table}", "float32", (kind.n_rows, dim))
        if kind.points is not None and kind.points.shape[1] != dim:
            raise ValueError(f"the sizes of the points of {kind.name!r} do not agree with the rest")
        found[kind.table] = tables.padded(table)
    return SharedSpace(dim, similarity, found)
