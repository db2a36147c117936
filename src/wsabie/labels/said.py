"""Is-a pairs that people write: "a toad is an amphibian" in running English text.

Weston, Bengio and Usunier (2010, section 4) took the siblings of their Web labels from occurrences of "X is a Y" on web
pages; Hearst (1992) shows that such patterns find kinds. There is no parser here: X is the words between the beginning
of a clause (or an article) and "is a", Y the words up to the next preposition, conjunction or mark. A sentence that
does not fit that plainly gives nothing. Y is cut to its last word, its head: "a large flightless bird" is a bird.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from wsabie.labels.hierarchy import spelling


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LONGEST_NAME = 5
"""Words of a name at most."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*|[^\s\w]|\S")
_ENDS = frozenset('.!?;:,()[]{}"“”«»—–…|/<>*')
_ARTICLES = _words("a an the this each every any some his her its our their my your")
_STARTS = _words("that because since although though while when if whereas thus therefore hence so")
"""Words after which a new clause begins; nothing before them belongs to X."""
_PREPOSITIONS = _words(
    "of in on at by for from with without to as than into about between among under over after before during per via "
    "like within against inside outside around behind"
)
_NEVER = _PREPOSITIONS | _words(
    "it he she they we you i there here this that these those which who what where why how one someone something "
    "everything nothing everyone all both none such other another and or but nor not is was are were be been has have "
    "had do does did can could may might must will would shall should also then now only"
)
"""Words that are no part of a name: X that meets one is not understood."""
_STOPS = _NEVER | _STARTS | _ARTICLES | _words("used made found known called according whose whom")
"""Words at which Y ends."""
_THROUGH = _words("kind type sort form species variety breed genus class family example instance")
"""Y of "a kind of Y" is what comes after."""
_NO_KIND = _words(
    "part parts piece member lot bit number couple few way matter result source symbol sign set list collection group "
    "pair series portion half majority lack means one thing case must"
)
"""Heads that tell of parts, amounts or signs, and not of kinds."""


class Said:
    """Counts is-a pairs sentence by sentence, in bounded memory.

    Parameters
    ----------
    known : callable or None
        Tells of a spelled name whether it is wanted: X then is the longest such name, and Y the longest such name if
        there is one.
    most : int
        Pairs that are held. When there are more, the rarest are forgotten.

    Attributes
    ----------
    forgotten : int
        No count is too low by more than this; 0 when all pairs were held.

    Examples
    --------
    >>> said = Said()
    >>> said.read("The toad is an amphibian, and a great white shark is a kind of large fish.")
    >>> said.pairs()
    [('great white shark', 'fish', 1), ('toad', 'amphibian', 1)]
    """

    def __init__(self, known: Callable[[str], bool] | None = None, most: int = 1_000_000) -> None:
        self._known, self._most = known, most
        self._counts: Counter[tuple[str, str]] = Counter()
        self.forgotten = 0

    def read(self, sentence: str) -> None:
        """Count the pairs of a sentence, or of several."""
        for child, parent in _pairs(sentence, self._known):
            self._counts[child, parent] += 1
        if len(self._counts) > self._most:
            rare = sorted(self._counts.values())[len(self._counts) // 2]
            self._counts = Counter({pair: n for pair, n in self._counts.items() if n > rare})
            self.forgotten += rare  # what comes back begins at 0 again

    def pairs(self, min_count: int = 1) -> list[tuple[str, str, int]]:
        """(child, parent, count), the most frequent first, equal ones in alphabetical order."""
        kept = ((child, parent, n) for (child, parent), n in self._counts.items() if n >= min_count)
        return sorted(kept, key=lambda pair: (-pair[2], pair[0], pair[1]))


def sentences(lines: Iterable[str], longest: int = 10_000) -> Iterator[str]:
    """Lines of text as sentences, which may run over several lines; an empty line ends one, and so does a list's mark.

    Examples
    --------
    >>> list(sentences(["A toad is", "an amphibian. An oak", "", "is a tree"]))
    ['A toad is an amphibian.', 'An oak', 'is a tree']
    """
    held = ""
    for line in lines:
        line = " ".join(line.split())
        if not line or len(held) > longest or re.match(r"[-*•o+#>] |\d+[.)] ", line):
            if held:
                yield held
            held = ""
        *whole, held = re.split(r"(?<=[.!?;]) (?=\S)", f"{held} {line}" if held and line else held or line)
        yield from whole
    if held:
        yield held


def _pairs(sentence: str, known: Callable[[str], bool] | None) -> Iterator[tuple[str, str]]:
    words = [word.casefold() for word in _WORD.findall(sentence)]
    for at, word in enumerate(words[:-2]):
        if word in ("is", "was") and words[at + 1] in ("a", "an"):
            left, right = _left(words[:at]), _right(words[at + 2 :])
            child = _longest(left, known) if known else " ".join(left)
            parent = (_longest(right, known) if known else "") or "".join(right[-1:])
            if child and parent and child != parent:
                yield child, parent


def _left(words: list[str]) -> list[str]:
    """The words of X, or none when what stands before "is a" is no plain name."""
    first = len(words)
    while first and words[first - 1] not in _ENDS | _ARTICLES | _STARTS:
        first -= 1
        if words[first] in _NEVER or len(words) - first > LONGEST_NAME:
            return []
    if first > 1 and words[first - 1] in _ARTICLES and words[first - 2] in _PREPOSITIONS:
        return []  # "the leaf of the oak is a ..." is not about the oak
    return words[first:]


def _right(words: list[str]) -> list[str]:
    """The words of Y, the last of which is its head; none where Y is long or says something else than a kind."""
    last = next((at for at, word in enumerate(words) if word in _ENDS | _STOPS), len(words))
    name, after = words[:last], words[last : last + 2]
    if after[:1] == ["of"] and name and name[-1] in _THROUGH:
        return _right(words[last + 1 + (after[1:] != [] and after[1] in _ARTICLES) :])
    following = after[0] if after else ""
    ends = {"ing": _STOPS - _PREPOSITIONS, "ed": _PREPOSITIONS}
    if last > 1 and any(name[-1].endswith(end) and following in then for end, then in ends.items()):
        name = name[:-1]  # "a list containing the ...", "a fish found in ..."
    return [] if not 0 < last <= LONGEST_NAME or name[-1] in _NO_KIND or not name[-1][0].isalpha() else name


def _longest(words: list[str], known: Callable[[str], bool]) -> str:
    """The longest known name that ends where the words end; empty when there is none."""
    names = (spelling(" ".join(words[first:])) for first in range(len(words)))
    return next((name for name in names if known(name)), "")
