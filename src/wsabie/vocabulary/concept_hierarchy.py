"""Is-a hierarchy: concepts with their names and parents, from any is-a list.

A concept may have several names ("toad", "frog", "toad frog") and a name several concepts (the bird and the machine
called "crane"): a label stands for all concepts of its name. Lists mined from text have cycles. They do no harm,
because only direct parents count. A concept that is its own parent is dropped.

networkx takes five times the memory, and names with several concepts would still be ours
(`docs/decisions/hierarchies.md`).
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from wsabie.core.arrays import Int32, Matrix
from wsabie.core.errors import InputError
from wsabie.core.validation import build_incidence
from wsabie.vocabulary.hierarchy_distances import FAR, AncestorHeights, HopDistances
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.vocabulary.label_similarity import SiblingSimilarity

MAX_PAIRS = 1 << 26
"""Maximum number of pairs in a hierarchy; 512 MiB."""
ConceptIds: TypeAlias = "tuple[int, ...] | dict[int, None]"
"""Distinct numbers in order: a tuple for a few, a dict for many."""
_MAX_TUPLE = 8


def make_lookup_key(name: str) -> str:
    """Return the form for comparing names: `normalise_label_name`, no case, blanks for underscores.

    Examples
    --------
    >>> make_lookup_key("Great_White  shark")
    'great white shark'
    """
    return normalise_label_name(name.replace("_", " ")).casefold()


def append_unique_id(numbers: ConceptIds, number: int) -> ConceptIds:
    """Append a number that is new, in constant time however many there are; return the numbers.

    Examples
    --------
    >>> append_unique_id((3, 1), 2), append_unique_id((3, 1), 1)
    ((3, 1, 2), (3, 1))
    """
    if number in numbers:
        return numbers
    if isinstance(numbers, tuple) and len(numbers) < _MAX_TUPLE:
        return (*numbers, number)
    numbers = dict.fromkeys(numbers) if isinstance(numbers, tuple) else numbers
    numbers[number] = None
    return numbers


class ConceptIndex:
    """Numbers of concepts by their lookup keys, and numbers that a name may mean."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._aliases: dict[str, ConceptIds] = {}

    def _add_number(self, concept: str) -> int:
        number = self._numbers.get(concept)
        if number is not None:  # already in the form of a lookup key
            return number
        key = make_lookup_key(concept)
        if not key:
            raise InputError("a concept has an empty name; give every concept a name")
        return self._numbers.setdefault(key, len(self._numbers))

    def _add_names(self, number: int, names: Iterable[str]) -> None:
        for name in names:
            if key := make_lookup_key(name):
                self._aliases[key] = append_unique_id(self._aliases.get(key, ()), number)

    def _find_numbers(self, name: str) -> list[int]:
        """Return the numbers of the concepts that a name may mean; that of an id comes first."""
        number = self._numbers.get(key := make_lookup_key(name))
        return list(dict.fromkeys([*(() if number is None else (number,)), *self._aliases.get(key, ())]))


def group_targets(sources: "array[int]", targets: "array[int]", n: int) -> tuple[Int32, Int32]:
    """Return (starts, targets): the targets of each of `n` sources, source after source."""
    source_ids, target_ids = np.frombuffer(sources, np.int32), np.frombuffer(targets, np.int32)
    order = np.argsort(source_ids, kind="stable")
    return np.searchsorted(source_ids[order], np.arange(n + 1)).astype(np.int32), target_ids[order]


