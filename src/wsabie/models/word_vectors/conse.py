"""ConSE: a row's point is the mean of its best labels' word vectors, weighted by probability."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Float32, Int64
from wsabie.core.progress import SILENT, Progress
from wsabie.core.validation import check_positive_integer
from wsabie.models.base.feature_matrix import Inputs
from wsabie.models.base.row_scaling import Rows
from wsabie.models.linear.softmax import Softmax
from wsabie.models.word_vectors.word_vector_ranker import WordVectorRanker
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.label_terms import TermExpansion, TermSelection
from wsabie.vocabulary.word_vectors import WordVectors


class Conse(WordVectorRanker):
    """Convex combination of label vectors (Norouzi et al. 2014); only a classifier is trained.

    f(x) = sum of p(y | x) s(y) over the T most probable labels, divided by the sum of their probabilities; s(y) is the
    vector of a label. The labels whose terms are nearest to f(x) are predicted.

    Parameters
    ----------
    vectors, knowledge, labels, use, expand, terms_per_label
        See `Devise`.
    top : int, default 10
        T.
    C, max_iter, rows
        Parameters of the classifier, see `Softmax`.
    threads, seed
        See `Wsabie`.

    Attributes
    ----------
    classifier_ : Softmax
        Classifier of the labels that rows have.
    targets_ : (n_trained, dim) float32
        Vectors of these labels.
    terms_, missing_, vocabulary_
        See `Devise`.

    Examples
    --------
    >>> words = WordVectors(["red", "green", "lime"], np.array([[1, 0, 0], [0, 1, 0], [0, 0.9, 0.4]], np.float32))
    >>> X = np.repeat(np.eye(3), 10, axis=0)[:20]
    >>> model = Conse(words, labels=["lime"], top=1).fit(X, ["red"] * 10 + ["green"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1, candidates=["red", "lime"])]
    ['red', 'lime']
    """

    kind = "conse"

    def __init__(
        self,
        vectors: WordVectors | None = None,
        *,
        knowledge: KnowledgeGraph | None = None,
        labels: Sequence[str] = (),
        use: TermSelection = "first",
        expand: TermExpansion = "all",
        terms_per_label: int = 4,
        top: int = 10,
        C: float = 10.0,
        max_iter: int = 200,
        rows: Rows = "auto",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        self.vectors = vectors
        self.knowledge = knowledge
        self.labels = labels
        self.use = use
        self.expand = expand
        self.terms_per_label = terms_per_label
        self.top = top
        self.C = C
        self.max_iter = max_iter
        self.rows = rows
        self.threads = threads
        self.seed = seed

    def fit(self, X: Any, Y: Any, *, label_names: Sequence[str] | None = None, progress: Progress = SILENT) -> Self:
        """Train the classifier on the labels that have a vector; see `Softmax.fit`.

        Raises
        ------
        InputError
            Data or parameters that cannot be used, or no label has a vector.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        _, targets = fitted._opened(X, Y, label_names)
        fitted.targets_, label_ids = fitted._collect_targets(targets)
        names = [list(fitted.vocabulary_)[y] for y in label_ids]
        classifier = Softmax(self.C, max_iter=self.max_iter, rows=self.rows)
        fitted.classifier_ = classifier.fit(X, targets[:, label_ids], label_names=names, progress=progress)
        self.__dict__.update(fitted.__dict__)
        return self

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        check_positive_integer(self.top, "top")
        Softmax(self.C, max_iter=self.max_iter).check_parameters()

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.classifier_.n_bytes + self.targets_.nbytes + self.terms_.table.nbytes)

    def _points(self, inputs: Inputs) -> Float32:
        scores = self.classifier_._scores(inputs)
        top = min(self.top, scores.shape[1])
        best: Int64 = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        chances = np.exp(np.take_along_axis(scores, best, axis=1))
        chances /= chances.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("ij,ijd->id", chances, self.targets_[best]), np.float32)

    def to_parts(self) -> ModelState:
        """Return the model as JSON-able config and named arrays."""
        inner = self.classifier_.to_parts()
        tensors = {"targets": self.targets_, **self._term_tensors(), **inner.nested("classifier")}
        return ModelState(self.kind, {**self._dump_config(), "classifier": inner.config}, tensors)

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the model from its parts."""
        config = parts.config
        model = cls._restore(config)
        model._restore_terms(config, parts.tensors)
        model.classifier_ = Softmax.from_parts(parts.under("classifier", Softmax.kind, config["classifier"]))
        size = len(model.classifier_.vocabulary_), model.terms_.table.shape[1]
        model.targets_ = check_array(parts.tensors, "targets", "float32", size)
        return model
