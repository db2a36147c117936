"""Documents as bags of words: counts of the words of a vocabulary, or of hashed words.

scikit-learn's vectorizers take 2.5 times as long, and learning one keeps every word that occurs
(`docs/decisions/words-and-sound.md`).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from wsabie.core.arrays import Array, Int32, Int64, UInt8, view_as_writable
from wsabie.core.errors import ModelFolderError, UnreadableItemError, require
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext, format_nothing_readable, select_evenly
from wsabie.features.base.word_extractor import Weighting, WordExtractor
from wsabie.features.text.text_decoder import decode_document, fold_text
from wsabie.io.records import Item, ItemSource, ModalityName
from wsabie.kernels.text import word_counts
from wsabie.storage.column_files import compute_offsets

MAX_WORDS = 1_000_000
"""Default number of words of a vocabulary."""
CAPACITY_FACTOR = 4
"""Capacity of a counter of words, as a multiple of the requested words."""
_MIN_CAPACITY = 1 << 16
_MAX_WORDS = 100_000_000
_WEIGHED = 1 << 20  # documents for the idf
_COUNTED_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True)
class WordList:
    """List of words with their numbers.

    Attributes
    ----------
    letters : (n_letters,) uint8
        The words in UTF-8, one after the other.
    starts : (n_words + 1,) int64
        Start of each word.

    Examples
    --------
    >>> words = WordList.from_words([b"sea", b"sky"])
    >>> words.count_words(bytearray(b"sky, sea and sky"))
    (array([0, 1], dtype=int32), array([1., 2.], dtype=float32))
    >>> words.get_word(1), len(words)
    ('sky', 2)
    """

    letters: UInt8
    starts: Int64

    @classmethod
    def from_words(cls, words: list[bytes]) -> "WordList":
        """Return a list of distinct words in this order."""
        letters = np.frombuffer(bytearray(b"".join(words)), np.uint8)
        return cls(letters, compute_offsets([len(word) for word in words]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def get_word(self, number: int) -> str:
        """Return the word of a number."""
        return self.letters[self.starts[number] : self.starts[number + 1]].tobytes().decode("utf-8", "replace")

    def count_words(self, text: bytearray) -> EncodedRow:
        """Count the known words of a folded text: numbers (nnz,), ascending, and counts (nnz,)."""
        letters = np.frombuffer(text, np.uint8)
        numbers = np.empty((len(letters) + 1) // 2, np.int32)
        return _count_numbers(numbers[: word_counts.find_words(letters, self._table, numbers)])

    def is_sound(self) -> bool:
        """Return True if the types are right and the words are contiguous within the letters."""
        letters, starts = self.letters, self.starts
        if (letters.dtype.str, starts.dtype.str, letters.ndim, starts.ndim) != ("|u1", "<i8", 1, 1) or not len(starts):
            return False
        lengths = np.diff(starts)
        is_covered = starts[0] == 0 and starts[-1] == len(letters)
        return bool(is_covered and (lengths > 0).all() and (lengths <= word_counts.LONGEST_WORD).all())

    @cached_property
    def _table(self) -> word_counts.WordIndex:
        letters, starts = view_as_writable(self.letters), view_as_writable(self.starts)
        return word_counts.WordIndex(letters, starts, _build_slots(letters, starts, len(self), len(self)))


def _count_numbers(numbers: Int32) -> EncodedRow:
    numbers.sort()
    counts = np.empty(len(numbers), np.float32)
    n_distinct = word_counts.count_runs(numbers, counts)
    return numbers[:n_distinct].copy(), counts[:n_distinct].copy()


def _build_slots(letters: UInt8, starts: Int64, n_words: int, capacity: int) -> Int32:
    """Return the hash table of the first `n_words` words, with slots for `capacity` words."""
    slots = np.full(1 << max(1, (2 * capacity).bit_length()), -1, np.int32)
    word_counts.fill_slots(letters, starts, n_words, slots)
    return slots


class WordCounter:
    """Counter of the words of folded texts.

    At most `CAPACITY_FACTOR * n_words` distinct words are stored. When there are more, rare ones are dropped: all words
    up to the least count that at most half of the words exceed. A dropped word that returns is counted from 0, so that
    counts are too low by at most `missed`, the sum of these limits, and a word with a higher count is never lost.
    Counts are exact as long as all words find room.

    Parameters
    ----------
    n_words : int

    Examples
    --------
    >>> counter = WordCounter(2)
    >>> counter.add(bytearray(b"to be or not to be, that is what is to be thought of"))
    >>> words, counts = counter.most_frequent(2, min_count=2)
    >>> [words.get_word(i) for i in range(len(words))], counts.tolist(), counter.missed
    (['be', 'to'], [3, 3], 1)
    """

    def __init__(self, n_words: int) -> None:
        self.capacity = CAPACITY_FACTOR * n_words
        self.missed = 0
        self._sizes = np.zeros(2, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._table = word_counts.WordIndex(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32))
        self._reserve(min(_MIN_CAPACITY, self.capacity), 8 * _MIN_CAPACITY)

    def __len__(self) -> int:
        """Number of distinct words in the counter."""
        return int(self._sizes[word_counts.WORDS])

    def add(self, text: bytearray) -> None:
        """Count the words of a folded text."""
        letters, position, n = np.frombuffer(text, np.uint8), 0, len(text)
        while (position := word_counts.count_words(letters, position, self._table, self._counts, self._sizes)) < n:
            if len(self) == self.capacity:
                self._drop()
            elif len(self) == len(self._counts):
                self._reserve(min(2 * len(self), self.capacity), len(self._table.letters))
            else:
                self._reserve(len(self._counts), 2 * len(self._table.letters))

    def most_frequent(self, n_words: int, *, min_count: int = 1) -> tuple[WordList, Int64]:
        """Return up to n words with at least `min_count` occurrences, most frequent first, and their counts.

        Ties go in the order of code points.
        """
        counts = self._counts[: len(self)]
        least = min_count
        if n_words < len(counts):
            least = max(least, int(np.partition(counts, len(counts) - n_words)[len(counts) - n_words]))
        frequent = np.flatnonzero(counts >= least)
        letters, starts = self._table.letters, self._table.starts
        words = [letters[starts[i] : starts[i + 1]].tobytes() for i in frequent]
        order = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)  # UTF-8 sorts as code points do
        order = order[np.argsort(-counts[frequent][order], kind="stable")][:n_words]
        return WordList.from_words([words[i] for i in order]), counts[frequent][order]

    def _drop(self) -> None:
        """Drop the rarest half of the words, with ties."""
        counts = self._counts[: len(self)]
        limit = int(np.partition(counts, len(counts) // 2)[len(counts) // 2])
        self.missed += limit
        is_kept = counts > limit
        lengths = np.diff(self._table.starts[: len(self) + 1])
        letters = self._table.letters[: self._sizes[word_counts.LETTERS]][np.repeat(is_kept, lengths)]
        n_kept = int(is_kept.sum())
        self._table.letters[: len(letters)] = letters
        np.cumsum(lengths[is_kept], out=self._table.starts[1 : n_kept + 1])
        self._counts[:n_kept] = counts[is_kept]
        self._sizes[:] = n_kept, len(letters)
        self._reserve(len(self._counts), len(self._table.letters))

    def _reserve(self, n_words: int, n_letters: int) -> None:
        """Reserve room for so many words and letters in all."""
        n = len(self)
        letters, starts = np.empty(n_letters, np.uint8), np.zeros(n_words + 1, np.int64)
        counts = np.zeros(n_words, np.int64)
        letters[: self._sizes[word_counts.LETTERS]] = self._table.letters[: self._sizes[word_counts.LETTERS]]
        starts[: n + 1] = self._table.starts[: n + 1]
        counts[:n] = self._counts[:n]
        self._counts = counts
        self._table = word_counts.WordIndex(letters, starts, _build_slots(letters, starts, n, n_words))


@dataclass(frozen=True)
class HashedColumns:
    """Columns of hashed words: the hash modulo the number of columns."""

    n: int

    def __len__(self) -> int:
        return self.n

    def count_words(self, text: bytearray) -> EncodedRow:
        """Count the words of each column: columns (nnz,), ascending, and counts (nnz,).

        Examples
        --------
        >>> HashedColumns(1000).count_words(bytearray(b"sky, sea and sky"))
        (array([372, 850, 905], dtype=int32), array([1., 1., 2.], dtype=float32))
        """
        letters = np.frombuffer(text, np.uint8)
        columns = np.empty((len(letters) + 1) // 2, np.int32)
        return _count_numbers(columns[: word_counts.hash_words(letters, self.n, columns)])


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
        problem = f"no word is found {self.min_count} times in the documents of {source.path}"
        require(len(words) > 0, f"{problem}; give more documents, or extract features with a lower `min_count`")
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
