"""Related labels with reasons, for augmented searches (Mesnil et al. 2014, section 6.6, Figure 4)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from wsabie.search.query_labels import ALIKE, LabelAliases
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.concept_matching import ExpandedLabel, LabelConcepts
from wsabie.vocabulary.knowledge_graph import DOWN, UP

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
    >>> from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
    >>> from wsabie.vocabulary.concept_matching import match_labels
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

    def __init__(
        self,
        concepts: LabelConcepts,
        *,
        source_name: str = "known",
        aliases: LabelAliases | None = None,
        inherit: bool = True,
    ) -> None:
        self.concepts, self.source_name, self.aliases, self.inherit = concepts, source_name, aliases, inherit
        self._known_labels = frozenset(
            label for label, concept in zip(concepts.labels, concepts.concepts, strict=True) if concept
        )

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
        links = [link for _, link in best_links.values()]
        return sorted(links, key=lambda link: -link.score)[:k]

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
