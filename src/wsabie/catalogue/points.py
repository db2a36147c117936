"""The points of items in the space of a model, kept beside it: similar items, items of a label, of a picture.

models/FOLDER/points/   tensors "items" (numbers), "marks" (of their content) and "points" (n, dim) float32
"""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import bindparam, select

from wsabie.base.arrays import Bool, Float32, Int64, UInt64
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.deciding import no_model
from wsabie.catalogue.few import Few
from wsabie.catalogue.item_index import quick_index
from wsabie.catalogue.shelf import OpenModel, open_model
from wsabie.catalogue.tables import items, models
from wsabie.storage.folder import Parts, load_folder, save_folder

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex
    from wsabie.space.joint import SimilarityName

_SPARE = 16  # points of items that may be gone by now
_KIND = "points of items"
_PRESENT = select(items.c.id).where(
    items.c.id.in_(bindparam("numbers", expanding=True)), items.c.state == "present"
)  # made once: to check hundreds of numbers as parts of a query took longer than the query


class Points(NamedTuple):
    """Items, ascending, a mark of the content of each, and their points."""

    items: Int64  # (n,)
    marks: UInt64  # (n,)
    points: Float32  # (n, dim)

    def has(self, numbers: Int64, marks: UInt64) -> Bool:
        """Which items are here with this content, (n,)."""
        if not len(self.items):
            return np.zeros(len(numbers), bool)
        at = np.minimum(np.searchsorted(self.items, numbers), len(self.items) - 1)
        there: Bool = (self.items[at] == numbers) & (self.marks[at] == marks)
        return there

    def with_others(self, others: "Points") -> "Points":
        """With the points of other items, which replace their own where both have some."""
        kept = ~np.isin(self.items, others.items)
        numbers = np.concatenate([self.items[kept], others.items])
        order = np.argsort(numbers)
        marks = np.concatenate([self.marks[kept], others.marks])[order]
        return Points(numbers[order], marks, np.concatenate([self.points[kept], others.points])[order])


class Near(NamedTuple):
    """An item and how near it is."""

    item: int
    score: float


def mark_of(content: str) -> int:
    """What tells a content from others, out of its hash.

    Examples
    --------
    >>> mark_of("00000000000000ff" + 16 * "7")
    255
    """
    return int(content[:16], 16)


def load_points(model: Path, dim: int) -> Points:
    """The points of a model, as far as there are any."""
    try:
        tensors = load_folder(model / "points", verify=False).tensors
        found = Points(tensors["items"], tensors["marks"], tensors["points"])
    except (ModelFolderError, KeyError):
        found = _none(dim)
    if found.points.shape != (len(found.items), dim) or found.marks.shape != found.items.shape:
        return _none(dim)
    return found


def save_points(model: Path, points: Points) -> None:
    """Keep the points of a model, atomically."""
    save_folder(model / "points", Parts(_KIND, {}, points._asdict()))


def nearest_items(
    collection: Collection,
    query: Any,
    k: int = 20,
    *,
    similarity: "SimilarityName" = "cosine",
    only: Iterable[int] | None = None,
    but: Iterable[int] = (),
    model: int | None = None,
) -> list[Near]:
    """The items nearest to a point of the space of the model in use, best first; by an index, where one was made.

    Parameters
    ----------
    collection : Collection
    query : (dim,) float32
        Of an item, a label, a picture or a region.
    k : int
    similarity : {"cosine", "dot"}
        "cosine" between things of a kind, "dot" between a label and items.
    only : iterable of int or None
        Numbers of the items that come into question.
    but : iterable of int
        Items that do not.
    model : int or None
        The one that the query is a point of; None: the one in use, which another may be put into use for at any time.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    place, _ = _place(collection, model)
    return _nearest(collection, place, [query], k, similarity, only, but)[0]


def nearest_to_each(
    collection: Collection, queries: Sequence[Any], k: int = 20, *, but: Iterable[int] = (), model: int | None = None
) -> list[list[Near]]:
    """As `nearest_items`, of several labels' points, in little more time than of one."""
    place, _ = _place(collection, model)
    return _nearest(collection, place, queries, k, "dot", None, but)


def similar(collection: Collection, item: int, k: int = 20, *, only: Iterable[int] | None = None) -> list[Near]:
    """Items that the model in use puts near to an item.

    Raises
    ------
    InputError
        As `nearest_items`; or the item has not been looked at.
    """
    place, _ = _place(collection, None)
    points = searched(place)[0]
    at = int(np.searchsorted(points.items, item))
    if at == len(points.items) or points.items[at] != item:
        said = f"the model has not seen item {item} yet"
        raise InputError(
            f"{said}; run: wsabie collection apply {quote(str(collection.folder))}",
            served=f"{said}; press Suggest on the page Status",
        )
    return _nearest(collection, place, [points.points[at]], k, "cosine", only, (item,))[0]


