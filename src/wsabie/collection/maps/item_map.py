"""Map of a collection: items and labels of the model in use in the plane.

Principal components are computed on request. UMAP takes minutes; a job computes it and stores it with the model:

models/FOLDER/map/   tensors "items" (ids), "marks" (of their content) and "places" (n, 2) float32

Later items are placed beside their nearest neighbours until the next UMAP.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.maps.projection import compute_principal_components, compute_umap, has_umap, place_between
from wsabie.collection.registry.item_embeddings import ItemEmbeddings, load_model_in_use, load_search_index
from wsabie.collection.registry.model_registry import LoadedModel
from wsabie.core.arrays import Bool, Float32, Int64, UInt64
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.progress import SILENT, Progress
from wsabie.storage.model_folder import ModelState, open_model_folder, read_content_checksum, save_model_folder

if TYPE_CHECKING:
    from wsabie.search.exact_index import ExactIndex

T = TypeVar("T")
Method = Literal["pca", "umap"]
METHODS: tuple[Method, ...] = ("pca", "umap")

_KIND = "map of items"
_NEAREST = 3  # neighbours that place a new item
_MAPS = 2  # cached maps with their points: one for each method
_PRIMES, _FACTOR = (2**31 - 1, 2**31 - 19), 1_664_525_013


class EmbeddingSnapshot(NamedTuple):
    """Embeddings of a model with search indices; `head` identifies the save."""

    points: ItemEmbeddings
    dot: "ExactIndex"
    cosine: "ExactIndex"
    head: str


class Map(NamedTuple):
    """Items in the plane.

    Attributes
    ----------
    opened : LoadedModel
        Model of the map.
    snapshot : EmbeddingSnapshot
        Embeddings that the map projects.
    method : {"pca", "umap"}
    version, of : str
        Digest of the whole map; digest of its items and their embeddings.
    items : (n,) int64
        Ids of the items that are present, ascending.
    places : (n, 2) float32
    placed : int
        Number of items that came after the projection and were placed beside neighbours.
    share : float or None
        Share of the variance in the plane; None if the method has no such figure.
    """

    opened: LoadedModel
    snapshot: EmbeddingSnapshot
    method: Method
    version: str
    of: str
    items: Int64
    places: Float32
    placed: int
    share: float | None

    @property
    def model(self) -> int:
        """Id of the model."""
        return self.opened.number


class ProjectionStatus(NamedTuple):
    """State of a projection: "ready", "stale" (items came since), "none" or "not installed"."""

    method: Method
    state: str
    placed: int
    made: str | None


class _StoredProjection(NamedTuple):
    """Stored projection."""

    items: Int64
    marks: UInt64
    places: Float32
    made_at: str


class _Plane(NamedTuple):
    """All points of a model in the plane, including those of items that are gone."""

    places: Float32
    placed: Bool
    share: float | None


def build_map(collection: Collection, method: str = "pca") -> Map:
    """Return the present items in the plane; fast if the same map was built before.

    Raises
    ------
    InputError
        There is no model, it was not applied yet, the method is unknown, or its projection was not computed yet.
    """
    loaded_model, plane_method = load_model_in_use(collection), _check_method(method)
    snapshot = load_embedding_snapshot(loaded_model.path)
    projection, head = (
        _load_consistent(loaded_model.path / "map", lambda: _load_projection(loaded_model.path))
        if plane_method == "umap"
        else (None, "")
    )
    if plane_method == "umap" and projection is None:
        raise InputError(
            "there is no UMAP of the model in use yet; "
            f"run: wsabie collection map {quote(str(collection.folder))} --umap",
            served="there is no UMAP of the model in use yet; have it made on the page Map",
        )
    plane = _planes.get(
        (loaded_model.path, snapshot.head, plane_method, head), lambda: _project_points(snapshot, projection)
    )
    with begin_read(collection.engine) as connection:
        of = _make_digest(loaded_model.path.name, snapshot.head, *_fingerprint_present(connection))
        version = _make_digest(of, plane_method, head)

        def draw() -> Map:
            is_present = np.isin(snapshot.points.items, _read_present_items(connection))
            present_points = (
                snapshot.points.items[is_present],
                plane.places[is_present],
                int(plane.placed[is_present].sum()),
            )
            return Map(loaded_model, snapshot, plane_method, version, of, *present_points, plane.share)

        return _maps.get(version, draw)


def load_embedding_snapshot(model: Path) -> EmbeddingSnapshot:
    """Return the embeddings of one save, even while another one is written.

    Raises
    ------
    InputError
        The model has no embeddings yet.
    """
    index, head = _load_consistent(model / "points", lambda: load_search_index(model))
    return EmbeddingSnapshot(*index, head)


def list_projections(collection: Collection) -> list[ProjectionStatus]:
    """Return the status of every projection of the model in use.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    loaded_model = load_model_in_use(collection)
    points, projection = load_embedding_snapshot(loaded_model.path).points, _load_projection(loaded_model.path)
    if projection is None:
        umap = ProjectionStatus("umap", "none" if has_umap() else "not installed", 0, None)
    else:
        placed = int((~_match_items(projection, points)).sum())
        umap = ProjectionStatus("umap", "stale" if placed else "ready", placed, projection.made_at)
    return [ProjectionStatus("pca", "ready", 0, None), umap]


