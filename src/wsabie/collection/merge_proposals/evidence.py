"""Evidence for and against merging two labels, each piece with a message and a weight.

Weights are log-odds and add up from `PRIOR`; the score of a pair is 1 / (1 + exp(-sum)).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import exp

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, select

from wsabie.collection.db.database import group_pairs
from wsabie.collection.db.tables import annotations
from wsabie.collection.labels.label_store import LabelCount
from wsabie.core.arrays import Bool, Float32, Int64, Matrix
from wsabie.core.validation import build_incidence
from wsabie.vocabulary import spelling_variants
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.knowledge_graph import UP, KnowledgeGraph

MAX_SEARCHED = 30_000
"""Number of labels in the neighbour search, the most frequent."""
MIN_ITEMS = 5
"""Fewest items that make the co-occurrence of a label meaningful."""

_DIM = 64
_BLOCK_SIZE = 512
_TIE_TOLERANCE = 1e-4  # tolerance of the cosine
_MAX_TIES = 30  # largest number of ties with the k-th

Pair = tuple[int, int]
PRIOR = -3.0
SPELLING_WEIGHTS: dict[spelling_variants.SpellingDifference, tuple[float, str]] = {
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


class Cooccurrence:
    """Matrix of items and labels, with context vectors of the labels.

    Parameters
    ----------
    A : csc_matrix (n_items, n_labels), float32
        1 for each accepted label of an item.

    Attributes
    ----------
    counts : (n_labels,) int64
    contexts : (n_labels, dim) float32
        Context vector of each label at unit length; zeros if its items have no other label.
    """

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self.counts: Int64 = np.diff(A.indptr).astype(np.int64)
        self.contexts: Float32 = _compute_contexts(A, self.counts)

    def count_items_of_both(self, pairs: Int64) -> list[int]:
        """Return the number of items that have both labels, for pairs (n, 2)."""
        counts: list[int] = []
        for lo in range(0, len(pairs), 10_000):
            part = pairs[lo : lo + 10_000]
            counts += self.A[:, part[:, 0]].multiply(self.A[:, part[:, 1]]).sum(axis=0).astype(int).tolist()[0]
        return counts

    def find_neighbours(self, min_cosine: float) -> set[Pair]:
        """Return pairs of labels with similar contexts, each among the three nearest of the other."""
        frequent = np.flatnonzero(self.counts >= MIN_ITEMS)
        frequent = frequent[np.argsort(-self.counts[frequent], kind="stable")][:MAX_SEARCHED]
        return find_mutual_neighbours(self.contexts[frequent], frequent, min_cosine)


def read_cooccurrence(connection: Connection, columns_by_label: dict[int, int]) -> Cooccurrence:
    """Read the accepted labels of all items.

    Parameters
    ----------
    connection : Connection
    columns_by_label : dict of int to int
        Column of each label by its id.
    """
    from array import array

    query = select(annotations.c.item_id, annotations.c.label_id).where(annotations.c.state == "accepted")
    item_rows, item_columns = array("q"), array("q")
    rows_by_item: dict[int, int] = {}
    for item, label in connection.execute(query.execution_options(yield_per=10_000)):
        if (column := columns_by_label.get(label)) is not None:
            item_rows.append(rows_by_item.setdefault(item, len(rows_by_item)))
            item_columns.append(column)
    A = build_incidence(item_rows, item_columns, (len(rows_by_item), len(columns_by_label))).tocsc()
    A.data[:] = 1  # a label may have several regions on an item
    return Cooccurrence(A)


def find_mutual_neighbours(vectors: Float32, ranks: npt.ArrayLike, min_cosine: float, k: int = 3) -> set[Pair]:
    """Return the ranks of unit rows that are each among the other's k nearest or tied; never zero rows.

    Examples
    --------
    >>> find_mutual_neighbours(np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32), [7, 5, 6], 0.7, k=1)
    {(5, 7)}
    """
    n, codes = len(vectors), [np.empty(0, np.int64)]
    for lo in range(0, n, _BLOCK_SIZE):
        scores = vectors[lo : lo + _BLOCK_SIZE] @ vectors.T
        scores[np.arange(len(scores)), np.arange(lo, lo + len(scores))] = -np.inf
        kth = n - min(k, n)
        bound = np.partition(scores, kth, axis=1)[:, kth]
        rows, columns = np.nonzero(scores >= np.maximum(bound - _TIE_TOLERANCE, min_cosine)[:, None])
        first = np.searchsorted(rows, np.arange(len(scores)))
        is_within_ties = np.arange(len(rows)) - first[rows] < _MAX_TIES
        codes.append((rows[is_within_ties] + lo) * n + columns[is_within_ties])
    pairs = np.concatenate(codes)
    first_row, second_row = np.divmod(pairs, max(n, 1))
    is_mutual = (first_row < second_row) & np.isin(pairs, second_row * n + first_row)
    neighbours = np.stack([first_row, second_row], axis=1)[is_mutual]
    return {(a, b) for a, b in np.sort(np.asarray(ranks)[neighbours], axis=1).tolist()}


def normalise_rows(vectors: Float32) -> Float32:
    """Scale rows to unit length; zero rows stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Float32 = np.divide(vectors, lengths, out=np.zeros_like(vectors, np.float32), where=lengths > 0)
    return normalised


