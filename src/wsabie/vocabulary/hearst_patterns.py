"""Extract is-a pairs such as "a toad is an amphibian" from running English text.

Weston, Bengio and Usunier (2010, section 4) took the siblings of their Web labels from occurrences of "X is a Y" on web
pages; Hearst (1992) shows that such patterns find kinds. This module uses no parser: X is the words between the
beginning of a clause (or an article) and "is a", Y the words up to the next preposition, conjunction or mark.
Sentences that do not fit the pattern plainly are ignored. Y is cut to its last word, its head: "a large flightless
bird" is a bird.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from wsabie.vocabulary.concept_hierarchy import make_lookup_key

MAX_WORDS = 5
"""Maximum number of words in a name."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*|[^\s\w]|\S")
_ENDS = frozenset('.!?;:,()[]{}"“”«»—–…|/<>*')


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
"""Words that are not part of a name; an X that contains one is ignored."""
_STOPS = _NEVER | _STARTS | _ARTICLES | _words("used made found known called according whose whom")
"""Words at which Y ends."""
_THROUGH = _words("kind type sort form species variety breed genus class family example instance")
"""Y of "a kind of Y" is what comes after."""
_NO_KIND = _words(
    "part parts piece member lot bit number couple few way matter result source symbol sign set list collection group "
    "pair series portion half majority lack means one thing case must"
)
"""Heads that name parts, amounts or signs instead of kinds."""


class HearstPatternCounter:
    """Counter of is-a pairs, sentence by sentence, in bounded memory.

    Parameters
    ----------
    known : callable or None
        Predicate of names in the form of `make_lookup_key`. X is then the longest name that satisfies it, and so is Y
        if there is one.
    most : int
        Pairs held at most; beyond that the rarest are dropped.

    Attributes
    ----------
    max_undercount : int
        Upper bound of how much a count is too low; 0 if no pair was dropped.

    Examples
    --------
    >>> counter = HearstPatternCounter()
    >>> counter.count_pairs("The toad is an amphibian, and a great white shark is a kind of large fish.")
    >>> counter.pairs()
    [('great white shark', 'fish', 1), ('toad', 'amphibian', 1)]
    """

    def __init__(self, is_known: Callable[[str], bool] | None = None, most: int = 1_000_000) -> None:
        self._is_known, self._most = is_known, most
        self._counts: Counter[tuple[str, str]] = Counter()
        self.max_undercount = 0

    def count_pairs(self, sentence: str) -> None:
        """Count the pairs of a sentence, or of several."""
        for child, parent in _find_pairs(sentence, self._is_known):
            self._counts[child, parent] += 1
        if len(self._counts) > self._most:
            rare = sorted(self._counts.values())[len(self._counts) // 2]
            self._counts = Counter({pair: count for pair, count in self._counts.items() if count > rare})
            self.max_undercount += rare  # a dropped pair that comes again starts at 0

    def pairs(self, min_count: int = 1) -> list[tuple[str, str, int]]:
        """Return (child, parent, count), the most frequent first and ties in alphabetical order."""
        frequent = ((child, parent, count) for (child, parent), count in self._counts.items() if count >= min_count)
        return sorted(frequent, key=lambda pair: (-pair[2], pair[0], pair[1]))


def split_sentences(lines: Iterable[str], longest: int = 10_000) -> Iterator[str]:
    """Split lines of text into sentences, which may span lines; empty lines and list marks end a sentence.

    Examples
    --------
    >>> list(split_sentences(["A toad is", "an amphibian. An oak", "", "is a tree"]))
    ['A toad is an amphibian.', 'An oak', 'is a tree']
    """
    pending = ""
    for line in lines:
        line = " ".join(line.split())
        if not line or len(pending) > longest or re.match(r"[-*•o+#>] |\d+[.)] ", line):
            if pending:
                yield pending
            pending = ""
        *sentences, pending = re.split(
            r"(?<=[.!?;]) (?=\S)", f"{pending} {line}" if pending and line else pending or line
        )
        yield from sentences
    if pending:
        yield pending


def _find_pairs(sentence: str, is_known: Callable[[str], bool] | None) -> Iterator[tuple[str, str]]:
    words = [word.casefold() for word in _WORD.findall(sentence)]
    for index, word in enumerate(words[:-2]):
        if word in ("is", "was") and words[index + 1] in ("a", "an"):
            child_words, parent_words = _parse_child(words[:index]), _parse_parent(words[index + 2 :])
            child = _find_longest_name(child_words, is_known) if is_known else " ".join(child_words)
            parent = (_find_longest_name(parent_words, is_known) if is_known else "") or "".join(parent_words[-1:])
            if child and parent and child != parent:
                yield child, parent


def _parse_child(words: list[str]) -> list[str]:
    """Return the words of X; none if the text before "is a" is not a plain name."""
    first = len(words)
    while first and words[first - 1] not in _ENDS | _ARTICLES | _STARTS:
        first -= 1
        if words[first] in _NEVER or len(words) - first > MAX_WORDS:
            return []
    if first > 1 and words[first - 1] in _ARTICLES and words[first - 2] in _PREPOSITIONS:
        return []  # "the leaf of the oak is a ..." is not about the oak
    return words[first:]


def _parse_parent(words: list[str]) -> list[str]:
    """Return the words of Y, its head last; none if Y is long or names no kind."""
    last = next((index for index, word in enumerate(words) if word in _ENDS | _STOPS), len(words))
    name, next_words = words[:last], words[last : last + 2]
    if next_words[:1] == ["of"] and name and name[-1] in _THROUGH:
        return _parse_parent(words[last + 1 + (next_words[1:] != [] and next_words[1] in _ARTICLES) :])
    following = next_words[0] if next_words else ""
    ends = {"ing": _STOPS - _PREPOSITIONS, "ed": _PREPOSITIONS}
    if last > 1 and any(name[-1].endswith(end) and following in followers for end, followers in ends.items()):
        name = name[:-1]  # "a list containing the ...", "a fish found in ..."
    return [] if not 0 < last <= MAX_WORDS or name[-1] in _NO_KIND or not name[-1][0].isalpha() else name


def _find_longest_name(words: list[str], is_known: Callable[[str], bool]) -> str:
    """Return the longest known name at the end of the words; "" if there is none."""
    names = (make_lookup_key(" ".join(words[first:])) for first in range(len(words)))
    return next((name for name in names if is_known(name)), "")
