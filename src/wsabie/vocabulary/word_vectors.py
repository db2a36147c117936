"""Word vectors, pretrained or learned from text, of names of several words and of the terms of labels.

A name is first looked up as one entry, its words joined by underscores as files of vectors write phrases
("great_white_shark"). Otherwise its vector is the mean of its words, all of which must be known. A word is looked up as
it is written, then in small letters, then capitalised, because some files hold "paris" and some "Paris".

A label is a set of terms. In Frome et al. 2013 ("DeViSE"), appendix A.2, it is a synset whose terms have one vector
each, whatever they may mean. In training the vector of the first term stands for the synset. A prediction takes the
N = 4k nearest terms, replaces each term by all its synsets, keeps the best rank of every synset, and returns the first
k.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Bool, Float32, Int64
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.core.label_lists import LabelLists
from wsabie.vocabulary.concept_hierarchy import make_lookup_key
from wsabie.vocabulary.concept_matching import match_labels
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_names import normalise_label_name
from wsabie.vocabulary.name_suggestions import format_unknown_label


class VectorLookup(NamedTuple):
    """Vectors of names, and the names without one; returned by `WordVectors.look_up`.

    Attributes
    ----------
    table : (n_found, dim) float32
    positions : (n_found,) int64
        Position of each vector's name among the names.
    missing : list of str
        Names without a vector.
    """

    table: Float32
    positions: Int64
    missing: list[str]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, Float32 | None]], dim: int) -> "VectorLookup":
        """Build a lookup from pairs of a name and its vector, (dim,), or None."""
        rows, positions, missing = [], [], []
        for position, (name, vector) in enumerate(pairs):
            if vector is None:
                missing.append(name)
            else:
                rows.append(vector)
                positions.append(position)
        table = np.stack(rows) if rows else np.empty((0, dim), np.float32)
        return cls(table, np.array(positions, np.int64), missing)


class WordVectors:
    """Words and their vectors.

    Parameters
    ----------
    words : sequence of str
        Each once.
    table : (n_words, dim) float32
        May be mapped from a file; it is not copied.
    skipped : dict of str to int or None
        Number of words of the file that were left out, by reason.

    Raises
    ------
    InputError
        The table does not fit the words, or a word comes twice.

    Examples
    --------
    >>> vectors = WordVectors(["white", "shark", "sea_lion"], np.array([[1, 0], [0, 1], [5, 5]], np.float32))
    >>> vectors.look_up(["White shark", "sea lion", "sea"])
    VectorLookup(table=array([[0.5, 0.5], [5. , 5. ]], dtype=float32), positions=array([0, 1]), missing=['sea'])
    """

    def __init__(self, words: Sequence[str], table: Float32, skipped: dict[str, int] | None = None) -> None:
        if table.ndim != 2 or table.dtype != np.float32 or len(table) != len(words):
            problem = f"{len(words):,} words do not fit a table of {table.dtype} and shape {table.shape}"
            raise InputError(f"{problem}; give one float32 vector a word")
        self.words, self.table, self.skipped = words, table, skipped or {}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.find_rows(name))

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.table.shape[1])

    def find_rows(self, name: str) -> list[int]:
        """Return the rows whose mean is the vector of a name: one, or one per word; none if it is unknown.

        Parameters
        ----------
        name : str
            A word or several; an underscore is a blank.

        Returns
        -------
        list of int

        Examples
        --------
        >>> WordVectors(["new", "york", "New_York"], np.eye(3, dtype=np.float32)).find_rows("new york")
        [2]
        """
        pieces = normalise_label_name(name.replace("_", " ")).split(" ")
        phrase_row = self._find_row("_".join(pieces))
        if phrase_row is not None:
            return [phrase_row]
        rows = [row for piece in pieces if (row := self._find_row(piece)) is not None]
        return rows if len(rows) == len(pieces) else []

    def look_up(self, names: Iterable[str]) -> VectorLookup:
        """Look up the vectors of some names, and list the names without one.

        Parameters
        ----------
        names : iterable of str

        Returns
        -------
        VectorLookup
        """
        pairs = ((name, self._average_rows(rows) if (rows := self.find_rows(name)) else None) for name in names)
        return VectorLookup.from_pairs(pairs, self.dim)

    def vector(self, name: str) -> Float32:
        """Return the vector of a name.

        Parameters
        ----------
        name : str
            A word, or several, whose vector is the mean of theirs unless the phrase has one.

        Returns
        -------
        (dim,) float32

        Raises
        ------
        UnknownLabelError
            It has none; the message suggests similar words.
        """
        rows = self.find_rows(name)
        if not rows:
            unknown = next(
                (word for word in normalise_label_name(name).split(" ") if self._find_row(word) is None), name
            )
            raise UnknownLabelError(format_unknown_label(unknown, self.words, "word"))
        return self._average_rows(rows)

    def _average_rows(self, rows: list[int]) -> Float32:
        return np.asarray(np.mean(self.table[rows], axis=0, dtype=np.float32))

    def _find_row(self, word: str) -> int | None:
        ids = self._ids
        for variant in (word, word.lower(), "_".join(map(str.capitalize, word.split("_")))):
            if (row := ids.get(variant)) is not None:
                return row
        return None

    @cached_property
    def _ids(self) -> dict[str, int]:
        ids: dict[str, int] = {word: row for row, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            duplicate = next(word for row, word in enumerate(self.words) if ids[word] != row)
            raise InputError(f"the word {duplicate!r} comes twice; give every word one vector")
        return ids


TermSelection = Literal["first", "random", "mean"]
TermExpansion = Literal["all", "random"]
TermLists = Sequence[Sequence[str]]
"""Terms of labels, the usual one first."""


def list_label_terms(labels: Sequence[str], knowledge: KnowledgeGraph | None = None) -> list[tuple[str, ...]]:
    """List the terms of each label: the names of its concept, or the parts between its commas.

    Examples
    --------
    >>> graph = KnowledgeGraph()
    >>> graph.add("n1", ["ballroom", "dance hall", "dance palace"])
    >>> list_label_terms(["n1", "toad, frog"], graph)
    [('ballroom', 'dance hall', 'dance palace'), ('toad', 'frog')]
    """
    concepts = [None] * len(labels) if knowledge is None else match_labels(knowledge, labels).concepts
    term_lists = []
    for label, concept in zip(labels, concepts, strict=True):
        names = () if concept is None or knowledge is None else knowledge.concept(concept).names
        term_lists.append(names or tuple(name for piece in label.split(",") if (name := piece.strip())) or (label,))
    return term_lists


def compute_target_vectors(
    names: TermLists, vectors: WordVectors, use: TermSelection = "first", seed: int = 0
) -> VectorLookup:
    """Compute the unit vector that stands for each label, and list the labels without one.

    Parameters
    ----------
    names : sequence of sequences of str
    vectors : WordVectors
    use : {"first", "random", "mean"}
        The first term alone; one drawn from the terms that have a vector; the mean of these.
    seed : int
        Seed of the draw.

    Examples
    --------
    >>> words = WordVectors(["crane", "heron"], np.array([[0, 2], [3, 4]], np.float32))
    >>> compute_target_vectors([["crane"], ["bird", "heron"]], words)
    VectorLookup(table=array([[0., 1.]], dtype=float32), positions=array([0]), missing=['bird'])
    >>> compute_target_vectors([["crane"], ["bird", "heron"]], words, "mean").table[1]
    array([0.6, 0.8], dtype=float32)
    """
    rng = np.random.default_rng([seed, 3])

    def compute_vector(terms: Sequence[str]) -> Float32 | None:
        terms = terms[:1] if use == "first" else terms
        term_vectors = [row for row in _look_up_vectors(terms, vectors) if row is not None]
        if use == "random" and term_vectors:
            term_vectors = [term_vectors[int(rng.integers(len(term_vectors)))]]
        return _scale_to_unit(np.mean(term_vectors, axis=0, dtype=np.float32)) if term_vectors else None

    return VectorLookup.from_pairs(((terms[0], compute_vector(terms)) for terms in names), vectors.dim)


class TermTable(NamedTuple):
    """Terms with one vector each, and the labels that each may mean.

    Attributes
    ----------
    names : list of str
    table : (n_terms, dim) float32
        Unit vectors.
    term, label : (n_pairs,) int64
        Pairs of a term and a label that it may mean, by label.
    n_labels : int

    Examples
    --------
    >>> words = WordVectors(["crane", "heron"], np.array([[0, 2], [3, 4]], np.float32))
    >>> terms = TermTable.empty(2).with_labels([["crane"], ["crane", "lift"], ["heron"]], words)
    >>> terms.names, terms.term.tolist(), terms.label.tolist()
    (['crane', 'heron'], [0, 0, 1], [0, 1, 2])
    """

    names: list[str]
    table: Float32
    term: Int64
    label: Int64
    n_labels: int

    @classmethod
    def empty(cls, dim: int) -> "TermTable":
        """Return a table without terms and labels."""
        return cls([], np.empty((0, dim), np.float32), np.empty(0, np.int64), np.empty(0, np.int64), 0)

    def with_labels(self, names: TermLists, vectors: WordVectors) -> "TermTable":
        """Return the table with further labels and their terms; terms without a vector are left out."""
        rows_by_name = {name: row for row, name in enumerate(self.names)}
        rows, pairs = [], []
        for label, terms in enumerate(names, self.n_labels):
            term_vectors = dict(zip(map(make_lookup_key, terms), _look_up_vectors(terms, vectors), strict=True))
            for name, row in term_vectors.items():
                if name not in rows_by_name and row is not None:
                    rows_by_name[name] = len(rows_by_name)
                    rows.append(row)
                if name in rows_by_name:
                    pairs.append((rows_by_name[name], label))
        term, label_of = np.array(pairs, np.int64).reshape(-1, 2).T
        return TermTable(
            list(rows_by_name),
            np.concatenate([self.table, np.reshape(rows, (-1, vectors.dim))]).astype(np.float32),
            np.concatenate([self.term, term]),
            np.concatenate([self.label, label_of]),
            self.n_labels + len(names),
        )

    def select_terms(self, candidate: Bool) -> Int64:
        """Return the terms of some labels, ascending."""
        return np.unique(self.term[candidate[self.label]])

    def compute_best_scores(self, scores: Float32) -> Float32:
        """Return scores of labels from those of terms, (n, n_terms): of the best term, -inf without one."""
        label_scores = np.full((len(scores), self.n_labels), -np.inf, np.float32)
        if len(self.label):
            labels, starts = np.unique(self.label, return_index=True)
            label_scores[:, labels] = np.maximum.reduceat(scores[:, self.term], starts, axis=1)
        return label_scores

    def expand_terms(
        self,
        terms: Int64,
        scores: Float32,
        k: int,
        candidate: Bool,
        excluded: LabelLists | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Int64, Float32]:
        """Return the first k labels of ranked lists of terms.

        Parameters
        ----------
        terms : (n, n_nearest) int64
            Best first; -1 fills up short lists.
        scores : (n, n_nearest) float32
        k : int
        candidate : (n_labels,) bool
        excluded : LabelLists or None
            Labels that are not candidates of their row.
        rng : Generator or None
            Draws one of the labels of a term; None: take all, by number.

        Returns
        -------
        labels : (n, k) int64
            -1 fills up rows with fewer labels.
        scores : (n, k) float32
            Score of the label's term; -inf without a label.
        """
        order = np.argsort(self.term, kind="stable")
        labels_by_term, starts = self.label[order], np.searchsorted(self.term[order], np.arange(len(self.names) + 1))
        bounds = pairwise(starts.tolist())
        candidates_by_term = [[y for y in labels_by_term[lo:hi].tolist() if candidate[y]] for lo, hi in bounds]
        ids, values = np.full((len(terms), k), -1, np.int64), np.full((len(terms), k), -np.inf, np.float32)
        for row in range(len(terms)):
            hidden = () if excluded is None else excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]
            score_by_label = dict.fromkeys(map(int, hidden), -np.inf)
            n_hidden = len(score_by_label)
            for term, score in zip(terms[row].tolist(), scores[row].tolist(), strict=True):
                labels = [] if term < 0 else candidates_by_term[term]
                if rng is not None and len(labels) > 1:
                    labels = [labels[int(rng.integers(len(labels)))]]
                for label in labels:
                    score_by_label.setdefault(label, score)
            ranked_labels = list(score_by_label.items())[n_hidden : n_hidden + k]
            ids[row, : len(ranked_labels)] = [label for label, _ in ranked_labels]
            values[row, : len(ranked_labels)] = [score for _, score in ranked_labels]
        return ids, values


def _look_up_vectors(terms: Sequence[str], vectors: WordVectors) -> Iterator[Float32 | None]:
    """Yield the unit vector of each term, or None."""
    for term in terms:
        table = vectors.look_up([term]).table
        yield _scale_to_unit(table[0]) if len(table) else None


def _scale_to_unit(vector: Float32) -> Float32 | None:
    """Scale a vector to unit length; None for a zero vector."""
    length = float(np.sqrt(np.dot(vector, vector)))
    return np.asarray(vector / length, np.float32) if length > 0 else None
