"""Match labels to concepts of a knowledge graph, and look up their facts, relations and expansions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.knowledge_graph import DOWN, UP, KnowledgeGraph, parse_direction
from wsabie.vocabulary.name_suggestions import format_unknown_label


def match_labels(
    knowledge: KnowledgeGraph, labels: Iterable[str], table: Mapping[str, str] | None = None
) -> "LabelConcepts":
    """Match each label to the concept that it means.

    The first rule that applies decides: the table's entry for the label (an empty one means no concept); the concept
    whose id is the label, or follows it in parentheses; the most frequent sense of its name; the concept that has
    all of several names, which commas separate.

    Parameters
    ----------
    knowledge : KnowledgeGraph
    labels : iterable of str
    table : mapping of str to str, or None
        Label to id, whatever the case of the label.

    Returns
    -------
    LabelConcepts
        Concept id and rule of each label; None and "" where nothing matches.

    Raises
    ------
    InputError
        The table has an unknown id.

    Examples
    --------
    >>> graph = KnowledgeGraph()
    >>> graph.add("n1", ["crane"], "a bird")
    >>> graph.add("n2", ["crane"], "a machine")
    >>> matches = match_labels(graph, ["Crane", "crane (n2)", "ship", "lift"], {"lift": "n2"})
    >>> matches.concepts, matches.methods, matches.missing
    (['n1', 'n2', None, 'n2'], ['name', 'id', '', 'table'], ['ship'])
    """
    by_table: dict[str, str | None] = {}
    for label, concept in (table or {}).items():
        by_table[make_lookup_key(label)] = concept_id = knowledge.find(concept)
        if concept and concept_id is None:
            raise InputError(f"the table of labels names {concept!r}, which is not a known concept; correct its id")
    labels = list(labels)
    matches = [_match_label(knowledge, label, by_table) for label in labels]
    return LabelConcepts(knowledge, labels, [concept for concept, _ in matches], [method for _, method in matches])


def _match_label(knowledge: KnowledgeGraph, label: str, table: Mapping[str, str | None]) -> tuple[str | None, str]:
    if (key := make_lookup_key(label)) in table:
        return table[key], "table"
    id_in_parentheses = label.rpartition("(")[2].removesuffix(")")
    if (concept := knowledge.find(label) or knowledge.find(id_in_parentheses)) is not None:
        return concept, "id"
    senses = knowledge.find_senses(label)
    if not senses and "," in label:
        first_senses, *other_senses = (knowledge.find_senses(name) for name in label.split(","))
        senses = [sense for sense in first_senses if all(sense in name_senses for name_senses in other_senses)]
    return (senses[0], "name") if senses else (None, "")


class ExpandedLabel(NamedTuple):
    """A label that an expansion reaches: its position, distance in steps, and the last concept on the way."""

    position: int
    steps: int
    via: str


class NameExpansion(NamedTuple):
    """The labels that a name stands for: its concept, the labels below that, and the labels of parts."""

    concept: str
    kinds: list[ExpandedLabel]
    parts: list[ExpandedLabel]


class LabelConcepts:
    """Labels and their concepts; made by `match_labels`.

    Attributes
    ----------
    labels : list of str
    concepts : list of (str or None)
        The concept of each label.
    methods : list of str
        Rule that matched each label: "table", "id", "name", or "" for none.
    """

    def __init__(
        self, knowledge: KnowledgeGraph, labels: list[str], concepts: list[str | None], methods: list[str]
    ) -> None:
        self.knowledge, self.labels, self.concepts, self.methods = knowledge, labels, concepts, methods
        self._positions: dict[str, list[int]] = {}
        self._position_by_name: dict[str, int] = {}
        for position, (label, concept) in enumerate(zip(labels, concepts, strict=True)):
            self._position_by_name.setdefault(make_lookup_key(label), position)
            if concept is not None:
                self._positions.setdefault(concept, []).append(position)

    @property
    def counts(self) -> dict[str, int]:
        """Number of labels by the rule that matched them; "missing" counts the others."""
        return dict(Counter(method or "missing" for method in self.methods))

    @property
    def missing(self) -> list[str]:
        """Labels without a concept."""
        return [label for label, method in zip(self.labels, self.methods, strict=True) if not method]

    def ids(self) -> list[str]:
        """Return each label's concept id, "" for none, as input of `Hierarchy.similar` and `Hierarchy.hops`."""
        return [concept or "" for concept in self.concepts]

    def pairs(self, relation: str, *, inherit: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the pairs of labels, by position, that a relation or its inverse connects; each pair once.

        Parameters
        ----------
        relation : str
        inherit : bool
            Also yield pairs that follow. For "is-a" these are all more general labels. For other relations they are
            the pairs stated of something more general than the second label: a part of a vehicle is a part of a car.

        Examples
        --------
        >>> graph = KnowledgeGraph()
        >>> graph.relate("is-a", "car", "vehicle")
        >>> graph.relate("part-of", "wheel", "vehicle")
        >>> labels = match_labels(graph, ["wheel", "car", "vehicle"])
        >>> list(labels.pairs("part-of")), list(labels.pairs("has-part", inherit=True))
        ([(0, 2)], [(2, 0), (1, 0)])
        """
        stated, inverse = parse_direction(relation)
        for position, concept in enumerate(self.concepts):
            if concept is None:
                continue
            targets = dict.fromkeys(self.knowledge.related(concept, stated), 0)
            if inherit:
                targets = self.knowledge.reach(targets, UP if stated in UP else DOWN)
            for target in dict.fromkeys(i for end in targets for i in self._positions.get(end, ())):
                if target != position:
                    yield (target, position) if inverse else (position, target)

    def expand(self, name: str, *, levels: int | None = None, inherit: bool = False) -> NameExpansion:
        """Return the labels that a name stands for: its kinds and instances, and parts; nearest first.

        Parameters
        ----------
        name : str
            A label, or any name or id. Of several senses the first with labels below it counts.
        levels : int or None
            Steps down at most.
        inherit : bool
            Also return parts of more general concepts.

        Raises
        ------
        UnknownLabelError
            The name is unknown; the message suggests similar ones.

        Examples
        --------
        >>> graph = KnowledgeGraph()
        >>> for pair in [("car", "vehicle"), ("taxi", "car"), ("tyre", "wheel")]:
        ...     graph.relate("is-a", *pair)
        >>> graph.relate("part-of", "wheel", "car")
        >>> match_labels(graph, ["taxi", "tyre", "car"]).expand("vehicle")
        NameExpansion(concept='vehicle',
                  kinds=[ExpandedLabel(position=2, steps=1, via='car'), ExpandedLabel(position=0, steps=2, via='taxi')],
                  parts=[ExpandedLabel(position=1, steps=1, via='car')])
        """
        graph, position = self.knowledge, self._position_by_name.get(make_lookup_key(name))
        concept = None if position is None else self.concepts[position]
        senses = graph.find_senses(name) if concept is None else [concept]
        if not senses:
            raise UnknownLabelError(format_unknown_label(name, list(graph.all_names()), "name"))
        expansions = [self._expand_concept(sense, levels, inherit) for sense in senses]
        return max(expansions, key=lambda expansion: 2 if expansion.kinds else 1 if expansion.parts else 0)

    def _expand_concept(self, concept: str, levels: int | None, inherit: bool) -> NameExpansion:
        graph, descendants = self.knowledge, self.knowledge.reach([concept], DOWN, levels)
        kinds = [
            ExpandedLabel(position, steps, descendant)
            for descendant, steps in descendants.items()
            for position in self._positions.get(descendant, ())
        ]
        wholes = [*descendants, *(graph.reach([concept], UP) if inherit else ())]
        parts: dict[int, ExpandedLabel] = {}
        for whole_concept in wholes if "part-of" in graph.relations else ():
            for part, steps in graph.reach(graph.related(whole_concept, "has-part"), DOWN).items():
                for position in self._positions.get(part, ()):
                    parts.setdefault(position, ExpandedLabel(position, steps, whole_concept))
        return NameExpansion(concept, kinds, list(parts.values()))
