"""Evidence for and against merging two labels, each piece with a message and a weight.

Weights are log-odds and add up from `PRIOR`; the score of a pair is 1 / (1 + exp(-sum)).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from math import exp
from typing import NamedTuple

import numpy as np

from wsabie.collection.merge_proposals.cooccurrence import MIN_ITEMS, Cooccurrence, PairCounts, find_mutual_neighbours
from wsabie.core.arrays import Float32
from wsabie.vocabulary.hierarchy import make_lookup_key
from wsabie.vocabulary.knowledge_graph import UP, KnowledgeGraph
from wsabie.vocabulary.spelling_variants import (
    ONE_FROM,
    SpellingDifference,
    SpellingMatch,
    find_spelling_matches,
    singularise_name,
)

PRIOR = -3.0
SPELLING_WEIGHTS: dict[SpellingDifference, tuple[float, str]] = {
    "case": (7.0, "differ only in case"),
    "accents": (5.5, "differ only in accents"),
    "blanks": (6.0, "differ only in blanks, hyphens or dots"),
    "plural": (4.5, "singular and plural"),
    "letters": (1.5, ""),
}
SAME_SENSE, TRANSLATED, USUAL_SENSE, SHARED_SENSE = 4.5, 5.0, 3.0, 1.5
"""Weights: same single sense; same in two languages; same first sense; shared secondary sense."""
DIFFERENT_WORDS, GENERAL = -4.0, -5.0
"""Weights: two words without a common sense; one is more general than the other."""
TWO_LANGUAGES = 2.0
"""Deduction for similar spellings in two languages, which may be false friends."""
MIN_COSINE = 0.6
"""Lowest cosine of mutual nearest neighbours that counts as evidence."""

_MAX_SENSES = 3  # senses considered for a name
_MAX_PAIRED = 8  # largest number of labels of one sense whose pairs are all compared

Pair = tuple[int, int]


class Evidence(NamedTuple):
    """Piece of evidence for merging two labels; a negative weight speaks against it."""

    kind: str
    weight: float
    told: str


class LabelFacts(NamedTuple):
    """Names, languages and counts of all labels, the most frequent first."""

    names: list[str]
    languages: list[str]
    counts: list[int]


EvidenceByPair = defaultdict[Pair, list[Evidence]]


def compute_score(evidence: Iterable[Evidence]) -> float:
    """Return the probability, from 0 to 1, that two labels are the same.

    Examples
    --------
    >>> round(compute_score([Evidence("accents", 5.5, "differ only in accents")]), 2)
    0.92
    """
    return 1 / (1 + exp(-PRIOR - sum(entry.weight for entry in evidence)))


def is_firm(evidence: Iterable[Evidence]) -> bool:
    """Return whether spelling or meaning supports a pair, and not only co-occurrence."""
    return any(entry.kind == "meaning" or entry.kind in SPELLING_WEIGHTS for entry in evidence)


def collect_spelling_evidence(facts: LabelFacts, evidence_by_pair: EvidenceByPair) -> None:
    """Add evidence for names with similar spelling.

    A slip is likelier in a long name, and if one of the two names is rare.
    """
    for pair in find_spelling_matches(facts.names):
        weight, message = SPELLING_WEIGHTS[pair.how]
        if pair.how == "letters":
            weight, message = _weigh_spelling_slip(facts, pair)
        elif pair.how != "case" and _differ_in_language(facts, (pair.one, pair.other)):
            weight -= TWO_LANGUAGES
        evidence_by_pair[pair.one, pair.other].append(Evidence(pair.how, weight, message))


def find_senses(facts: LabelFacts, knowledge: KnowledgeGraph) -> list[list[str]]:
    """Return the most frequent senses of each label."""
    return [knowledge.senses(name)[:_MAX_SENSES] for name in facts.names]


def collect_concept_evidence(
    facts: LabelFacts, knowledge: KnowledgeGraph, senses: list[list[str]], evidence_by_pair: EvidenceByPair
) -> None:
    """Add evidence for names that share a sense."""
    by_sense: dict[str, list[int]] = defaultdict(list)
    for place, label_senses in enumerate(senses):
        for sense in label_senses:
            by_sense[sense].append(place)
    for sense, places in by_sense.items():
        primary = [place for place in places if senses[place][0] == sense]
        pairs = (
            combinations(primary, 2) if len(primary) <= _MAX_PAIRED else ((primary[0], place) for place in primary[1:])
        )
        for pair in pairs:
            is_unambiguous = len(senses[pair[0]]) == len(senses[pair[1]]) == 1
            evidence_by_pair[pair].append(_make_sense_evidence(facts, knowledge, pair, sense, is_unambiguous))
        secondary = [place for place in places if senses[place][0] != sense]
        for i, j in product(primary[:_MAX_PAIRED], secondary[:_MAX_PAIRED]):
            message = f"one meaning of both: {_format_sense(knowledge, sense)}"
            evidence_by_pair[min(i, j), max(i, j)].append(Evidence("meaning", SHARED_SENSE, message))


def collect_difference_evidence(
    facts: LabelFacts, knowledge: KnowledgeGraph, senses: list[list[str]], evidence_by_pair: EvidenceByPair
) -> None:
    """Add evidence against similar names with different meanings."""
    for pair, evidence in evidence_by_pair.items():
        evidence += _find_differences(facts, knowledge, [senses[place] for place in pair], pair, evidence)


def collect_embedding_evidence(vectors: Float32, places: Sequence[int], evidence_by_pair: EvidenceByPair) -> None:
    """Add the cosines of label embeddings, for known pairs and for mutual nearest neighbours.

    Parameters
    ----------
    vectors : (n, dim) float32
        Label embeddings at unit length.
    places : sequence of int
        Places of their labels.
    evidence_by_pair : EvidenceByPair
        Gets the new evidence.
    """
    mutual_pairs = {
        (min(places[a], places[b]), max(places[a], places[b]))
        for a, b, _ in find_mutual_neighbours(vectors, MIN_COSINE)
    }
    rows = {place: i for i, place in enumerate(places)}
    for pair in [*evidence_by_pair, *sorted(mutual_pairs - set(evidence_by_pair))]:
        if pair[0] in rows and pair[1] in rows:
            cosine = float(vectors[rows[pair[0]]] @ vectors[rows[pair[1]]])
            weight = float(np.clip(4 * (cosine - 0.5), -2, 1.5)) + (pair in mutual_pairs)
            nearest = ", nearest of each other" if pair in mutual_pairs else ""
            evidence_by_pair[pair].append(
                Evidence("model", round(weight, 2), f"cosine {cosine:.2f} in the model{nearest}")
            )


def collect_cooccurrence_evidence(
    facts: LabelFacts, cooccurrence: Cooccurrence, evidence_by_pair: EvidenceByPair
) -> None:
    """Add evidence from co-occurrence: similar contexts, always together, or never."""
    mutual_pairs = {(min(a, b), max(a, b)) for a, b, _ in cooccurrence.find_neighbours(MIN_COSINE)}
    pairs = [*evidence_by_pair, *sorted(mutual_pairs - set(evidence_by_pair))]
    if not pairs:
        return
    places = np.array(pairs)
    for pair, cosine, counts in zip(
        pairs, cooccurrence.compute_cosines(places).tolist(), cooccurrence.count_pairs(places), strict=True
    ):
        evidence_by_pair[pair] += _make_cooccurrence_evidence(
            facts, pair, cosine, counts, evidence_by_pair.get(pair, [])
        )


def _weigh_spelling_slip(facts: LabelFacts, pair: SpellingMatch) -> tuple[float, str]:
    a, b = facts.counts[pair.one], facts.counts[pair.other]
    length = _count_word_letters(facts.names[pair.one], facts.names[pair.other])
    if length < ONE_FROM:
        return DIFFERENT_WORDS, f"{length} letters, one of which differs"
    weight = SPELLING_WEIGHTS["letters"][0] - (pair.distance - 1) + min(0.3 * (length - 5), 2.4)
    weight += 1.0 if a >= 10 * b > 0 else 0.0
    weight -= 1.0 if min(a, b) >= 10 and a < 10 * b else 0.0
    weight -= TWO_LANGUAGES if _differ_in_language(facts, (pair.one, pair.other)) else 0.0
    return round(weight, 2), "one letter differs" if pair.distance == 1 else "two letters differ"


def _count_word_letters(left_name: str, right_name: str) -> int:
    """Count the letters of the word that differs: a slip in a long name is one in a short word."""
    a, b = left_name.split(), right_name.split()
    words = (
        [min(x, y, key=len) for x, y in zip(a, b, strict=True) if x != y]
        if len(a) == len(b)
        else [left_name, right_name]
    )
    return min(map(len, words))


def _differ_in_language(facts: LabelFacts, pair: Pair) -> bool:
    left_language, right_language = (facts.languages[place] for place in pair)
    return left_language != right_language and bool(left_language and right_language)


def _make_sense_evidence(
    facts: LabelFacts, knowledge: KnowledgeGraph, pair: Pair, sense: str, is_unambiguous: bool
) -> Evidence:
    concept = knowledge.concept(sense)
    languages = dict(zip(map(make_lookup_key, concept.names), concept.languages, strict=True))
    left_language, right_language = (languages.get(make_lookup_key(facts.names[place]), "") for place in pair)
    if left_language and right_language and left_language != right_language:
        return Evidence(
            "meaning",
            TRANSLATED if is_unambiguous else USUAL_SENSE,
            f"{left_language} and {right_language} for {_format_sense(knowledge, sense)}",
        )
    return Evidence(
        "meaning", SAME_SENSE if is_unambiguous else USUAL_SENSE, f"the same meaning: {_format_sense(knowledge, sense)}"
    )


def _format_sense(knowledge: KnowledgeGraph, sense: str) -> str:
    name = knowledge.name(sense)
    return name if name == sense else f"{sense} '{name}'"


def _find_differences(
    facts: LabelFacts, knowledge: KnowledgeGraph, senses: list[list[str]], pair: Pair, evidence: list[Evidence]
) -> list[Evidence]:
    kinds = {left_senses.kind for left_senses in evidence}
    left_senses, right_senses = senses
    if "meaning" in kinds:
        return []
    if left_senses and right_senses and set(left_senses).isdisjoint(right_senses):
        for narrow, general, place in ((left_senses, right_senses, 1), (right_senses, left_senses, 0)):
            if set(general[:1]) & set(knowledge.reach(narrow[:1], UP, 3)):
                return [Evidence("general", GENERAL, f"'{facts.names[pair[place]]}' is the more general")]
        if not kinds & {"case", "accents", "blanks"}:
            return [Evidence("words", DIFFERENT_WORDS, "words with meanings of their own")]
    if "letters" in kinds and bool(left_senses) != bool(right_senses):
        name = facts.names[pair[0] if right_senses else pair[1]]
        is_inflected = bool(knowledge.senses(singularise_name(name)))
        message = f"'{name}' is no word that is known"
        return [] if is_inflected else [Evidence("unknown", 1.0, message)]
    return []


def _make_cooccurrence_evidence(
    facts: LabelFacts, pair: Pair, cosine: float, pair_counts: PairCounts, earlier_evidence: list[Evidence]
) -> list[Evidence]:
    a, b = (facts.counts[place] for place in pair)
    rarer = min(a, b)
    if not rarer:
        return []
    trust = min(1.0, (rarer / MIN_ITEMS) ** 0.5)
    evidence = [] if cosine == 0 else [
        Evidence("company", round(trust * float(np.clip(4 * (cosine - 0.35), -2, 2)), 2),
                 f"beside the same labels: cosine {cosine:.2f}")
    ]  # fmt: skip
    if pair_counts.jaccard >= 0.8 and rarer >= 3:
        weight, suffix = (2.5, ", in two languages") if _differ_in_language(facts, pair) else (1.0, "")
        return [
            *evidence,
            Evidence("always", weight, f"nearly always together{suffix}: {pair_counts.n_both} of {a} and {b}"),
        ]
    if pair_counts.n_both == 0 and pair_counts.expected * max(cosine, 0) * 10 >= 3:
        return [*evidence, Evidence("never", 1.5, f"never on the same item: {a} and {b}")]
    if pair_counts.share >= 0.1 and rarer >= MIN_ITEMS and not is_firm(earlier_evidence):
        return [
            *evidence,
            Evidence("often", -2.0, f"often, not always, on the same item: {pair_counts.n_both} of {rarer}"),
        ]
    return evidence