def _compute_contexts(A: Matrix, counts: Int64) -> Float32:
    """Return context vectors of labels, in which rare labels weigh more and the common mean is removed."""
    n_items, n_labels = A.shape
    dim = min(_DIM, n_items - 1, n_labels - 1)
    if dim < 2:
        return np.zeros((n_labels, 1), np.float32)
    from scipy.sparse import diags
    from sklearn.utils.extmath import randomized_svd

    weights = np.log((n_items + 1) / np.maximum(counts, 1)).astype(np.float32)
    weighted = (A @ diags(weights)).tocsr().astype(np.float32)
    _, values, axes = randomized_svd(weighted, dim, n_iter=3, random_state=0)
    labels = np.ascontiguousarray((axes * np.sqrt(values)[:, None]).T, np.float32)
    items = weighted @ labels
    context_sums = A.T @ items - (counts * weights).astype(np.float32)[:, None] * labels
    has_no_context: Bool = np.asarray(A.T @ (A.sum(axis=1) - 1)).ravel() < 0.5
    unit_contexts = normalise_rows(np.asarray(context_sums, np.float32))
    unit_contexts[has_no_context] = 0
    centred = unit_contexts - unit_contexts[~has_no_context].mean(axis=0) if not has_no_context.all() else unit_contexts
    centred[has_no_context] = 0
    return normalise_rows(centred)


@dataclass(frozen=True)
class MergeEvidence:
    """Piece of evidence for merging two labels; a negative weight speaks against it."""

    kind: str
    weight: float
    message: str


def compute_score(evidence: Iterable[MergeEvidence]) -> float:
    """Return the probability, from 0 to 1, that two labels are the same.

    Examples
    --------
    >>> round(compute_score([MergeEvidence("accents", 5.5, "differ only in accents")]), 2)
    0.92
    """
    return 1 / (1 + exp(-PRIOR - sum(entry.weight for entry in evidence)))


def is_firm(evidence: Iterable[MergeEvidence]) -> bool:
    """Return True if spelling or meaning supports a pair, and not only co-occurrence."""
    return any(entry.kind == "meaning" or entry.kind in SPELLING_WEIGHTS for entry in evidence)


