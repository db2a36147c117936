"""Words in UTF-8: their positions, their numbers in a table, and the counting of new ones.

Text comes folded (`fold_text` of `wsabie.features.text.text_decoder`): a run of letters, digits, underscores in
ASCII and of any bytes beyond it is a word, everything else stands between words. Words are known by a 64-bit hash of
their bytes (FNV-1a, finished as in MurmurHash3 so that its low digits are good ones too), which is the same everywhere
and for ever, and compared byte by byte. All leaves are in this file, which is what numba's own cache watches.
"""

from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Int32, Int64, UInt8
from wsabie.kernels.compiler import STRICT, jit_strict, make_cached_jit

LONGEST_WORD = 128
"""Longest word, in bytes."""

_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX1, _MIX2, _33 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
WORDS, LETTERS = range(2)


class WordIndex(NamedTuple):
    """Words by number, with their hash table.

    Attributes
    ----------
    letters : (n_letters,) uint8
        The bytes of all words, one after the other.
    starts : (n_words + 1,) int64
        Where each word begins.
    slots : (a power of two,) int32
        The number of the word whose hash leads there, -1 for none; more than the words.
    """

    letters: UInt8
    starts: Int64
    slots: Int32


@jit_strict
def _is_letter(c):
    return 97 <= c <= 122 or c >= 128 or 48 <= c <= 57 or c == 95 or 65 <= c <= 90


@jit_strict
def _next(text, i):
    """Find the first word from i on: (start, end, hash); start is the length of the text if there is none."""
    n = len(text)
    while i < n and not _is_letter(text[i]):
        i += 1
    start, mixed = i, _BASIS
    while i < n and _is_letter(text[i]):
        mixed = (mixed ^ np.uint64(text[i])) * _PRIME
        i += 1
    mixed = (mixed ^ (mixed >> _33)) * _MIX1
    mixed = (mixed ^ (mixed >> _33)) * _MIX2
    return start, i, mixed ^ (mixed >> _33)


@jit_strict
def _is_word(table, number, text, start, end):
    first = table.starts[number]
    if table.starts[number + 1] - first != end - start:
        return False
    for k in range(end - start):  # noqa: SIM110 (numba compiles no generator)
        if table.letters[first + k] != text[start + k]:
            return False
    return True


@jit_strict
def _slot(table, text, start, end, mixed):
    """Return the slot of a word, or the free slot for it."""
    mask = np.uint64(len(table.slots) - 1)
    slot = np.int64(mixed & mask)
    while table.slots[slot] >= 0 and not _is_word(table, table.slots[slot], text, start, end):
        slot = (slot + 1) & np.int64(mask)
    return slot


@make_cached_jit(**STRICT)
def find_words(text, table, numbers):
    """Write the numbers of all known words, one for each occurrence, and return how many.

    Parameters
    ----------
    text : (n,) uint8
    table : WordIndex
    numbers : ((n + 1) // 2,) int32
    """
    n, i = 0, 0
    while True:
        start, i, mixed = _next(text, i)
        if start == len(text):
            return n
        number = table.slots[_slot(table, text, start, i, mixed)]
        if number >= 0:
            numbers[n] = number
            n += 1


@make_cached_jit(**STRICT)
def hash_words(text, n_columns, columns):
    """Write the column (hash modulo `n_columns`) of each occurrence of a word, and return how many."""
    n, i = 0, 0
    while True:
        start, i, mixed = _next(text, i)
        if start == len(text):
            return n
        if i - start <= LONGEST_WORD:
            columns[n] = np.int32(mixed % np.uint64(n_columns))
            n += 1


@make_cached_jit(**STRICT)
def count_runs(numbers, counts):
    """Keep each of sorted numbers once, in place, write their counts, and return how many are left."""
    n = 0
    for k in range(len(numbers)):
        if n and numbers[k] == numbers[n - 1]:
            counts[n - 1] += 1
        else:
            numbers[n] = numbers[k]
            counts[n] = 1
            n += 1
    return n


@make_cached_jit(**STRICT)
def count_words(text, at, table, counts, used):
    """Count the words of a text and add the new ones to the table, until the text or the room ends.

    Parameters
    ----------
    text : (n,) uint8
    at : int
        Position to begin at.
    table : WordIndex
        With room for words, letters and (twice the words) slots.
    counts : (n_words,) int64
    used : (2,) int64
        WORDS and LETTERS that are filled.

    Returns
    -------
    int
        n, or the position of the first word without room.
    """
    while True:
        start, end, mixed = _next(text, at)
        if start == len(text):
            return start
        at = end
        if end - start > LONGEST_WORD:
            continue
        slot = _slot(table, text, start, end, mixed)
        number = table.slots[slot]
        if number < 0:
            number, first = used[WORDS], used[LETTERS]
            if number == len(counts) or first + end - start > len(table.letters):
                return start
            table.letters[first : first + end - start] = text[start:end]
            table.starts[number + 1] = first + end - start
            table.slots[slot] = number
            counts[number] = 0
            used[WORDS], used[LETTERS] = number + 1, first + end - start
        counts[number] += 1


@make_cached_jit(**STRICT)
def fill_slots(letters, starts, n_words, slots):
    """Enter the distinct words 0 to `n_words` - 1 into slots that are -1 everywhere."""
    mask = np.uint64(len(slots) - 1)
    for number in range(n_words):
        _, _, mixed = _next(letters[starts[number] : starts[number + 1]], 0)
        slot = np.int64(mixed & mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & np.int64(mask)
        slots[slot] = number