def searched(model: Path) -> "tuple[Points, ExactIndex, ExactIndex]":
    """The points that a model has seen, ready for searches by inner product and by cosine.

    Raises
    ------
    InputError
        It has seen none yet.
    """
    config = model / "points/config.json"
    try:
        stat = config.stat()
    except OSError as error:
        said = "the model in use has seen no items yet"
        raise InputError(
            f"{said}; run: wsabie collection apply", served=f"{said}; press Suggest on the page Status"
        ) from error
    return _searched.get((model, stat.st_mtime_ns, stat.st_ino), lambda: _made_ready(model))


def _none(dim: int) -> Points:
    return Points(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty((0, dim), np.float32))


def _nearest(
    collection: Collection,
    place: Path,
    queries: Sequence[Any],
    k: int,
    similarity: "SimilarityName",
    only: Iterable[int] | None,
    but: Iterable[int],
) -> list[list[Near]]:
    points, dot, cosine = searched(place)
    index = quick_index(place, points, dot if similarity == "dot" else cosine)
    candidates = None if only is None else np.flatnonzero(np.isin(points.items, np.fromiter(only, np.int64)))
    left, hidden = len(points.items) if candidates is None else len(candidates), np.fromiter(but, np.int64)
    places = np.flatnonzero(np.isin(points.items, hidden)) if len(hidden) else hidden
    asked = min(k + _SPARE, left)
    table, found = np.asarray(queries, np.float32), [list[Near]() for _ in queries]
    few = list(range(len(found)))  # queries that have found fewer than k so far
    while left and few:
        out = _of_each(places, len(few), len(points.items)) if len(places) else None
        ids, scores = index.top_k(table[few], asked, candidates=candidates, exclude=out)
        numbers = np.where(ids >= 0, points.items[ids], -1)
        present = _present(collection, np.unique(numbers[ids >= 0]).tolist())
        for query, row, own in zip(few, numbers.tolist(), scores.tolist(), strict=True):
            found[query] = [Near(item, score) for item, score in zip(row, own, strict=True) if item in present][:k]
        if asked == left:
            break
        few = [query for query in few if len(found[query]) < k]
        asked = min(4 * asked, left)
    return found


def _of_each(places: Int64, n_queries: int, n_items: int) -> Any:
    """The same items for each query, as `top_k` takes what it is not to find, (n_queries, n_items)."""
    from scipy.sparse import csr_matrix

    columns = np.tile(places, n_queries)
    starts = np.arange(n_queries + 1) * len(places)
    return csr_matrix((np.ones(len(columns), np.int8), columns, starts), (n_queries, n_items))


def _present(collection: Collection, numbers: list[int]) -> set[int]:
    there: set[int] = set()
    with reading(collection.engine) as connection:
        for lo in range(0, len(numbers), 500):
            there.update(connection.execute(_PRESENT, {"numbers": numbers[lo : lo + 500]}).scalars())
    return there


def _place(collection: Collection, model: int | None) -> tuple[Path, int]:
    which = models.c.in_use.is_(True) if model is None else models.c.id == model
    with reading(collection.engine) as connection:
        found = connection.execute(select(models.c.folder, models.c.id).where(which)).first()
        if found is None:
            raise no_model(connection, collection.folder)
    return collection.models / found[0], found[1]


_searched = Few["tuple[Points, ExactIndex, ExactIndex]"](2)  # a search takes less time than making a table ready


def _made_ready(model: Path) -> "tuple[Points, ExactIndex, ExactIndex]":
    from wsabie.search.exact import ExactIndex

    tensors = load_folder(model / "points", verify=False).tensors
    points = Points(tensors["items"], tensors["marks"], tensors["points"])
    return points, ExactIndex(points.points), ExactIndex(points.points, similarity="cosine")


_models: dict[Path, OpenModel] = {}
_opening = threading.Lock()


def opened_model(collection: Collection) -> OpenModel:
    """The model in use; its folder never changes, so that it is read once.

    Raises
    ------
    InputError
        There is none, or its folder is gone or damaged.
    """
    place, number = _place(collection, None)
    with _opening:  # many ask at once when it is another one
        if place not in _models or not place.is_dir():
            _models.clear()
            _models[place] = open_model(collection, number)
        return _models[place]
