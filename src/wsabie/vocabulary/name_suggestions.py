"""Suggestions for misspelt names: "did you mean"."""

import heapq
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

_MAX_CANDIDATES = 40  # candidates that survive the quick comparison
_MIN_RATIO = 0.6  # of any two short words half of the letters agree by chance


def find_closest_names(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Return up to `n` names that look most like `name`, best first; ties in alphabetical order.

    A quick comparison of letter pairs selects candidates among all names, and a slow one ranks these, so that a million
    names take seconds and not minutes. Case is ignored.

    Examples
    --------
    >>> find_closest_names("dolfin", ["fin whale", "dolphin", "doll", "fish"], n=2)
    ['dolphin', 'doll']
    """
    key = unicodedata.normalize("NFC", " ".join(name.split())).casefold()
    key_pairs = _letter_pairs(key)

    def rate_roughly(candidate: str) -> float:
        candidate_pairs = _letter_pairs(candidate.casefold())
        return 2 * len(key_pairs & candidate_pairs) / (len(key_pairs) + len(candidate_pairs))

    def rate_exactly(candidate: str) -> float:
        return SequenceMatcher(None, key, candidate.casefold()).ratio()

    ratings = [(rate_exactly(c), c) for c in heapq.nlargest(_MAX_CANDIDATES, names, key=rate_roughly)]
    return [c for score, c in sorted(ratings, key=lambda pair: (-pair[0], pair[1])) if score >= _MIN_RATIO][:n]


def _letter_pairs(text: str) -> set[tuple[str, str]]:
    return set(zip(f" {text}", f"{text} ", strict=True))


def format_unknown_label(name: str, names: Sequence[str], kind: str = "label") -> str:
    """Format the message for an unknown label, or another unknown name, with suggestions from `names`.

    Examples
    --------
    >>> format_unknown_label("dolfin", ["dolphin", "ship"])
    "there is no label 'dolfin'; did you mean 'dolphin'?"
    >>> format_unknown_label("dolphin", [])
    "there is no label 'dolphin', and no other one yet"
    """
    if not names:
        return f"there is no {kind} '{name}', and no other one yet"
    suggestions = [f"'{c}'" for c in find_closest_names(name, names)]
    if not suggestions:
        return f"there is no {kind} '{name}' among the {len(names):,} {kind}s, nor one like it; check the spelling"
    listed = suggestions[0] if len(suggestions) == 1 else f"{', '.join(suggestions[:-1])} or {suggestions[-1]}"
    return f"there is no {kind} '{name}'; did you mean {listed}?"
