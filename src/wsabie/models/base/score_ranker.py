"""Base of the baselines: ranking in bounded memory from the scores of all labels."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from wsabie.core.arrays import Array, Bool, Matrix, count_rows
from wsabie.core.errors import require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import build_exclusion_lists
from wsabie.core.validation import check_positive_integer
from wsabie.models.base.feature_matrix import FeatureMatrix, iterate_row_ranges, slice_rows
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.label_model import Candidates, Exclusion, LabelModel, Ranking
from wsabie.models.base.row_scaling import RowScaling, Scaling


class ScoreRanker(LabelModel):
    """Base of models with a score per label; a subclass implements `fit` and `_compute_scores`."""

    def rank(self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None) -> Ranking:
        from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, hide_labels, scan_topk, sort_topk

        k = check_positive_integer(k, "k")
        inputs = self._check_rows(X)
        hidden = self._find_hidden(candidates)
        excluded = build_exclusion_lists(exclude, count_rows(inputs), len(self.vocabulary_))
        heap = allocate_heap(count_rows(inputs), k)
        for lo, hi in iterate_row_ranges(count_rows(inputs), len(self.vocabulary_)):
            tile = self._compute_scores(slice_rows(inputs, lo, hi))
            tile[:, hidden] = -np.inf
            hide_labels(tile, 0, excluded.part(lo, hi))
            has_nan = scan_topk(tile, 0, TopKHeap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
            require(not has_nan, f"a score of the rows {lo} to {hi - 1} is NaN; fit the model again on finite rows")
        sort_topk(heap, 0, count_rows(inputs))
        require(not np.isposinf(heap.scores[:, :1]).any(), "a score is infinite; fit the model again on finite rows")
        return heap.labels, heap.scores

    def score(self, X: Matrix, Y: Labels) -> float:
        """Return the mean average precision on rows with labels; rows without labels do not count.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
            Labels that the model lacks do not count.

        Returns
        -------
        float

        Raises
        ------
        InputError
            Another width than the model's, or no row has a label that the model knows.
        """
        from wsabie.evaluation.score_evaluation import evaluate_scores

        inputs = self._check_rows(X)
        truth = self._build_truth(Y, count_rows(inputs))
        ranges = iterate_row_ranges(count_rows(inputs), len(self.vocabulary_))
        blocks = ((lo, self._compute_scores(slice_rows(inputs, lo, hi))) for lo, hi in ranges)
        return evaluate_scores(blocks, truth, ks=(1,)).means["MAP"]

    def _find_hidden(self, candidates: Candidates) -> Bool:
        """Return True for labels that are not candidates for any row, (n_labels,)."""
        hidden = np.full(len(self.vocabulary_), candidates is not None)
        if candidates is not None:
            hidden[self._find_label_ids(candidates)] = False
        return hidden


class OneStepRanker(ScoreRanker):
    """Base of models that learn in one step; a subclass implements `_learn` and `_compute_scores`."""

    @abstractmethod
    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        """Learn from rows, scaled where the model has a scaling, and their signed label matrix."""

    def _fit_scaling(self, inputs: FeatureMatrix) -> FeatureMatrix:
        """Return the rows as `_learn` takes them."""
        return inputs

    def fit(
        self, X: Matrix, Y: Labels, *, label_names: Sequence[str] | None = None, progress: Progress = SILENT
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
            Explicit negatives (-1) are like all other labels that a row lacks.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._open_rows(X, Y, label_names)
        fitted._learn(fitted._fit_scaling(inputs), targets, progress)
        self.__dict__.update(fitted.__dict__)
        return self


class ScaledRanker(OneStepRanker):
    """Base of models that scale rows and learn in one step; see `OneStepRanker`."""

    scaling: Scaling
    scaling_: RowScaling

    def _fit_scaling(self, inputs: FeatureMatrix) -> FeatureMatrix:
        self.scaling_ = RowScaling.fit(inputs, self.n_features_in_, self.scaling)
        return self.scaling_(inputs)

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "scaling": self.scaling_.method}

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), **self.scaling_.tensors()}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        self.scaling_ = RowScaling.from_tensors(config["scaling"], tensors, self.n_features_in_)
