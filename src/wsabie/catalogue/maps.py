"""A map of a collection: the items and labels of the model in use in the plane.

Principal components are made when they are asked for. UMAP takes minutes; a job makes it and keeps it with the model:

models/FOLDER/map/   tensors "items" (numbers), "marks" (of their content) and "places" (n, 2) float32

Items that came after it go beside those that they are nearest to, until it is made anew.
"""

import hashlib
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, select

from wsabie.base.arrays import Bool, Float32, Int64, UInt64
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.journal import now
from wsabie.catalogue.plane import between, has_umap, principal, umap_places
from wsabie.catalogue.points import Points, opened_model, searched
from wsabie.catalogue.tables import items
from wsabie.storage.folder import Parts, load_folder, save_folder

Method = Literal["pca", "umap"]
METHODS: tuple[Method, ...] = ("pca", "umap")

_KIND = "map of items"
_NEAREST = 3  # items beside which a new one goes
_MAPS = 4  # in memory
_making = threading.Lock()  # of two who ask first, one waits for the other


class Map(NamedTuple):
    """Items in the plane.

    Attributes
    ----------
    model : int
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

    model: int
    method: Method
    version: str
    of: str
    items: Int64
    places: Float32
    placed: int
    share: float | None


class Standing(NamedTuple):
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
    points = searched(opened.path)[0]
    heads = (_head(opened.path / "points"), _head(opened.path / "map") if known == "umap" else "")
    with reading(collection.engine) as connection:
        of = _short(opened.path.name, heads[0], *_present_mark(connection))
        version = _short(of, known, heads[1])
        if version in _found:
            return _found[version]
        numbers = _present(connection)
    with _making:
        made = _places(opened.path, known, *heads)
    if made is None:
        raise InputError(
            f"there is no UMAP of the model in use yet; run: wsabie collection map {collection.folder} --umap"
        )
    there = np.isin(points.items, numbers)
    placed = int(made.placed[there].sum())
    drawn = Map(opened.number, known, version, of, points.items[there], made.places[there], placed, made.share)
    while len(_found) >= _MAPS:
        _found.pop(next(iter(_found)), None)
    _found[version] = drawn
    return drawn


def standing(collection: Collection) -> list[Standing]:
    """Which projections there are of the model in use.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    opened = opened_model(collection)
    points, kept = searched(opened.path)[0], _kept(opened.path)
    if kept is None:
        umap = Standing("umap", "none" if has_umap() else "not installed", 0, None)
    else:
        placed = int((~_seen(kept, points)).sum())
        umap = Standing("umap", "stale" if placed else "ready", placed, kept.made)
    return [Standing("pca", "ready", 0, None), umap]


def project(collection: Collection, *, progress: Progress = SILENT) -> Standing:
    """Make a UMAP of the items of the model in use and keep it; minutes for 100,000.

    Raises
    ------
    InputError
        UMAP is not installed, there is no model, it has seen too few items, or it was removed meanwhile.
    """
    opened = opened_model(collection)
    points = searched(opened.path)[0]
    with progress.stage("drawing the map", None, "items") as bar:
        places = umap_places(points.points, principal(points.points).places(points.points))
        bar.advance(len(places))
    if not opened.path.is_dir():
        raise InputError("the model was removed while its map was made; make that of the model in use")
    tensors: dict[str, Any] = {"items": points.items, "marks": points.marks, "places": places}
    save_folder(opened.path / "map", Parts(_KIND, {"method": "umap", "made": now()}, tensors))
    return standing(collection)[1]


def _known(method: str) -> Method:
    for one in METHODS:
        if one == method:
            return one
    raise InputError(f"there is no projection {method!r}; choose one of {', '.join(METHODS)}")


def _short(*known: object) -> str:
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _head(folder: Path) -> str:
    """What tells the content of a folder from others: the checksum at the head of its list."""
    try:
        with (folder / "config.json").open("rb") as file:
            return file.read(80).decode("ascii", "replace")
    except OSError:
        return ""


def _present(connection: Connection) -> Int64:
    query = select(items.c.id).where(items.c.state == "present")
    return np.array(connection.execute(query).scalars().all(), np.int64)


def _present_mark(connection: Connection) -> tuple[int, ...]:
    """Changes when other items are present, but for rare chances; an index tells it."""
    n = items.c.id
    query = select(func.count(), func.coalesce(func.sum(n), 0), func.coalesce(func.max(n), 0))
    return tuple(int(one) for one in connection.execute(query.where(items.c.state == "present")).one())


_found: dict[str, Map] = {}


@lru_cache(maxsize=_MAPS)
def _places(model: Path, method: Method, _: str, __: str) -> _Whole | None:
    points, _dot, cosine = searched(model)
    if method == "pca":
        found = principal(points.points)
        return _Whole(found.places(points.points), np.zeros(len(points.items), bool), found.share)
    kept = _kept(model)
    if kept is None:
        return None
    seen = _seen(kept, points)
    places = np.zeros((len(points.items), 2), np.float32)
    places[seen] = kept.places[np.searchsorted(kept.items, points.items[seen])]
    new = np.flatnonzero(~seen)
    if len(new) and seen.any():
        nearest = cosine.top_k(points.points[new], min(_NEAREST, int(seen.sum())), candidates=np.flatnonzero(seen))[0]
        places[new] = between(places, nearest)
    return _Whole(places, ~seen, None)


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