class EvidenceCollector:
    """Collector of evidence about pairs of labels.

    Parameters
    ----------
    labels : sequence of LabelCount
        All labels, the most frequent first; pairs hold their ranks in it, the smaller first.
    knowledge : KnowledgeGraph or None

    Attributes
    ----------
    by_pair : dict of (int, int) to list of MergeEvidence
    """

    def __init__(self, labels: Sequence[LabelCount], knowledge: KnowledgeGraph | None) -> None:
        self.labels, self.knowledge = labels, knowledge or KnowledgeGraph()
        self.by_pair: defaultdict[Pair, list[MergeEvidence]] = defaultdict(list)
        self._senses = [self.knowledge.find_senses(label.name)[:_MAX_SENSES] for label in labels]

    def add_spelling(self) -> None:
        """Add evidence for names with similar spelling.

        A slip is likelier in a long name, and if one of the two names is rare.
        """
        for match in spelling_variants.find_spelling_matches([label.name for label in self.labels]):
            pair = match.first, match.second
            weight, message = SPELLING_WEIGHTS[match.difference]
            if match.difference == "letters":
                weight, message = self._weigh_spelling_slip(pair, match.distance)
            elif match.difference != "case" and self._is_bilingual(pair):
                weight -= TWO_LANGUAGES
            self.by_pair[pair].append(MergeEvidence(match.difference, weight, message))

    def add_concepts(self) -> None:
        """Add evidence for names that share a sense."""
        ranks_by_sense = group_pairs((sense, rank) for rank, senses in enumerate(self._senses) for sense in senses)
        for sense, ranks in ranks_by_sense.items():
            primary = [rank for rank in ranks if self._senses[rank][0] == sense]
            pairs = combinations(primary, 2)
            for pair in pairs if len(primary) <= _MAX_PAIRED else ((primary[0], rank) for rank in primary[1:]):
                self.by_pair[pair].append(self._make_sense_evidence(pair, sense))
            secondary = [rank for rank in ranks if self._senses[rank][0] != sense]
            message = f"one meaning of both: {self._format_sense(sense)}"
            for i, j in product(primary[:_MAX_PAIRED], secondary[:_MAX_PAIRED]):
                self.by_pair[min(i, j), max(i, j)].append(MergeEvidence("meaning", SHARED_SENSE, message))

    def add_embeddings(self, vectors: Float32, ranks: Sequence[int]) -> None:
        """Add the cosines of label embeddings, for known pairs and for mutual nearest neighbours.

        Parameters
        ----------
        vectors : (n, dim) float32
            Label embeddings at unit length.
        ranks : sequence of int
            Places of their labels.
        """
        mutual_pairs = find_mutual_neighbours(vectors, ranks, MIN_COSINE)
        rows = {rank: i for i, rank in enumerate(ranks)}
        for pair in self._list_pairs(mutual_pairs):
            if pair[0] in rows and pair[1] in rows:
                cosine = float(vectors[rows[pair[0]]] @ vectors[rows[pair[1]]])
                weight = float(np.clip(4 * (cosine - 0.5), -2, 1.5)) + (pair in mutual_pairs)
                message = f"cosine {cosine:.2f} in the model{', nearest of each other' if pair in mutual_pairs else ''}"
                self.by_pair[pair].append(MergeEvidence("model", round(weight, 2), message))

    def add_cooccurrence(self, cooccurrence: Cooccurrence) -> None:
        """Add evidence from co-occurrence: similar contexts, always together, or never."""
        pairs = self._list_pairs(cooccurrence.find_neighbours(MIN_COSINE))
        if not pairs:
            return
        ranks = np.array(pairs)
        contexts, counts = cooccurrence.contexts, cooccurrence.count_items_of_both(ranks)
        cosines = np.einsum("nd,nd->n", contexts[ranks[:, 0]], contexts[ranks[:, 1]]).tolist()
        n_items = max(cooccurrence.A.shape[0], 1)
        for pair, cosine, n_both in zip(pairs, cosines, counts, strict=True):
            self.by_pair[pair] += self._make_cooccurrence_evidence(pair, cosine, n_both, n_items)

    def add_differences(self) -> None:
        """Add evidence against similar names with different meanings."""
        for pair, evidence in self.by_pair.items():
            evidence += self._find_differences(pair, {entry.kind for entry in evidence})

    def _list_pairs(self, mutual_pairs: set[Pair]) -> list[Pair]:
        return [*self.by_pair, *sorted(mutual_pairs - self.by_pair.keys())]

    def _weigh_spelling_slip(self, pair: Pair, distance: int) -> tuple[float, str]:
        first, second = (self.labels[rank] for rank in pair)
        length = _count_word_letters(first.name, second.name)
        if length < spelling_variants.MIN_LETTERS_ONE:
            return DIFFERENT_WORDS, f"{length} letters, one of which differs"
        weight = SPELLING_WEIGHTS["letters"][0] - (distance - 1) + min(0.3 * (length - 5), 2.4)
        weight += 1.0 if first.items >= 10 * second.items > 0 else 0.0
        weight -= 1.0 if min(first.items, second.items) >= 10 and first.items < 10 * second.items else 0.0
        weight -= TWO_LANGUAGES if self._is_bilingual(pair) else 0.0
        return round(weight, 2), "one letter differs" if distance == 1 else "two letters differ"

    def _is_bilingual(self, pair: Pair) -> bool:
        first, second = (self.labels[rank].language for rank in pair)
        return first != second and bool(first and second)

    def _make_sense_evidence(self, pair: Pair, sense: str) -> MergeEvidence:
        is_unambiguous = all(len(self._senses[rank]) == 1 for rank in pair)
        concept = self.knowledge.concept(sense)
        languages = dict(zip(map(make_lookup_key, concept.names), concept.languages, strict=True))
        first, second = (languages.get(make_lookup_key(self.labels[rank].name), "") for rank in pair)
        if first and second and first != second:
            weight, relation = TRANSLATED, f"{first} and {second} for"
        else:
            weight, relation = SAME_SENSE, "the same meaning:"
        message = f"{relation} {self._format_sense(sense)}"
        return MergeEvidence("meaning", weight if is_unambiguous else USUAL_SENSE, message)

    def _format_sense(self, sense: str) -> str:
        name = self.knowledge.name(sense)
        return name if name == sense else f"{sense} '{name}'"

    def _find_differences(self, pair: Pair, kinds: set[str]) -> list[MergeEvidence]:
        first_senses, second_senses = (self._senses[rank] for rank in pair)
        if "meaning" in kinds:
            return []
        if first_senses and second_senses and set(first_senses).isdisjoint(second_senses):
            for narrow, general, i in ((first_senses, second_senses, 1), (second_senses, first_senses, 0)):
                if set(general[:1]) & set(self.knowledge.reach(narrow[:1], UP, 3)):
                    return [MergeEvidence("general", GENERAL, f"'{self.labels[pair[i]].name}' is the more general")]
            if not kinds & {"case", "accents", "blanks"}:
                return [MergeEvidence("words", DIFFERENT_WORDS, "words with meanings of their own")]
        if "letters" in kinds and bool(first_senses) != bool(second_senses):
            name = self.labels[pair[0] if second_senses else pair[1]].name
            if not self.knowledge.find_senses(spelling_variants.singularise_name(name)):
                return [MergeEvidence("unknown", 1.0, f"'{name}' is not a known word")]
        return []

    def _make_cooccurrence_evidence(
        self, pair: Pair, cosine: float, n_both: int, n_items: int
    ) -> Iterator[MergeEvidence]:
        a, b = (self.labels[rank].items for rank in pair)
        rarer = min(a, b)
        if not rarer:
            return
        trust = min(1.0, (rarer / MIN_ITEMS) ** 0.5)
        is_supported = is_firm(self.by_pair[pair])
        if cosine != 0:
            weight = trust * float(np.clip(4 * (cosine - 0.35), -2, 2))
            yield MergeEvidence("cooccurrence", round(weight, 2), f"beside the same labels: cosine {cosine:.2f}")
        if n_both / max(a + b - n_both, 1) >= 0.8 and rarer >= 3:
            weight, suffix = (2.5, ", in two languages") if self._is_bilingual(pair) else (1.0, "")
            yield MergeEvidence("always", weight, f"nearly always together{suffix}: {n_both} of {a} and {b}")
        elif n_both == 0 and a * b / n_items * max(cosine, 0) * 10 >= 3:
            yield MergeEvidence("never", 1.5, f"never on the same item: {a} and {b}")
        elif n_both / rarer >= 0.1 and rarer >= MIN_ITEMS and not is_supported:
            yield MergeEvidence("often", -2.0, f"often, not always, on the same item: {n_both} of {rarer}")


def _count_word_letters(left_name: str, right_name: str) -> int:
    """Count the letters of the word that differs: a slip in a long name is one in a short word."""
    a, b = left_name.split(), right_name.split()
    if len(a) != len(b):
        return min(len(left_name), len(right_name))
    return min(min(len(x), len(y)) for x, y in zip(a, b, strict=True) if x != y)
