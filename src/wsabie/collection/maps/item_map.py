"""Map of a collection: items and labels of the model in use in the plane.

Principal components are computed on request. UMAP takes minutes; a job computes it and stores it with the model:

models/FOLDER/map/   tensors "items" (ids), "hashes" (of their content) and "vectors" (n, 2) float32

Later items are placed beside their nearest neighbours until the next UMAP.

Only the direction of a point counts: models that compare by inner products give points different lengths, and nearness
is measured by the cosine.

scikit-learn's `PCA` reads the whole table at once and takes 2.4 times as long
(`docs/decisions/metrics-and-calibration.md`).
"""

import hashlib
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import eigh
from sqlalchemy import Connection, func, select

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read, fetch_rows, group_pairs
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.tables import annotations, items, suggestions
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_store
from wsabie.collection.registry.item_index import ItemEmbeddings, SearchIndex, load_search_index
from wsabie.collection.registry.model_registry import LoadedModel, load_model_in_use
from wsabie.core.arrays import Float32, Float64, Int64, UInt8
from wsabie.core.errors import InputError, ModelFolderError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.machine import limit_blas_threads
from wsabie.storage.model_folder import ModelState, open_model_folder, read_content_checksum, save_model_folder

MIN_UMAP_ITEMS = 10
"""Minimum number of items for UMAP."""

_BLOCK = 8192
_NEIGHBOURS, _MIN_DISTANCE = 30, 0.4  # with fewer and less, groups shrink to specks that fly apart
_MIN_LENGTH = 1e-12
T = TypeVar("T")
Method = Literal["pca", "umap"]
_KIND = "item map"
_N_NEIGHBOURS = 3  # neighbours that place a new item
_MAX_CACHED_MAPS = 2  # cached maps with their points: one for each method
_PRIMES, _FACTOR = (2**31 - 1, 2**31 - 19), 1_664_525_013
NOTHING, REJECTED, ACCEPTED, SUGGESTED = range(4)
"""Codes of a label's state on an item; SUGGESTED to 255 are suggestions in order of probability."""
_STATES = {"accepted": ACCEPTED, "rejected": REJECTED}
_N_BEST_ITEMS = 5  # items that define the position of a label
_making = threading.Lock()
_bests = FileCache[dict[int, Int64]](2)
_MAX_MEASURED_LABELS = 200
_MIN_LABEL_ITEMS = 5  # items of a measured label


class PrincipalComponents(NamedTuple):
    """Two directions of largest variance of unit vectors; `share` is their part of the variance."""

    mean: Float64  # (dim,)
    directions: Float64  # (dim, 2)
    share: float

    def project(self, points: Float32) -> Float32:
        """Return points (n, dim) in the plane, (n, 2)."""
        positions = np.empty((len(points), 2), np.float32)
        with limit_blas_threads():
            for lo in range(0, len(points), _BLOCK):
                positions[lo : lo + _BLOCK] = (_normalise(points[lo : lo + _BLOCK]) - self.mean) @ self.directions
        return positions


def compute_principal_components(points: Float32) -> PrincipalComponents:
    """Return the principal components of directions, by exact covariance, with fixed signs.

    The largest entry of each direction is positive, as in scikit-learn. The same points give the same bits for any
    number of threads. Points are read in blocks, so a memory-mapped table need not fit in memory.

    Parameters
    ----------
    points : (n, dim) float32

    Examples
    --------
    >>> components = compute_principal_components(np.array([[1, 0.1, 0], [1, -0.1, 0], [0.5, 0, 0.5]], np.float32))
    >>> np.abs(components.directions).round(1).tolist()
    [[0.4, 0.0], [0.0, 1.0], [0.9, 0.0]]
    """
    n, dim = points.shape
    mean, covariance = np.zeros(dim), np.zeros((dim, dim))
    with limit_blas_threads():
        for lo in range(0, n, _BLOCK):
            mean += _normalise(points[lo : lo + _BLOCK]).sum(axis=0, dtype=np.float64) / n
        centre = mean.astype(np.float32)
        for lo in range(0, n, _BLOCK):
            block = _normalise(points[lo : lo + _BLOCK]) - centre
            covariance += block.T @ block
        return PrincipalComponents(mean, *_find_leading(covariance))


