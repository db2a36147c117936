"""Map of a collection: items and labels of the model in use in the plane.

Principal components are computed on request. UMAP takes minutes; a job computes it and stores it with the model:

models/FOLDER/map/   tensors "items" (ids), "marks" (of their content) and "points" (n, 2) float32

Later items are placed beside their nearest neighbours until the next UMAP.
"""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import annotations, items, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.maps.projection import (
    compute_median,
    compute_principal_components,
    compute_umap,
    has_umap,
    place_between,
)
from wsabie.collection.registry.item_embeddings import ItemEmbeddings, SearchIndex, load_search_index
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.core.arrays import Bool, Float32, Int64, UInt8
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.progress import SILENT, Progress
from wsabie.storage.model_folder import ModelState, open_model_folder, read_content_checksum, save_model_folder

T = TypeVar("T")
Method = Literal["pca", "umap"]
METHODS: tuple[Method, ...] = ("pca", "umap")

_KIND = "map of items"
_NEAREST = 3  # neighbours that place a new item
_MAPS = 2  # cached maps with their points: one for each method
_PRIMES, _FACTOR = (2**31 - 1, 2**31 - 19), 1_664_525_013


class Map(NamedTuple):
    """Items in the plane.

    Attributes
    ----------
    loaded_model : LoadedModel
        Model of the map.
    search_index : SearchIndex
        Embeddings that the map projects.
    method : {"pca", "umap"}
    version, source_version : str
        Digest of the whole map; digest of its items and their embeddings.
    items : (n,) int64
        Ids of the items that are present, ascending.
    places : (n, 2) float32
    n_placed : int
        Number of items that came after the projection and were placed beside neighbours.
    share : float or None
        Share of the variance in the plane; None if the method has no such figure.
    """

    loaded_model: LoadedModel
    search_index: SearchIndex
    method: Method
    version: str
    source_version: str
    items: Int64
    places: Float32
    n_placed: int
    share: float | None

    @property
    def model(self) -> int:
        """Id of the model."""
        return self.loaded_model.number


class ProjectionStatus(NamedTuple):
    """State of a projection: "ready", "stale" (items came since), "none" or "not installed"."""

    method: Method
    state: str
    new_items: int
    created: str | None


class _Plane(NamedTuple):
    """All points of a model in the plane, including those of items that are gone."""

    places: Float32
    is_placed: Bool
    share: float | None


def build_map(collection: Collection, method: str = "pca") -> Map:
    """Return the present items in the plane; fast if the same map was built before.

    Raises
    ------
    InputError
        There is no model, it was not applied yet, the method is unknown, or its projection was not computed yet.
    """
    loaded_model = load_model_in_use(collection)
    method = _check_method(method)
    index, index_version = load_embedding_snapshot(loaded_model.path)
    projection, projection_version = None, ""
    if method == "umap":
        folder = loaded_model.path / "map"
        projection, projection_version = _load_consistent(folder, lambda: _load_projection(loaded_model.path))
        if projection is None:
            raise InputError(
                "there is no UMAP of the model in use yet; "
                f"run: wsabie collection map {quote(str(collection.folder))} --umap",
                served="there is no UMAP of the model in use yet; have it made on the page Map",
            )
    plane_key = loaded_model.path, index_version, method, projection_version
    plane = _planes.get(plane_key, lambda: _project_points(index, projection))
    with begin_read(collection.engine) as connection:
        source_version = _make_digest(loaded_model.path.name, index_version, *_fingerprint_present(connection))
        version = _make_digest(source_version, method, projection_version)

        def draw() -> Map:
            ids = index.embeddings.items
            is_present = np.isin(ids, _read_present_items(connection))
            n_placed = int(plane.is_placed[is_present].sum())
            present_points = ids[is_present], plane.places[is_present], n_placed, plane.share
            return Map(loaded_model, index, method, version, source_version, *present_points)

        return _maps.get(version, draw)


def load_embedding_snapshot(model: Path) -> tuple[SearchIndex, str]:
    """Return the embeddings of one save and the checksum of it, even while another one is written.

    Raises
    ------
    InputError
        The model has no embeddings yet.
    """
    return _load_consistent(model / "points", lambda: load_search_index(model))


