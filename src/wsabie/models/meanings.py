"""What models share whose rows become points among word vectors: labels are ranked by their terms, seen or not."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin

from wsabie.base.arrays import Bool, Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import excluded_lists
from wsabie.base.validation import require, whole_number
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.terms import EXPANDS, USES, Expand, TermTable, Use, target_vectors, terms_of
from wsabie.labels.vectors import Vectors
from wsabie.models.inputs import Inputs
from wsabie.models.parameters import check_run
from wsabie.models.scored import ScoreRanker
from wsabie.storage.schema import Count, check_array, read_config

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex


class Meant(NamedTuple):
    """Labels that have a vector, and those that have none.

    Attributes
    ----------
    table : (n_found, dim) float32
        Of unit length.
    places : (n_found,) int64
        Which of the labels they are of.
    missing : list of str
        Labels without a vector.
    """

    table: Float32
    places: Int64
    missing: list[str]


@dataclass(frozen=True)
class TermsConfig:
    """The part of a folder's config that says which terms labels mean."""

    terms: list[str]
    missing: list[str]
    n_labels: Count


class MeaningRanker(TransformerMixin, ScoreRanker):  # type: ignore[misc]
    """Base of models that bring a row to a point among word vectors; a subclass writes `fit` and `_points`.

    Attributes
    ----------
    terms_ : TermTable
    missing_ : list of str
        Labels without a vector: they are never predicted.
    """

    vectors: Vectors | None
    knowledge: Knowledge | None
    labels: Sequence[str]
    use: Use
    expand: Expand
    terms_per_label: int
    threads: int | None
    seed: int
    terms_: TermTable
    missing_: list[str]

    @abstractmethod
    def _points(self, inputs: Inputs) -> Float32:
        """Points (n, dim) float32 of checked rows."""

    def transform(self, X: Any) -> Float32:
        """Points of rows among the word vectors, (n, dim) float32, not of unit length.

        Raises
        ------
        InputError
            Another width than the model's, or values that are not finite.
        """
        return self._points(self._checked(X))

    def meant(self, labels: Sequence[str]) -> Meant:
        """What stands for some labels in training, by the model's word vectors and knowledge.

        Raises
        ------
        InputError
            The model has no word vectors.
        """
        self.check_parameters()
        names = terms_of(labels, self.knowledge)
        found = target_vectors(names, self.vectors, self.use, self.seed)  # type: ignore[arg-type]  # checked
        return Meant(found.table, found.places, _others(labels, found.places))

    def add_labels(self, labels: Sequence[str], vectors: Vectors, knowledge: Knowledge | None = None) -> Self:
        """Make labels known that no row had: from now on they are ranked too.

        Parameters
        ----------
        labels : sequence of str
            New names; they get the next numbers.
        vectors : Vectors
            Those that the model was fitted with.
        knowledge : Knowledge or None
            What the labels mean; None: what stands between their commas.

        Raises
        ------
        InputError
            A label is known already, or the vectors have other dimensions.
        """
        self._check_fitted()
        require(isinstance(vectors, Vectors), "vectors are the word vectors that wsabie.read_vectors reads")
        if vectors.dim != self.terms_.table.shape[1]:
            raise InputError(
                f"the word vectors have {vectors.dim} dimensions but those of the model "
                f"{self.terms_.table.shape[1]}; give the ones that it was fitted with"
            )
        vocabulary = self.vocabulary_.copy()
        vocabulary.add(labels)
        names = terms_of(labels, knowledge)
        found = target_vectors(names, vectors, self.use, self.seed)
        self._know(self.terms_, names, found.places, vectors)
        self.vocabulary_, self.missing_ = vocabulary, [*self.missing_, *_others(labels, found.places)]
        return self

    def rank(self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None) -> tuple[Int64, Float32]:
        """The k best labels of each row: those that its nearest terms mean ([D] A.2).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries).
        candidates : list of label names or numbers, or None
            Only these labels, and their terms: those of training, those that no row had, or any others.

        Returns
        -------
        ids : (n, k) int64, best first; -1 where the nearest `terms_per_label` * k terms mean fewer than k labels
        scores : (n, k) float32, cosines of the terms; -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is no label.
        """
        k, points = whole_number(k, "k"), self.transform(X)
        candidate = self._candidate(candidates)
        hidden = None if exclude is None else excluded_lists(exclude, len(points), len(self.vocabulary_))
        terms, scores = self._index().top_k(
            points, self.terms_per_label * k, candidates=self.terms_.of(candidate), threads=self.threads
        )
        rng = np.random.default_rng([self.seed, 4]) if self.expand == "random" else None
        return self.terms_.expanded(terms, scores, k, candidate, hidden, rng)

    def _scores(self, inputs: Inputs) -> Float32:
        """The cosine of each label's nearest term."""
        points = self._points(inputs)
        lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
        points = points / np.maximum(lengths, 1e-30)[:, None]
        return self.terms_.best(np.asarray(points @ self.terms_.table.T, np.float32))

    @property
    def label_vectors(self) -> Float32:
        """The mean of each label's terms, (n_labels, dim) float32; zeros where it has none."""
        self._check_fitted()
        table = np.zeros((self.terms_.n_labels, self.terms_.table.shape[1]), np.float32)
        np.add.at(table, self.terms_.label, self.terms_.table[self.terms_.term])
        counts = np.bincount(self.terms_.label, minlength=len(table))
        return table / np.maximum(counts, 1).astype(np.float32)[:, None]

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        super().check_parameters()
        require(
            isinstance(self.vectors, Vectors) and len(self.vectors) > 0,
            f"a model of kind {self.kind} needs word vectors; give those that "
            "wsabie.read_vectors reads (--vectors FILE)",
        )
        require(
            self.knowledge is None or isinstance(self.knowledge, Knowledge),
            "knowledge says which terms a label has; give what wsabie.read_knowledge reads, or None",
        )
        require(self.use in USES, f"use is {self.use!r}; choose one of {', '.join(USES)}")
        require(self.expand in EXPANDS, f"expand is {self.expand!r}; choose one of {', '.join(EXPANDS)}")
        whole_number(self.terms_per_label, "terms_per_label")
        several = isinstance(self.labels, (Sequence, np.ndarray)) and not isinstance(self.labels, str)
        named = several and all(isinstance(name, str) for name in self.labels)
        require(named, f"labels are {repr(self.labels)[:60]}; give a list of names")
        check_run(self.threads, self.seed)

    def _check_loaded(self) -> None:
        whole = copy(self)
        whole.vectors = Vectors(["word"], np.ones((1, 1), np.float32))  # a folder keeps none
        whole.check_parameters()

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able."""
        known = self.terms_.known()
        return {
            **super().facts(),
            "labels_with_a_vector": int(known.sum()),
            "terms": len(self.terms_.names),
            "dimensions": int(self.terms_.table.shape[1]),
        }

    # ---- for subclasses

    def _meant_in(self, targets_: Matrix) -> tuple[Float32, Int64]:
        """Vectors and numbers of the labels that rows have; sets terms, and takes in labels that no row has.

        Raises
        ------
        InputError
            No label that a row has has a vector.
        """
        self.vocabulary_.add(name for name in dict.fromkeys(self.labels) if name not in self.vocabulary_)
        labels = list(self.vocabulary_)
        found = self.meant(labels)
        vectors: Vectors = self.vectors  # type: ignore[assignment]  # checked
        self._know(TermTable.empty(vectors.dim), terms_of(labels, self.knowledge), found.places, vectors)
        self.missing_ = found.missing
        counts = np.bincount(targets_.indices[targets_.data > 0], minlength=len(labels))
        seen = counts[found.places] > 0
        if not seen.any():
            n = int((counts > 0).sum())
            told = ", ".join(map(repr, found.missing[:3]))
            raise InputError(
                f"none of the {n:,} labels of the rows has a word vector, such as {told}; give vectors of their words, "
                "or knowledge that names them"
            )
        return found.table[seen], found.places[seen]

    def _know(self, terms: TermTable, names: Sequence[Sequence[str]], places: Int64, vectors: Vectors) -> None:
        """Labels with a target vector become known by all their terms."""
        known = set(places.tolist())
        self.terms_ = terms.with_labels([given if y in known else () for y, given in enumerate(names)], vectors)
        self.__dict__.pop("_searched", None)

    def _candidate(self, candidates: Any) -> Bool:
        if candidates is None:
            return np.ones(len(self.vocabulary_), bool)
        candidate = np.zeros(len(self.vocabulary_), bool)
        candidate[self._label_ids(candidates)] = True
        return candidate

    def _index(self) -> "ExactIndex":
        """The terms made ready for searches, once for a fitted model."""
        from wsabie.search.exact import ExactIndex

        searched: tuple[TermTable, ExactIndex] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.terms_:
            searched = self.terms_, ExactIndex(self.terms_.table, similarity="cosine")
            self._searched = searched
        return searched[1]

    def _described(self) -> dict[str, Any]:
        """Word vectors and knowledge are not saved: the terms are what remains of them."""
        config = super()._described()
        config["parameters"] |= {"vectors": None, "knowledge": None}
        return {**config, "terms": self.terms_.names, "missing": self.missing_, "n_labels": self.terms_.n_labels}

    def _term_tensors(self) -> dict[str, Any]:
        """The arrays that the terms are saved as; `_restore_terms` reads them."""
        return {"terms": self.terms_.table, "term": self.terms_.term, "label": self.terms_.label}

    def _restore_terms(self, config: dict[str, Any], t: Any) -> None:
        fields, n = read_config(TermsConfig, config), len(self.vocabulary_)
        if fields.n_labels != n:
            raise ValueError(f"the sizes of n_labels and label_names do not agree: {fields.n_labels} and {n}")
        table = check_array(t, "terms", "float32", (len(fields.terms), None))
        term = check_array(t, "term", "int64", (None,), below=len(table))
        label = check_array(t, "label", "int64", term.shape, below=n)
        self.terms_, self.missing_ = TermTable(fields.terms, table, term, label, n), fields.missing

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_searched"}


def _others(labels: Sequence[str], places: Int64) -> list[str]:
    there = set(places.tolist())
    return [label for y, label in enumerate(labels) if y not in there]
