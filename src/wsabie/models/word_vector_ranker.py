"""Base of models that map rows to points among word vectors and rank labels by their terms."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Self

import numpy as np
from sklearn.base import TransformerMixin

from wsabie.core.arrays import Array, Float32, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import build_exclusion_lists
from wsabie.core.validation import check_positive_integer
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.models.base.label_model import Candidates, Exclusion, Ranking
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.search.exact_index import ExactIndex
from wsabie.storage.schema_validation import Count, check_array, read_config
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.word_vectors import (
    TermExpansion,
    TermSelection,
    TermTable,
    VectorLookup,
    WordVectors,
    compute_target_vectors,
    list_label_terms,
)


@dataclass(frozen=True)
class LabelTermsConfig:
    """The part of a folder's config with the terms of labels."""

    terms: list[str]
    missing: list[str]
    n_labels: Count


@dataclass(eq=False, repr=False)
class WordVectorRanker(TransformerMixin, ScoreRanker):  # type: ignore[misc]
    """Base of models that map rows to points among word vectors; a subclass has `_compute_points`.

    Attributes
    ----------
    terms_ : TermTable
    missing_ : list of str
        Labels without a vector: they are never predicted.
    """

    vectors: WordVectors | None = None
    _: KW_ONLY
    knowledge: KnowledgeGraph | None = None
    labels: Sequence[str] = ()
    use: TermSelection = "first"
    expand: TermExpansion = "all"
    terms_per_label: int = 4
    threads: int | None = None
    seed: int = 0
    terms_: TermTable = field(init=False)
    missing_: list[str] = field(init=False)

    @abstractmethod
    def _compute_points(self, inputs: FeatureMatrix) -> Float32:
        """Return the points (n, dim) float32 of checked rows."""

    def transform(self, X: Matrix) -> Float32:
        """Return the points of rows among the word vectors, not of unit length.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, dim) float32

        Raises
        ------
        InputError
            Another width than the model's, or values that are not finite.
        """
        return self._compute_points(self._check_rows(X))

    def compute_targets(self, labels: Sequence[str]) -> VectorLookup:
        """Return the target vectors of some labels in training, and the labels without one.

        Parameters
        ----------
        labels : sequence of str
            Names.

        Returns
        -------
        VectorLookup

        Raises
        ------
        InputError
            The model has no word vectors.
        """
        self.check_parameters()
        names = list_label_terms(labels, self.knowledge)
        targets = compute_target_vectors(names, self.vectors, self.use, self.seed)  # type: ignore[arg-type]  # checked
        return targets._replace(missing=_list_missing(labels, targets.positions))

    def add_labels(self, labels: Sequence[str], vectors: WordVectors, knowledge: KnowledgeGraph | None = None) -> Self:
        """Add labels without training rows, which are then ranked too.

        Parameters
        ----------
        labels : sequence of str
            New names; they get the next numbers.
        vectors : WordVectors
            Word vectors that the model was fitted with.
        knowledge : KnowledgeGraph or None
            Gives the terms of the labels; None: the terms are the parts between commas.

        Raises
        ------
        InputError
            The model has a label already, or the vectors have other dimensions.
        """
        self._check_fitted()
        require(isinstance(vectors, WordVectors), "vectors are the word vectors that wsabie.read_word_vectors reads")
        if vectors.dim != self.terms_.table.shape[1]:
            fact = f"the word vectors have {vectors.dim} dimensions but those of the model {self.terms_.table.shape[1]}"
            raise InputError(f"{fact}; give the ones that it was fitted with")
        vocabulary = self.vocabulary_.copy()
        vocabulary.add(labels)
        names = list_label_terms(labels, knowledge)
        targets = compute_target_vectors(names, vectors, self.use, self.seed)
        self._add_terms(self.terms_, names, targets.positions, vectors)
        self.vocabulary_, self.missing_ = vocabulary, [*self.missing_, *_list_missing(labels, targets.positions)]
        return self

    def rank(self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None) -> Ranking:
        """Return the k best labels of each row by its nearest terms (Frome et al. 2013, A.2).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are not candidates for a row (non-zero entries).
        candidates : list of label names or numbers, or None
            Only these labels and their terms, with or without training rows.

        Returns
        -------
        ids : (n, k) int64, best first; -1 where the nearest `terms_per_label` * k terms mean fewer than k labels
        scores : (n, k) float32, cosines of the terms; -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is not a label.
        """
        k, points = check_positive_integer(k, "k"), self.transform(X)
        candidate = ~self._find_hidden(candidates)
        hidden = None if exclude is None else build_exclusion_lists(exclude, len(points), len(self.vocabulary_))
        n, allowed_terms = self.terms_per_label * k, self.terms_.select_terms(candidate)
        terms, scores = self._index().top_k(points, n, candidates=allowed_terms, threads=self.threads)
        rng = np.random.default_rng([self.seed, 4]) if self.expand == "random" else None
        return self.terms_.expand_terms(terms, scores, k, candidate, hidden, rng)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        """Return the cosine of each label's nearest term."""
        points = self._compute_points(inputs)
        lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
        points = points / np.maximum(lengths, 1e-30)[:, None]
        return self.terms_.compute_best_scores(np.asarray(points @ self.terms_.table.T, np.float32))

    @property
    def label_vectors(self) -> Float32:
        """Mean vector of each label's terms, (n_labels, dim) float32; zeros if it has none."""
        self._check_fitted()
        table = np.zeros((self.terms_.n_labels, self.terms_.table.shape[1]), np.float32)
        np.add.at(table, self.terms_.label, self.terms_.table[self.terms_.term])
        counts = np.bincount(self.terms_.label, minlength=len(table))
        return table / np.maximum(counts, 1).astype(np.float32)[:, None]

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        require(
            isinstance(self.vectors, WordVectors) and len(self.vectors) > 0,
            f"a model of kind {self.kind} needs word vectors; give those that "
            "wsabie.read_word_vectors reads (`vectors=FILE`)",
        )
        problem = "knowledge says which terms a label has; give what wsabie.read_knowledge_graph reads, or None"
        require(self.knowledge is None or isinstance(self.knowledge, KnowledgeGraph), problem)
        several = isinstance(self.labels, (Sequence, np.ndarray)) and not isinstance(self.labels, str)
        are_names = several and all(isinstance(name, str) for name in self.labels)
        require(are_names, f"labels are {repr(self.labels)[:60]}; give a list of names")

    def _check_loaded(self) -> None:
        probe = copy(self)
        probe.vectors = WordVectors(["word"], np.ones((1, 1), np.float32))  # a folder keeps none
        probe.check_parameters()

    def facts(self) -> JsonObject:
        """Return sizes and figures of the model, JSON-able.

        Returns
        -------
        dict
        """
        return {
            **super().facts(),
            "labels_with_a_vector": len(np.unique(self.terms_.label)),
            "terms": len(self.terms_.names),
            "dimensions": int(self.terms_.table.shape[1]),
        }

    # ---- for subclasses

    def _collect_targets(self, targets_: Matrix) -> tuple[Float32, Int64]:
        """Return vectors and numbers of the rows' labels; set the terms, and add labels without rows."""
        self.vocabulary_.add(name for name in dict.fromkeys(self.labels) if name not in self.vocabulary_)
        labels = list(self.vocabulary_)
        targets = self.compute_targets(labels)
        vectors: WordVectors = self.vectors  # type: ignore[assignment]  # checked
        names = list_label_terms(labels, self.knowledge)
        self._add_terms(TermTable.empty(vectors.dim), names, targets.positions, vectors)
        self.missing_ = targets.missing
        counts = np.bincount(targets_.indices[targets_.data > 0], minlength=len(labels))
        has_rows = counts[targets.positions] > 0
        if not has_rows.any():
            n = int((counts > 0).sum())
            examples = ", ".join(map(repr, targets.missing[:3]))
            fact = f"none of the {n:,} labels of the rows has a word vector, such as {examples}"
            raise InputError(f"{fact}; give vectors of their words, or knowledge that names them")
        return targets.table[has_rows], targets.positions[has_rows]

    def _add_terms(self, terms: TermTable, names: Sequence[Sequence[str]], places: Int64, vectors: WordVectors) -> None:
        """Add all terms of the labels that have a target vector."""
        label_ids = set(places.tolist())
        target_names = [label_terms if y in label_ids else () for y, label_terms in enumerate(names)]
        self.terms_ = terms.with_labels(target_names, vectors)

    def _index(self) -> ExactIndex:
        """Return the search index of the terms, built once for a fitted model."""
        return self._build_once("_searched", self.terms_, lambda: ExactIndex(self.terms_.table, similarity="cosine"))

    def _dump_config(self) -> JsonObject:
        config = super()._dump_config()
        config["parameters"] |= {"vectors": None, "knowledge": None}
        return {**config, "terms": self.terms_.names, "missing": self.missing_, "n_labels": self.terms_.n_labels}

    def _dump_tensors(self) -> dict[str, Array]:
        terms: dict[str, Array] = {"terms": self.terms_.table, "term": self.terms_.term, "label": self.terms_.label}
        return {**super()._dump_tensors(), **terms}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        fields, n = read_config(LabelTermsConfig, config), len(self.vocabulary_)
        if fields.n_labels != n:
            raise ValueError(f"the sizes of n_labels and label_names do not agree: {fields.n_labels} and {n}")
        table = check_array(tensors, "terms", "float32", (len(fields.terms), None))
        term = check_array(tensors, "term", "int64", (None,), upper_bound=len(table))
        label = check_array(tensors, "label", "int64", term.shape, upper_bound=n)
        self.terms_, self.missing_ = TermTable(fields.terms, table, term, label, n), fields.missing


def _list_missing(labels: Sequence[str], places: Int64) -> list[str]:
    present_ids = set(places.tolist())
    return [label for y, label in enumerate(labels) if y not in present_ids]
