"""Which label means which concept, and what follows: what is known of labels, their relations, what they stand for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import DOWN, UP, Concept, Knowledge, direction
from wsabie.labels.names import unknown_label


def match_labels(knowledge: Knowledge, labels: Iterable[str], table: Mapping[str, str] | None = None) -> "Matched":
    """Find out which concept each of some labels means.

    A label that the table names means what stands there (nothing where that is empty); else the concept whose id it
    is, or whose id stands behind it in parentheses; else the most frequent sense of its name; else, of several names
    with commas between them, the concept that has them all.

    Parameters
    ----------
    knowledge : Knowledge
    labels : iterable of str
    table : mapping of str to str, or None
        Label to id, whatever the case of the label.

    Raises
    ------
    InputError
        The table has an id that is not known.

    Examples
    --------
    >>> known = Knowledge()
    >>> known.add("n1", ["crane"], "a bird")
    >>> known.add("n2", ["crane"], "a machine")
    >>> found = match_labels(known, ["Crane", "crane (n2)", "ship", "lift"], {"lift": "n2"})
    >>> found.concepts, found.how, found.missing
    (['n1', 'n2', None, 'n2'], ['name', 'id', '', 'table'], ['ship'])
    """
    by_table: dict[str, str | None] = {}
    for label, concept in (table or {}).items():
        by_table[spelling(label)] = found = knowledge.find(concept)
        if concept and found is None:
            raise InputError(f"the table of labels names {concept!r}, which is no known concept; correct its id")
    labels = list(labels)
    meant = [_meant(knowledge, label, by_table) for label in labels]
    return Matched(knowledge, labels, [concept for concept, _ in meant], [how for _, how in meant])


def _meant(knowledge: Knowledge, label: str, table: Mapping[str, str | None]) -> tuple[str | None, str]:
    if (spelled := spelling(label)) in table:
        return table[spelled], "table"
    behind = label.rpartition("(")[2].removesuffix(")")
    if (concept := knowledge.find(label) or knowledge.find(behind)) is not None:
        return concept, "id"
    senses = knowledge.senses(label)
    if not senses and "," in label:
        first, *others = (knowledge.senses(name) for name in label.split(","))
        senses = [sense for sense in first if all(sense in other for other in others)]
    return (senses[0], "name") if senses else (None, "")


class Reached(NamedTuple):
    """A label that an expansion leads to: its place, how many steps away, and from which concept the last one led."""

    place: int
    steps: int
    via: str


class Expansion(NamedTuple):
    """What a name stands for among some labels: the concept meant, labels under it, and labels of parts."""

    concept: str
    kinds: list[Reached]
    parts: list[Reached]


class Matched:
    """Labels and what they mean; made by `match_labels`.

    Attributes
    ----------
    labels : list of str
    concepts : list of (str or None)
        The concept of each label.
    how : list of str
        How it was found: "table", "id", "name", or "" where it was not.
    """

    def __init__(self, knowledge: Knowledge, labels: list[str], concepts: list[str | None], how: list[str]) -> None:
        self.knowledge, self.labels, self.concepts, self.how = knowledge, labels, concepts, how
        self._places: dict[str, list[int]] = {}
        self._spelled: dict[str, int] = {}
        for place, (label, concept) in enumerate(zip(labels, concepts, strict=True)):
            self._spelled.setdefault(spelling(label), place)
            if concept is not None:
                self._places.setdefault(concept, []).append(place)

    @property
    def counts(self) -> dict[str, int]:
        """How many labels were matched how, and "missing"."""
        return dict(Counter(how or "missing" for how in self.how))

    @property
    def missing(self) -> list[str]:
        """Labels that nothing is known of."""
        return [label for label, how in zip(self.labels, self.how, strict=True) if not how]

    def about(self, label: str) -> Concept | None:
        """What is known of a label: names, their languages, synset and gloss; None where it means nothing.

        Raises
        ------
        UnknownLabelError
            It is none of the labels.
        """
        place = self._spelled.get(spelling(label))
        if place is None:
            raise UnknownLabelError(unknown_label(label, self.labels))
        concept = self.concepts[place]
        return None if concept is None else self.knowledge.concept(concept)

    def ids(self) -> list[str]:
        """The concept of each label, as names for `Hierarchy.similar` and `Hierarchy.hops`; "" where there is none."""
        return [concept or "" for concept in self.concepts]

    def pairs(self, relation: str, *, inherit: bool = False) -> Iterator[tuple[int, int]]:
        """Places of the labels that a relation, or its inverse, leads from and to, each pair once.

        Parameters
        ----------
        relation : str
        inherit : bool
            Also pairs that follow: of "is-a" every more general label, of others what is said of something more
            general than the second label (the part of a vehicle is one of a car).

        Examples
        --------
        >>> known = Knowledge()
        >>> known.relate("is-a", "car", "vehicle")
        >>> known.relate("part-of", "wheel", "vehicle")
        >>> labels = match_labels(known, ["wheel", "car", "vehicle"])
        >>> list(labels.pairs("part-of")), list(labels.pairs("has-part", inherit=True))
        ([(0, 2)], [(2, 0), (1, 0)])
        """
        stated, inverse = direction(relation)
        for one, concept in enumerate(self.concepts):
            if concept is None:
                continue
            ends = dict.fromkeys(self.knowledge.related(concept, stated), 0)
            if inherit:
                ends = self.knowledge.reach(ends, UP if stated in UP else DOWN)
            for other in dict.fromkeys(place for end in ends for place in self._places.get(end, ())):
                if other != one:
                    yield (other, one) if inverse else (one, other)

    def expand(self, name: str, *, levels: int | None = None, inherit: bool = False) -> Expansion:
        """The labels that a name stands for: kinds and instances of it, and their parts; nearest first.

        Parameters
        ----------
        name : str
            A label, or any name or id; of several senses the first under which there are labels.
        levels : int or None
            At most so many steps down.
        inherit : bool
            Also parts of what is more general.

        Raises
        ------
        UnknownLabelError
            Nothing is known of the name; the message suggests others.

        Examples
        --------
        >>> known = Knowledge()
        >>> for pair in [("car", "vehicle"), ("taxi", "car"), ("tyre", "wheel")]:
        ...     known.relate("is-a", *pair)
        >>> known.relate("part-of", "wheel", "car")
        >>> match_labels(known, ["taxi", "tyre", "car"]).expand("vehicle")
        Expansion(concept='vehicle',
                  kinds=[Reached(place=2, steps=1, via='car'), Reached(place=0, steps=2, via='taxi')],
                  parts=[Reached(place=1, steps=1, via='car')])
        """
        known, place = self.knowledge, self._spelled.get(spelling(name))
        own = None if place is None else self.concepts[place]
        senses = known.senses(name) if own is None else [own]
        if not senses:
            raise UnknownLabelError(unknown_label(name, list(known.all_names()), "name"))
        found = [self._expanded(sense, levels, inherit) for sense in senses]
        return next((one for one in found if one.kinds), None) or next((one for one in found if one.parts), found[0])

    def _expanded(self, concept: str, levels: int | None, inherit: bool) -> Expansion:
        known, below = self.knowledge, self.knowledge.reach([concept], DOWN, levels)
        kinds = [Reached(place, steps, at) for at, steps in below.items() for place in self._places.get(at, ())]
        wholes = [*below, *(known.reach([concept], UP) if inherit else ())]
        parts: dict[int, Reached] = {}
        for whole in wholes if "part-of" in known.relations else ():
            for part, steps in known.reach(known.related(whole, "has-part"), DOWN).items():
                for place in self._places.get(part, ()):
                    parts.setdefault(place, Reached(place, steps, whole))
        return Expansion(concept, kinds, list(parts.values()))
