"""A map of a collection: the items and labels of the model in use in the plane.

Principal components are made when they are asked for. UMAP takes minutes; a job makes it and keeps it with the model:

models/FOLDER/map/   tensors "items" (numbers), "marks" (of their content) and "places" (n, 2) float32

Items that came after it go beside those that they are nearest to, until it is made anew.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.base.arrays import Bool, Float32, Int64, UInt64
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.few import Few
from wsabie.catalogue.journal import now
from wsabie.catalogue.plane import between, has_umap, principal, umap_places
from wsabie.catalogue.points import Points, opened_model, searched
from wsabie.catalogue.shelf import OpenModel
from wsabie.catalogue.tables import items
from wsabie.storage.folder import Parts, content_mark, load_folder, save_folder

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex

T = TypeVar("T")
Method = Literal["pca", "umap"]
METHODS: tuple[Method, ...] = ("pca", "umap")

_KIND = "map of items"
_NEAREST = 3  # items beside which a new one goes
_MAPS = 2  # in memory, with their points: one of each method
_PRIMES, _FACTOR = (2**31 - 1, 2**31 - 19), 1_664_525_013


class Seen(NamedTuple):
    """The points that a model has seen, ready for searches; `head` tells them from those of another save."""

    points: Points
    dot: "ExactIndex"
    cosine: "ExactIndex"
    head: str


class Map(NamedTuple):
    """Items in the plane.

    Attributes
    ----------
    opened : OpenModel
        Whose map it is.
    seen : Seen
        The points that it was drawn of.
    method : {"pca", "umap"}
    version, of : str
        Changes when anything of it does; when its items or their points do.
    items : (n,) int64
        Numbers of the items that are present, ascending.
    places : (n, 2) float32
    placed : int
        Items that came after the projection and were put beside others.
    share : float or None
        Of the variance that the plane holds; None: the method has no such figure.
    """

    opened: OpenModel
    seen: Seen
    method: Method
    version: str
    of: str
    items: Int64
    places: Float32
    placed: int
    share: float | None

    @property
    def model(self) -> int:
        """The number of the model."""
        return self.opened.number


class Projection(NamedTuple):
    """How a projection stands: "ready", "stale" (items came since), "none" or "not installed"; when it was made."""

    method: Method
    state: str
    placed: int
    made: str | None


class _Kept(NamedTuple):
    """What a job has made."""

    items: Int64
    marks: UInt64
    places: Float32
    made: str


class _Whole(NamedTuple):
    """All points of a model in the plane, also those of items that are gone."""

    places: Float32
    placed: Bool
    share: float | None


def whole(collection: Collection, method: str = "pca") -> Map:
    """The items that are present, in the plane; quick where it was asked for before.

    Raises
    ------
    InputError
        There is no model, it was not applied yet, no such method, or its projection has not been made.
    """
    opened, known = opened_model(collection), _known(method)
    seen = seen_by(opened.path)
    kept, head = _steady(opened.path / "map", lambda: _kept(opened.path)) if known == "umap" else (None, "")
    if known == "umap" and kept is None:
        raise InputError(
            "there is no UMAP of the model in use yet; "
            f"run: wsabie collection map {quote(str(collection.folder))} --umap",
            served="there is no UMAP of the model in use yet; have it made on the page Map",
        )
    made = _places.get((opened.path, seen.head, known, head), lambda: _placed(seen, kept))
    with reading(collection.engine) as connection:
        of = _short(opened.path.name, seen.head, *_present_mark(connection))
        version = _short(of, known, head)

        def draw() -> Map:
            there = np.isin(seen.points.items, _present(connection))
            own = seen.points.items[there], made.places[there], int(made.placed[there].sum())
            return Map(opened, seen, known, version, of, *own, made.share)

        return _found.get(version, draw)


def seen_by(model: Path) -> Seen:
    """The points of one save, even while another comes.

    Raises
    ------
    InputError
        The model has seen none yet.
    """
    found, head = _steady(model / "points", lambda: searched(model))
    return Seen(*found, head)


def projections(collection: Collection) -> list[Projection]:
    """Which projections there are of the model in use.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    opened = opened_model(collection)
    points, kept = seen_by(opened.path).points, _kept(opened.path)
    if kept is None:
        umap = Projection("umap", "none" if has_umap() else "not installed", 0, None)
    else:
        placed = int((~_seen(kept, points)).sum())
        umap = Projection("umap", "stale" if placed else "ready", placed, kept.made)
    return [Projection("pca", "ready", 0, None), umap]


