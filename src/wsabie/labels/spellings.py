"""Names that are spelled alike: in other letters, with other blanks, in the plural, or with a slip of the pen.

Slips are found by letters left out: two names at a distance of two have the same rest once two letters of each are
left out, and equal rests have equal hashes. So a hundred thousand names take seconds, and not the square of it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Int64, UInt64

How = Literal["case", "accents", "blanks", "plural", "letters"]

LONGEST = 60
"""Longer names are not searched for slips."""
ONE_FROM, TWO_FROM = 5, 10
"""Names with fewer letters must be the same; with fewer than `TWO_FROM` one letter may differ, then two."""

_TWO_TO = 24  # two letters are left out of names up to this length, one of longer ones
_RUN = 64  # names with one rest that are compared with each other, at most
_AT_ONCE = 4_000_000  # hashes that are sorted together
_CHUNK = 50_000
_FOLDED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "’": "'"})
_ACCENT = re.compile("[\u0300-\u036f\ufe0e\ufe0f]")  # marks of Indic or Arabic letters are letters: they stay
_BLANK = re.compile(r"(?<!\d)[\s_\-'.·]+|[\s_\-'.·]+(?!\d)")  # 3.5 and 35 are two things
_DIGITS = re.compile(r"\d+")
_ALPHABET = re.compile("[\u0000-\u2e7f]+")  # beyond it a sign is a syllable or a word: another one is no slip
_P = 0x9E3779B97F4A7C15 | 1
_INVERSE = pow(_P, -1, 1 << 64)


class Alike(NamedTuple):
    """Two names by their places, and what they differ in; `distance` in letters where `how` is "letters", else 0."""

    one: int
    other: int
    how: How
    distance: int


def alike(names: Sequence[str]) -> list[Alike]:
    """Names that are spelled alike.

    Parameters
    ----------
    names : sequence of str
        The usual ones first: the first of several that differ in case, accents, blanks or plural stands for all.

    Returns
    -------
    list of Alike
        `one` < `other`. Names with other digits are never alike.

    Examples
    --------
    >>> names = ["café", "sea gull", "sunset", "lens", "Cafe", "seagulls", "sunste", "d200", "d300"]
    >>> [(names[a], names[b], how, distance) for a, b, how, distance in alike(names)]
    [('café', 'Cafe', 'accents', 0), ('sea gull', 'seagulls', 'plural', 0), ('sunset', 'sunste', 'letters', 1)]
    """
    stands = list(range(len(names)))
    found: list[Alike] = []
    for how, key in _KEYS:
        first: dict[str, int] = {}
        for place, name in enumerate(names):
            here = _root(stands, place)
            one = _root(stands, first.setdefault(key(name), here))
            if one != here:
                one, other = sorted((one, here))
                found.append(Alike(one, other, how, 0))
                stands[other] = one
        stands = [_root(stands, place) for place in range(len(names))]
    keys: dict[str, int] = {}
    for place, name in enumerate(names):
        keys.setdefault(squeezed(name), place)
    spelled = [key for key in keys if ONE_FROM <= len(key) <= LONGEST and _ALPHABET.fullmatch(key)]
    for a, b, distance in _slips(spelled):
        one, other = sorted((keys[spelled[a]], keys[spelled[b]]))
        if stands[one] != stands[other]:
            found.append(Alike(one, other, "letters", distance))
    return found


def folded(name: str) -> str:
    """A name without case and accents.

    Examples
    --------
    >>> folded("Ångström"), folded("SØREN"), folded("हिंदी")
    ('angstrom', 'soren', 'हिंदी')
    """
    name = name.casefold()
    if name.isascii():
        return name
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", name))
    return unicodedata.normalize("NFC", plain).translate(_FOLDED) or name


def squeezed(name: str) -> str:
    """A name without case, accents, blanks, hyphens, dots and apostrophes; between two digits these stay.

    Examples
    --------
    >>> squeezed("Sea-Gull"), squeezed("U.S.A."), squeezed("f 1.8"), squeezed("...")
    ('seagull', 'usa', 'f1.8', '...')
    """
    name = folded(name)
    return _BLANK.sub("", name) or name


def singular(name: str) -> str:
    """The singular of an English name, by its ending, squeezed; of what ends otherwise the same.

    Examples
    --------
    >>> [singular(name) for name in ("Cats", "berries", "churches", "glass", "bus", "snowmen", "lens", "roses")]
    ['cat', 'berry', 'church', 'glass', 'bus', 'snowman', 'lens', 'rose']
    """
    word = squeezed(name)
    if len(word) < 4 or not word.isalpha() or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("men") and len(word) > 4:
        return word[:-2] + "an"
    keeps = word.endswith(("ss", "us", "is", "lens", "news", "series", "species"))
    return word[:-1] if word.endswith("s") and not keeps else word


_KEYS: tuple[tuple[How, Callable[[str], str]], ...] = (
    ("case", str.casefold),
    ("accents", folded),
    ("blanks", squeezed),
    ("plural", singular),
)


def _root(stands: list[int], place: int) -> int:
    while stands[place] != place:
        place = stands[place]
    return place


def _slips(names: list[str]) -> Iterator[tuple[int, int, int]]:
    """Different names that a slip or two of the pen make the same."""
    lengths = np.array([len(name) for name in names] or [0])
    near = _sharing_a_rest(names, lengths)
    for lo in range(0, len(near), _CHUNK):
        part = near[lo : lo + _CHUNK]
        allowed = np.where(lengths[part].min(axis=1) < TWO_FROM, 1, 2)
        part, allowed = (x[np.abs(np.diff(lengths[part], axis=1)[:, 0]) <= allowed] for x in (part, allowed))
        distances = _distances([names[a] for a in part[:, 0]], [names[b] for b in part[:, 1]])
        for (a, b), distance, most in zip(part.tolist(), distances.tolist(), allowed.tolist(), strict=True):
            if distance <= most and _DIGITS.findall(names[a]) == _DIGITS.findall(names[b]):
                yield a, b, distance


def _sharing_a_rest(names: list[str], lengths: Int64) -> Int64:
    """Pairs of names, (n, 2), that are the same once a letter or two of either are left out."""
    tables = [
        (at, _letters([names[i] for i in at], n))
        for n in range(ONE_FROM, LONGEST + 1)
        if len(at := np.flatnonzero(lengths == n))
    ]
    parts = 1 + sum(letters.size * _TWO_TO // 2 for _, letters in tables) // _AT_ONCE
    found = [_runs(*_rests(tables, part, parts), len(names)) for part in range(parts)]
    pairs = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    return np.stack([pairs // max(len(names), 1), pairs % max(len(names), 1)], axis=1)


def _rests(tables: list[tuple[Int64, UInt64]], part: int, parts: int) -> tuple[UInt64, Int64]:
    """Hashes of what is left, and of which name; those of one part of all hashes."""
    hashes, owners = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for at, letters in tables:
        for rest in _left(letters):
            mine = np.flatnonzero(rest % np.uint64(parts) == part)
            hashes.append(rest[mine])
            owners.append(at[mine])
    return np.concatenate(hashes), np.concatenate(owners)


def _left(letters: UInt64) -> Iterator[UInt64]:
    """Hashes of names of n letters, (m, n), as they are, without one letter, and without two."""
    m, n = letters.shape
    powers = np.array([pow(_P, i, 1 << 64) for i in range(n)], np.uint64)
    sums = np.zeros((n + 1, m), np.uint64)
    np.cumsum((letters * powers).T, axis=0, out=sums[1:])
    once, twice = np.uint64(_INVERSE), np.uint64(_INVERSE * _INVERSE % (1 << 64))
    yield sums[n]
    for i in range(n):
        yield sums[i] + (sums[n] - sums[i + 1]) * once
    if TWO_FROM <= n <= _TWO_TO:
        for i in range(n):
            for j in range(i + 1, n):
                yield sums[i] + (sums[j] - sums[i + 1]) * once + (sums[n] - sums[j + 1]) * twice


def _runs(hashes: UInt64, owners: Int64, n: int) -> Int64:
    """Pairs of owners of one hash, as one * n + other."""
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    found = [np.empty(0, np.int64)]
    at = np.arange(len(hashes))
    for step in range(1, _RUN):
        at = at[at + step < len(hashes)]
        at = at[hashes[at] == hashes[at + step]]
        one, other = owners[at], owners[at + step]
        found.append(np.unique((np.minimum(one, other) * n + np.maximum(one, other))[one != other]))
    return np.unique(np.concatenate(found))


def _letters(names: list[str], n: int) -> UInt64:
    """Names of n letters as numbers, (m, n), in which every bit depends on the letter."""
    codes = np.frombuffer("".join(names).encode("utf-32-le"), np.uint32).reshape(-1, n).astype(np.uint64)
    codes = (codes + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    codes ^= codes >> np.uint64(29)
    return codes * np.uint64(0x94D049BB133111EB)


def _distances(ones: list[str], others: list[str]) -> Int64:
    """Letters to change, add, leave out or swap with the next to make one name the other, up to 2; 3 = more.

    The table of the usual recursion is filled for all pairs at once, two cells to either side of its diagonal.
    """
    m = len(ones)
    if not m:
        return np.empty(0, np.int64)
    width = max(map(len, ones + others))
    a, b = (np.array([list(name.ljust(width, "\0")) for name in part]).T for part in (ones, others))
    ends = np.array([[len(x), len(y) - len(x) + 2] for x, y in zip(ones, others, strict=True)])
    result = np.full(m, 3)
    far = np.full(m, 3, np.int8)
    before: list[list[Any]] = []
    for i in range(width + 1):
        row: list[Any] = []
        for k in range(5):
            row.append(_cell(a, b, i, i + k - 2, k, row, before, far))
        for k in range(5):
            done = (ends[:, 0] == i) & (ends[:, 1] == k)
            result[done] = row[k][done]
        before = [row, *before[:1]]
    return result


def _cell(a: Any, b: Any, i: int, j: int, k: int, row: list[Any], before: list[list[Any]], far: Any) -> Any:
    """Cell (i, j) of the tables, which is the k-th of its row; of the row so far and the two before."""
    if not 0 <= j <= len(b):
        return far
    if i == 0 or j == 0:
        return np.full_like(far, min(i + j, 3))
    best = before[0][k] + (a[i - 1] != b[j - 1])
    if k < 4:
        best = np.minimum(best, before[0][k + 1] + 1)
    if k > 0:
        best = np.minimum(best, row[k - 1] + 1)
    if i > 1 and j > 1:
        swapped = (a[i - 1] == b[j - 2]) & (a[i - 2] == b[j - 1])
        best = np.where(swapped, np.minimum(best, before[1][k] + 1), best)
    return np.minimum(best, far).astype(np.int8)
