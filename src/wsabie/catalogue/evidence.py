"""What speaks for two labels being one, and what against it; each in plain words and with a weight.

Weights are log-odds and add up: a pair begins at `PRIOR`, and 1 / (1 + exp(-sum)) is its score.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import exp
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.catalogue.company import FEW, Company, Together, mutual
from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import UP, Knowledge
from wsabie.labels.spellings import ONE_FROM, Alike, How, alike, singular

PRIOR = -3.0
SPELT: dict[How, tuple[float, str]] = {
    "case": (7.0, "differ only in case"),
    "accents": (5.5, "differ only in accents"),
    "blanks": (6.0, "differ only in blanks, hyphens or dots"),
    "plural": (4.5, "singular and plural"),
    "letters": (1.5, ""),
}
SAME_SENSE, TRANSLATED, USUAL_SENSE, SHARED_SENSE = 4.5, 5.0, 3.0, 1.5
"""Names that mean one thing and nothing else; so in two languages; it is what both usually mean; or one of them."""
OWN_WORDS, GENERAL = -4.0, -5.0
"""Two words without a common meaning; one of them the more general."""
TWO_LANGUAGES = 2.0
"""Less for names that are spelled alike in two languages: they may be translations, or false friends."""
ALIKE_FROM = 0.6
"""Cosine from which labels that are nearest of each other are looked at."""

_SENSES = 3  # of a name that are looked at
_CROWD = 8  # labels with one sense of which all pairs are looked at

Pair = tuple[int, int]


class Evidence(NamedTuple):
    """Something that speaks for two labels being one; against it where the weight is below 0."""

    kind: str
    weight: float
    told: str


class Known(NamedTuple):
    """What is known of all labels, the most frequent first."""

    names: list[str]
    languages: list[str]
    counts: list[int]


Found = defaultdict[Pair, list[Evidence]]


def score(evidence: Iterable[Evidence]) -> float:
    """How sure it is that two labels are one, from 0 to 1.

    Examples
    --------
    >>> round(score([Evidence("accents", 5.5, "differ only in accents")]), 2)
    0.92
    """
    return 1 / (1 + exp(-PRIOR - sum(one.weight for one in evidence)))


def firm(evidence: Iterable[Evidence]) -> bool:
    """Whether spelling or meaning speak for a pair, and not only the company that it keeps."""
    return any(one.kind == "meaning" or one.kind in SPELT for one in evidence)


def from_spelling(known: Known, found: Found) -> None:
    """Names that are spelled alike. A slip is likelier in a long name, and where one of the two is rare."""
    for pair in alike(known.names):
        weight, told = SPELT[pair.how]
        if pair.how == "letters":
            weight, told = _slip(known, pair)
        elif pair.how != "case" and _two_languages(known, (pair.one, pair.other)):
            weight -= TWO_LANGUAGES
        found[pair.one, pair.other].append(Evidence(pair.how, weight, told))


def senses_of(known: Known, knowledge: Knowledge) -> list[list[str]]:
    """The most frequent senses of each label."""
    return [knowledge.senses(name)[:_SENSES] for name in known.names]


def from_meanings(known: Known, knowledge: Knowledge, senses: list[list[str]], found: Found) -> None:
    """Names that mean the same."""
    by_sense: dict[str, list[int]] = defaultdict(list)
    for place, meant in enumerate(senses):
        for sense in meant:
            by_sense[sense].append(place)
    for sense, places in by_sense.items():
        first = [place for place in places if senses[place][0] == sense]
        crowd = combinations(first, 2) if len(first) <= _CROWD else ((first[0], other) for other in first[1:])
        for pair in crowd:
            sure = len(senses[pair[0]]) == len(senses[pair[1]]) == 1
            found[pair].append(_same_sense(known, knowledge, pair, sense, sure))
        rest = [place for place in places if senses[place][0] != sense]
        for one, other in ((a, b) for a in first[:_CROWD] for b in rest[:_CROWD]):
            told = f"one meaning of both: {_shown(knowledge, sense)}"
            found[min(one, other), max(one, other)].append(Evidence("meaning", SHARED_SENSE, told))


def from_differences(known: Known, knowledge: Knowledge, senses: list[list[str]], found: Found) -> None:
    """Words that were found to be alike and mean something else."""
    for pair, evidence in found.items():
        evidence += _different(known, knowledge, [senses[place] for place in pair], pair, evidence)


def from_space(vectors: Float32, places: Sequence[int], found: Found) -> None:
    """Labels that are nearest of each other in the model's space; and how near the others are.

    Parameters
    ----------
    vectors : (n, dim) float32
        At unit length.
    places : sequence of int
        Of the labels that the vectors are of.
    found : Found
    """
    near = {(min(places[a], places[b]), max(places[a], places[b])) for a, b, _ in mutual(vectors, ALIKE_FROM)}
    row = {place: i for i, place in enumerate(places)}
    for pair in [*found, *sorted(near - set(found))]:
        if pair[0] in row and pair[1] in row:
            cosine = float(vectors[row[pair[0]]] @ vectors[row[pair[1]]])
            weight = float(np.clip(4 * (cosine - 0.5), -2, 1.5)) + (pair in near)
            nearest = ", nearest of each other" if pair in near else ""
            found[pair].append(Evidence("model", round(weight, 2), f"cosine {cosine:.2f} in the model{nearest}"))


def from_company(known: Known, company: Company, found: Found) -> None:
    """Labels beside the same labels, always together or never."""
    near = {(min(a, b), max(a, b)) for a, b, _ in company.nearest(ALIKE_FROM)}
    pairs = [*found, *sorted(near - set(found))]
    if not pairs:
        return
    places = np.array(pairs)
    for pair, cosine, together in zip(pairs, company.cosines(places).tolist(), company.together(places), strict=True):
        found[pair] += _company(known, pair, cosine, together, found.get(pair, []))


def _slip(known: Known, pair: Alike) -> tuple[float, str]:
    a, b = known.counts[pair.one], known.counts[pair.other]
    length = _slipped(known.names[pair.one], known.names[pair.other])
    if length < ONE_FROM:
        return OWN_WORDS, f"{length} letters, one of which differs"
    weight = SPELT["letters"][0] - (pair.distance - 1) + min(0.3 * (length - 5), 2.4)
    weight += 1.0 if a >= 10 * b > 0 else 0.0
    weight -= 1.0 if min(a, b) >= 10 and a < 10 * b else 0.0
    weight -= TWO_LANGUAGES if _two_languages(known, (pair.one, pair.other)) else 0.0
    return round(weight, 2), "one letter differs" if pair.distance == 1 else "two letters differ"


def _slipped(one: str, other: str) -> int:
    """Letters of the word in which names differ: a slip in a long name of many words is one in a short word."""
    a, b = one.split(), other.split()
    words = [min(x, y, key=len) for x, y in zip(a, b, strict=True) if x != y] if len(a) == len(b) else [one, other]
    return min(map(len, words))


def _two_languages(known: Known, pair: Pair) -> bool:
    one, other = (known.languages[place] for place in pair)
    return one != other and bool(one and other)


def _same_sense(known: Known, knowledge: Knowledge, pair: Pair, sense: str, sure: bool) -> Evidence:
    concept = knowledge.concept(sense)
    told = dict(zip(map(spelling, concept.names), concept.languages, strict=True))
    one, other = (told.get(spelling(known.names[place]), "") for place in pair)
    if one and other and one != other:
        return Evidence(
            "meaning", TRANSLATED if sure else USUAL_SENSE, f"{one} and {other} for {_shown(knowledge, sense)}"
        )
    return Evidence("meaning", SAME_SENSE if sure else USUAL_SENSE, f"the same meaning: {_shown(knowledge, sense)}")


def _shown(knowledge: Knowledge, sense: str) -> str:
    name = knowledge.name(sense)
    return name if name == sense else f"{sense} '{name}'"


def _different(
    known: Known, knowledge: Knowledge, senses: list[list[str]], pair: Pair, evidence: list[Evidence]
) -> list[Evidence]:
    kinds = {one.kind for one in evidence}
    one, other = senses
    if "meaning" in kinds:
        return []
    if one and other and set(one).isdisjoint(other):
        for low, high, place in ((one, other, 1), (other, one, 0)):
            if set(high[:1]) & set(knowledge.reach(low[:1], UP, 3)):
                return [Evidence("general", GENERAL, f"'{known.names[pair[place]]}' is the more general")]
        if not kinds & {"case", "accents", "blanks"}:
            return [Evidence("words", OWN_WORDS, "words with meanings of their own")]
    if "letters" in kinds and bool(one) != bool(other):
        odd = known.names[pair[0] if other else pair[1]]
        inflected = bool(knowledge.senses(singular(odd)))
        told = f"'{odd}' is no word that is known"
        return [] if inflected else [Evidence("unknown", 1.0, told)]
    return []


def _company(known: Known, pair: Pair, cosine: float, together: Together, before: list[Evidence]) -> list[Evidence]:
    a, b = (known.counts[place] for place in pair)
    rarer = min(a, b)
    if not rarer:
        return []
    trust = min(1.0, (rarer / FEW) ** 0.5)
    found = [] if cosine == 0 else [
        Evidence("company", round(trust * float(np.clip(4 * (cosine - 0.35), -2, 2)), 2),
                 f"beside the same labels: cosine {cosine:.2f}")
    ]  # fmt: skip
    if together.jaccard >= 0.8 and rarer >= 3:
        weight, where = (2.5, ", in two languages") if _two_languages(known, pair) else (1.0, "")
        return [*found, Evidence("always", weight, f"nearly always together{where}: {together.both} of {a} and {b}")]
    if together.both == 0 and together.expected * max(cosine, 0) * 10 >= 3:
        return [*found, Evidence("never", 1.5, f"never on the same item: {a} and {b}")]
    if together.share >= 0.1 and rarer >= FEW and not firm(before):
        return [*found, Evidence("often", -2.0, f"often, not always, on the same item: {together.both} of {rarer}")]
    return found
