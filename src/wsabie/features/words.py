"""Lists of words as arrays, and the counting from which they are made, in bounded memory.

A list of a million words is some ten megabytes of letters and where each word begins: both are mapped from the model's
folder, and the table by which words are found is made in a tenth of a second.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabie.base.arrays import Float32, Int32, Int64, UInt8, under_one_type
from wsabie.kernels.words import (
    LETTERS,
    LONGEST_WORD,
    WORDS,
    Table,
    count_runs,
    count_words,
    fill_slots,
    find_words,
    hash_words,
)

HELD = 4
"""Times as many distinct words as are asked for are held at most while words are counted."""

_FEWEST = 1 << 16


@dataclass(frozen=True)
class WordList:
    """Words and their numbers.

    Attributes
    ----------
    letters : (n_letters,) uint8
        The words in UTF-8, one after the other.
    starts : (n_words + 1,) int64
        Where each begins.

    Examples
    --------
    >>> words = WordList.of([b"sea", b"sky"])
    >>> words.counts(bytearray(b"sky, sea and sky"))
    (array([0, 1], dtype=int32), array([1., 2.], dtype=float32))
    >>> words.word(1), len(words)
    ('sky', 2)
    """

    letters: UInt8
    starts: Int64

    @classmethod
    def of(cls, words: list[bytes]) -> "WordList":
        """These words, which differ, in their order."""
        starts = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=starts[1:])
        return cls(np.frombuffer(bytearray(b"".join(words)), np.uint8), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def word(self, number: int) -> str:
        """The word of a number."""
        return self.letters[self.starts[number] : self.starts[number + 1]].tobytes().decode("utf-8", "replace")

    def counts(self, text: bytearray) -> tuple[Int32, Float32]:
        """Numbers (nnz,), ascending, of the known words of a folded text, and how often each is there (nnz,)."""
        letters = np.frombuffer(text, np.uint8)
        found = np.empty((len(letters) + 1) // 2, np.int32)
        return _counted(found[: find_words(letters, self._table, found)])

    def is_sound(self) -> bool:
        """Whether the arrays are such, and words begin where others end, inside the letters."""
        letters, starts = self.letters, self.starts
        if (letters.dtype.str, starts.dtype.str, letters.ndim, starts.ndim) != ("|u1", "<i8", 1, 1) or not len(starts):
            return False
        lengths = np.diff(starts)
        inside = starts[0] == 0 and starts[-1] == len(letters)
        return bool(inside and (lengths > 0).all() and (lengths <= LONGEST_WORD).all())

    @cached_property
    def _table(self) -> Table:
        letters, starts = under_one_type(self.letters), under_one_type(self.starts)
        return Table(letters, starts, _slots(letters, starts, len(self), len(self)))


def hashed_counts(text: bytearray, n_columns: int) -> tuple[Int32, Float32]:
    """Columns (nnz,), ascending, of the hashes of a folded text's words, and how many fall into each (nnz,).

    Examples
    --------
    >>> hashed_counts(bytearray(b"sky, sea and sky"), 1000)
    (array([372, 850, 905], dtype=int32), array([1., 1., 2.], dtype=float32))
    """
    letters = np.frombuffer(text, np.uint8)
    found = np.empty((len(letters) + 1) // 2, np.int32)
    return _counted(found[: hash_words(letters, n_columns, found)])


def _counted(found: Int32) -> tuple[Int32, Float32]:
    found.sort()
    counts = np.empty(len(found), np.float32)
    n = count_runs(found, counts)
    return found[:n].copy(), counts[:n].copy()


def _slots(letters: UInt8, starts: Int64, n_words: int, room: int) -> Int32:
    """The table of the first `n_words` words, with room for more of them."""
    slots = np.full(1 << max(1, (2 * room).bit_length()), -1, np.int32)
    fill_slots(letters, starts, n_words, slots)
    return slots


class WordCounter:
    """Counts words of folded texts.

    At most `HELD * n_terms` distinct words are held. When there are more, rare ones are dropped: the least number is
    sought such that words found more often than that are at most half as many, and all others go. A word that was
    dropped is counted anew when it comes again, so that counts are too low by at most `missed`, the sum of these
    numbers, and a word that is there more often than that is never lost. As long as all words find room, counts are
    exact.

    Parameters
    ----------
    n_terms : int

    Examples
    --------
    >>> counter = WordCounter(2)
    >>> counter.add(bytearray(b"to be or not to be, that is what is to be thought of"))
    >>> words, counts = counter.most_frequent(2, min_count=2)
    >>> [words.word(i) for i in range(len(words))], counts.tolist(), counter.missed
    (['be', 'to'], [3, 3], 1)
    """

    def __init__(self, n_terms: int) -> None:
        self.most_held = HELD * n_terms
        self.missed = 0
        self._used = np.zeros(2, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._table = Table(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32))
        self._room(min(_FEWEST, self.most_held), 8 * _FEWEST)

    def __len__(self) -> int:
        """Distinct words that are held."""
        return int(self._used[WORDS])

    def add(self, text: bytearray) -> None:
        """Count the words of a folded text."""
        letters, at = np.frombuffer(text, np.uint8), 0
        while (at := count_words(letters, at, self._table, self._counts, self._used)) < len(letters):
            if len(self) == self.most_held:
                self._drop()
            elif len(self) == len(self._counts):
                self._room(min(2 * len(self), self.most_held), len(self._table.letters))
            else:
                self._room(len(self._counts), 2 * len(self._table.letters))

    def most_frequent(self, n: int, *, min_count: int = 1) -> tuple[WordList, Int64]:
        """Up to n words that were found at least `min_count` times, the most frequent first and ties in the order of
        their code points, with their counts.
        """
        counts = self._counts[: len(self)]
        least = min_count
        if n < len(counts):
            least = max(least, int(np.partition(counts, len(counts) - n)[len(counts) - n]))
        kept = np.flatnonzero(counts >= least)
        letters, starts = self._table.letters, self._table.starts
        words = [letters[starts[i] : starts[i + 1]].tobytes() for i in kept]
        order = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)  # UTF-8 sorts as code points do
        order = order[np.argsort(-counts[kept][order], kind="stable")][:n]
        return WordList.of([words[i] for i in order]), counts[kept][order]

    def _drop(self) -> None:
        """Drop the rarest half of the words, and those as rare."""
        counts = self._counts[: len(self)]
        dropped = int(np.partition(counts, len(counts) // 2)[len(counts) // 2])
        self.missed += dropped
        kept = counts > dropped
        lengths = np.diff(self._table.starts[: len(self) + 1])
        letters = self._table.letters[: self._used[LETTERS]][np.repeat(kept, lengths)]
        n = int(kept.sum())
        self._table.letters[: len(letters)] = letters
        np.cumsum(lengths[kept], out=self._table.starts[1 : n + 1])
        self._counts[:n] = counts[kept]
        self._used[:] = n, len(letters)
        self._room(len(self._counts), len(self._table.letters))

    def _room(self, n_words: int, n_letters: int) -> None:
        """Make room for so many words and letters in all."""
        n = len(self)
        letters, starts, counts = (
            np.empty(n_letters, np.uint8),
            np.zeros(n_words + 1, np.int64),
            np.zeros(n_words, np.int64),
        )
        letters[: self._used[LETTERS]] = self._table.letters[: self._used[LETTERS]]
        starts[: n + 1] = self._table.starts[: n + 1]
        counts[:n] = self._counts[:n]
        self._counts = counts
        self._table = Table(letters, starts, _slots(letters, starts, n, n_words))