class Hierarchy(ConceptIndex):
    """Concepts, their names and their is-a parents.

    Parameters
    ----------
    pairs : iterable of (child, parent)
        Names of concepts.

    Examples
    --------
    >>> kinds = Hierarchy([("toad", "amphibian"), ("frog", "amphibian"), ("oak", "tree")])
    >>> kinds.parents("Toad"), len(kinds)
    (['amphibian'], 3)
    >>> kinds.find_siblings(["frog", "oak", "toad"]).max_similarity([2])
    array([1., 0., 1.], dtype=float32)
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self._children, self._parents = array("i"), array("i")
        for child, parent in pairs:
            self.add(child, parent)

    def __len__(self) -> int:
        """Number of is-a pairs, as they were added."""
        return len(self._children)

    @property
    def concepts(self) -> list[str]:
        """Names of all concepts, as `make_lookup_key` writes them, by number."""
        return list(self._numbers)

    def add(self, child: str, parent: str) -> None:
        """State that the concept `child` is a kind of the concept `parent`.

        Parameters
        ----------
        child, parent : str
            Names; a pair of the same concept is ignored.

        Raises
        ------
        InputError
            A name is empty or no valid text, or there are more than `MAX_PAIRS` pairs.
        """
        low, high = self._add_number(child), self._add_number(parent)
        if low == high:
            return
        if len(self._children) >= MAX_PAIRS:
            raise InputError(
                f"a hierarchy of more than {MAX_PAIRS:,} pairs is not supported; keep those of your labels"
            )
        self._children.append(low)
        self._parents.append(high)

    def add_names(self, concept: str, names: Iterable[str]) -> None:
        """Give a concept further names, which other concepts may have too.

        Parameters
        ----------
        concept : str
            Name; a new one adds a concept.
        names : iterable of str
        """
        self._add_names(self._add_number(concept), names)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Return all (child, parent), as `make_lookup_key` writes them, in the order of their addition.

        Returns
        -------
        iterator of (child, parent)
        """
        names = self.concepts
        return ((names[c], names[p]) for c, p in zip(self._children, self._parents, strict=True))

    def find_senses(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the concepts that a name may mean; none if it is unknown.

        Parameters
        ----------
        name : str

        Returns
        -------
        tuple of int
            Positions in `concepts`.
        """
        return tuple(self._find_numbers(name))

    def parents(self, name: str) -> list[str]:
        """Return the parents of all concepts that a name may mean, sorted.

        Parameters
        ----------
        name : str

        Returns
        -------
        list of str
            Empty for an unknown name, and for a concept without parents.
        """
        names, (starts, parents) = self.concepts, group_targets(self._children, self._parents, len(self._numbers))
        numbers = {int(p) for c in self.find_senses(name) for p in parents[starts[c] : starts[c + 1]]}
        return sorted(names[number] for number in numbers)

    def find_siblings(self, labels: Sequence[str]) -> SiblingSimilarity:
        """Return the siblings among labels: those that share a parent, or are names of one concept.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; an unknown label has no siblings.

        Returns
        -------
        SiblingSimilarity
            Of the labels by number.
        """
        from scipy.sparse import hstack

        concepts, pairs = self._build_graph(labels)
        # a column for the concept itself, or names of a concept without parents would not be alike
        return SiblingSimilarity(hstack([concepts @ pairs, concepts]))

    def find_distances(self, labels: Sequence[str]) -> HopDistances:
        """Return the distances between labels in hops, for hierarchical precision.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; an unknown label is near to no other.

        Returns
        -------
        HopDistances
            Of the labels by number.

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "amphibian"), ("frog", "amphibian"), ("oak", "tree")])
        >>> kinds.find_distances(["toad", "oak", "frog"]).compute_hops([0], 2)[[0, 2]]
        array([0, 2], dtype=int32)
        """
        return HopDistances(*self._build_graph(labels))

    def find_ancestors(self, labels: Sequence[str]) -> AncestorHeights:
        """Return the ancestors of labels and their heights, for the hierarchical error.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; an unknown label has no ancestors.

        Returns
        -------
        AncestorHeights
            Of the labels by number.

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "frogs"), ("frog", "frogs"), ("frogs", "animal"), ("cat", "animal")])
        >>> kinds.find_ancestors(["toad", "frog", "cat"]).compute_heights([0])
        array([0., 1., 2.])
        """
        return AncestorHeights(*self._build_graph(labels))

    def find_within(self, names: Iterable[str], hops: int) -> list[str]:
        """Return the concepts within `hops` of some names, as `make_lookup_key` writes them.

        Frome et al. 2013 evaluate on 2-hop and 3-hop sets.

        Parameters
        ----------
        names : iterable of str
            Unknown names are ignored.
        hops : int
            Most is-a steps, up or down.

        Returns
        -------
        list of str
            In the order of `concepts`.

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "frogs"), ("frog", "frogs"), ("frogs", "animal"), ("cat", "animal")])
        >>> kinds.find_within(["toad"], 2)
        ['toad', 'frogs', 'frog', 'animal']
        """
        concepts = self.concepts
        distances = self.find_distances([*concepts, *names])
        start = np.arange(len(concepts), distances.n_labels)
        near = distances.compute_hops(start, FAR, max_rings=hops)[: len(concepts)]
        return [concepts[number] for number in np.flatnonzero(near < FAR)]

    def _build_graph(self, labels: Sequence[str]) -> tuple[Matrix, Matrix]:
        """Return the concepts of each label and the pairs of child and parent, as sparse matrices."""
        n, rows, concepts = len(self._numbers), array("i"), array("i")
        for row, label in enumerate(labels):
            senses = self.find_senses(label)
            rows.extend([row] * len(senses))
            concepts.extend(senses)
        pairs = build_incidence(self._children, self._parents, (n, n), bool)
        return build_incidence(rows, concepts, (len(labels), n), bool), pairs

    def fingerprint(self) -> str:
        """Return a checksum of the pairs and names, whatever their order: 8 hex digits.

        Returns
        -------
        str
        """
        concept_names = self.concepts
        names = {
            f"{name}\t={concept_names[concept]}" for name, concepts in self._aliases.items() for concept in concepts
        }
        words = sorted({f"{child}\t{parent}" for child, parent in self.pairs()} | names)
        return f"{zlib.crc32(chr(10).join(words).encode()):08x}"
