"""Embeddings of items in a model's space, and searches by them, exact or by approximate indices.

models/FOLDER/item_embeddings/   tensors "items" (ids), "hashes" (of their content) and "vectors" (n, dim) float32
models/FOLDER/item_embeddings/index-SIMILARITY/   the codes, and the "items" and "hashes" of their points

Items that came after the index are scored exactly, and items that are gone are skipped. `apply` rebuilds the index when
these are more than a fiftieth of all.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from sqlalchemy import bindparam, select
from typing_extensions import TypedDict

from wsabie.collection.db.cache import FileCache
from wsabie.collection.db.database import begin_read, iterate_chunks
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.registry.model_registry import find_model_folder, load_model_in_use
from wsabie.core.arrays import Array, Float32, Int64, Matrix, UInt64
from wsabie.core.errors import InputError, ModelFolderError, WsabieError
from wsabie.core.execution import SILENT, Progress
from wsabie.core.input_files import read_stamp
from wsabie.core.json_conversion import JsonObject
from wsabie.embedding.joint_space import SimilarityName
from wsabie.search.approximate_index import ApproximateIndex, CodesKind
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_index import DEFAULT_RECALL
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

_KIND = "item embeddings"
CHANGED = 0.02
"""Share of changed points above which an index is rebuilt."""
SENSIBLE = 100_000
"""Minimum number of items for which an index is proposed; an exact search of fewer takes a millisecond or two."""
_SPARE = 16  # additional matches, as some items may be gone
# Built once: checking hundreds of ids as parts of a new query took longer than the query.
_PRESENT = select(items.c.id).where(items.c.id.in_(bindparam("item_ids", expanding=True)), items.c.state == "present")
_SIMILARITIES = ("dot", "cosine")
_log = logging.getLogger("wsabie")
_item_index_cache = FileCache[ExactIndex | ApproximateIndex](4)


class ItemEmbeddings(NamedTuple):
    """Item ids, ascending; `hashes`, 64-bit hashes of the contents; and `vectors`, the embeddings."""

    items: Int64  # (n,)
    hashes: UInt64  # (n,)
    vectors: Float32  # (n, dim)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Array], dim: int) -> "ItemEmbeddings":
        """Return the embeddings in a model folder.

        Raises
        ------
        KeyError, ModelFolderError
            A tensor is missing or has another shape.
        """
        embeddings = cls(*(tensors[name] for name in cls._fields))
        n = len(embeddings.items)
        if [tensor.shape for tensor in embeddings] != [(n,), (n,), (n, dim)]:
            raise ModelFolderError("the embeddings of items have another shape than the model")
        return embeddings

    def find(self, item_ids: Int64, hashes: UInt64) -> Int64:
        """Return the positions of items, -1 for those that are not stored with this content, (n,)."""
        if not len(self.items):
            return np.full(len(item_ids), -1)
        positions = np.minimum(np.searchsorted(self.items, item_ids), len(self.items) - 1)
        return np.where((self.items[positions] == item_ids) & (self.hashes[positions] == hashes), positions, -1)

    def merge(self, updates: "ItemEmbeddings") -> "ItemEmbeddings":
        """Return the embeddings merged with those of other items, which replace older ones."""
        is_kept = ~np.isin(self.items, updates.items)
        item_ids = np.concatenate([self.items[is_kept], updates.items])
        order = np.argsort(item_ids)
        hashes = np.concatenate([self.hashes[is_kept], updates.hashes])[order]
        return ItemEmbeddings(item_ids[order], hashes, np.concatenate([self.vectors[is_kept], updates.vectors])[order])


class SearchIndex(NamedTuple):
    """Embeddings of a model with search indices by inner product and by cosine."""

    embeddings: ItemEmbeddings
    dot: ExactIndex
    cosine: ExactIndex


def shorten_hash(content: str) -> int:
    """Return the first 64 bits of a content hash.

    Examples
    --------
    >>> shorten_hash("00000000000000ff" + 16 * "7")
    255
    """
    return int(content[:16], 16)


def load_item_embeddings(model: Path, dim: int) -> ItemEmbeddings:
    """Return the stored embeddings of a model; empty if there are none."""
    try:
        return ItemEmbeddings.from_tensors(open_model_folder(model / "item_embeddings", verify=False).tensors, dim)
    except (ModelFolderError, KeyError):
        return ItemEmbeddings(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty((0, dim), np.float32))


def save_item_embeddings(model: Path, embeddings: ItemEmbeddings) -> None:
    """Save the embeddings of a model atomically."""
    save_model_folder(model / "item_embeddings", ModelState(_KIND, {}, embeddings._asdict()))


def load_search_index(model: Path) -> SearchIndex:
    """Return the embeddings of a model with search indices by inner product and by cosine.

    Raises
    ------
    InputError
        It has processed no items yet.
    """
    if not (stamp := read_stamp(model / "item_embeddings/config.json")):
        raise InputError("the model in use has seen no items yet; run: `collection.apply()`")
    return _index_cache.get((model, stamp), lambda: _build_search_index(model))


# Building the indices takes longer than a search.
_index_cache = FileCache[SearchIndex](2)


def _build_search_index(model: Path) -> SearchIndex:
    tensors = open_model_folder(model / "item_embeddings", verify=False).tensors
    embeddings = ItemEmbeddings(*(tensors[name] for name in ItemEmbeddings._fields))
    dot, cosine = ExactIndex(embeddings.vectors), ExactIndex(embeddings.vectors, similarity="cosine")
    return SearchIndex(embeddings, dot, cosine)


class ItemNeighbour(NamedTuple):
    """Item and its similarity to the query."""

    item: int
    score: float


@dataclass(frozen=True)
class IndexStatus:
    """State of the index of a model's items.

    Attributes
    ----------
    state : {"ready", "none", "small", "not installed"}
        "small": fewer than `SENSIBLE` items and no index.
    recall : float or None
        Share of the ten nearest items that the index finds, for the worse similarity.
    milliseconds, exact_milliseconds : float or None
        Duration of a search with and without the index, for the slower similarity.
    """

    state: Literal["ready", "none", "small", "not installed"]
    recall: float | None = None
    milliseconds: float | None = None
    exact_milliseconds: float | None = None


def find_nearest_items(
    collection: Collection,
    queries: Sequence[Float32],
    k: int = 20,
    *,
    similarity: SimilarityName = "cosine",
    exclude: Iterable[int] = (),
    model: int | None = None,
) -> list[list[ItemNeighbour]]:
    """Return the items nearest to points of the model's space, best first; by an index if one exists.

    Several points take little more time than one.

    Parameters
    ----------
    collection : Collection
    queries : sequence of (dim,) float32
        Points of items, labels, pictures or regions.
    k : int
    similarity : {"cosine", "dot"}
        "cosine" between items, "dot" between a label and items.
    exclude : iterable of int
        Ids of excluded items.
    model : int or None
        Id of the model of the space; None is the one in use, which may change at any time.

    Raises
    ------
    InputError
        There is no model, or it was not applied yet.
    """
    folder, _ = find_model_folder(collection, model)
    embeddings, dot, cosine = load_search_index(folder)
    index = load_item_index(folder, embeddings, dot if similarity == "dot" else cosine)
    n_candidates = len(embeddings.items)
    excluded = np.flatnonzero(np.isin(embeddings.items, np.fromiter(exclude, np.int64)))
    n_requested = min(k + _SPARE, n_candidates)
    table, results = np.asarray(queries, np.float32), [list[ItemNeighbour]() for _ in queries]
    pending = list(range(len(results)))  # queries with fewer than k results so far
    while n_candidates and pending:
        exclusion = _repeat_exclusion(excluded, len(pending), len(embeddings.items)) if len(excluded) else None
        ids, scores = index.top_k(table[pending], n_requested, exclude=exclusion)
        item_ids = np.where(ids >= 0, embeddings.items[ids], -1)
        with begin_read(collection.engine) as connection:
            blocks = iterate_chunks(np.unique(item_ids[ids >= 0]).tolist(), 500)
            rows = [connection.scalars(_PRESENT, {"item_ids": block}).all() for block in blocks]
        present = set(chain.from_iterable(rows))
        for query, row_items, row_scores in zip(pending, item_ids.tolist(), scores.tolist(), strict=True):
            pairs = zip(row_items, row_scores, strict=True)
            results[query] = [ItemNeighbour(item, score) for item, score in pairs if item in present][:k]
        if n_requested == n_candidates:
            break
        pending = [query for query in pending if len(results[query]) < k]
        n_requested = min(4 * n_requested, n_candidates)
    return results


def find_similar_items(
    collection: Collection, item: int, k: int = 20, *, exclude: Iterable[int] = ()
) -> list[ItemNeighbour]:
    """Return the items nearest to an item in the space of the model in use; without `exclude`.

    Raises
    ------
    InputError
        As `find_nearest_items`; or the model has not processed the item.
    """
    folder, model = find_model_folder(collection, None)
    embeddings = load_search_index(folder).embeddings
    position = int(np.searchsorted(embeddings.items, item))
    if position == len(embeddings.items) or embeddings.items[position] != item:
        raise InputError(f"the model has not seen item {item} yet; run: {format_step('apply', collection.folder)}")
    return find_nearest_items(collection, [embeddings.vectors[position]], k, exclude=(item, *exclude), model=model)[0]


def _repeat_exclusion(positions: Int64, n_queries: int, n_items: int) -> Matrix:
    """Return the same exclusions for each query as a matrix for `top_k`, (n_queries, n_items)."""
    from scipy.sparse import csr_matrix

    columns, starts = np.tile(positions, n_queries), np.arange(n_queries + 1) * len(positions)
    return csr_matrix((np.ones(len(columns), np.int8), columns, starts), (n_queries, n_items))


def read_index_status(model: Path, n_items: int) -> IndexStatus:
    """Return the state of a model's index for this number of items."""
    if find_spec("faiss") is None:
        return IndexStatus("not installed")
    configs = [parts.config for similarity in _SIMILARITIES if (parts := _load_state(model, similarity, verify=False))]
    if len(configs) < len(_SIMILARITIES):
        return IndexStatus("small" if n_items < SENSIBLE else "none")
    try:
        durations = [{effort: ms for effort, _, ms in config["curve"]}[config["effort"]] for config in configs]
        recall = min(float(config["recall"]) for config in configs)
        exact = max(float(config["exact_milliseconds"]) for config in configs)
        return IndexStatus("ready", recall, max(durations), exact)
    except (KeyError, TypeError, ValueError):
        return IndexStatus("none")


