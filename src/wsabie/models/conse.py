"""Convex combination of label vectors by a classifier (Norouzi et al. 2014)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64, Matrix
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix
from wsabie.models.base.row_scaling import Scaling
from wsabie.models.base.score_ranker import OneStepRanker
from wsabie.models.softmax import Softmax
from wsabie.models.word_vector_ranker import WordVectorRanker
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array


@dataclass(kw_only=True, eq=False, repr=False)
class Conse(WordVectorRanker, OneStepRanker):
    """Convex combination of label vectors (Norouzi et al. 2014); only a classifier is trained.

    f(x) = sum of p(y | x) s(y) over the T most probable labels, divided by the sum of their probabilities; s(y) is the
    vector of a label. The labels whose terms are nearest to f(x) are predicted.

    Parameters
    ----------
    vectors, knowledge, labels, use, expand, terms_per_label
        See `Devise`.
    top : int, default 10
        T.
    C, max_iter, scaling
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
    >>> from wsabie import WordVectors
    >>> words = WordVectors(["red", "green", "lime"], np.array([[1, 0, 0], [0, 1, 0], [0, 0.9, 0.4]], np.float32))
    >>> X = np.repeat(np.eye(3), 10, axis=0)[:20]
    >>> model = Conse(words, labels=["lime"], top=1).fit(X, ["red"] * 10 + ["green"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10]], k=1, candidates=["red", "lime"])]
    ['red', 'lime']
    """

    kind = "conse"
    top: int = 10
    C: float = 10.0
    max_iter: int = 200
    scaling: Scaling = "auto"

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        self.targets_, label_ids = self._collect_targets(targets)
        names = self.vocabulary_.names(label_ids)
        classifier = Softmax(self.C, max_iter=self.max_iter, scaling=self.scaling)
        rows = convert_to_matrix(inputs, self.n_features_in_)
        self.classifier_ = classifier.fit(rows, targets[:, label_ids], label_names=names, progress=progress)
        self.classifier_.feature_names_in_ = self.feature_names_in_

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.classifier_.n_bytes + self.targets_.nbytes + self.terms_.table.nbytes)

    def _compute_points(self, inputs: FeatureMatrix) -> Float32:
        scores = self.classifier_._compute_scores(inputs)
        top = min(self.top, scores.shape[1])
        best: Int64 = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        chances = np.exp(np.take_along_axis(scores, best, axis=1))
        chances /= chances.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("ij,ijd->id", chances, self.targets_[best]), np.float32)

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "classifier": self.classifier_.to_state().config}

    def _dump_tensors(self) -> dict[str, Array]:
        classifier = self.classifier_.to_state().add_prefix("classifier")
        return {**super()._dump_tensors(), "targets": self.targets_, **classifier}

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        model: Self = super().from_state(state)
        classifier = state.select_prefix("classifier", Softmax.kind, state.config["classifier"])
        model.classifier_ = Softmax.from_state(classifier)
        size = len(model.classifier_.vocabulary_), model.terms_.table.shape[1]
        model.targets_ = check_array(state.tensors, "targets", "float32", size)
        return model