def list_projections(collection: Collection) -> list[ProjectionStatus]:
    """Return the status of every projection of the model in use.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    model = load_model_in_use(collection).path
    points, projection = load_embedding_snapshot(model)[0].embeddings, _load_projection(model)
    if projection is None:
        umap = ProjectionStatus("umap", "none" if has_umap() else "not installed", 0, None)
    else:
        new_items = int((~projection.embeddings.contains(points.items, points.marks)).sum())
        umap = ProjectionStatus("umap", "stale" if new_items else "ready", new_items, projection.created)
    return [ProjectionStatus("pca", "ready", 0, None), umap]


def compute_projection(collection: Collection, *, progress: Progress = SILENT) -> ProjectionStatus:
    """Compute a UMAP of the items of the model in use and store it; minutes for 100,000 items.

    Raises
    ------
    InputError
        UMAP is not installed, there is no model, it has too few items, or it was removed meanwhile.
    """
    model = load_model_in_use(collection).path
    embeddings = load_embedding_snapshot(model)[0].embeddings
    points = embeddings.points
    with progress.stage("drawing the map", None, "items") as bar:
        places = compute_umap(points, compute_principal_components(points).places(points))
        bar.advance(len(places))
    if not model.is_dir():
        raise InputError("the model was removed while its map was made; make that of the model in use")
    config, tensors = {"method": "umap", "created": format_current_time()}, embeddings._replace(points=places)._asdict()
    save_model_folder(model / "map", ModelState(_KIND, config, tensors))
    return list_projections(collection)[1]


def _check_method(method: str) -> Method:
    for candidate in METHODS:
        if candidate == method:
            return candidate
    raise InputError(f"there is no projection {method!r}; choose one of {', '.join(METHODS)}")


def _make_digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _load_consistent(folder: Path, load: Callable[[], T]) -> tuple[T, str]:
    """Return the content of a folder and the mark of its save; read again if a save came meanwhile."""
    while True:
        head = read_content_checksum(folder)
        content = load()
        if read_content_checksum(folder) == head:
            return content, head


def _read_present_items(connection: Connection) -> Int64:
    query = select(items.c.id).where(items.c.state == "present")
    return np.array(connection.execute(query).scalars().all(), np.int64)


def _fingerprint_present(connection: Connection) -> tuple[int, ...]:
    """Return numbers that change when the set of present items does; an index serves them.

    Plain sums of ids or squares collide for many sets, so each id is scrambled first.
    """
    number, (first_prime, second_prime) = items.c.id, _PRIMES
    scrambled = number % first_prime * _FACTOR % first_prime
    query = select(func.count(), func.coalesce(func.sum(scrambled * scrambled % second_prime), 0))
    return tuple(int(part) for part in connection.execute(query.where(items.c.state == "present")).one())


_maps, _planes = FileCache[Map](_MAPS), FileCache[_Plane](_MAPS)


class _StoredProjection(NamedTuple):
    """Items with their places as points, and the time of the projection."""

    embeddings: ItemEmbeddings
    created: str


def _project_points(index: SearchIndex, projection: _StoredProjection | None) -> _Plane:
    """Return all points in the plane, by a stored projection or by principal components."""
    ids, marks, points = index.embeddings
    if projection is None:
        components = compute_principal_components(points)
        return _Plane(components.places(points), np.zeros(len(ids), bool), components.share)
    is_projected = projection.embeddings.contains(ids, marks)
    places = np.zeros((len(ids), 2), np.float32)
    places[is_projected] = projection.embeddings.points[np.searchsorted(projection.embeddings.items, ids[is_projected])]
    new_points = np.flatnonzero(~is_projected)
    if len(new_points) and is_projected.any():
        k = min(_NEAREST, int(is_projected.sum()))
        nearest = index.cosine.top_k(points[new_points], k, candidates=np.flatnonzero(is_projected))[0]
        places[new_points] = place_between(places, nearest)
    return _Plane(places, ~is_projected, None)


def _load_projection(model: Path) -> _StoredProjection | None:
    """Return the stored projection, or None if there is none that is valid."""
    try:
        state = open_model_folder(model / "map", verify=False)
        projection = _StoredProjection(ItemEmbeddings.from_tensors(state.tensors, 2), str(state.config["created"]))
    except (ModelFolderError, KeyError):
        return None
    items, _, places = projection.embeddings
    return projection if np.isfinite(places).all() and (np.diff(items) > 0).all() else None


NOTHING, REJECTED, ACCEPTED, SUGGESTED = range(4)
"""Codes of a label's state on an item; SUGGESTED to 255 are suggestions in order of probability."""


_BEST = 5  # items that define the position of a label
_making = threading.Lock()


class LabelPosition(NamedTuple):
    """Label in the plane with the number of items on which it is accepted."""

    id: int
    name: str
    x: float
    y: float
    accepted: int


class ItemColours(NamedTuple):
    """Ids of items with a state of a label, ascending, and the codes of the states."""

    items: Int64
    codes: UInt8


