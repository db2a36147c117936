"""Find names that differ in case, accents, blanks, plural, or by one or two typing errors.

Typing errors are found by deletion: two names at distance 2 leave the same remainder after the right two letters of
each are deleted, and equal remainders have equal hashes. A hundred thousand names take seconds, because not all pairs
are compared. We keep ours because rapidfuzz 3.14.6 compares them all.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Int64, UInt64

SpellingDifference = Literal["case", "accents", "blanks", "plural", "letters"]

MAX_LENGTH = 60
"""Longer names are not searched for typing errors."""
MIN_LETTERS_ONE, MIN_LETTERS_TWO = 5, 10
"""Names with fewer letters must be the same; with fewer than `MIN_LETTERS_TWO` one letter may differ, then two."""

_MAX_LETTERS_TWO = 24  # up to this length two letters are deleted, then one
_MAX_RUN = 64  # maximum number of names compared per remainder
_HASHES_AT_ONCE = 4_000_000  # hashes sorted together
_CHUNK = 50_000
_FOLDED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "’": "'"})
_ACCENT = re.compile("[\u0300-\u036f\ufe0e\ufe0f]")  # marks of Indic or Arabic letters are letters: they stay
_BLANK = re.compile(r"(?<!\d)[\s_\-'.·]+|[\s_\-'.·]+(?!\d)")  # 3.5 and 35 differ
_DIGITS = re.compile(r"\d+")
_ALPHABET = re.compile("[\u0000-\u2e7f]+")  # beyond it a sign is a syllable or a word
_P = 0x9E3779B97F4A7C15 | 1
_INVERSE = pow(_P, -1, 1 << 64)


class SpellingMatch(NamedTuple):
    """Two names by position, and their difference; `distance` in letters if it is "letters", else 0."""

    first: int
    second: int
    difference: SpellingDifference
    distance: int


def find_spelling_matches(names: Sequence[str]) -> list[SpellingMatch]:
    """Find pairs of names that are spelled alike.

    Parameters
    ----------
    names : sequence of str
        The usual ones first: the first of several that differ in case, accents, blanks or plural stands for all.

    Returns
    -------
    list of SpellingMatch
        `first` < `second`. Names with other digits are never alike.

    Examples
    --------
    >>> names = ["café", "sea gull", "sunset", "lens", "Cafe", "seagulls", "sunste", "d200", "d300"]
    >>> [(names[a], names[b], how, distance) for a, b, how, distance in find_spelling_matches(names)]
    [('café', 'Cafe', 'accents', 0), ('sea gull', 'seagulls', 'plural', 0), ('sunset', 'sunste', 'letters', 1)]
    """
    roots = list(range(len(names)))
    matches: list[SpellingMatch] = []
    for difference, key in _KEYS:
        root_by_key: dict[str, int] = {}
        for position, name in enumerate(names):
            root = _find_root(roots, position)
            low = _find_root(roots, root_by_key.setdefault(key(name), root))
            if low != root:
                low, high = sorted((low, root))
                matches.append(SpellingMatch(low, high, difference, 0))
                roots[high] = low
        roots = [_find_root(roots, position) for position in range(len(names))]
    keys: dict[str, int] = {}
    for position, name in enumerate(names):
        keys.setdefault(squeeze_name(name), position)
    searched_keys = [key for key in keys if MIN_LETTERS_ONE <= len(key) <= MAX_LENGTH and _ALPHABET.fullmatch(key)]
    for a, b, distance in _find_typing_errors(searched_keys):
        low, high = sorted((keys[searched_keys[a]], keys[searched_keys[b]]))
        if roots[low] != roots[high]:
            matches.append(SpellingMatch(low, high, "letters", distance))
    return matches


def fold_name(name: str) -> str:
    """Remove case and accents from a name.

    Examples
    --------
    >>> fold_name("Ångström"), fold_name("SØREN"), fold_name("हिंदी")
    ('angstrom', 'soren', 'हिंदी')
    """
    name = name.casefold()
    if name.isascii():
        return name
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", name))
    return unicodedata.normalize("NFC", plain).translate(_FOLDED) or name


def squeeze_name(name: str) -> str:
    """Remove case, accents, blanks, hyphens, dots and apostrophes; between two digits the last four stay.

    Examples
    --------
    >>> squeeze_name("Sea-Gull"), squeeze_name("U.S.A."), squeeze_name("f 1.8"), squeeze_name("...")
    ('seagull', 'usa', 'f1.8', '...')
    """
    name = fold_name(name)
    return _BLANK.sub("", name) or name


def singularise_name(name: str) -> str:
    """Return the singular of an English name by its ending, squeezed; other names are only squeezed.

    Examples
    --------
    >>> [singularise_name(name) for name in ("Cats", "berries", "churches", "glass", "bus", "snowmen", "lens", "roses")]
    ['cat', 'berry', 'church', 'glass', 'bus', 'snowman', 'lens', 'rose']
    """
    word = squeeze_name(name)
    if len(word) < 4 or not word.isalpha() or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("men") and len(word) > 4:
        return word[:-2] + "an"
    is_singular = word.endswith(("ss", "us", "is", "lens", "news", "series", "species"))
    return word[:-1] if word.endswith("s") and not is_singular else word


_KEYS: tuple[tuple[SpellingDifference, Callable[[str], str]], ...] = (
    ("case", str.casefold),
    ("accents", fold_name),
    ("blanks", squeeze_name),
    ("plural", singularise_name),
)


def _find_root(roots: list[int], position: int) -> int:
    while roots[position] != position:
        position = roots[position]
    return position


def _find_typing_errors(names: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of names within one or two typing errors, with their distance."""
    lengths = np.array([len(name) for name in names] or [0])
    candidates = _find_candidate_pairs(names, lengths)
    for lo in range(0, len(candidates), _CHUNK):
        part = candidates[lo : lo + _CHUNK]
        allowed = np.where(lengths[part].min(axis=1) < MIN_LETTERS_TWO, 1, 2)
        part, allowed = (x[np.abs(np.diff(lengths[part], axis=1)[:, 0]) <= allowed] for x in (part, allowed))
        distances = _measure_distances([names[a] for a in part[:, 0]], [names[b] for b in part[:, 1]])
        for (a, b), distance, limit in zip(part.tolist(), distances.tolist(), allowed.tolist(), strict=True):
            if distance <= limit and _DIGITS.findall(names[a]) == _DIGITS.findall(names[b]):
                yield a, b, distance