_Recall = TypedDict("_Recall", {"recall@10": float})  # the key is no name


class IndexFacts(_Recall):
    """Facts of an approximate index; see `LabelSearchIndex`."""

    kind: str
    measured_on: str
    milliseconds: float
    exact_milliseconds: float
    effort: int
    bytes: int


@dataclass(frozen=True)
class IndexResult:
    """Facts of the indices of a model's items, by inner product and by cosine."""

    dot: IndexFacts
    cosine: IndexFacts


def index_items(
    collection: Collection, *, kind: CodesKind = "ivf", recall: float = 0.95, progress: Progress = SILENT
) -> IndexResult:
    """Build the model's indices, by inner product and by cosine, tuned on its items; return their facts.

    Raises
    ------
    InputError
        There is no model, it has processed fewer than 1,000 items, or faiss is not installed.
    """
    folder = load_model_in_use(collection).path
    return _build_indices(folder, load_search_index(folder), kind, recall, progress)


def renew_indices(collection: Collection, model: Path, progress: Progress = SILENT) -> IndexResult | None:
    """Rebuild the indices of a model if much has changed, or if only earlier models have some."""
    if not any(collection.models.glob("*/item_embeddings/index-*/config.json")):
        return None
    try:
        search_index = load_search_index(model)
    except InputError:  # it has processed no items
        return None
    states = [_load_state(model, similarity) for similarity in _SIMILARITIES]
    if all(state is not None and _is_current(state, search_index.embeddings) for state in states):
        return None
    config = next((state.config for state in states if state is not None), {})
    kind, recall = config.get("kind", "ivf"), float(config.get("target_recall", DEFAULT_RECALL))
    try:
        return _build_indices(model, search_index, kind, recall, progress)
    except InputError as error:
        _log.warning("the index of the items was not made again: %s", error)
        return None


