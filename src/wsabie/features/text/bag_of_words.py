"""Documents as bags of words: counts of the words of a dictionary, or of hashed words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from wsabie.core.arrays import Float32, Int32
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress
from wsabie.features.base.extraction_tasks import ExtractionTask
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.idf_weighting import weight_counts
from wsabie.features.base.sampling import WorkContext, format_nothing_readable, learn_idf, select_evenly
from wsabie.features.images.image_decoder import UnreadableItemError
from wsabie.features.text.text_decoder import TextDecoder, fold_text
from wsabie.features.text.word_counts import WordCounter, WordList, count_hashed_words
from wsabie.io.records import ItemSource, ModalityName
from wsabie.storage.model_folder import Array
from wsabie.storage.rejects import Rejects

KIND = "bag_of_words"
MAX_WORDS = 1_000_000
"""Default number of words of a dictionary."""

_MOST_TERMS = 100_000_000
_WEIGHED = 1 << 20  # documents for the idf
_COUNTED_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True)
class HashedColumns:
    """Columns of hashed words: the hash modulo the number of columns."""

    n: int

    def __len__(self) -> int:
        return self.n

    def counts(self, text: bytearray) -> tuple[Int32, Float32]:
        """Count the words of each column: columns (nnz,), ascending, and counts (nnz,)."""
        return count_hashed_words(text, self.n)


@dataclass(frozen=True)
class WordCountEncoder:
    """Encoder of a folded text as counts of words; sent to workers."""

    words: WordList | HashedColumns
    idf: Float32 | None = None

    def __call__(self, text: bytearray) -> tuple[Int32, Float32]:
        terms, counts = self.words.counts(text)
        return terms, weight_counts(terms, counts, self.idf) if len(terms) else counts


class BagOfWords(FeatureExtractor):
    """Documents as counts of their words.

    A word is a run of letters, digits and underscores (with the marks that letters carry), in small letters (Unicode's
    case folding) and in NFC; one of more than 128 bytes is none. Scripts without blanks between words are not
    cut into words.

    Parameters
    ----------
    n_terms : int or "auto"
        Words in the dictionary at most, the most frequent ones; with `hashing` the number of columns. "auto": a
        million.
    min_count : int
        Words that are found less often in the whole collection are left out.
    hashing : bool
        No dictionary: the column of a word is a 64-bit hash of it (FNV-1a, finished as in MurmurHash3) modulo
        `n_terms`. Nothing is learned, words may share a column, and no word is unknown.
    weighting : {"counts", "tfidf"}
        "tfidf": log(1 + count) times the inverse document frequency over up to 2**20 documents, at unit length. Models
        scale rows themselves, so that counts are the usual.
    seed : int
        Unused; nothing is random.

    Attributes
    ----------
    words_ : WordList
        The most frequent first, ties in the order of code points. Without `hashing`.
    missed_ : int
        Counts of words may be too low by this: see `WordCounter`. 0 where all words found room.
    """

    name: ClassVar[str] = "words"
    kind: ClassVar[str] = KIND
    things: ModalityName = "documents"
    together: ClassVar[int] = 128
    _names: ClassVar[tuple[str, ...]] = ("n_terms", "min_count", "hashing", "weighting")

    def __init__(
        self,
        n_terms: int | Literal["auto"] = "auto",
        *,
        min_count: int = 2,
        hashing: bool = False,
        weighting: Literal["counts", "tfidf"] = "counts",
        seed: int = 0,
    ) -> None:
        super().__init__(seed=seed)
        self.n_terms = n_terms
        self.min_count = min_count
        self.hashing = hashing
        self.weighting = weighting
        self.idf_: Float32 | None = None

    @property
    def counts(self) -> bool:
        """True if the values are counts."""
        return self.weighting == "counts"

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return len(self._words())

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Count the words of a collection, in this process and in bounded memory.

        Parameters
        ----------
        source : ItemSource
            Read once, and once more for "tfidf"; with `hashing` for "tfidf" alone.
        executor : Executor or None
            Reads documents for "tfidf"; None: this process.
        progress : Progress
        rejects : Rejects or None
            Lists documents that cannot be read.

        Raises
        ------
        InputError
            A parameter is out of range, no document can be read, or no word is found `min_count` times.
        """
        super().fit(source)
        run = WorkContext(executor or SerialExecutor(), progress, Rejects() if rejects is None else rejects)
        if not self.hashing:
            self.words_, self.missed_ = self._learn_words(source, run)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = ExtractionTask(self.viewer(), self.encoder())
            self.idf_ = learn_idf(job, self.n_features_, source, select_evenly(len(source), _WEIGHED), run)
        return self

    def _learn_words(self, source: ItemSource, run: WorkContext) -> tuple[WordList, int]:
        counter = WordCounter(self._count_columns())
        n_read = 0
        for text in _join_texts(self._texts(source, run)):
            counter.add(text)
            n_read += len(text)
        if not n_read:
            raise InputError(format_nothing_readable(source, run.rejects))
        words, _ = counter.most_frequent(self._count_columns(), min_count=self.min_count)
        if not len(words):
            raise InputError(
                f"no word is found {self.min_count} times in the documents of {source.path}; give more documents, or "
                "a lower min_count (wsabie features text --min-count)"
            )
        return words, counter.missed

    def _texts(self, source: ItemSource, run: WorkContext) -> Iterator[bytearray]:
        viewer = self.viewer()
        with run.progress.stage("counting words", len(source), source.things) as stage:
            for item in source:
                try:
                    yield next(viewer.looks(item))
                except UnreadableItemError as rejected:
                    run.rejects.add(item.id, rejected.reason, rejected.detail)
                stage.advance(1)

    def describe_text(self, text: str) -> tuple[Int32, Float32]:
        """Return columns (nnz,), ascending, and values (nnz,) of one text; a word is a document of one word.

        Examples
        --------
        >>> BagOfWords(100, hashing=True).describe_text("Sea, sea!")
        (array([72], dtype=int32), array([2.], dtype=float32))
        """
        return self.encoder()(bytearray(fold_text(text)))

    def encoder(self) -> Callable[[Any], tuple[Int32, Float32]]:
        """Return the encoder, which is sent to workers."""
        return WordCountEncoder(self._words(), self.idf_)

    def viewer(self, augment: int = 0) -> TextDecoder:
        """Return the decoder of documents.

        Raises
        ------
        InputError
            `augment` is not 0: a document has no further views.
        """
        if augment:
            raise InputError("documents have no further views as pictures have; leave augment out")
        return TextDecoder(self.seed)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        if self.n_terms != "auto" and not _is_integer_between(self.n_terms, 1, _MOST_TERMS):
            raise InputError(f'n_terms is {self.n_terms}; give a number of words from 1 to {_MOST_TERMS:,}, or "auto"')
        if not _is_integer_between(self.min_count, 1, 2**31):
            raise InputError(f"min_count is {self.min_count}; give a number from 1 up")
        if not isinstance(self.hashing, bool):
            raise InputError(f"hashing is {self.hashing!r}; give True or False")
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')

    def _count_columns(self) -> int:
        return MAX_WORDS if self.n_terms == "auto" else int(self.n_terms)

    def _words(self) -> WordList | HashedColumns:
        if self.hashing:
            return HashedColumns(self._count_columns())
        words: WordList | None = getattr(self, "words_", None)
        if words is None:
            raise InputError("this bag of words has not learned yet; call fit with documents first")
        return words

    def _tensors(self) -> dict[str, Array]:
        tensors: dict[str, Array] = {} if self.idf_ is None else {"idf": self.idf_}
        words = self._words()
        return (
            tensors
            if isinstance(words, HashedColumns)
            else {**tensors, "letters": words.letters, "starts": words.starts}
        )

    def _restore(self, tensors: dict[str, Array]) -> None:
        if not self.hashing:
            if not {"letters", "starts"} <= tensors.keys():
                raise self._other_version()
            self.words_ = WordList(tensors["letters"], tensors["starts"])
            self.missed_ = 0
        self.idf_ = tensors.get("idf")
        n_weights = 0 if self.idf_ is None else len(self.idf_)
        is_sound = self.hashing or self.words_.is_sound()
        if not is_sound or n_weights != (self.n_features_ if self.weighting == "tfidf" else 0):
            raise ModelFolderError("this bag of words is damaged; learn it again")


def _is_integer_between(value: object, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= int(value) <= high


def _join_texts(texts: Iterator[bytearray]) -> Iterator[bytearray]:
    """Join texts, with a blank behind each, into pieces that are worth a call."""
    buffer = bytearray()
    for text in texts:
        buffer += text
        buffer += b" "
        if len(buffer) >= _COUNTED_AT_ONCE:
            yield buffer
            buffer = bytearray()
    if buffer:
        yield buffer
