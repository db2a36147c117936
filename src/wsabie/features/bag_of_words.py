"""Documents as bags of words: how often each word of a dictionary is there, or each of a number of hashes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.decode import RejectedItem
from wsabie.features.describer import Describer
from wsabie.features.documents import Reader, folded
from wsabie.features.learning import Run, learn_idf, nothing_read, spread
from wsabie.features.viewer import Describing
from wsabie.features.weighting import weighed
from wsabie.features.words import WordCounter, WordList, hashed_counts
from wsabie.sources.records import ItemSource, Things
from wsabie.storage.folder import Array
from wsabie.storage.rejects import Rejects

KIND = "bag_of_words"
TERMS = 1_000_000
"""Words of a dictionary where nothing else is asked for."""

_MOST_TERMS = 100_000_000
_WEIGHED = 1 << 20  # documents that say how rare a word is
_COUNTED_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True)
class Columns:
    """The columns of a hashed word are its hash modulo their number."""

    n: int

    def __len__(self) -> int:
        return self.n

    def counts(self, text: bytearray) -> tuple[Int32, Float32]:
        """Columns (nnz,), ascending, and how many words fall into each (nnz,)."""
        return hashed_counts(text, self.n)


@dataclass(frozen=True)
class Bag:
    """The words of a folded text and how often each is found; travels to workers."""

    words: WordList | Columns
    idf: Float32 | None = None

    def __call__(self, text: bytearray) -> tuple[Int32, Float32]:
        terms, counts = self.words.counts(text)
        return terms, weighed(terms, counts, self.idf) if len(terms) else counts


class BagOfWords(Describer):
    """Describes documents by how often each word is found in them.

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
        `n_terms`. Nothing is learnt, words may share a column, and no word is unknown.
    weighting : {"counts", "tfidf"}
        "tfidf": log(1 + count) times the inverse document frequency over up to 2**20 documents, at unit length. Models
        scale rows themselves, so that counts are the usual.
    seed : int
        Nothing is random.

    Attributes
    ----------
    words_ : WordList
        The most frequent first, ties in the order of code points. Without `hashing`.
    missed_ : int
        Counts of words may be too low by this: see `WordCounter`. 0 where all words found room.
    """

    name: ClassVar[str] = "words"
    kind: ClassVar[str] = KIND
    things: Things = "documents"
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
        """The values are counts."""
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
            Where documents are read for "tfidf"; None: this process.
        progress : Progress
        rejects : Rejects or None
            Where documents that cannot be read are listed.

        Raises
        ------
        InputError
            A parameter is out of range, no document can be read, or no word is found `min_count` times.
        """
        super().fit(source)
        run = Run(executor or Serial(), progress, Rejects() if rejects is None else rejects)
        if not self.hashing:
            self.words_, self.missed_ = self._learnt(source, run)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = Describing(self.viewer(), self.encoder())
            self.idf_ = learn_idf(job, self.n_features_, source, spread(len(source), _WEIGHED), run)
        return self

    def _learnt(self, source: ItemSource, run: Run) -> tuple[WordList, int]:
        counter = WordCounter(self._most())
        n_read = 0
        for text in _joined(self._texts(source, run)):
            counter.add(text)
            n_read += len(text)
        if not n_read:
            raise InputError(nothing_read(source, run.rejects))
        words, _ = counter.most_frequent(self._most(), min_count=self.min_count)
        if not len(words):
            raise InputError(
                f"no word is found {self.min_count} times in the documents of {source.path}; give more documents, or "
                "a lower min_count (wsabie features text --min-count)"
            )
        return words, counter.missed

    def _texts(self, source: ItemSource, run: Run) -> Iterator[bytearray]:
        viewer = self.viewer()
        with run.progress.stage("counting words", len(source), source.things) as stage:
            for item in source:
                try:
                    yield next(viewer.looks(item))
                except RejectedItem as rejected:
                    run.rejects.add(item.id, rejected.reason, rejected.detail)
                stage.advance(1)

    def describe_text(self, text: str) -> tuple[Int32, Float32]:
        """Columns (nnz,), ascending, and values (nnz,) of one text; a word is a document of one word.

        Examples
        --------
        >>> BagOfWords(100, hashing=True).describe_text("Sea, sea!")
        (array([72], dtype=int32), array([2.], dtype=float32))
        """
        return self.encoder()(bytearray(folded(text)))

    def encoder(self) -> Callable[[Any], tuple[Int32, Float32]]:
        """The part that travels to workers."""
        return Bag(self._words(), self.idf_)

    def viewer(self, augment: int = 0) -> Reader:
        """How documents are read.

        Raises
        ------
        InputError
            `augment` is not 0: a document has no further views.
        """
        if augment:
            raise InputError("documents have no further views as pictures have; leave augment out")
        return Reader(self.seed)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        if self.n_terms != "auto" and not _is_whole(self.n_terms, 1, _MOST_TERMS):
            raise InputError(f'n_terms is {self.n_terms}; give a number of words from 1 to {_MOST_TERMS:,}, or "auto"')
        if not _is_whole(self.min_count, 1, 2**31):
            raise InputError(f"min_count is {self.min_count}; give a number from 1 up")
        if not isinstance(self.hashing, bool):
            raise InputError(f"hashing is {self.hashing!r}; give True or False")
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')

    def _most(self) -> int:
        return TERMS if self.n_terms == "auto" else int(self.n_terms)

    def _words(self) -> WordList | Columns:
        if self.hashing:
            return Columns(self._most())
        found: WordList | None = getattr(self, "words_", None)
        if found is None:
            raise InputError("this bag of words has not learned yet; call fit with documents first")
        return found

    def _tensors(self) -> dict[str, Array]:
        found: dict[str, Array] = {} if self.idf_ is None else {"idf": self.idf_}
        words = self._words()
        return found if isinstance(words, Columns) else {**found, "letters": words.letters, "starts": words.starts}

    def _restore(self, tensors: dict[str, Array]) -> None:
        if not self.hashing:
            if not {"letters", "starts"} <= tensors.keys():
                raise self._other_version()
            self.words_ = WordList(tensors["letters"], tensors["starts"])
            self.missed_ = 0
        self.idf_ = tensors.get("idf")
        n_weights = 0 if self.idf_ is None else len(self.idf_)
        sound = self.hashing or self.words_.is_sound()
        if not sound or n_weights != (self.n_features_ if self.weighting == "tfidf" else 0):
            raise ModelFolderError("this bag of words is damaged; learn it again")


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= int(value) <= high


def _joined(texts: Iterator[bytearray]) -> Iterator[bytearray]:
    """Texts put together, with a blank behind each, until they are worth a call."""
    held = bytearray()
    for text in texts:
        held += text
        held += b" "
        if len(held) >= _COUNTED_AT_ONCE:
            yield held
            held = bytearray()
    if held:
        yield held
