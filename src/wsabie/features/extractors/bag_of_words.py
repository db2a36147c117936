"""Documents as bags of words: counts of the words of a vocabulary, or of hashed words.

scikit-learn's vectorizers take 2.5 times as long, and learning one keeps every word that occurs
(`docs/decisions/words-and-sound.md`).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

import numpy as np

from wsabie.core.arrays import Array
from wsabie.core.errors import InputError, ModelFolderError, UnreadableItemError, require
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext, format_nothing_readable, select_evenly
from wsabie.features.base.word_extractor import Weighting, WordExtractor
from wsabie.features.text.text_decoder import decode_document, fold_text
from wsabie.features.text.word_counter import HashedColumns, WordCounter, WordList
from wsabie.io.records import Item, ItemSource, ModalityName

MAX_WORDS = 1_000_000
"""Default number of words of a vocabulary."""
_MAX_WORDS = 100_000_000
_WEIGHED = 1 << 20  # documents for the idf
_COUNTED_AT_ONCE = 1 << 20  # bytes


@dataclass(eq=False, repr=False)
class BagOfWords(WordExtractor):
    """Documents as counts of their words.

    A word is a run of letters, digits and underscores (with the marks that letters carry), in small letters (Unicode's
    case folding) and in NFC; one of more than 128 bytes is none. Scripts without blanks between words are not
    cut into words.

    Parameters
    ----------
    n_words : int or "auto"
        Words of the vocabulary at most, the most frequent ones; with `hashing` the number of columns. "auto": a
        million.
    min_count : int
        Words that are found less often in all documents are left out.
    hashing : bool
        No vocabulary: the column of a word is a 64-bit hash of it (FNV-1a, finished as in MurmurHash3) modulo
        `n_words`. Nothing is learned, words may share a column, and no word is unknown.
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
    kind: ClassVar[str] = "bag_of_words"
    modality: ClassVar[ModalityName] = "documents"
    batch_size: ClassVar[int] = 128

    n_words: int | Literal["auto"] = "auto"
    _: KW_ONLY
    min_count: int = 2
    hashing: bool = False
    weighting: Weighting = "counts"
    words_: WordList = field(init=False)
    missed_: int = field(init=False)

    def iterate_views(self, item: Item, augment: int = 0) -> Iterator[bytearray]:
        """Yield the folded text, which has no further views."""
        yield decode_document(item)

    def _learn_words(self, source: ItemSource, context: WorkContext) -> list[int]:
        """Count the words of all documents, in this process and in bounded memory."""
        if not self.hashing:
            self._learn_word_list(source, context)
        return select_evenly(len(source), _WEIGHED)

    def _learn_word_list(self, source: ItemSource, context: WorkContext) -> None:
        counter = WordCounter(self._count_columns())
        n_read = 0
        for text in _join_texts(self._iterate_texts(source, context)):
            counter.add(text)
            n_read += len(text)
        require(n_read > 0, format_nothing_readable(source, context.rejects))
        words, _ = counter.most_frequent(self._count_columns(), min_count=self.min_count)
        if not len(words):
            problem = f"no word is found {self.min_count} times in the documents of {source.path}"
            raise InputError(f"{problem}; give more documents, or a lower `min_count`")
        self.words_, self.missed_ = words, counter.missed

    def _iterate_texts(self, source: ItemSource, context: WorkContext) -> Iterator[bytearray]:
        with context.progress.stage("counting words", len(source), source.modality) as stage:
            for item in source:
                try:
                    yield decode_document(item)
                except UnreadableItemError as rejected:
                    context.rejects.add(item.id, rejected.reason, rejected.detail)
                stage.advance(1)

    def extract_text(self, text: str) -> EncodedRow:
        """Return columns (nnz,), ascending, and values (nnz,) of one text; a word is a document of one word.

        Examples
        --------
        >>> BagOfWords(100, hashing=True).extract_text("Sea, sea!")
        (array([72], dtype=int32), array([2.], dtype=float32))
        """
        self.prepare()
        return self.encode(bytearray(fold_text(text)))

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        is_count = self.n_words == "auto" or _is_integer_between(self.n_words, 1, _MAX_WORDS)
        require(is_count, f'n_words is {self.n_words}; give a number of words from 1 to {_MAX_WORDS:,}, or "auto"')
        is_count = _is_integer_between(self.min_count, 1, 2**31)
        require(is_count, f"min_count is {self.min_count}; give a number from 1 up")
        require(isinstance(self.hashing, bool), f"hashing is {self.hashing!r}; give True or False")

    def _count_columns(self) -> int:
        return MAX_WORDS if self.n_words == "auto" else int(self.n_words)

    def _get_words(self) -> WordList | HashedColumns:
        if self.hashing:
            return HashedColumns(self._count_columns())
        self._require_learned("words_", "this bag of words has not learned")
        return self.words_

    def _count_words(self, view: bytearray) -> EncodedRow:
        return self._get_words().count_words(view)

    def _dump_tensors(self) -> dict[str, Array]:
        words, tensors = self._get_words(), super()._dump_tensors()
        if isinstance(words, HashedColumns):
            return tensors
        return {"letters": words.letters, "starts": words.starts, **tensors}

    def _restore(self, tensors: dict[str, Array]) -> None:
        if not self.hashing:
            if not {"letters", "starts"} <= tensors.keys():
                raise self._make_version_error()
            self.words_, self.missed_ = WordList(tensors["letters"], tensors["starts"]), 0
            if not self.words_.is_sound():
                raise ModelFolderError("this bag of words is damaged; learn it again")
        super()._restore(tensors)


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