def _find_leading(covariance: Float64) -> tuple[Float64, float]:
    dim = len(covariance)
    directions = np.zeros((dim, 2))
    n_directions = min(2, dim)
    values, vectors = eigh(covariance, subset_by_index=[dim - n_directions, dim - 1])
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    directions[:, :n_directions] = vectors * np.where(vectors[largest, np.arange(n_directions)] < 0, -1, 1)
    return directions, float(values.sum() / max(np.trace(covariance), _MIN_LENGTH))


def has_umap() -> bool:
    """Return True if UMAP is installed."""
    return find_spec("umap") is not None


def compute_umap(points: Float32, start: Float32) -> Float32:
    """Return points in the plane by UMAP, which keeps neighbours together; it begins at `start`.

    The seed is fixed, so the same points give the same coordinates; UMAP then runs in one thread.

    Parameters
    ----------
    points : (n, dim) float32
        At least `MIN_UMAP_ITEMS`.
    start : (n, 2) float32
        Principal components; points far apart in them stay apart.

    Raises
    ------
    InputError
        UMAP is not installed, or there are too few points.
    """
    require(has_umap(), "UMAP is not installed; run: pip install 'wsabie[map]'")
    if len(points) < MIN_UMAP_ITEMS:
        raise InputError(f"UMAP needs {MIN_UMAP_ITEMS} items and there are {len(points)}; look at principal components")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations, which do not concern readers of a map
        from umap import UMAP

        neighbours = min(_NEIGHBOURS, len(points) - 1)
        scaled_start = (start / max(float(start.std()), _MIN_LENGTH)).astype(np.float32)
        umap = UMAP(neighbours, metric="cosine", min_dist=_MIN_DISTANCE, init=scaled_start, random_state=0, n_jobs=1)
        return np.asarray(umap.fit_transform(np.asarray(points)), np.float32)


def compute_median(coordinates: Float32) -> Float32:
    """Return, for each row of coordinates (n, k, 2), the point nearest to all others in sum, (n, 2).

    A mean could lie between the groups of a row, far from all coordinates.

    Examples
    --------
    >>> compute_median(np.array([[[0, 0], [0, 1], [9, 9]]], np.float32))
    array([[0., 1.]], dtype=float32)
    """
    distances = np.sqrt(np.square(coordinates[:, :, None] - coordinates[:, None]).sum(axis=-1)).sum(axis=-1)
    return np.asarray(coordinates[np.arange(len(coordinates)), distances.argmin(axis=1)])


def _normalise(block: Float32) -> Float32:
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    return np.asarray(block / np.maximum(lengths, _MIN_LENGTH)[:, None])


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
    coordinates : (n, 2) float32
    share : float or None
        Share of the variance in the plane; None if the method has no such figure.
    """

    loaded_model: LoadedModel
    search_index: SearchIndex
    method: Method
    version: str
    source_version: str
    items: Int64
    coordinates: Float32
    share: float | None


@dataclass(frozen=True)
class ProjectionStatus:
    """State of a projection: "ready", "stale" (items came since), "none" or "not installed"."""

    method: Method
    state: Literal["ready", "stale", "none", "not installed"]
    new_items: int
    created: str | None


def build_map(collection: Collection, method: Method = "pca") -> Map:
    """Return the present items in the plane; fast if the same map was built before.

    Raises
    ------
    InputError
        There is no model, it was not applied yet, or the projection was not computed yet.
    """
    loaded_model = load_model_in_use(collection)
    index, index_version = load_embedding_snapshot(loaded_model.path)
    projection, projection_version = None, ""
    if method == "umap":
        folder = loaded_model.path / "map"
        projection, projection_version = _load_consistent(folder, lambda: _load_projection(loaded_model.path))
        if projection is None:
            raise InputError("there is no UMAP of the model in use yet; compute it first")
    key = loaded_model.path, index_version, method, projection_version
    all_coordinates, share = _projections.get(key, lambda: _project_points(index, projection))
    with begin_read(collection.engine) as connection:
        source_version = _make_fingerprint(loaded_model.path.name, index_version, *_fingerprint_present(connection))
        version = _make_fingerprint(source_version, method, projection_version)

        def draw() -> Map:
            ids, query = index.embeddings.items, select(items.c.id).where(items.c.state == "present")
            is_present = np.isin(ids, connection.scalars(query).all())
            present_points = ids[is_present], all_coordinates[is_present]
            return Map(loaded_model, index, method, version, source_version, *present_points, share)

        return _maps.get(version, draw)


def load_embedding_snapshot(model: Path) -> tuple[SearchIndex, str]:
    """Return the embeddings of one save and the checksum of it, even while another one is written.

    Raises
    ------
    InputError
        The model has no embeddings yet.
    """
    return _load_consistent(model / "item_embeddings", lambda: load_search_index(model))


def list_projections(collection: Collection) -> list[ProjectionStatus]:
    """Return the status of every projection of the model in use.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    model = load_model_in_use(collection).path
    embeddings, projection = load_embedding_snapshot(model)[0].embeddings, _load_projection(model)
    pca = ProjectionStatus("pca", "ready", 0, None)
    if projection is None:
        return [pca, ProjectionStatus("umap", "none" if has_umap() else "not installed", 0, None)]
    new_items = int((projection.embeddings.find(embeddings.items, embeddings.hashes) < 0).sum())
    return [pca, ProjectionStatus("umap", "stale" if new_items else "ready", new_items, projection.created)]


