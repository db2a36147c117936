"""Embeddings of items in a model's space, stored beside the model, and searches by them.

models/FOLDER/points/   tensors "items" (ids), "marks" (of their content) and "points" (n, dim) float32
"""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import bindparam, select

from wsabie.collection.annotations.decisions import make_no_model_error
from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.tables import items, models
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.item_index import load_item_index
from wsabie.collection.registry.model_registry import LoadedModel, load_model
from wsabie.core.arrays import Bool, Float32, Int64, UInt64
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

if TYPE_CHECKING:
    from wsabie.embedding.joint_space import SimilarityName
    from wsabie.search.exact_index import ExactIndex

_SPARE = 16  # additional matches, as some items may be gone
_KIND = "points of items"
_PRESENT = select(items.c.id).where(
    items.c.id.in_(bindparam("numbers", expanding=True)), items.c.state == "present"
)  # built once: checking hundreds of ids as parts of a new query took longer than the query


class ItemEmbeddings(NamedTuple):
    """Item ids, ascending, marks of their contents, and their points."""

    items: Int64  # (n,)
    marks: UInt64  # (n,)
    points: Float32  # (n, dim)

    def contains(self, numbers: Int64, marks: UInt64) -> Bool:
        """Return a mask of the items that are stored with this content, (n,)."""
        if not len(self.items):
            return np.zeros(len(numbers), bool)
        positions = np.minimum(np.searchsorted(self.items, numbers), len(self.items) - 1)
        is_stored: Bool = (self.items[positions] == numbers) & (self.marks[positions] == marks)
        return is_stored

    def merge(self, updates: "ItemEmbeddings") -> "ItemEmbeddings":
        """Return the embeddings merged with those of other items, which replace older ones."""
        is_kept = ~np.isin(self.items, updates.items)
        numbers = np.concatenate([self.items[is_kept], updates.items])
        order = np.argsort(numbers)
        marks = np.concatenate([self.marks[is_kept], updates.marks])[order]
        return ItemEmbeddings(numbers[order], marks, np.concatenate([self.points[is_kept], updates.points])[order])


class ItemNeighbour(NamedTuple):
    """Item and its similarity to the query."""

    item: int
    score: float


def compute_mark(content: str) -> int:
    """Return the mark of a content, derived from its hash.

    Examples
    --------
    >>> compute_mark("00000000000000ff" + 16 * "7")
    255
    """
    return int(content[:16], 16)


def load_item_embeddings(model: Path, dim: int) -> ItemEmbeddings:
    """Return the stored embeddings of a model; empty if there are none."""
    try:
        tensors = open_model_folder(model / "points", verify=False).tensors
        embeddings = ItemEmbeddings(tensors["items"], tensors["marks"], tensors["points"])
    except (ModelFolderError, KeyError):
        embeddings = _make_empty(dim)
    if embeddings.points.shape != (len(embeddings.items), dim) or embeddings.marks.shape != embeddings.items.shape:
        return _make_empty(dim)
    return embeddings


def save_item_embeddings(model: Path, points: ItemEmbeddings) -> None:
    """Save the embeddings of a model atomically."""
    save_model_folder(model / "points", ModelState(_KIND, {}, points._asdict()))


