"""What is known about labels: concepts with names and glosses, the relations between them, and which label means which.

A relation has a name and leads from one concept to another: "is-a" (dolphin, toothed whale), "instance-of", "part-of"
(wheel, wheeled vehicle), "member-of", "substance-of", or any other. Its inverse is written with a caret ("^part-of"),
those of the five have names too: "has-kind", "has-instance", "has-part", "has-member", "has-substance". Relations may
run in circles: nothing is visited twice.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Int32
from wsabie.base.errors import InputError, UnknownLabelError
from wsabie.labels.hierarchy import MOST, Hierarchy, Numbers, spelling, with_number
from wsabie.labels.names import unknown_label

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


def direction(relation: str) -> tuple[str, bool]:
    """The relation as it is stated, and whether its inverse is meant.

    Examples
    --------
    >>> direction("has-part"), direction("^married-to"), direction("is-a")
    (('part-of', True), ('married-to', True), ('is-a', False))
    """
    meant = INVERSES.get(relation, relation)
    return meant.removeprefix("^"), meant.startswith("^")


class Concept(NamedTuple):
    """What a name may mean.

    Attributes
    ----------
    id : str
        In WordNet a synset as ImageNet calls it, such as n02084071.
    names : tuple of str
        The first is the usual one.
    languages : tuple of str
        Of each name, "" where it is not known.
    gloss : str
    """

    id: str
    names: tuple[str, ...]
    languages: tuple[str, ...]
    gloss: str


class Knowledge:
    """Concepts, their names, and relations between them.

    Examples
    --------
    >>> known = Knowledge()
    >>> known.add("n1", ["car", "auto"], "a motor vehicle", "en")
    >>> known.add("n1", ["Auto"], language="de")
    >>> known.relate("part-of", "n2", "n1")
    >>> known.senses("AUTO"), known.related("n1", "has-part"), known.concept("n1").languages
    (['n1'], ['n2'], ('en', 'en', 'de'))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._names: list[list[str]] = []
        self._languages: list[list[str]] = []
        self._glosses: dict[int, str] = {}
        self._senses: dict[str, Numbers] = {}
        self._pairs: dict[str, tuple[array[int], array[int]]] = {}
        self._lists: dict[str, tuple[Int32, Int32]] = {}

    def __len__(self) -> int:
        """Number of concepts."""
        return len(self._ids)

    def __contains__(self, concept: object) -> bool:
        return isinstance(concept, str) and spelling(concept) in self._numbers

    @property
    def relations(self) -> dict[str, int]:
        """Names of the relations, and how many pairs each has."""
        return {relation: len(lows) for relation, (lows, _) in self._pairs.items()}

    def add(self, concept: str, names: Iterable[str] = (), gloss: str = "", language: str = "") -> None:
        """Add a concept, or names and a gloss to one; of a name that several concepts have, the first comes first.

        Raises
        ------
        InputError
            The concept has an empty id.
        """
        number, names = self._number(concept), [name.replace("_", " ") for name in names]
        self._names[number] += names
        self._languages[number] += [language] * len(names)
        if gloss:
            self._glosses[number] = gloss
        for name in names:
            if spelled := spelling(name):
                self._senses[spelled] = with_number(self._senses.get(spelled, ()), number)

    def rank_senses(self, name: str, concepts: Iterable[str]) -> None:
        """Put these concepts in this order, the most frequent first, behind all others that a name may mean."""
        numbers = map(self._numbers.get, concepts)
        ranked = dict.fromkeys(number for number in numbers if number is not None)
        known = self._senses.get(spelled := spelling(name), ())
        self._senses[spelled] = (*(n for n in known if n not in ranked), *ranked)

    def relate(self, relation: str, one: str, other: str) -> None:
        """State that a relation leads from a concept to another; from one to itself there is none.

        Raises
        ------
        InputError
            A name is empty, the relation is called as an inverse is, or there are too many pairs.
        """
        if not relation or relation.startswith("^") or relation in INVERSES:
            raise InputError(f"a relation cannot be called {relation!r}, as inverses are; state it the other way round")
        lows, highs = self._pairs.setdefault(relation, (array("i"), array("i")))
        low, high = self._number(one), self._number(other)
        if low == high:
            return
        if len(lows) >= MOST:
            raise InputError(f"more than {MOST:,} pairs of {relation} are not supported; keep those of your labels")
        lows.append(low)
        highs.append(high)
        self._lists.clear()

    def concept(self, concept: str) -> Concept:
        """What is known of a concept.

        Raises
        ------
        UnknownLabelError
            There is none of this id.
        """
        number = self._known(concept)
        names, languages = tuple(self._names[number]), tuple(self._languages[number])
        return Concept(self._ids[number], names, languages, self._glosses.get(number, ""))

    def find(self, concept: str) -> str | None:
        """The id of a concept as it was given first, whatever its case; None where there is none."""
        number = self._numbers.get(spelling(concept))
        return None if number is None else self._ids[number]

    def all_names(self) -> Iterator[str]:
        """Every name and every id, spelled."""
        yield from self._senses
        yield from self._numbers

    def name(self, concept: str) -> str:
        """The usual name of a concept; its id where it has none."""
        number = self._known(concept)
        return next(iter(self._names[number]), self._ids[number])

    def senses(self, name: str) -> list[str]:
        """The concepts that a name may mean, the most frequent first; an id means itself."""
        own, others = self._numbers.get(spelled := spelling(name)), self._senses.get(spelled, ())
        return [self._ids[n] for n in dict.fromkeys([*(() if own is None else (own,)), *others])]

    def pairs(self, relation: str) -> Iterator[tuple[str, str]]:
        """The pairs of a relation, or of its inverse.

        Raises
        ------
        InputError
            There is no such relation.
        """
        relation, inverse = self._direction(relation)
        lows, highs = self._pairs[relation]
        for low, high in zip(lows, highs, strict=True):
            yield (self._ids[high], self._ids[low]) if inverse else (self._ids[low], self._ids[high])

    def related(self, concept: str, relation: str) -> list[str]:
        """Where a relation, or its inverse, leads from a concept, in the order of the files.

        Raises
        ------
        InputError
            There is no such concept or relation.
        """
        return [self._ids[n] for n in self._step([self._known(concept)], relation)]

    def reach(self, concepts: Iterable[str], relations: Sequence[str], levels: int | None = None) -> dict[str, int]:
        """How many steps along some relations lead from some concepts to others; to themselves none, nearest first.

        Parameters
        ----------
        concepts : iterable of str
        relations : sequence of str
            Those that nothing is known of are passed over.
        levels : int or None
            At most so many steps.

        Examples
        --------
        >>> known = Knowledge()
        >>> for pair in [("dog", "animal"), ("poodle", "dog"), ("animal", "poodle")]:
        ...     known.relate("is-a", *pair)
        >>> known.reach(["dog"], ["^is-a"])
        {'dog': 0, 'poodle': 1, 'animal': 2}
        """
        known = [relation for relation in relations if direction(relation)[0] in self._pairs]
        front = [self._known(concept) for concept in concepts]
        found, level = dict.fromkeys(front, 0), 0
        while front and level != levels:
            level += 1
            front = [n for n in dict.fromkeys(n for r in known for n in self._step(front, r)) if n not in found]
            found.update(dict.fromkeys(front, level))
        return {self._ids[number]: steps for number, steps in found.items()}

    def hierarchy(self, *, names: bool = True) -> Hierarchy:
        """What is a kind or an instance of what, for siblings, hops, and `--hierarchy`; without names, of ids alone."""
        kinds = Hierarchy(pair for relation in UP if relation in self._pairs for pair in self.pairs(relation))
        if names:
            for concept in {spelling(name) for name in kinds.concepts}:
                kinds.also_called(concept, self._names[self._numbers[concept]])
        return kinds

    def _number(self, concept: str) -> int:
        known = self._numbers.get(concept)
        if known is not None:  # spelled already
            return known
        spelled = spelling(concept)
        if not spelled:
            raise InputError("a concept has an empty name; give every concept a name")
        if spelled not in self._numbers:
            self._numbers[spelled] = len(self._ids)
            self._ids.append(concept)
            self._names.append([])
            self._languages.append([])
        return self._numbers[spelled]

    def _known(self, concept: str) -> int:
        number = self._numbers.get(spelling(concept))
        if number is None:
            raise UnknownLabelError(unknown_label(concept, self._ids, "concept"))
        return number

    def _direction(self, relation: str, *, strict: bool = True) -> tuple[str, bool]:
        """The relation as it was stated, and whether its inverse is meant."""
        meant = INVERSES.get(relation, relation)
        stated = meant.removeprefix("^")
        if strict and stated not in self._pairs:
            raise InputError(
                f"nothing is known of a relation {relation!r}; there are {', '.join(self._pairs) or 'none'}"
            )
        return stated, meant.startswith("^")

    def _step(self, numbers: Iterable[int], relation: str) -> list[int]:
        starts, ends = self._ends(relation)
        return [end for n in numbers for end in ends[starts[n] : starts[n + 1]].tolist()]

    def _ends(self, relation: str) -> tuple[Int32, Int32]:
        """Where a relation leads, concept after concept: (where they start, concepts)."""
        stated, inverse = self._direction(relation)
        key = f"^{stated}" if inverse else stated
        if key not in self._lists:
            lows, highs = (np.frombuffer(side, np.int32) for side in self._pairs[stated])
            of, ends = (highs, lows) if inverse else (lows, highs)
            order = np.argsort(of, kind="stable")
            starts = np.searchsorted(of[order], np.arange(len(self._ids) + 1)).astype(np.int32)
            self._lists[key] = starts, ends[order]
        return self._lists[key]
