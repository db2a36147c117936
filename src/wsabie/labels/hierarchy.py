"""What is a kind of what: concepts with their names and parents, from any is-a list.

A concept may have several names ("toad", "frog", "toad frog") and a name several concepts (the bird and the machine
called "crane"): a label stands for all concepts of its name. Only parents themselves are asked for, so that cycles,
which lists mined from text have, do no harm; a concept that is its own parent is dropped.
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from wsabie.base.arrays import Int32
from wsabie.base.errors import InputError
from wsabie.labels.heights import Heights
from wsabie.labels.hops import FAR, Hops
from wsabie.labels.names import normalise
from wsabie.labels.similar import SharedParents

MOST = 1 << 26
"""Pairs that a hierarchy holds at most; 512 MiB."""
Numbers: TypeAlias = "tuple[int, ...] | dict[int, None]"
"""Different numbers in an order: a few, or many."""
_FEW = 8


def spelling(name: str) -> str:
    """By which names are known again: `normalise`, without case, and with blanks for underscores.

    Examples
    --------
    >>> spelling("Great_White  shark")
    'great white shark'
    """
    return normalise(name.replace("_", " ")).casefold()


def with_number(numbers: Numbers, number: int) -> Numbers:
    """Return the numbers with one more at the end, if it is new; in constant time, however many there are.

    Examples
    --------
    >>> with_number((3, 1), 2), with_number((3, 1), 1)
    ((3, 1, 2), (3, 1))
    """
    if number in numbers:
        return numbers
    if isinstance(numbers, tuple) and len(numbers) < _FEW:
        return (*numbers, number)
    numbers = dict.fromkeys(numbers) if isinstance(numbers, tuple) else numbers
    numbers[number] = None
    return numbers


class Hierarchy:
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
    >>> kinds.similar(["frog", "oak", "toad"]).to([2])
    array([1., 0., 1.], dtype=float32)
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._concepts: dict[str, int] = {}
        self._also: dict[str, Numbers] = {}
        self._children, self._parents = array("i"), array("i")
        for child, parent in pairs:
            self.add(child, parent)

    def __len__(self) -> int:
        """Number of is-a pairs, as they were added."""
        return len(self._children)

    @property
    def concepts(self) -> list[str]:
        """Names of all concepts, as `spelling` writes them, by number."""
        return list(self._concepts)

    def add(self, child: str, parent: str) -> None:
        """State that the concept `child` is a kind of the concept `parent`.

        Raises
        ------
        InputError
            A name is empty or no valid text, or there are more than `MOST` pairs.
        """
        low, high = self._concept(child), self._concept(parent)
        if low == high:
            return
        if len(self._children) >= MOST:
            raise InputError(f"a hierarchy of more than {MOST:,} pairs is not supported; keep those of your labels")
        self._children.append(low)
        self._parents.append(high)

    def also_called(self, concept: str, names: Iterable[str]) -> None:
        """Give a concept further names, which other concepts may have too."""
        number = self._concept(concept)
        for name in names:
            if spelled := spelling(name):
                self._also[spelled] = with_number(self._also.get(spelled, ()), number)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All (child, parent), as `spelling` writes them, in the order in which they were added."""
        named = self.concepts
        return ((named[c], named[p]) for c, p in zip(self._children, self._parents, strict=True))

    def senses(self, name: str) -> tuple[int, ...]:
        """Numbers of the concepts that a name may mean; none when it is unknown."""
        spelled = spelling(name)
        own = self._concepts.get(spelled)
        also = tuple(self._also.get(spelled, ()))
        return also if own is None or own in also else (own, *also)

    def parents(self, name: str) -> list[str]:
        """The parents of all concepts that a name may mean, sorted."""
        named, starts, parents = self.concepts, *self._lists()
        numbers = {int(p) for c in self.senses(name) for p in parents[starts[c] : starts[c + 1]]}
        return sorted(named[number] for number in numbers)

    def similar(self, labels: Sequence[str]) -> SharedParents:
        """Siblings among some labels: those that share a parent, or are names of one concept.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; one that the hierarchy does not know has no siblings.
        """
        from scipy.sparse import csr_matrix

        starts, parents = self._lists()
        n, rows, columns = len(self._concepts), array("i"), array("i")
        for row, label in enumerate(labels):
            for concept in self.senses(label):
                # a column for the concept itself, or names of a concept without parents would not be alike
                of_label = [n + concept, *parents[starts[concept] : starts[concept + 1]].tolist()]
                rows.extend([row] * len(of_label))
                columns.extend(of_label)
        entries = np.ones(len(rows), np.int8), (np.asarray(rows), np.asarray(columns))
        return SharedParents(csr_matrix(entries, shape=(len(labels), 2 * n)))

    def hops(self, labels: Sequence[str]) -> Hops:
        """How far some labels are from each other, for hierarchical precision.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; one that the hierarchy does not know is near to nothing.

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "amphibian"), ("frog", "amphibian"), ("oak", "tree")])
        >>> kinds.hops(["toad", "oak", "frog"]).around([0], 2)[[0, 2]]
        array([0, 2], dtype=int32)
        """
        return Hops(*self._graph(labels))

    def heights(self, labels: Sequence[str]) -> Heights:
        """What is above some labels and how high, for the hierarchical error.

        Parameters
        ----------
        labels : sequence of str
            Names of a model's labels; of one that the hierarchy does not know nothing is above.

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "frogs"), ("frog", "frogs"), ("frogs", "animal"), ("cat", "animal")])
        >>> kinds.heights(["toad", "frog", "cat"]).between([0])
        array([0., 1., 2.])
        """
        return Heights(*self._graph(labels))

    def within(self, names: Iterable[str], hops: int) -> list[str]:
        """The concepts at most so many hops from some names, as `spelling` writes them ([D]'s 2-hop and 3-hop sets).

        Examples
        --------
        >>> kinds = Hierarchy([("toad", "frogs"), ("frog", "frogs"), ("frogs", "animal"), ("cat", "animal")])
        >>> kinds.within(["toad"], 2)
        ['toad', 'frogs', 'frog', 'animal']
        """
        concepts = self.concepts
        found = self.hops([*concepts, *names])
        start = np.arange(len(concepts), found.n_labels)
        near = found.around(start, FAR, upto=hops)[: len(concepts)]
        return [concepts[number] for number in np.flatnonzero(near < FAR)]

    def _graph(self, labels: Sequence[str]) -> tuple[Any, Any]:
        """Which concepts each label means, and the pairs of child and parent, as matrices."""
        from scipy.sparse import csr_matrix

        n, meant = len(self._concepts), [self.senses(label) for label in labels]
        starts = np.concatenate([[0], np.cumsum([len(senses) for senses in meant], dtype=np.int64)])
        concepts = np.fromiter((concept for senses in meant for concept in senses), np.int64, starts[-1])
        children, parents = np.frombuffer(self._children, np.int32), np.frombuffer(self._parents, np.int32)
        pairs = csr_matrix((np.ones(len(children), bool), (children, parents)), shape=(n, n))
        return csr_matrix((np.ones(len(concepts), np.int8), concepts, starts), shape=(len(meant), n)), pairs

    def fingerprint(self) -> str:
        """8 hex digits that tell this hierarchy from others: of its pairs and names, in any order."""
        named = self.concepts
        names = {f"{name}\t={named[concept]}" for name, concepts in self._also.items() for concept in concepts}
        words = sorted({f"{child}\t{parent}" for child, parent in self.pairs()} | names)
        return f"{zlib.crc32(chr(10).join(words).encode()):08x}"

    def _concept(self, name: str) -> int:
        known = self._concepts.get(name)
        if known is not None:  # spelled already
            return known
        spelled = spelling(name)
        if not spelled:
            raise InputError("a concept has an empty name; give every concept a name")
        return self._concepts.setdefault(spelled, len(self._concepts))

    def _lists(self) -> tuple[Int32, Int32]:
        """Parents of every concept, concept after concept: (where they start, parents)."""
        children, parents = np.frombuffer(self._children, np.int32), np.frombuffer(self._parents, np.int32)
        order = np.argsort(children, kind="stable")
        starts = np.searchsorted(children[order], np.arange(len(self._concepts) + 1))
        return starts.astype(np.int32), parents[order]