def find_nearest_items(
    collection: Collection,
    query: Any,
    k: int = 20,
    *,
    similarity: "SimilarityName" = "cosine",
    only: Iterable[int] | None = None,
    exclude: Iterable[int] = (),
    model: int | None = None,
) -> list[ItemNeighbour]:
    """Return the items nearest to a point of the model's space, best first; by an index if one exists.

    Parameters
    ----------
    collection : Collection
    query : (dim,) float32
        Point of an item, a label, a picture or a region.
    k : int
    similarity : {"cosine", "dot"}
        "cosine" between items, "dot" between a label and items.
    only : iterable of int or None
        Ids of the candidate items.
    exclude : iterable of int
        Ids of excluded items.
    model : int or None
        Id of the model of the query's space; None is the one in use, which may change at any time.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    folder, _ = _find_model_folder(collection, model)
    return _search(collection, folder, [query], k, similarity, only, exclude)[0]


def find_nearest_items_each(
    collection: Collection,
    queries: Sequence[Any],
    k: int = 20,
    *,
    exclude: Iterable[int] = (),
    model: int | None = None,
) -> list[list[ItemNeighbour]]:
    """Return the nearest items of several label points, in little more time than of one."""
    folder, _ = _find_model_folder(collection, model)
    return _search(collection, folder, queries, k, "dot", None, exclude)


def find_similar_items(
    collection: Collection, item: int, k: int = 20, *, only: Iterable[int] | None = None
) -> list[ItemNeighbour]:
    """Return the items nearest to an item in the space of the model in use.

    Raises
    ------
    InputError
        As `find_nearest_items`; or the model has not processed the item.
    """
    folder, _ = _find_model_folder(collection, None)
    points = load_search_index(folder)[0]
    position = int(np.searchsorted(points.items, item))
    if position == len(points.items) or points.items[position] != item:
        message = f"the model has not seen item {item} yet"
        raise InputError(
            f"{message}; run: wsabie collection apply {quote(str(collection.folder))}",
            served=f"{message}; press Suggest on the page Status",
        )
    return _search(collection, folder, [points.points[position]], k, "cosine", only, (item,))[0]


def load_search_index(model: Path) -> "tuple[ItemEmbeddings, ExactIndex, ExactIndex]":
    """Return the embeddings of a model with search indices by inner product and by cosine.

    Raises
    ------
    InputError
        It has processed no items yet.
    """
    config = model / "points/config.json"
    try:
        stat = config.stat()
    except OSError as error:
        message = "the model in use has seen no items yet"
        raise InputError(
            f"{message}; run: wsabie collection apply", served=f"{message}; press Suggest on the page Status"
        ) from error
    return _index_cache.get((model, stat.st_mtime_ns, stat.st_ino), lambda: _build_search_index(model))


def _make_empty(dim: int) -> ItemEmbeddings:
    return ItemEmbeddings(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty((0, dim), np.float32))


def _search(
    collection: Collection,
    folder: Path,
    queries: Sequence[Any],
    k: int,
    similarity: "SimilarityName",
    only: Iterable[int] | None,
    exclude: Iterable[int],
) -> list[list[ItemNeighbour]]:
    points, dot, cosine = load_search_index(folder)
    index = load_item_index(folder, points, dot if similarity == "dot" else cosine)
    candidates = None if only is None else np.flatnonzero(np.isin(points.items, np.fromiter(only, np.int64)))
    n_candidates = len(points.items) if candidates is None else len(candidates)
    excluded_items = np.fromiter(exclude, np.int64)
    excluded_positions = excluded_items
    if len(excluded_items):
        excluded_positions = np.flatnonzero(np.isin(points.items, excluded_items))
    n_requested = min(k + _SPARE, n_candidates)
    table, results = np.asarray(queries, np.float32), [list[ItemNeighbour]() for _ in queries]
    pending = list(range(len(results)))  # queries with fewer than k results so far
    while n_candidates and pending:
        exclusion = (
            _repeat_exclusion(excluded_positions, len(pending), len(points.items)) if len(excluded_positions) else None
        )
        ids, scores = index.top_k(table[pending], n_requested, candidates=candidates, exclude=exclusion)
        numbers = np.where(ids >= 0, points.items[ids], -1)
        present = _read_present(collection, np.unique(numbers[ids >= 0]).tolist())
        for query, row_items, row_scores in zip(pending, numbers.tolist(), scores.tolist(), strict=True):
            results[query] = [
                ItemNeighbour(item, score) for item, score in zip(row_items, row_scores, strict=True) if item in present
            ][:k]
        if n_requested == n_candidates:
            break
        pending = [query for query in pending if len(results[query]) < k]
        n_requested = min(4 * n_requested, n_candidates)
    return results


def _repeat_exclusion(positions: Int64, n_queries: int, n_items: int) -> Any:
    """Return the same exclusions for each query as a matrix for `top_k`, (n_queries, n_items)."""
    from scipy.sparse import csr_matrix

    columns = np.tile(positions, n_queries)
    starts = np.arange(n_queries + 1) * len(positions)
    return csr_matrix((np.ones(len(columns), np.int8), columns, starts), (n_queries, n_items))


def _read_present(collection: Collection, numbers: list[int]) -> set[int]:
    present: set[int] = set()
    with begin_read(collection.engine) as connection:
        for lo in range(0, len(numbers), 500):
            present.update(connection.execute(_PRESENT, {"numbers": numbers[lo : lo + 500]}).scalars())
    return present


def _find_model_folder(collection: Collection, model: int | None) -> tuple[Path, int]:
    condition = models.c.in_use.is_(True) if model is None else models.c.id == model
    with begin_read(collection.engine) as connection:
        row = connection.execute(select(models.c.folder, models.c.id).where(condition)).first()
        if row is None:
            raise make_no_model_error(connection, collection.folder)
    return collection.models / row[0], row[1]


# Building the indices takes longer than a search.
_index_cache = FileCache["tuple[ItemEmbeddings, ExactIndex, ExactIndex]"](2)


def _build_search_index(model: Path) -> "tuple[ItemEmbeddings, ExactIndex, ExactIndex]":
    from wsabie.search.exact_index import ExactIndex

    tensors = open_model_folder(model / "points", verify=False).tensors
    points = ItemEmbeddings(tensors["items"], tensors["marks"], tensors["points"])
    return points, ExactIndex(points.points), ExactIndex(points.points, similarity="cosine")


_models: dict[Path, LoadedModel] = {}
_load_lock = threading.Lock()


def load_model_in_use(collection: Collection) -> LoadedModel:
    """Return the model in use; it is read once, as its folder never changes.

    Raises
    ------
    InputError
        There is none, or its folder is missing or damaged.
    """
    folder, number = _find_model_folder(collection, None)
    with _load_lock:  # after a switch, many requests ask at once
        if folder not in _models or not folder.is_dir():
            _models.clear()
            _models[folder] = load_model(collection, number)
        return _models[folder]
