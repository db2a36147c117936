"""What the baselines share: a model that scores every label of a row ranks them in bounded memory."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from wsabie.base.arrays import Bool, Csr, Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.validation import check_features, require
from wsabie.labels.names import Vocabulary
from wsabie.models.labelling import label_matrix
from wsabie.models.scaling import Inputs

BLOCK_BYTES = 64 << 20
"""Scores held at once while ranking or evaluating."""


class ScoreRanker(BaseEstimator):  # type: ignore[misc]
    """Base of models that answer with a score per label; a subclass writes `fit` and `_scores`.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Label names and numbers.
    n_features_in_ : int
    """

    vocabulary_: Vocabulary
    n_features_in_: int

    @abstractmethod
    def _scores(self, inputs: Inputs) -> Float32:
        """Scores (n, n_labels) float32 of checked rows."""

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def scores(self, X: Any) -> Float32:
        """All scores of a block of rows.

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
        """The k best labels of each row.

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
        from wsabie.evaluation.targets import excluded_lists
        from wsabie.kernels.topk import Heap, hide_labels, new_heap, scan_topk, sort_topk

        require(k >= 1, f"k is {k}; choose a whole number above 0")
        inputs = self._checked(X)
        hidden = self._hidden(candidates)
        excluded = excluded_lists(exclude, n_rows(inputs), len(self.vocabulary_))
        heap = new_heap(n_rows(inputs), k)
        for lo, hi in row_ranges(n_rows(inputs), len(self.vocabulary_)):
            tile = self._scores(rows_between(inputs, lo, hi))
            tile[:, hidden] = -np.inf
            hide_labels(tile, 0, excluded.part(lo, hi))
            scan_topk(tile, 0, Heap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
        sort_topk(heap, 0, n_rows(inputs))
        return heap.labels, heap.scores

    def annotate(self, X: Any, k: int = 10, **options: Any) -> list[list[tuple[str, float]]]:
        """The k best labels of each row by name, with their scores; `options` as in `rank`."""
        ids, scores = self.rank(X, k, **options)
        names = list(self.vocabulary_)
        return [
            [(names[y], float(s)) for y, s in zip(row, row_scores, strict=True) if y >= 0]
            for row, row_scores in zip(ids, scores, strict=True)
        ]

    def score(self, X: Any, Y: Any) -> float:
        """Mean average precision on rows with labels (rows without labels do not count)."""
        from wsabie.evaluation.evaluate import evaluate_scores

        inputs = self._checked(X)
        known = Vocabulary(self.vocabulary_)
        truth = label_matrix(Y, n_rows(inputs), known, grow=True, named=False)[:, : len(self.vocabulary_)]
        blocks = (
            (lo, self._scores(rows_between(inputs, lo, hi)))
            for lo, hi in row_ranges(n_rows(inputs), len(self.vocabulary_))
        )
        return evaluate_scores(blocks, truth, ks=(1,)).means["MAP"]

    def _opened(self, X: Any, Y: Any, label_names: Sequence[str] | None) -> tuple[Inputs, Matrix]:
        """What `fit` begins with: checked rows, their label matrix, the vocabulary, the width."""
        inputs = check_features(X)
        rows, width = n_rows(inputs), int(inputs.shape[1] if isinstance(inputs, np.ndarray) else X.shape[1])
        empty = "sample" if rows == 0 else "feature"
        require(
            rows > 0 and width > 0,
            f"Found array with 0 {empty}(s) (shape=({rows}, {width})) while a minimum of 1 is required.",
        )
        vocabulary = Vocabulary(label_names or ())
        targets = label_matrix(Y, rows, vocabulary, grow=True, named=label_names is not None)
        require(bool((targets.data > 0).any()), "no row has a label; give at least one (row, label) pair")
        self.vocabulary_, self.n_features_in_ = vocabulary, width
        return inputs, targets

    def _checked(self, X: Any) -> Inputs:
        if not hasattr(self, "vocabulary_"):
            from sklearn.exceptions import NotFittedError

            name = type(self).__name__
            raise NotFittedError(f"this {name} model is not fitted yet; call fit(X, Y) first")
        return check_features(X, n_features=self.n_features_in_)

    def _hidden(self, candidates: Any) -> Bool:
        """Which labels are no candidates for any row, (n_labels,)."""
        hidden = np.zeros(len(self.vocabulary_), bool)
        if candidates is None:
            return hidden
        named = [label for label in candidates if isinstance(label, str)]
        if named and len(named) < len(candidates):
            raise InputError("candidates mixes names and numbers; give names only, or numbers only")
        ids = self.vocabulary_.ids(named) if named else np.asarray(candidates, np.int64)
        self.vocabulary_.names(ids)  # refuses numbers out of range
        hidden[:] = True
        hidden[ids] = False
        return hidden


def n_rows(inputs: Inputs) -> int:
    """Rows of checked features."""
    return inputs.n_rows if isinstance(inputs, Csr) else len(inputs)


def rows_between(inputs: Inputs, lo: int, hi: int) -> Inputs:
    """The rows lo..hi - 1, sharing memory with `inputs`.

    Examples
    --------
    >>> rows = Csr(np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.ones(3, np.float32))
    >>> rows_between(rows, 1, 2).indices.tolist()
    [0, 2]
    """
    if not isinstance(inputs, Csr):
        return inputs[lo:hi]
    start, end = inputs.indptr[lo], inputs.indptr[hi]
    return Csr(inputs.indptr[lo : hi + 1] - start, inputs.indices[start:end], inputs.data[start:end])


def row_ranges(n: int, width: int, n_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Blocks lo, hi of rows whose `width` float32 values each fill at most `n_bytes` (None: `BLOCK_BYTES`).

    A block has at least one row.

    Examples
    --------
    >>> list(row_ranges(5, width=8, n_bytes=64))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, (BLOCK_BYTES if n_bytes is None else n_bytes) // (4 * max(width, 1)))
    for lo in range(0, n, step):
        yield lo, min(lo + step, n)


def as_matrix(inputs: Inputs, n_features: int) -> Matrix:
    """Checked rows as scipy or NumPy knows them, sharing memory."""
    from scipy.sparse import csr_matrix

    if not isinstance(inputs, Csr):
        return inputs
    return csr_matrix((inputs.data, inputs.indices, inputs.indptr), shape=(inputs.n_rows, n_features))