def compute_projection(collection: Collection, *, progress: Progress = SILENT) -> ProjectionStatus:
    """Compute a UMAP of the items of the model in use and store it; minutes for 100,000 items.

    Raises
    ------
    InputError
        UMAP is not installed, there is no model, it has too few items, or it was removed meanwhile.
    """
    loaded_model = load_model_in_use(collection)
    points = load_embedding_snapshot(loaded_model.path).points
    with progress.stage("drawing the map", None, "items") as bar:
        places = compute_umap(points.points, compute_principal_components(points.points).places(points.points))
        bar.advance(len(places))
    if not loaded_model.path.is_dir():
        raise InputError("the model was removed while its map was made; make that of the model in use")
    tensors: dict[str, Any] = {"items": points.items, "marks": points.marks, "places": places}
    save_model_folder(
        loaded_model.path / "map", ModelState(_KIND, {"method": "umap", "made": format_current_time()}, tensors)
    )
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


def _project_points(snapshot: EmbeddingSnapshot, projection: _StoredProjection | None) -> _Plane:
    """Return all points in the plane, by a stored projection or by principal components."""
    points = snapshot.points
    if projection is None:
        components = compute_principal_components(points.points)
        return _Plane(components.places(points.points), np.zeros(len(points.items), bool), components.share)
    is_projected = _match_items(projection, points)
    places = np.zeros((len(points.items), 2), np.float32)
    places[is_projected] = projection.places[np.searchsorted(projection.items, points.items[is_projected])]
    new_points = np.flatnonzero(~is_projected)
    if len(new_points) and is_projected.any():
        k = min(_NEAREST, int(is_projected.sum()))
        nearest = snapshot.cosine.top_k(points.points[new_points], k, candidates=np.flatnonzero(is_projected))[0]
        places[new_points] = place_between(places, nearest)
    return _Plane(places, ~is_projected, None)


def _match_items(projection: _StoredProjection, points: ItemEmbeddings) -> Bool:
    """Return a mask of the points whose items the projection holds with their current content."""
    return ItemEmbeddings(projection.items, projection.marks, projection.places).contains(points.items, points.marks)


def _load_projection(model: Path) -> _StoredProjection | None:
    """Return the stored projection, or None if there is none that is valid."""
    try:
        parts = open_model_folder(model / "map", verify=False)
        tensors = parts.tensors
        projection = _StoredProjection(tensors["items"], tensors["marks"], tensors["places"], str(parts.config["made"]))
    except (ModelFolderError, KeyError):
        return None
    n = len(projection.items)
    is_consistent = projection.places.shape == (n, 2) and projection.marks.shape == (n,) == projection.items.shape
    return (
        projection
        if is_consistent and np.isfinite(projection.places).all() and (np.diff(projection.items) > 0).all()
        else None
    )
