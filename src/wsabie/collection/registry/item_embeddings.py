"""Embeddings of items in a model's space, stored beside the model.

models/FOLDER/points/   tensors "items" (ids), "marks" (of their content) and "points" (n, dim) float32
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsabie.collection.db.cache import FileCache
from wsabie.core.arrays import Bool, Float32, Int64, UInt64
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

if TYPE_CHECKING:
    from wsabie.search.exact_index import ExactIndex

_KIND = "points of items"


class ItemEmbeddings(NamedTuple):
    """Item ids, ascending, marks of their contents, and their points."""

    items: Int64  # (n,)
    marks: UInt64  # (n,)
    points: Float32  # (n, dim)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any], dim: int) -> "ItemEmbeddings":
        """Return the embeddings in a model folder.

        Raises
        ------
        KeyError, ModelFolderError
            A tensor is missing or has another shape.
        """
        embeddings = cls(tensors["items"], tensors["marks"], tensors["points"])
        n = len(embeddings.items)
        if [tensor.shape for tensor in embeddings] != [(n,), (n,), (n, dim)]:
            raise ModelFolderError("the points of items have another shape than the model")
        return embeddings

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


class SearchIndex(NamedTuple):
    """Embeddings of a model with search indices by inner product and by cosine."""

    embeddings: ItemEmbeddings
    dot: "ExactIndex"
    cosine: "ExactIndex"


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
        return ItemEmbeddings.from_tensors(open_model_folder(model / "points", verify=False).tensors, dim)
    except (ModelFolderError, KeyError):
        return ItemEmbeddings(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty((0, dim), np.float32))


def save_item_embeddings(model: Path, points: ItemEmbeddings) -> None:
    """Save the embeddings of a model atomically."""
    save_model_folder(model / "points", ModelState(_KIND, {}, points._asdict()))


def load_search_index(model: Path) -> SearchIndex:
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


# Building the indices takes longer than a search.
_index_cache = FileCache[SearchIndex](2)


def _build_search_index(model: Path) -> SearchIndex:
    from wsabie.search.exact_index import ExactIndex

    tensors = open_model_folder(model / "points", verify=False).tensors
    points = ItemEmbeddings(tensors["items"], tensors["marks"], tensors["points"])
    return SearchIndex(points, ExactIndex(points.points), ExactIndex(points.points, similarity="cosine"))