def compute_projection(collection: Collection, *, progress: Progress = SILENT) -> ProjectionStatus:
    """Compute a UMAP of the items of the model in use and store it; minutes for 100,000 items.

    Raises
    ------
    InputError
        UMAP is not installed, there is no model, it has too few items, or it was removed meanwhile.
    """
    model = load_model_in_use(collection).path
    embeddings = load_embedding_snapshot(model)[0].embeddings
    points = embeddings.vectors
    with progress.stage("drawing the map", None, "items") as bar:
        coordinates = compute_umap(points, compute_principal_components(points).project(points))
        bar.advance(len(coordinates))
    require(model.is_dir(), "the model was removed while its map was made; make that of the model in use")
    config = {"method": "umap", "created": format_current_time()}
    tensors = embeddings._replace(vectors=coordinates)._asdict()
    save_model_folder(model / "map", ModelState(_KIND, config, tensors))
    return list_projections(collection)[1]


def _make_fingerprint(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _load_consistent(folder: Path, load: Callable[[], T]) -> tuple[T, str]:
    """Return the content of a folder and the mark of its save; read again if a save came meanwhile."""
    while True:
        head = read_content_checksum(folder)
        content = load()
        if read_content_checksum(folder) == head:
            return content, head


def _fingerprint_present(connection: Connection) -> tuple[int, ...]:
    """Return numbers that change when the set of present items does; an index serves them."""
    # plain sums of ids or squares collide for many sets, so each id is scrambled first
    item_id, (first_prime, second_prime) = items.c.id, _PRIMES
    scrambled = item_id % first_prime * _FACTOR % first_prime
    query = select(func.count(), func.coalesce(func.sum(scrambled * scrambled % second_prime), 0))
    return tuple(int(part) for part in connection.execute(query.where(items.c.state == "present")).one())


_maps, _projections = FileCache[Map](_MAX_CACHED_MAPS), FileCache[tuple[Float32, float | None]](_MAX_CACHED_MAPS)


class _StoredProjection(NamedTuple):
    """Stored projection: item ids with 2-D coordinates as `vectors`, and the time when it was made."""

    embeddings: ItemEmbeddings
    created: str


def _project_points(index: SearchIndex, projection: _StoredProjection | None) -> tuple[Float32, float | None]:
    """Return the points in the plane, also of items that are gone, and their share of variance if known."""
    ids, hashes, points = index.embeddings
    if projection is None:
        components = compute_principal_components(points)
        return components.project(points), components.share
    positions = projection.embeddings.find(ids, hashes)
    is_projected = positions >= 0
    coordinates = np.zeros((len(ids), 2), np.float32)
    coordinates[is_projected] = projection.embeddings.vectors[positions[is_projected]]
    new_points = np.flatnonzero(~is_projected)
    if len(new_points) and is_projected.any():
        k = min(_N_NEIGHBOURS, int(is_projected.sum()))
        nearest = index.cosine.top_k(points[new_points], k, candidates=np.flatnonzero(is_projected))[0]
        coordinates[new_points] = np.median(coordinates[nearest], axis=1)
    return coordinates, None


def _load_projection(model: Path) -> _StoredProjection | None:
    """Return the stored projection, or None if there is none that is valid."""
    try:
        state = open_model_folder(model / "map", verify=False)
        projection = _StoredProjection(ItemEmbeddings.from_tensors(state.tensors, 2), str(state.config["created"]))
    except (ModelFolderError, KeyError):
        return None
    items, _, coordinates = projection.embeddings
    return projection if np.isfinite(coordinates).all() and (np.diff(items) > 0).all() else None


@dataclass(frozen=True)
class LabelPosition:
    """Label in the plane with the number of items on which it is accepted."""

    id: int
    name: str
    x: float
    y: float
    accepted: int


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
    with begin_read(collection.engine) as connection:
        columns, names = item_map.loaded_model.read_current_labels(connection), label_store.read_label_names(connection)
        counts: dict[int, int] = defaultdict(int, connection.execute(label_store.ITEMS_BY_LABEL).all())
    model_label_ids = {*columns.tolist()} & names.keys()
    label_ids = sorted(model_label_ids, key=lambda label_id: (-counts[label_id], names[label_id]))[:k]
    if not len(item_map.items) or not label_ids:
        return []
    coordinates = compute_median(item_map.coordinates[_find_best_items(item_map, label_ids, columns)])
    return [
        LabelPosition(label_id, names[label_id], float(x), float(y), counts[label_id])
        for label_id, (x, y) in zip(label_ids, coordinates, strict=True)
    ]


def colour_items(collection: Collection, label: str) -> tuple[Int64, UInt8]:
    """Return the items with a decision or suggestion of a label, by name or synonym, and their codes.

    Raises
    ------
    UnknownLabelError
        There is no such label.
    """
    a, s = annotations.c, suggestions.c
    with begin_read(collection.engine) as connection:
        label_id = label_store.find_label(connection, label)
        annotation_query = select(a.item_id, a.state).where(a.label_id == label_id, a.region == "")
        is_suggested = (s.model_id == find_model_in_use(connection)) & (s.label_id == label_id)
        suggested = select(s.item_id, s.probability).where(is_suggested)
        codes = {item: _encode_probability(probability) for item, probability in connection.execute(suggested)}
        codes |= {item: _STATES[state] for item, state in connection.execute(annotation_query)}
    return np.array(sorted(codes), np.int64), np.array([codes[item] for item in sorted(codes)], np.uint8)


def _encode_probability(probability: float) -> int:
    return SUGGESTED + round((255 - SUGGESTED) * min(1.0, max(0.0, probability)))


def _find_best_items(item_map: Map, label_ids: list[int], columns: Int64) -> Int64:
    """Return the positions, within the items of a map, of the best items of labels, (n_labels, k)."""
    cache = _bests.get((item_map.source_version, columns.tobytes()), dict)
    with _making:
        missing = [label for label in label_ids if label not in cache]
        if missing:
            embeddings, dot, _ = item_map.search_index
            vectors = item_map.loaded_model.model.label_vectors
            queries = np.stack([vectors[np.flatnonzero(columns == label)].mean(axis=0) for label in missing])
            candidates = np.flatnonzero(np.isin(embeddings.items, item_map.items))
            best = dot.top_k(queries, min(_N_BEST_ITEMS, len(candidates)), candidates=candidates)[0]
            cache.update(zip(missing, np.searchsorted(item_map.items, embeddings.items[best]), strict=True))
        return np.stack([cache[label] for label in label_ids])


class MapQuality(NamedTuple):
    """Share of a label's nearest items in the plane that carry it, by chance, and number of labels."""

    share: float
    chance: float
    labels: int


def measure_map_quality(collection: Collection, item_map: Map, k: int = 10) -> MapQuality:
    """Measure how often the items around a label in the plane carry it, for the largest labels."""
    positions = [p for p in place_labels(collection, item_map, _MAX_MEASURED_LABELS) if p.accepted >= _MIN_LABEL_ITEMS]
    a = annotations.c
    is_measured = a.label_id.in_([position.id for position in positions])
    query = select(a.label_id, a.item_id).where(a.state == "accepted", is_measured)
    items_by_label = group_pairs((label, item) for label, item in fetch_rows(collection.engine, query))
    shares, chances = [], []
    for position in positions:
        has_label = np.isin(item_map.items, items_by_label[position.id])
        distances = np.square(item_map.coordinates - np.array([position.x, position.y], np.float32)).sum(axis=1)
        shares.append(has_label[np.argsort(distances, kind="stable")[:k]].mean())
        chances.append(has_label.mean())
    return MapQuality(float(np.mean(shares or [0])), float(np.mean(chances or [0])), len(positions))
