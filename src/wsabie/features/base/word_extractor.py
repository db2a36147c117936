"""Base of the feature extractors that count words of a codebook or a vocabulary."""

from abc import abstractmethod
from collections.abc import Sized
from functools import partial
from typing import Any, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64
from wsabie.core.errors import require
from wsabie.features.base.extraction_tasks import iterate_results
from wsabie.features.base.feature_extractor import EncodedRow, FeatureExtractor, extract_batch
from wsabie.features.base.idf_weighting import compute_idf, weight_counts
from wsabie.features.base.sampling import BATCH, WorkContext, iterate_at_positions, iterate_batches
from wsabie.io.records import ItemSource
from wsabie.storage.schema_validation import check_array

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
        items = iterate_batches((item for _, item in iterate_at_positions(source, positions)), BATCH)
        with context.progress.stage("weighing words", len(positions), source.modality) as stage:
            for rows in iterate_results(context.executor.map_with(work, self, items), stage, None):
                item_counts[rows[0].indices] += 1
                n += 1
        return compute_idf(item_counts, n)

    @abstractmethod
    def _dump_words(self) -> dict[str, Array]:
        """Return the arrays of the learned words by name."""

    @abstractmethod
    def _restore_words(self, tensors: dict[str, Array]) -> None:
        """Restore the learned words from `_dump_words`."""

    def _dump_tensors(self) -> dict[str, Array]:
        return self._dump_words() | ({} if self.idf_ is None else {"idf": self.idf_})

    def _restore(self, tensors: dict[str, Array]) -> None:
        self._restore_words(tensors)
        if not self.has_counts:
            self.idf_ = check_array(tensors, "idf", "float32", (self.n_features_,))
        elif "idf" in tensors:
            raise ValueError("counts have no idf")
