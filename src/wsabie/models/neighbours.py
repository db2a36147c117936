"""What exact and approximate neighbours share: training rows at unit length, a list of neighbours, and their votes."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64, Matrix, under_one_type
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import whole_number
from wsabie.models.inputs import Inputs, as_matrix, row_ranges
from wsabie.models.scaling import Rows, RowScaling, row_sums
from wsabie.models.scored import ScoreRanker


class NeighbourVotes(ScoreRanker):
    """Base of models whose k neighbours vote for their labels, each with its cosine.

    A subclass writes `_keep`, `_nearest` and `_arrays`, and takes part in saving.

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
        """Keep the training rows.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
            Explicit negatives (-1) do not vote.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress
            Not used: this takes little time.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
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
        arrays = [*self._arrays(), *arrays_of(self.targets_), self.scaling_.weight, self.scaling_.shift]
        return int(sum(array.nbytes for array in arrays))

    def neighbours(  # type: ignore[override]  # rows have neighbours here, and labels no vectors
        self, X: Any, k: int | None = None
    ) -> tuple[Int64, Float32]:
        """The training rows nearest to each row, as far as this model finds them.

        Returns
        -------
        rows : (n, k) int64
            Row numbers in training, nearest first; -1 where there are fewer than k.
        cosines : (n, k) float32, -inf where `rows` is -1
        """
        return self._nearest(self._checked(X), self.k if k is None else k)

    @abstractmethod
    def _keep(self, train: Matrix) -> None:
        """Keep the training rows, which have unit length."""

    @abstractmethod
    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        """`neighbours` of checked rows."""

    @abstractmethod
    def _arrays(self) -> list[Any]:
        """The arrays that finding neighbours needs."""

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        whole_number(self.k, "k")

    def _scores(self, inputs: Inputs) -> Float32:
        from scipy.sparse import csr_matrix

        rows, cosines = self._nearest(inputs, min(self.k, self.targets_.shape[0]))
        voters = np.arange(len(rows) + 1) * rows.shape[1]
        weights = np.maximum(cosines, 0).ravel()  # 0 where there is no neighbour
        votes = csr_matrix((weights, np.maximum(rows, 0).ravel(), voters), shape=(len(rows), self.targets_.shape[0]))
        return np.asarray((votes @ self.targets_).toarray(), np.float32)

    def _unit(self, inputs: Inputs) -> Matrix:
        """Scaled rows at unit length; a row of zeros stays."""
        scaled = self.scaling_(inputs)
        if isinstance(scaled, Csr):
            lengths = np.sqrt(row_sums(scaled.data * scaled.data, scaled.indptr))
            each = np.repeat(np.maximum(lengths, 1e-12), np.diff(scaled.indptr)).astype(np.float32)
            return as_matrix(Csr(scaled.indptr, scaled.indices, scaled.data / each), self.n_features_in_)
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        return scaled / np.maximum(norms, 1e-12).astype(np.float32)[:, None]


def by_feature(train: Matrix) -> Matrix:
    """Training rows as `nearest_rows` takes them: sparse ones as lists of rows by feature, dense ones as they are."""
    return train.T.tocsr() if hasattr(train, "tocsr") else train


def nearest_rows(rows: Matrix, train: Matrix, n_train: int, k: int) -> tuple[Int64, Float32]:
    """The k nearest of some training rows, in bounded memory.

    Parameters
    ----------
    rows : (n, n_features), sparse or dense
        At unit length.
    train : sparse or dense
        `n_train` training rows, as `by_feature` arranges them.
    n_train, k : int

    Returns
    -------
    numbers : (n, k) int64
        Nearest first, equal cosines by number; -1 where there are fewer than k.
    cosines : (n, k) float32, -inf where there is none
    """
    from wsabie.kernels.topk import Heap, new_heap, scan_topk, sort_topk

    n = rows.shape[0]
    heap, lists = new_heap(n, k), _as_csr(train) if hasattr(train, "tocsr") else train
    for lo, hi in row_ranges(n, n_train):
        scan_topk(_cosines(rows[lo:hi], lists, n_train), 0, Heap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
    sort_topk(heap, 0, n)
    return heap.labels, heap.scores


def _cosines(rows: Matrix, train: Csr | Float32, n_train: int) -> Float32:
    if not isinstance(train, Csr):
        return np.ascontiguousarray(rows @ train.T)
    from wsabie.kernels.products import multiply_rows

    out = np.empty((rows.shape[0], n_train), np.float32)
    multiply_rows(_as_csr(rows), train, out)
    return out


def _as_csr(matrix: Matrix) -> Csr:
    """A scipy matrix as kernels take it; nothing is copied that has its type already."""
    typed = ((matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.float32))
    return Csr(*(under_one_type(np.asarray(array, dtype)) for array, dtype in typed))


def arrays_of(matrix: Matrix) -> list[Any]:
    """The arrays of a sparse or dense matrix."""
    return [matrix.data, matrix.indices, matrix.indptr] if hasattr(matrix, "tocsr") else [matrix]