def project(collection: Collection, *, progress: Progress = SILENT) -> Projection:
    """Make a UMAP of the items of the model in use and keep it; minutes for 100,000.

    Raises
    ------
    InputError
        UMAP is not installed, there is no model, it has seen too few items, or it was removed meanwhile.
    """
    opened = opened_model(collection)
    points = seen_by(opened.path).points
    with progress.stage("drawing the map", None, "items") as bar:
        places = umap_places(points.points, principal(points.points).places(points.points))
        bar.advance(len(places))
    if not opened.path.is_dir():
        raise InputError("the model was removed while its map was made; make that of the model in use")
    tensors: dict[str, Any] = {"items": points.items, "marks": points.marks, "places": places}
    save_folder(opened.path / "map", Parts(_KIND, {"method": "umap", "made": now()}, tensors))
    return projections(collection)[1]


def _known(method: str) -> Method:
    for one in METHODS:
        if one == method:
            return one
    raise InputError(f"there is no projection {method!r}; choose one of {', '.join(METHODS)}")


def _short(*known: object) -> str:
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _steady(folder: Path, read: Callable[[], T]) -> tuple[T, str]:
    """What is read from a folder and the mark of the same save; read again where another came meanwhile."""
    while True:
        head = content_mark(folder)
        found = read()
        if content_mark(folder) == head:
            return found, head


def _present(connection: Connection) -> Int64:
    query = select(items.c.id).where(items.c.state == "present")
    return np.array(connection.execute(query).scalars().all(), np.int64)


def _present_mark(connection: Connection) -> tuple[int, ...]:
    """Changes when other items are present, but for rare chances; an index tells it.

    Sums of numbers, or of their squares, are those of other sets as well: each number is scrambled before.
    """
    n, (one, other) = items.c.id, _PRIMES
    scrambled = n % one * _FACTOR % one
    query = select(func.count(), func.coalesce(func.sum(scrambled * scrambled % other), 0))
    return tuple(int(part) for part in connection.execute(query.where(items.c.state == "present")).one())


_found, _places = Few[Map](_MAPS), Few[_Whole](_MAPS)


def _placed(seen: Seen, kept: _Kept | None) -> _Whole:
    """All points in the plane: by a projection that is kept, or by principal components."""
    points = seen.points
    if kept is None:
        found = principal(points.points)
        return _Whole(found.places(points.points), np.zeros(len(points.items), bool), found.share)
    old = _seen(kept, points)
    places = np.zeros((len(points.items), 2), np.float32)
    places[old] = kept.places[np.searchsorted(kept.items, points.items[old])]
    new = np.flatnonzero(~old)
    if len(new) and old.any():
        near = min(_NEAREST, int(old.sum()))
        nearest = seen.cosine.top_k(points.points[new], near, candidates=np.flatnonzero(old))[0]
        places[new] = between(places, nearest)
    return _Whole(places, ~old, None)


def _seen(kept: _Kept, points: Points) -> Bool:
    """Which points are of items that the projection has with their content of now."""
    return Points(kept.items, kept.marks, kept.places).has(points.items, points.marks)


def _kept(model: Path) -> _Kept | None:
    """What a job has made; None where there is nothing, or nothing that can be used."""
    try:
        parts = load_folder(model / "map", verify=False)
        there = parts.tensors
        found = _Kept(there["items"], there["marks"], there["places"], str(parts.config["made"]))
    except (ModelFolderError, KeyError):
        return None
    n = len(found.items)
    whole = found.places.shape == (n, 2) and found.marks.shape == (n,) == found.items.shape
    return found if whole and np.isfinite(found.places).all() and (np.diff(found.items) > 0).all() else None