def _is_current(state: ModelState, embeddings: ItemEmbeddings) -> bool:
    """Return True if few points have no code and few codes no point."""
    positions = _map_positions(state, embeddings)
    if positions is None:
        return False
    n_shared = int((positions >= 0).sum())
    return all(n - n_shared <= CHANGED * n for n in (len(embeddings.items), len(positions)))


def load_item_index(model: Path, embeddings: ItemEmbeddings, exact: ExactIndex) -> ExactIndex | ApproximateIndex:
    """Return the approximate index if one exists and fits, else the exact one."""
    config = _index_folder(model, exact.similarity) / "config.json"
    if not (stamp := read_stamp(config)):
        return exact
    # The cached value holds the exact index, so its id cannot be reused meanwhile.
    return _item_index_cache.get((config, stamp, id(exact)), lambda: _open(model, embeddings, exact))


def _open(model: Path, embeddings: ItemEmbeddings, exact: ExactIndex) -> ExactIndex | ApproximateIndex:
    state = _load_state(model, exact.similarity)
    positions = None if state is None else _map_positions(state, embeddings)
    if state is None or positions is None:
        return exact
    try:
        index = ApproximateIndex.from_state(state, exact, positions)
    except (WsabieError, KeyError, TypeError, ValueError) as error:
        folder = _index_folder(model, exact.similarity)
        _log.warning("%s cannot be used (%s), so items are searched exactly", folder, error)
        return exact
    return exact if index is None else index