def _find_candidate_pairs(names: list[str], lengths: Int64) -> Int64:
    """Return pairs of names, (n, 2), that agree once one or two letters of each are deleted."""
    tables = [
        (positions, _encode_letters([names[i] for i in positions], n))
        for n in range(MIN_LETTERS_ONE, MAX_LENGTH + 1)
        if len(positions := np.flatnonzero(lengths == n))
    ]
    parts = 1 + sum(letters.size * _MAX_LETTERS_TWO // 2 for _, letters in tables) // _HASHES_AT_ONCE
    pair_codes = [_pair_equal_hashes(*_hash_remainders(tables, part, parts), len(names)) for part in range(parts)]
    pairs = np.unique(np.concatenate([np.empty(0, np.int64), *pair_codes]))
    return np.stack([pairs // max(len(names), 1), pairs % max(len(names), 1)], axis=1)


def _hash_remainders(tables: list[tuple[Int64, UInt64]], part: int, parts: int) -> tuple[UInt64, Int64]:
    """Return hashes of the remainders of names, in one of several parts, and the name of each."""
    hashes, owners = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for positions, letters in tables:
        for remainder_hashes in _hash_variants(letters):
            is_in_part = np.flatnonzero(remainder_hashes % np.uint64(parts) == part)
            hashes.append(remainder_hashes[is_in_part])
            owners.append(positions[is_in_part])
    return np.concatenate(hashes), np.concatenate(owners)


def _hash_variants(letters: UInt64) -> Iterator[UInt64]:
    """Yield hashes of names of n letters, (m, n): whole, without one letter, and without two."""
    m, n = letters.shape
    powers = np.array([pow(_P, i, 1 << 64) for i in range(n)], np.uint64)
    sums = np.zeros((n + 1, m), np.uint64)
    np.cumsum((letters * powers).T, axis=0, out=sums[1:])
    once, twice = np.uint64(_INVERSE), np.uint64(_INVERSE * _INVERSE % (1 << 64))
    yield sums[n]
    for i in range(n):
        yield sums[i] + (sums[n] - sums[i + 1]) * once
    if MIN_LETTERS_TWO <= n <= _MAX_LETTERS_TWO:
        for i in range(n):
            for j in range(i + 1, n):
                yield sums[i] + (sums[j] - sums[i + 1]) * once + (sums[n] - sums[j + 1]) * twice


def _pair_equal_hashes(hashes: UInt64, owners: Int64, n: int) -> Int64:
    """Return pairs of owners of equal hashes, as first * n + second."""
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    pair_codes = [np.empty(0, np.int64)]
    positions = np.arange(len(hashes))
    for step in range(1, _MAX_RUN):
        positions = positions[positions + step < len(hashes)]
        positions = positions[hashes[positions] == hashes[positions + step]]
        first, second = owners[positions], owners[positions + step]
        pair_codes.append(np.unique((np.minimum(first, second) * n + np.maximum(first, second))[first != second]))
    return np.unique(np.concatenate(pair_codes))


def _encode_letters(names: list[str], n: int) -> UInt64:
    """Encode names of n letters as numbers, (m, n), whose every bit depends on the letter."""
    codes = np.frombuffer("".join(names).encode("utf-32-le"), np.uint32).reshape(-1, n).astype(np.uint64)
    codes = (codes + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    codes ^= codes >> np.uint64(29)
    return codes * np.uint64(0x94D049BB133111EB)


def _measure_distances(first_names: list[str], second_names: list[str]) -> Int64:
    """Return the Damerau-Levenshtein distances of pairs of names, up to 2; 3 means more."""
    # the table of the recursion is filled for all pairs at once, two cells to either side of its diagonal,
    # between borders that hold 3
    m = len(first_names)
    if not m:
        return np.empty(0, np.int64)
    width = max(map(len, first_names + second_names))
    a, b = (np.array([list(name.ljust(width, "\0")) for name in part]).T for part in (first_names, second_names))
    ends = np.array([[len(x), len(y) - len(x) + 3] for x, y in zip(first_names, second_names, strict=True)])
    result, limit = np.full(m, 3), np.full(m, 3, np.int8)
    previous_rows: list[list[Array]] = []
    for i in range(width + 1):
        row: list[Array] = [limit]
        for k in range(1, 6):
            row.append(_compute_cell(a, b, i, i + k - 3, k, row, previous_rows, limit))
            is_final = (ends[:, 0] == i) & (ends[:, 1] == k)
            result[is_final] = row[k][is_final]
        row.append(limit)
        previous_rows = [row, *previous_rows[:1]]
    return result


def _compute_cell(
    a: Array, b: Array, i: int, j: int, k: int, row: list[Array], previous_rows: list[list[Array]], limit: Array
) -> Array:
    """Compute cell (i, j) of the tables, the k-th of its row, from this row and the two before it."""
    if not 0 <= j <= len(b):
        return limit
    if i == 0 or j == 0:
        return np.full_like(limit, min(i + j, 3))
    best = np.minimum(previous_rows[0][k] + (a[i - 1] != b[j - 1]), np.minimum(previous_rows[0][k + 1], row[k - 1]) + 1)
    if i > 1 and j > 1:
        swapped = (a[i - 1] == b[j - 2]) & (a[i - 2] == b[j - 1])
        best = np.where(swapped, np.minimum(best, previous_rows[1][k] + 1), best)
    return np.asarray(np.minimum(best, limit), np.int8)
