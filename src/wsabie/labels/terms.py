"""Labels as sets of terms: which vector stands for a label in training, and which labels a predicted term may mean.

Frome and others ("DeViSE", 2013, appendix A.2): a label is a synset, the terms of which have one vector each, whatever
they may mean. In training the first term's vector stands for the synset. A prediction takes the N = 4k nearest terms,
puts all synsets of a term in its place, leaves every synset at its first place alone, and keeps k.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float32, Int64
from wsabie.base.lists import Lists
from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.matching import match_labels
from wsabie.labels.vectors import Found, Vectors

Use = Literal["first", "random", "mean"]
USES: tuple[Use, ...] = ("first", "random", "mean")
Expand = Literal["all", "random"]
EXPANDS: tuple[Expand, ...] = ("all", "random")
Names = Sequence[Sequence[str]]
"""Terms of labels, the usual one first."""


def terms_of(labels: Sequence[str], knowledge: Knowledge | None = None) -> list[tuple[str, ...]]:
    """The terms of each label: the names of the concept that it means, or what stands between its commas.

    Examples
    --------
    >>> known = Knowledge()
    >>> known.add("n1", ["ballroom", "dance hall", "dance palace"])
    >>> terms_of(["n1", "toad, frog"], known)
    [('ballroom', 'dance hall', 'dance palace'), ('toad', 'frog')]
    """
    concepts = [None] * len(labels) if knowledge is None else match_labels(knowledge, labels).concepts
    found = []
    for label, concept in zip(labels, concepts, strict=True):
        names = () if concept is None or knowledge is None else knowledge.concept(concept).names
        found.append(names or tuple(name for piece in label.split(",") if (name := piece.strip())) or (label,))
    return found


def target_vectors(names: Names, vectors: Vectors, use: Use = "first", seed: int = 0) -> Found:
    """The vector of unit length that stands for each label, and which labels have none.

    Parameters
    ----------
    names : sequence of sequences of str
    vectors : Vectors
    use : {"first", "random", "mean"}
        The first term alone; one drawn from the terms that have a vector; the mean of these.
    seed : int
        Of the draw.

    Examples
    --------
    >>> words = Vectors(["crane", "heron"], np.array([[0, 2], [3, 4]], np.float32))
    >>> target_vectors([["crane"], ["bird", "heron"]], words)
    Found(table=array([[0., 1.]], dtype=float32), places=array([0]), missing=['bird'])
    >>> target_vectors([["crane"], ["bird", "heron"]], words, "mean").table[1]
    array([0.6, 0.8], dtype=float32)
    """
    rng = np.random.default_rng([seed, 3])
    rows, places, missing = [], [], []
    for place, terms in enumerate(names):
        found = [row for row in _vectors(terms[:1] if use == "first" else terms, vectors) if row is not None]
        if use == "random" and found:
            found = [found[int(rng.integers(len(found)))]]
        mean = _unit(np.mean(found, axis=0, dtype=np.float32)) if found else None
        if mean is None:
            missing.append(terms[0])
        else:
            rows.append(mean)
            places.append(place)
    table = np.stack(rows) if rows else np.empty((0, vectors.dim), np.float32)
    return Found(table, np.array(places, np.int64), missing)


class TermTable(NamedTuple):
    """Terms with a vector each, and the labels that each may mean.

    Attributes
    ----------
    names : list of str
    table : (n_terms, dim) float32
        Of unit length.
    term, label : (n_pairs,) int64
        The pairs of a term and a label that it may mean, by label.
    n_labels : int

    Examples
    --------
    >>> words = Vectors(["crane", "heron"], np.array([[0, 2], [3, 4]], np.float32))
    >>> known = TermTable.empty(2).with_labels([["crane"], ["crane", "lift"], ["heron"]], words)
    >>> known.names, known.term.tolist(), known.label.tolist()
    (['crane', 'heron'], [0, 0, 1], [0, 1, 2])
    """

    names: list[str]
    table: Float32
    term: Int64
    label: Int64
    n_labels: int

    @classmethod
    def empty(cls, dim: int) -> "TermTable":
        """No term and no label."""
        return cls([], np.empty((0, dim), np.float32), np.empty(0, np.int64), np.empty(0, np.int64), 0)

    def with_labels(self, names: Names, vectors: Vectors) -> "TermTable":
        """The same with further labels and their terms; terms without a vector are left out."""
        known = {name: row for row, name in enumerate(self.names)}
        rows, pairs = [], []
        for label, terms in enumerate(names, self.n_labels):
            mine = dict(zip(map(spelling, terms), _vectors(terms, vectors), strict=True))
            for name, row in mine.items():
                if name not in known and row is not None:
                    known[name] = len(known)
                    rows.append(row)
                if name in known:
                    pairs.append((known[name], label))
        term, label_of = np.array(pairs, np.int64).reshape(-1, 2).T
        return TermTable(
            list(known),
            np.concatenate([self.table, np.reshape(rows, (-1, vectors.dim))]).astype(np.float32),
            np.concatenate([self.term, term]),
            np.concatenate([self.label, label_of]),
            self.n_labels + len(names),
        )

    def known(self) -> Bool:
        """Which labels have a term, (n_labels,)."""
        known = np.zeros(self.n_labels, bool)
        known[self.label] = True
        return known

    def of(self, candidate: Bool) -> Int64:
        """The terms of some labels, ascending."""
        return np.unique(self.term[candidate[self.label]])

    def best(self, scores: Float32) -> Float32:
        """Scores of labels from those of terms, (n, n_terms): of each label's best term; -inf where it has none."""
        out = np.full((len(scores), self.n_labels), -np.inf, np.float32)
        if len(self.label):
            labels, starts = np.unique(self.label, return_index=True)
            out[:, labels] = np.maximum.reduceat(scores[:, self.term], starts, axis=1)
        return out

    def expanded(
        self,
        terms: Int64,
        scores: Float32,
        k: int,
        candidate: Bool,
        excluded: Lists | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Int64, Float32]:
        """The k first labels of lists of terms.

        Parameters
        ----------
        terms : (n, n_nearest) int64
            Best first; -1 where there are no more.
        scores : (n, n_nearest) float32
        k : int
        candidate : (n_labels,) bool
        excluded : Lists or None
            Labels that are no candidates of a row.
        rng : Generator or None
            Draws one of the labels that a term may mean; None: all of them, by number.

        Returns
        -------
        labels : (n, k) int64
            -1 where the terms mean fewer.
        scores : (n, k) float32
            Of the term that brought the label; -inf where there is none.
        """
        order = np.argsort(self.term, kind="stable")
        meant, starts = self.label[order], np.searchsorted(self.term[order], np.arange(len(self.names) + 1))
        bounds = pairwise(starts.tolist())
        meaning = [[y for y in meant[lo:hi].tolist() if candidate[y]] for lo, hi in bounds]
        ids, values = np.full((len(terms), k), -1, np.int64), np.full((len(terms), k), -np.inf, np.float32)
        for row in range(len(terms)):
            hidden = () if excluded is None else excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]
            first = dict.fromkeys(map(int, hidden), -np.inf)
            n_hidden = len(first)
            for term, score in zip(terms[row].tolist(), scores[row].tolist(), strict=True):
                for label in [] if term < 0 else _drawn(meaning[term], rng):
                    first.setdefault(label, score)
            found = list(first.items())[n_hidden : n_hidden + k]
            ids[row, : len(found)] = [label for label, _ in found]
            values[row, : len(found)] = [score for _, score in found]
        return ids, values


def _drawn(labels: list[int], rng: np.random.Generator | None) -> list[int]:
    return labels if rng is None or len(labels) < 2 else [labels[int(rng.integers(len(labels)))]]


def _vectors(terms: Sequence[str], vectors: Vectors) -> Iterator[Float32 | None]:
    """The vector of each term at unit length, or None."""
    for term in terms:
        found = vectors.of([term]).table
        yield _unit(found[0]) if len(found) else None


def _unit(vector: Any) -> Float32 | None:
    """The vector at unit length; None where it has no length."""
    length = float(np.sqrt(np.dot(vector, vector)))
    return np.asarray(vector / length, np.float32) if length > 0 else None
