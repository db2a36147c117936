"""Bases of the feature extractors that count words.

`WordExtractor` counts the words of a codebook or a vocabulary and weighs them, `BlockExtractor` learns a codebook from
the blocks of items.
"""

from abc import abstractmethod
from collections.abc import Sized
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Array, Float32, Int32, Int64
from wsabie.core.errors import require
from wsabie.features.base import sampling
from wsabie.features.base.feature_extractor import EncodedRow, FeatureExtractor, extract_batch
from wsabie.features.base.item_features import ItemRejection, iterate_results, process_or_reject
from wsabie.features.base.sampling import BATCH, WorkContext
from wsabie.io.records import Item, ItemSource
from wsabie.storage.schema_validation import check_array


def compute_idf(document_frequencies: ArrayLike, n: int) -> Float32:
    """Return the inverse document frequency log((1 + n) / (1 + document frequency)) + 1, never zero.

    Parameters
    ----------
    document_frequencies : (n_features,) integers
        Rows (or pictures) that hold the feature.
    n : int
        All rows.

    Examples
    --------
    >>> compute_idf(np.array([0, 9]), 9)
    array([3.3025851, 1.       ], dtype=float32)
    """
    return (np.log((1 + n) / (1 + np.asarray(document_frequencies))) + 1).astype(np.float32)


def weight_counts(words: Int32, counts: Float32, idf: Float32 | None) -> Float32:
    """Return the counts, or log(1 + count) * idf at unit length.

    Parameters
    ----------
    words : (nnz,) int32
    counts : (nnz,) float32
    idf : (n_words,) float32 or None
        None: counts.

    Examples
    --------
    >>> weight_counts(np.array([0, 2], np.int32), np.array([1, 1], np.float32), np.array([3, 9, 4], np.float32))
    array([0.6, 0.8], dtype=float32)
    """
    if idf is None:
        return counts
    values = np.log1p(counts) * idf[words]
    return np.asarray(values / np.sqrt(values @ values), np.float32)


_MIN_BLOCKS = 64  # of an item, while there are more items than a sample can take in full


class BlockExtractor(FeatureExtractor):
    """Base of extractors that learn a codebook from the blocks of items."""

    @abstractmethod
    def cut(self, view: Any) -> Float32:
        """Return the blocks of a view, (n, n_bins), that a codebook is learned from."""

    def _sample_blocks(self, source: ItemSource, most: int, context: WorkContext) -> tuple[list[int], Float32]:
        """Sample about `most` random blocks, as many from each of some items; return positions and blocks."""
        positions = sampling.select_evenly(len(source), max(1, most // _MIN_BLOCKS))
        work = partial(_sample_batch, per_item=-(-most // max(1, len(positions))))
        items = sampling.iterate_batches(sampling.iterate_at_positions(source, positions), BATCH)
        with context.progress.stage(f"sampling {source.modality}", len(positions), source.modality) as stage:
            blocks = list(iterate_results(context.executor.map_with(work, self, items), stage, context.rejects))
        require(len(blocks) > 0, sampling.format_nothing_readable(source, context.rejects))
        return positions, np.concatenate(blocks)


def _sample_batch(
    extractor: BlockExtractor, batch: tuple[tuple[int, Item], ...], per_item: int
) -> list[Float32 | ItemRejection]:
    """Return up to `per_item` random blocks of each (position, item), or its rejection."""

    def sample(item: Item, position: int) -> Float32:
        blocks = extractor.cut(next(extractor.iterate_views(item)))
        block_ids = np.random.default_rng([extractor.seed, position]).permutation(len(blocks))[:per_item]
        return blocks[np.sort(block_ids)]

    return [process_or_reject(item, partial(sample, position=position)) for position, item in batch]


Weighting = Literal["counts", "tfidf"]


class WordExtractor(FeatureExtractor):
    """Base of extractors that count words; subclasses have the parameter `weighting`.

    Attributes
    ----------
    idf_ : (n_features_,) float32, or None with "counts"
        Inverse document frequency of each word in the sample of `fit`.
    """

    weighting: Weighting
    idf_: Float32 | None = None

    @property
    def has_counts(self) -> bool:
        """True if the values are counts."""
        return self.weighting == "counts"

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return len(self._get_words())

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        is_known = self.weighting in ("counts", "tfidf")
        require(is_known, f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')

    def prepare(self, augment: int = 0) -> None:
        super().prepare(augment)
        self._get_words()

    def encode(self, view: Any) -> EncodedRow:
        words, counts = self._count_words(view)
        return words, weight_counts(words, counts, self.idf_) if len(words) else counts

    @abstractmethod
    def _get_words(self) -> Sized:
        """Return the learned words; raise InputError before `fit`."""

    @abstractmethod
    def _count_words(self, view: Any) -> EncodedRow:
        """Return the words of a view, ascending, with their counts."""

    @abstractmethod
    def _learn_words(self, source: ItemSource, context: WorkContext) -> list[int]:
        """Learn the words, and return the positions of the items that they are weighted on."""

    def _learn(self, source: ItemSource, context: WorkContext) -> None:
        positions = self._learn_words(source, context)
        self.idf_ = None if self.has_counts else self._learn_idf(source, positions, context)

    def _learn_idf(self, source: ItemSource, positions: list[int], context: WorkContext) -> Float32:
        """Learn the idf of each word over the items at `positions`, (n_words,)."""
        item_counts: Int64 = np.zeros(self.n_features_, np.int64)
        n, work = 0, partial(extract_batch, augment=0)
        items = sampling.iterate_batches((item for _, item in sampling.iterate_at_positions(source, positions)), BATCH)
        with context.progress.stage("weighing words", len(positions), source.modality) as stage:
            for rows in iterate_results(context.executor.map_with(work, self, items), stage, None):
                item_counts[rows[0].indices] += 1
                n += 1
        return compute_idf(item_counts, n)

    def _dump_tensors(self) -> dict[str, Array]:
        """Return the idf; subclasses add the learned words."""
        return {} if self.idf_ is None else {"idf": self.idf_}

    def _restore(self, tensors: dict[str, Array]) -> None:
        """Restore the idf, after subclasses have restored the learned words."""
        if not self.has_counts:
            self.idf_ = check_array(tensors, "idf", "float32", (self.n_features_,))
        elif "idf" in tensors:
            raise ValueError("counts have no idf")
