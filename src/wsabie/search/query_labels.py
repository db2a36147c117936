"""Labels that a query means, the way in which they were matched, and related labels with reasons.

Related labels are those of augmented searches (Mesnil et al. 2014, section 6.6, Figure 4).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import UnknownLabelError
from wsabie.core.validation import convert_to_csr
from wsabie.search.exact_index import find_top_k
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.concept_matching import ExpandedLabel, LabelConcepts
from wsabie.vocabulary.knowledge_graph import DOWN, UP, Concept
from wsabie.vocabulary.name_suggestions import format_unknown_label
from wsabie.vocabulary.word_vectors import WordVectors

MatchKind = Literal["label", "name", "kinds", "same items", "word vector"]
ALIKE = 0.5
"""Least cosine of two labels that name the same items."""
_MAX_LISTED = 8


class QueryLabels(NamedTuple):
    """Labels that a query means.

    Attributes
    ----------
    query : str
    labels : list of str
        Nearest first.
    match_kind : str
        "label": the query is a label; "name": another name of one; "kinds": labels below it in the hierarchy; "same
        items": it names the same items as a label; "word vector": its vector is nearest to that of a label.
    concept : str or None
        Concept of the query, where one is known.
    sentence : str
        One sentence that explains the match.
    """

    query: str
    labels: list[str]
    match_kind: MatchKind
    concept: str | None
    sentence: str


class LabelAliases:
    """Labels that name the same items of a collection, such as translations of each other.

    The similarity of two labels is the cosine of their columns: items with both, over the root of the product of the
    items with each.

    Parameters
    ----------
    Y : sparse matrix (n_items, n_labels)
        Values above 0 are labels of an item.
    names : sequence of str

    Examples
    --------
    >>> same = LabelAliases(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]]), ["guitar", "guitare", "wood"])
    >>> same.nearest("Guitare", ["guitar", "wood"])
    ('guitar', 1.0)
    >>> same.nearest("violon", ["guitar"]) is None
    True
    """

    def __init__(self, Y: Matrix, names: Sequence[str]) -> None:
        self._rows = (convert_to_csr(Y, "Y") > 0).astype(np.int32)
        self._columns = self._rows.tocsc()
        self._names = list(names)
        self._column_ids = {make_lookup_key(name): place for place, name in reversed(list(enumerate(names)))}

    def nearest(self, name: str, among: Collection[str]) -> tuple[str, float] | None:
        """Return the most similar label among some with its cosine, the first of equal ones, or None."""
        column = self._column_ids.get(make_lookup_key(name))
        if column is None or not (items := self._find_items(column)).size:
            return None
        counts = np.asarray(self._rows[items].sum(axis=0)).ravel()
        matches = [y for y in np.flatnonzero(counts).tolist() if y != column and self._names[y] in among]
        if not matches:
            return None
        cosines = [float(counts[y]) / (len(items) * len(self._find_items(y))) ** 0.5 for y in matches]
        best = int(np.argmax(cosines))
        return self._names[matches[best]], cosines[best]

    def _find_items(self, column: int) -> Int64:
        return np.asarray(self._columns.indices[self._columns.indptr[column] : self._columns.indptr[column + 1]])


class QueryMatcher:
    """Matcher of queries to the labels that they mean.

    Parameters
    ----------
    labels : sequence of str
    concepts : LabelConcepts or None
        Concepts of these labels: synonyms, hierarchy, translations.
    aliases : LabelAliases or None
        Labels of a collection that name the same items; the labels may be a part of them.
    vectors : WordVectors or None

    Examples
    --------
    >>> from wsabie import KnowledgeGraph, match_labels
    >>> known = KnowledgeGraph()
    >>> for kind in ("car", "bicycle"):
    ...     known.relate("is-a", kind, "wheeled vehicle")
    >>> labels = ["car", "bicycle", "ship"]
    >>> queries = QueryMatcher(labels, match_labels(known, labels))
    >>> queries.match("Ship").labels, queries.match("wheeled vehicle").sentence
    (['ship'], "'wheeled vehicle' is not a label, but there are 2 below it: car, bicycle")
    """

    def __init__(
        self,
        labels: Sequence[str],
        concepts: LabelConcepts | None = None,
        aliases: LabelAliases | None = None,
        vectors: WordVectors | None = None,
    ) -> None:
        self.labels, self.concepts, self.aliases, self.vectors = list(labels), concepts, aliases, vectors
        self._label_set = frozenset(labels)
        self._spelled = {make_lookup_key(label): label for label in reversed(self.labels)}  # the first of one spelling

    def match(self, query: str) -> QueryLabels:
        """Return the labels that a query means.

        In this order: it is a label in any case; another name of one; there are labels below it; it names the same
        items as one; its word vector is nearest to that of one.

        Parameters
        ----------
        query : str
            A word or a phrase.

        Returns
        -------
        QueryLabels
            Numbers and names of the labels, and the rule that matched.

        Raises
        ------
        UnknownLabelError
            There is no match; the message suggests labels of similar spelling.
        """
        match = (
            self._match_label(query)
            or self._match_concept(query)
            or self._match_alias(query)
            or self._match_vector(query)
        )
        if match is None:
            raise UnknownLabelError(format_unknown_label(query, self.labels))
        return match

    def _match_label(self, query: str) -> QueryLabels | None:
        label = query if query in self._label_set else self._spelled.get(make_lookup_key(query))
        if label is None:
            return None
        return QueryLabels(query, [label], "label", None, f"'{label}' is a label")

    def _match_concept(self, query: str) -> QueryLabels | None:
        concepts = self.concepts
        if concepts is None or not concepts.knowledge.find_senses(query):
            return None
        expansion = concepts.expand(query)
        synonyms = [reached for reached in expansion.kinds if not reached.steps]
        labels = [concepts.labels[reached.position] for reached in synonyms or expansion.kinds]
        if not labels:
            return None
        subject = f"'{query}'{_format_language(concepts.knowledge.concept(expansion.concept), query)}"
        if synonyms:
            names = " and ".join(f"'{label}'" for label in labels)
            return QueryLabels(query, labels, "name", expansion.concept, f"{subject} is another name of {names}")
        count = f"there are {len(labels):,}" if len(labels) > 1 else "there is one"
        sentence = f"{subject} is not a label, but {count} below it: {format_label_list(labels)}"
        return QueryLabels(query, labels, "kinds", expansion.concept, sentence)

    def _match_alias(self, query: str) -> QueryLabels | None:
        match = None if self.aliases is None else self.aliases.nearest(query, self._label_set)
        if match is None or match[1] < ALIKE:
            return None
        sentence = f"'{query}' names the same items of the collection as '{match[0]}' (cosine {match[1]:.2f})"
        return QueryLabels(query, [match[0]], "same items", None, sentence)

    def _match_vector(self, query: str) -> QueryLabels | None:
        if self.vectors is None or query not in self.vectors:
            return None
        label_vectors = self.vectors.look_up(self.labels)
        if not len(label_vectors.positions):
            return None
        ids, cosines = find_top_k(self.vectors.vector(query)[None], label_vectors.table, 1, similarity="cosine")
        if not cosines[0, 0] > 0:  # a vector of zeros is near to nothing
            return None
        label = self.labels[label_vectors.positions[ids[0, 0]]]
        sentence = f"the word vector of '{query}' is nearest to that of '{label}' (cosine {cosines[0, 0]:.2f})"
        return QueryLabels(query, [label], "word vector", None, sentence)


def format_label_list(names: Sequence[str], most: int = _MAX_LISTED) -> str:
    """Format the first names with commas between them.

    Examples
    --------
    >>> format_label_list(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def _format_language(concept: Concept, name: str) -> str:
    """Return the language of this name of a concept in brackets; empty for English or where it is unknown."""
    aliases = zip(concept.names, concept.languages, strict=True)
    languages = {make_lookup_key(alias): language for alias, language in aliases}
    language = languages.get(make_lookup_key(name), "")
    return "" if language in ("", "en", "eng") else f" ({language})"


_FAR = 4  # steps, at most


class LabelLink(NamedTuple):
    """Related label with its score and reason.

    Attributes
    ----------
    label : str
    score : float
        Higher is nearer; scores of different sources cannot be compared.
    reason : str
        Reason in words, such as "part of car".
    """

    label: str
    score: float
    reason: str


class RelatedLabelSource(Protocol):
    """Source of labels that are related to a label: from files, or from training."""

    def related(self, label: str, k: int = 10) -> Sequence[tuple[str, float, str]]:
        """Return the k most related labels with score and reason, best first; none for an unknown label."""
        ...


@dataclass
class HierarchyRelatedLabels:
    """Related labels from a knowledge graph: parts, kinds, wholes and siblings, nearest first.

    The score is one over the number of steps. A part, a kind or a whole of a label is one step away, a part of its kind
    two. Siblings are as many steps away as labels share the parent, since a common parent means little. Labels more
    than four steps away are left out.

    Parameters
    ----------
    concepts : LabelConcepts
        The labels and their concepts.
    source_name : str
        Name of the source in reasons.
    aliases : LabelAliases or None
        Finds a label that names the same items, to replace an unknown one.
    inherit : bool
        Add parts of more general concepts: a car has those of a vehicle.

    Examples
    --------
    >>> from wsabie import KnowledgeGraph, match_labels
    >>> known = KnowledgeGraph()
    >>> for pair in [("taxi", "car"), ("car", "vehicle"), ("sled", "vehicle")]:
    ...     known.relate("is-a", *pair)
    >>> known.relate("part-of", "wheel", "car")
    >>> for link in HierarchyRelatedLabels(match_labels(known, ["taxi", "wheel", "car", "sled"])).related("car"):
    ...     print(*link)
    wheel 1.0 known: part of car
    taxi 1.0 known: kind of car
    sled 0.5 known: a vehicle too
    """

    concepts: LabelConcepts
    _: KW_ONLY
    source_name: str = "known"
    aliases: LabelAliases | None = None
    inherit: bool = True

    def __post_init__(self) -> None:
        pairs = zip(self.concepts.labels, self.concepts.concepts, strict=True)
        self._known_labels = frozenset(label for label, concept in pairs if concept)

    def related(self, label: str, k: int = 10) -> list[LabelLink]:
        """Return the labels fewest steps away from a label.

        Parameters
        ----------
        label : str
            A label, or the name or id of another concept.
        k : int, default 10

        Returns
        -------
        list of LabelLink
            At most k, the nearest first; empty if the label is not a concept.
        """
        name, stands = self._resolve_name(label)
        if name is None:
            return []
        concept = self.concepts.expand(name, inherit=self.inherit).concept
        best_links: dict[str, tuple[tuple[float, int], LabelLink]] = {}
        for reached, steps, reason in self._iterate_links(concept):
            if steps > _FAR:
                continue
            link_concept = self.concepts.concepts[reached.position] or ""
            link = LabelLink(self.concepts.labels[reached.position], 1 / steps, f"{self.source_name}: {reason}{stands}")
            order = link.score, -self._rank(link_concept, link.label)
            if link_concept not in best_links or order > best_links[link_concept][0]:
                best_links[link_concept] = order, link
        best_links.pop(concept, None)
        return sorted((link for _, link in best_links.values()), key=lambda link: -link.score)[:k]

    def _resolve_name(self, label: str) -> tuple[str | None, str]:
        """Return the known name for a label, and a remark for the reasons where it differs."""
        if label in self._known_labels or self.concepts.knowledge.find_senses(label):
            return label, ""
        match = None if self.aliases is None else self.aliases.nearest(label, self._known_labels)
        if match is None or match[1] < ALIKE:
            return None, ""
        return match[0], f" ('{label}' names the same items)"

    def _rank(self, concept: str, label: str) -> int:
        """Return the place of a label among the names of its concept; the usual name comes first."""
        names = [make_lookup_key(name) for name in self.concepts.knowledge.concept(concept).names]
        spelled = make_lookup_key(label)
        return names.index(spelled) if spelled in names else len(names)

    def _iterate_links(self, concept: str) -> Iterator[tuple[ExpandedLabel, int, str]]:
        """Yield related labels with their steps and reasons."""
        knowledge, name = self.concepts.knowledge, self.concepts.knowledge.name
        near = self.concepts.expand(concept, inherit=self.inherit)
        distances = knowledge.reach([concept], UP) | knowledge.reach([concept], DOWN)
        for part in near.parts:
            yield part, 1 + part.steps + distances[part.via], f"part of {name(part.via)}"
        for kind in near.kinds:
            if kind.steps:
                yield kind, kind.steps, f"kind of {name(concept)}"
        for container in knowledge.related(concept, "part-of") if "part-of" in knowledge.relations else ():
            for relative in self.concepts.expand(container).kinds:
                yield relative, 1 + relative.steps, f"has the part {name(concept)}"
        if not any(kind.steps == 0 for kind in near.kinds):
            return  # what lies beside a word above all labels is far from them
        for parent in knowledge.reach([concept], UP, 1):
            if parent != concept:
                siblings = [relative for relative in self.concepts.expand(parent, levels=1).kinds if relative.steps]
                for relative in siblings:
                    yield relative, len(siblings), f"a {name(parent)} too"