def place_labels(collection: Collection, item_map: Map, k: int = 500) -> list[LabelPosition]:
    """Return the positions of the model's labels in the plane, those with most items first.

    A label lies in the middle of the five items that it fits best. Its own embedding would not do: the plane keeps only
    two of the dimensions that separate labels, and UMAP cannot map points of another kind.

    Parameters
    ----------
    collection : Collection
    item_map : Map
        Its model supplies the labels, whichever model is in use by now.
    k : int
    """
    a = annotations.c
    query = select(a.label_id, func.count(a.item_id.distinct())).where(a.state == "accepted").group_by(a.label_id)
    with begin_read(collection.engine) as connection:
        columns, names = item_map.loaded_model.labels_now(connection), label_store.read_label_names(connection)
        counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    label_ids = sorted(
        {int(number) for number in columns} & names.keys(), key=lambda number: (-counts.get(number, 0), names[number])
    )[:k]
    if not len(item_map.items) or not label_ids:
        return []
    places = compute_median(item_map.places[_find_best_items(item_map, label_ids, columns)])
    return [
        LabelPosition(number, names[number], float(x), float(y), counts.get(number, 0))
        for number, (x, y) in zip(label_ids, places, strict=True)
    ]


def colour_items(collection: Collection, label: str) -> ItemColours:
    """Return the codes of items with a decision or suggestion of a label, by name or synonym.

    Raises
    ------
    UnknownLabelError
        There is no such label.
    """
    a, s = annotations.c, suggestions.c
    with begin_read(collection.engine) as connection:
        number = label_store.find_label(connection, label)
        decision_query = select(a.item_id, a.state).where(a.label_id == number, a.region == "")
        suggestion_query = select(s.item_id, s.probability).where(
            s.model_id == find_model_in_use(connection), s.label_id == number
        )
        codes = {row[0]: _encode_probability(row[1]) for row in connection.execute(suggestion_query)}
        states = {"accepted": ACCEPTED, "rejected": REJECTED}
        codes |= {row[0]: states[row[1]] for row in connection.execute(decision_query)}
    numbers = np.array(sorted(codes), np.int64)
    return ItemColours(numbers, np.array([codes[item] for item in numbers.tolist()], np.uint8))


def _encode_probability(probability: float) -> int:
    return SUGGESTED + round((255 - SUGGESTED) * min(1.0, max(0.0, probability)))


_bests = FileCache[dict[int, Int64]](2)


def _find_best_items(item_map: Map, label_ids: list[int], columns: Int64) -> Int64:
    """Return the positions, within the items of a map, of the best items of labels, (n_labels, k)."""
    cache = _bests.get((item_map.source_version, columns.tobytes()), dict)
    with _making:
        missing = [label for label in label_ids if label not in cache]
        if missing:
            points, dot, _ = item_map.search_index
            vectors = item_map.loaded_model.model.label_vectors
            queries = np.stack([vectors[np.flatnonzero(columns == label)].mean(axis=0) for label in missing])
            candidates = np.flatnonzero(np.isin(points.items, item_map.items))
            best = dot.top_k(queries, min(_BEST, len(candidates)), candidates=candidates)[0]
            cache.update(zip(missing, np.searchsorted(item_map.items, points.items[best]), strict=True))
        return np.stack([cache[label] for label in label_ids])


_MEASURED_LABELS = 200
_FEWEST = 5  # items of a measured label


class MapQuality(NamedTuple):
    """Share of a label's nearest items in the plane that carry it, by chance, and number of labels."""

    share: float
    chance: float
    labels: int


def measure_map_quality(collection: Collection, item_map: Map, k: int = 10) -> MapQuality:
    """Measure how often the items around a label in the plane carry it, for the largest labels."""
    positions = [
        position for position in place_labels(collection, item_map, _MEASURED_LABELS) if position.accepted >= _FEWEST
    ]
    a = annotations.c
    query = select(a.item_id, a.label_id).where(
        a.state == "accepted", a.label_id.in_([position.id for position in positions])
    )
    items_by_label: dict[int, list[int]] = {}
    with begin_read(collection.engine) as connection:
        for item, label in connection.execute(query):
            items_by_label.setdefault(label, []).append(item)
    shares, chances = [], []
    for position in positions:
        has_label = np.isin(item_map.items, items_by_label[position.id])
        distances = np.square(item_map.places - np.array([position.x, position.y], np.float32)).sum(axis=1)
        shares.append(has_label[np.argsort(distances, kind="stable")[:k]].mean())
        chances.append(has_label.mean())
    return MapQuality(float(np.mean(shares or [0])), float(np.mean(chances or [0])), len(positions))
