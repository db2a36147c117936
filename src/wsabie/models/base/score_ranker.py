"""Base of the baselines: ranking in bounded memory from the scores of all labels."""

from abc import abstractmethod
from typing import Any

import numpy as np

from wsabie.core.arrays import Bool, Float32, Int64
from wsabie.core.label_lists import build_exclusion_lists
from wsabie.core.validation import check_positive_integer, require
from wsabie.models.base.feature_matrix import Inputs, count_rows, iterate_row_ranges, slice_rows
from wsabie.models.base.label_model import LabelModel


class ScoreRanker(LabelModel):
    """Base of models with a score per label; a subclass implements `fit` and `_scores`."""

    @abstractmethod
    def _scores(self, inputs: Inputs) -> Float32:
        """Return the scores (n, n_labels) float32 of checked rows."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""

    def scores(self, X: Any) -> Float32:
        """Return all scores of a block of rows.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, n_labels) float32

        Raises
        ------
        InputError
            Another number of features than in `fit`, or numbers that are not finite.
        """
        return self._scores(self._checked(X))

    def rank(self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None) -> tuple[Int64, Float32]:
        """Return the k best labels of each row.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.

        Returns
        -------
        ids : (n, k) int64
            Best first, equal scores by label number; -1 where there are fewer than k candidates.
        scores : (n, k) float32
            -inf where ids is -1.
        """
        from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, hide_labels, scan_topk, sort_topk

        k = check_positive_integer(k, "k")
        inputs = self._checked(X)
        hidden = self._hidden(candidates)
        excluded = build_exclusion_lists(exclude, count_rows(inputs), len(self.vocabulary_))
        heap = allocate_heap(count_rows(inputs), k)
        for lo, hi in iterate_row_ranges(count_rows(inputs), len(self.vocabulary_)):
            tile = self._scores(slice_rows(inputs, lo, hi))
            tile[:, hidden] = -np.inf
            hide_labels(tile, 0, excluded.part(lo, hi))
            bad = scan_topk(tile, 0, TopKHeap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
            require(not bad, f"a score of the rows {lo} to {hi - 1} is NaN; fit the model anew on finite rows")
        sort_topk(heap, 0, count_rows(inputs))
        require(not np.isposinf(heap.scores[:, :1]).any(), "a score is infinite; fit the model anew on finite rows")
        return heap.labels, heap.scores

    def score(self, X: Any, Y: Any) -> float:
        """Return the mean average precision on rows with labels; rows without labels do not count."""
        from wsabie.evaluation.score_evaluation import evaluate_scores

        inputs = self._checked(X)
        truth = self._truth(Y, count_rows(inputs))
        blocks = (
            (lo, self._scores(slice_rows(inputs, lo, hi)))
            for lo, hi in iterate_row_ranges(count_rows(inputs), len(self.vocabulary_))
        )
        return evaluate_scores(blocks, truth, ks=(1,)).means["MAP"]

    def _hidden(self, candidates: Any) -> Bool:
        """Return True for labels that are no candidates for any row, (n_labels,)."""
        hidden = np.full(len(self.vocabulary_), candidates is not None)
        if candidates is not None:
            hidden[self._label_ids(candidates)] = False
        return hidden
