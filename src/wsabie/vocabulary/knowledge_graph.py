"""Knowledge graph: concepts with names and glosses, and the relations between them.

A relation has a name and leads from one concept to another: "is-a" (dolphin, toothed whale), "instance-of", "part-of"
(wheel, wheeled vehicle), "member-of", "substance-of", or any other. Its inverse is written with a caret ("^part-of"),
the inverses of these five have names too: "has-kind", "has-instance", "has-part", "has-member", "has-substance".
Relations may run in circles: no concept is visited twice.

networkx takes five times the memory, and names with several concepts would still be ours
(`docs/decisions/hierarchies.md`).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wsabie.core.arrays import Int32
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.vocabulary.concept_hierarchy import MAX_PAIRS, ConceptIndex, Hierarchy, group_targets, make_lookup_key
from wsabie.vocabulary.name_suggestions import format_unknown_label

UP = ("is-a", "instance-of")
"""Relations from the special to the general."""
DOWN = ("^is-a", "^instance-of")
INVERSES = {
    "has-kind": "^is-a",
    "has-instance": "^instance-of",
    "has-part": "^part-of",
    "has-member": "^member-of",
    "has-substance": "^substance-of",
}


def parse_direction(relation: str) -> tuple[str, bool]:
    """Return the relation as it is stated, and whether the inverse is requested.

    Examples
    --------
    >>> parse_direction("has-part"), parse_direction("^married-to"), parse_direction("is-a")
    (('part-of', True), ('married-to', True), ('is-a', False))
    """
    direction = INVERSES.get(relation, relation)
    return direction.removeprefix("^"), direction.startswith("^")


class Concept(NamedTuple):
    """Concept that a name may mean.

    Attributes
    ----------
    id : str
        In WordNet a synset as ImageNet calls it, such as n02084071.
    names : tuple of str
        The first is the usual one.
    languages : tuple of str
        Language of each name, "" if it is unknown.
    gloss : str
    """

    id: str
    names: tuple[str, ...]
    languages: tuple[str, ...]
    gloss: str


class KnowledgeGraph(ConceptIndex):
    """Concepts, their names, and relations between them.

    Examples
    --------
    >>> graph = KnowledgeGraph()
    >>> graph.add("n1", ["car", "auto"], "a motor vehicle", "en")
    >>> graph.add("n1", ["Auto"], language="de")
    >>> graph.relate("part-of", "n2", "n1")
    >>> graph.find_senses("AUTO"), graph.related("n1", "has-part"), graph.concept("n1").languages
    (['n1'], ['n2'], ('en', 'en', 'de'))
    """

    def __init__(self) -> None:
        super().__init__()
        self._ids: list[str] = []
        self._names: list[list[str]] = []
        self._languages: list[list[str]] = []
        self._glosses: dict[int, str] = {}
        self._pairs: dict[str, tuple[array[int], array[int]]] = {}
        self._lists: dict[str, tuple[Int32, Int32]] = {}

    def __len__(self) -> int:
        """Number of concepts."""
        return len(self._ids)

    def __contains__(self, concept: object) -> bool:
        return isinstance(concept, str) and make_lookup_key(concept) in self._numbers

    @property
    def relations(self) -> dict[str, int]:
        """Number of pairs of each relation, by its name."""
        return {relation: len(lows) for relation, (lows, _) in self._pairs.items()}

    def add(self, concept: str, names: Iterable[str] = (), gloss: str = "", language: str = "") -> None:
        """Add a concept, or add names and a gloss to one; senses of a name keep the order of addition.

        Parameters
        ----------
        concept : str
            Id, unique whatever its case.
        names : iterable of str
            The usual name first; an underscore is a blank.
        gloss : str
            Definition; "" keeps the present one.
        language : str
            Language of the names.

        Raises
        ------
        InputError
            The concept has an empty id.
        """
        number, names = self._add_number(concept), [name.replace("_", " ") for name in names]
        self._names[number] += names
        self._languages[number] += [language] * len(names)
        if gloss:
            self._glosses[number] = gloss
        self._add_names(number, names)

    def rank_senses(self, name: str, concepts: Iterable[str]) -> None:
        """Put these senses of a name in this order, the most frequent first, after all its other senses.

        Parameters
        ----------
        name : str
        concepts : iterable of str
            Ids, the most frequent sense first; unknown ids are ignored.
        """
        numbers = map(self._numbers.get, concepts)
        ranked = dict.fromkeys(number for number in numbers if number is not None)
        senses = self._aliases.get(key := make_lookup_key(name), ())
        self._aliases[key] = (*(n for n in senses if n not in ranked), *ranked)

    def relate(self, relation: str, source: str, target: str) -> None:
        """State that a relation leads from one concept to another; a relation to itself is ignored.

        Parameters
        ----------
        relation : str
            Name, such as "is-a" or "part-of".
        source, target : str
            Ids of concepts; a new one adds a concept.

        Raises
        ------
        InputError
            A name is empty, the relation is called as an inverse is, or there are too many pairs.
        """
        if not relation or relation.startswith("^") or relation in INVERSES:
            raise InputError(f"a relation cannot be called {relation!r}, as inverses are; state it the other way round")
        lows, highs = self._pairs.setdefault(relation, (array("i"), array("i")))
        low, high = self._add_number(source), self._add_number(target)
        if low == high:
            return
        if len(lows) >= MAX_PAIRS:
            raise InputError(
                f"more than {MAX_PAIRS:,} pairs of {relation} are not supported; keep those of your labels"
            )
        lows.append(low)
        highs.append(high)
        self._lists.clear()

    def concept(self, concept: str) -> Concept:
        """Return a concept by its id.

        Parameters
        ----------
        concept : str
            Id, in any case.

        Returns
        -------
        Concept

        Raises
        ------
        UnknownLabelError
            No concept has this id.
        """
        number = self._get_number(concept)
        names, languages = tuple(self._names[number]), tuple(self._languages[number])
        return Concept(self._ids[number], names, languages, self._glosses.get(number, ""))

    def find(self, concept: str) -> str | None:
        """Return the id of a concept in its first spelling, whatever the case; None if there is none.

        Parameters
        ----------
        concept : str

        Returns
        -------
        str or None
        """
        number = self._numbers.get(make_lookup_key(concept))
        return None if number is None else self._ids[number]

    def all_names(self) -> Iterator[str]:
        """Yield every name and every id, as `make_lookup_key` writes them.

        Yields
        ------
        str
        """
        yield from self._aliases
        yield from self._numbers

    def name(self, concept: str) -> str:
        """Return the usual name of a concept; its id if it has none.

        Parameters
        ----------
        concept : str
            Id, in any case.

        Returns
        -------
        str

        Raises
        ------
        UnknownLabelError
            No concept has this id.
        """
        number = self._get_number(concept)
        return next(iter(self._names[number]), self._ids[number])

    def find_senses(self, name: str) -> list[str]:
        """Return the concepts that a name may mean, the most frequent first; an id means itself.

        Parameters
        ----------
        name : str
            Name or id, in any case.

        Returns
        -------
        list of str
            Ids; empty for an unknown name.
        """
        return [self._ids[number] for number in self._find_numbers(name)]

    def pairs(self, relation: str) -> Iterator[tuple[str, str]]:
        """Yield the pairs of a relation or of its inverse.

        Parameters
        ----------
        relation : str
            Name of a relation, or of its inverse.

        Yields
        ------
        (source, target)
            Ids of concepts.

        Raises
        ------
        InputError
            There is no such relation.
        """
        for source, target in zip(*self._get_pairs(relation), strict=True):
            yield self._ids[source], self._ids[target]

    def related(self, concept: str, relation: str) -> list[str]:
        """Return the concepts that a relation or its inverse leads to, in the order of the files.

        Parameters
        ----------
        concept : str
            Id, in any case.
        relation : str
            Name of a relation, or of its inverse.

        Returns
        -------
        list of str
            Ids of concepts.

        Raises
        ------
        InputError
            There is no such concept or relation.
        """
        return [self._ids[n] for n in self._follow_relation([self._get_number(concept)], relation)]

    def reach(self, concepts: Iterable[str], relations: Sequence[str], levels: int | None = None) -> dict[str, int]:
        """Return the concepts that some relations reach from others, with the number of steps; nearest first.

        Parameters
        ----------
        concepts : iterable of str
        relations : sequence of str
            Unknown relations are ignored.
        levels : int or None
            Maximum number of steps.

        Returns
        -------
        dict of str to int
            Id to number of steps; the given concepts are 0 steps away.

        Raises
        ------
        UnknownLabelError
            No concept has one of the ids.

        Examples
        --------
        >>> graph = KnowledgeGraph()
        >>> for pair in [("dog", "animal"), ("poodle", "dog"), ("animal", "poodle")]:
        ...     graph.relate("is-a", *pair)
        >>> graph.reach(["dog"], ["^is-a"])
        {'dog': 0, 'poodle': 1, 'animal': 2}
        """
        stated_relations = [relation for relation in relations if parse_direction(relation)[0] in self._pairs]
        frontier = [self._get_number(concept) for concept in concepts]
        steps_by_number, level = dict.fromkeys(frontier, 0), 0
        while frontier and level != levels:
            level += 1
            neighbours = dict.fromkeys(n for r in stated_relations for n in self._follow_relation(frontier, r))
            frontier = [n for n in neighbours if n not in steps_by_number]
            steps_by_number.update(dict.fromkeys(frontier, level))
        return {self._ids[number]: steps for number, steps in steps_by_number.items()}

    def hierarchy(self, *, names: bool = True) -> Hierarchy:
        """Return the is-a and instance-of pairs as a hierarchy.

        Parameters
        ----------
        names : bool, default True
            True: the hierarchy knows the names of the concepts too; False: their ids alone.

        Returns
        -------
        Hierarchy
        """
        kinds = Hierarchy(pair for relation in UP if relation in self._pairs for pair in self.pairs(relation))
        if names:
            for concept in {make_lookup_key(name) for name in kinds.concepts}:
                kinds.add_names(concept, self._names[self._numbers[concept]])
        return kinds

    def _add_number(self, concept: str) -> int:
        number = super()._add_number(concept)
        if number == len(self._ids):
            self._ids.append(concept)
            self._names.append([])
            self._languages.append([])
        return number

    def _get_number(self, concept: str) -> int:
        number = self._numbers.get(make_lookup_key(concept))
        if number is None:
            raise UnknownLabelError(format_unknown_label(concept, self._ids, "concept"))
        return number

    def _get_pairs(self, relation: str) -> "tuple[array[int], array[int]]":
        """Return the sources and the targets of a relation or its inverse, by number."""
        stated, inverse = parse_direction(relation)
        if stated not in self._pairs:
            raise InputError(
                f"nothing is known of a relation {relation!r}; there are {', '.join(self._pairs) or 'none'}"
            )
        lows, highs = self._pairs[stated]
        return (highs, lows) if inverse else (lows, highs)

    def _follow_relation(self, numbers: Iterable[int], relation: str) -> list[int]:
        """Return the targets of a relation, concept after concept."""
        key = INVERSES.get(relation, relation)
        if key not in self._lists:
            self._lists[key] = group_targets(*self._get_pairs(relation), len(self._ids))
        starts, ends = self._lists[key]
        return [end for n in numbers for end in ends[starts[n] : starts[n + 1]].tolist()]
