"""Base of exact and approximate neighbours: training rows at unit length, lists of neighbours, votes."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Csr, Float32, Int64, Matrix, view_as_writable
from wsabie.core.progress import SILENT, Progress
from wsabie.core.validation import check_positive_integer
from wsabie.models.base.feature_matrix import Inputs, convert_to_matrix, iterate_row_ranges
from wsabie.models.base.row_scaling import Rows, RowScaling, sum_rows
from wsabie.models.base.score_ranker import ScoreRanker


class NeighbourVotes(ScoreRanker):
    """Base of models whose k neighbours vote for their labels, each with its cosine.

    A subclass implements `_keep`, `_nearest`, `_arrays`, `to_parts` and `from_parts`.

    Attributes
    ----------
    scaling_ : RowScaling
    targets_ : csr_matrix (n_train, n_labels), float32
        1 for a label of the row.
    """

    k: int
    rows: Rows
    scaling_: RowScaling
    targets_: Matrix

    def fit(self, X: Any, Y: Any, *, label_names: Sequence[str] | None = None, progress: Progress = SILENT) -> Self:
        """Store the training rows.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
            Explicit negatives (-1) do not vote.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress
            Unused, because this takes little time.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._opened(X, Y, label_names)
        fitted.scaling_ = RowScaling.learned(inputs, fitted.n_features_in_, self.rows)
        fitted.targets_ = (targets > 0).astype(np.float32)
        fitted._keep(fitted._unit(inputs))
        self.__dict__.update(fitted.__dict__)
        return self

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs: all training rows and their labels."""
        arrays = [*self._arrays(), *list_matrix_arrays(self.targets_), self.scaling_.weight, self.scaling_.shift]
        return int(sum(array.nbytes for array in arrays))

    def neighbours(  # type: ignore[override]  # rows have neighbours here, and labels no vectors
        self, X: Any, k: int | None = None
    ) -> tuple[Int64, Float32]:
        """Return the training rows nearest to each row, as far as this model finds them.

        Returns
        -------
        rows : (n, k) int64
            Row numbers in training, nearest first; -1 where there are fewer than k.
        cosines : (n, k) float32, -inf where `rows` is -1
        """
        return self._nearest(self._checked(X), self.k if k is None else k)

    @abstractmethod
    def _keep(self, train: Matrix) -> None:
        """Store the training rows, which have unit length."""

    @abstractmethod
    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        """Return the neighbours of checked rows; see `neighbours`."""

    @abstractmethod
    def _arrays(self) -> list[Any]:
        """Return the arrays that the search for neighbours needs."""

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        check_positive_integer(self.k, "k")

    def _scores(self, inputs: Inputs) -> Float32:
        from scipy.sparse import csr_matrix

        rows, cosines = self._nearest(inputs, min(self.k, self.targets_.shape[0]))
        voters = np.arange(len(rows) + 1) * rows.shape[1]
        weights = np.maximum(cosines, 0).ravel()  # 0 where there is no neighbour
        votes = csr_matrix((weights, np.maximum(rows, 0).ravel(), voters), shape=(len(rows), self.targets_.shape[0]))
        return np.asarray((votes @ self.targets_).toarray(), np.float32)

    def _unit(self, inputs: Inputs) -> Matrix:
        """Return scaled rows at unit length; rows of zeros stay."""
        scaled = self.scaling_(inputs)
        if isinstance(scaled, Csr):
            lengths = np.sqrt(sum_rows(scaled.data * scaled.data, scaled.indptr))
            each = np.repeat(np.maximum(lengths, 1e-12), np.diff(scaled.indptr)).astype(np.float32)
            return convert_to_matrix(Csr(scaled.indptr, scaled.indices, scaled.data / each), self.n_features_in_)
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        return scaled / np.maximum(norms, 1e-12).astype(np.float32)[:, None]


def index_by_feature(train: Matrix) -> Matrix:
    """Return training rows for `find_nearest_rows`; sparse ones become lists of rows by feature."""
    return train.T.tocsr() if hasattr(train, "tocsr") else train


def find_nearest_rows(rows: Matrix, train: Matrix, n_train: int, k: int) -> tuple[Int64, Float32]:
    """Return the k nearest training rows of each row, in bounded memory.

    Parameters
    ----------
    rows : (n, n_features), sparse or dense
        At unit length.
    train : sparse or dense
        `n_train` training rows from `index_by_feature`.
    n_train, k : int

    Returns
    -------
    numbers : (n, k) int64
        Nearest first, equal cosines by number; -1 where there are fewer than k.
    cosines : (n, k) float32, -inf where there is none
    """
    from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, scan_topk, sort_topk

    n = rows.shape[0]
    heap, lists = allocate_heap(n, k), _convert_to_csr(train) if hasattr(train, "tocsr") else train
    for lo, hi in iterate_row_ranges(n, n_train):
        scan_topk(
            _compute_cosines(rows[lo:hi], lists, n_train),
            0,
            TopKHeap(heap.scores[lo:hi], heap.labels[lo:hi]),
            0,
            hi - lo,
        )
    sort_topk(heap, 0, n)
    return heap.labels, heap.scores


def _compute_cosines(rows: Matrix, train: Csr | Float32, n_train: int) -> Float32:
    if not isinstance(train, Csr):
        return np.ascontiguousarray(rows @ train.T)
    from wsabie.kernels.ranking.sparse_products import multiply_rows

    out = np.empty((rows.shape[0], n_train), np.float32)
    multiply_rows(_convert_to_csr(rows), train, out)
    return out


def _convert_to_csr(matrix: Matrix) -> Csr:
    """Return a scipy matrix in the types that kernels take; arrays of the right type are not copied."""
    typed = ((matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.float32))
    return Csr(*(view_as_writable(np.asarray(array, dtype)) for array, dtype in typed))


def list_matrix_arrays(matrix: Matrix) -> list[Any]:
    """Return the arrays of a sparse or dense matrix."""
    return [matrix.data, matrix.indices, matrix.indptr] if hasattr(matrix, "tocsr") else [matrix]