def _build_indices(
    model: Path, search_index: SearchIndex, kind: CodesKind, recall: float, progress: Progress
) -> IndexResult:
    embeddings, *exact_indices = search_index
    item_tensors, reports = {"items": embeddings.items, "hashes": embeddings.hashes}, JsonObject()
    with progress.stage("indexing", len(_SIMILARITIES), "indices") as bar:
        for similarity, exact in zip(_SIMILARITIES, exact_indices, strict=True):
            index = ApproximateIndex.build(exact, kind=kind, recall=recall)
            state = index.to_state()
            save_model_folder(_index_folder(model, similarity), replace(state, tensors=state.tensors | item_tensors))
            reports[similarity] = index.facts()
            bar.advance(1)
    return IndexResult(**reports)


def _index_folder(model: Path, similarity: str) -> Path:
    return model / "item_embeddings" / f"index-{similarity}"


def _load_state(model: Path, similarity: str, *, verify: bool = True) -> ModelState | None:
    folder = _index_folder(model, similarity)
    if not (folder / "config.json").exists():
        return None
    try:
        return open_model_folder(folder, verify=verify)
    except WsabieError as error:
        _log.warning("%s; items are searched exactly", error)
        return None


def _map_positions(state: ModelState, embeddings: ItemEmbeddings) -> Int64 | None:
    """Return the current position of each coded point, -1 if it is gone or changed; None if unknown."""
    items, hashes = state.tensors.get("items"), state.tensors.get("hashes")
    if items is None or hashes is None or items.ndim != 1 or items.shape != hashes.shape or not len(embeddings.items):
        return None
    return embeddings.find(items, hashes)
