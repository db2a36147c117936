"""Exact k nearest neighbours: the labels of the training rows that look most like a row ([W] section 6.2)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64, Matrix
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require
from wsabie.models.inputs import Inputs, as_matrix, matrix_from, matrix_tensors, n_rows, row_ranges, rows_between
from wsabie.models.scaling import Rows, RowScaling, row_sums
from wsabie.models.scored import ScoreRanker
from wsabie.storage.folder import Parts


class NearestNeighbours(ScoreRanker):
    """The k training rows of highest cosine vote for their labels, each with its cosine.

    A label's score is the sum of the cosines of those neighbours that carry it (negative cosines do not
    vote). Equal cosines are decided by the order of the training rows. Nothing is approximated: a block of
    rows is compared with all training rows in one product, in memory of (rows of the block) x (training
    rows).

    Parameters
    ----------
    k : int, default 10
        Neighbours that vote; all training rows when there are fewer.
    rows : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows before the cosine is taken, as in `Wsabie`.

    Attributes
    ----------
    scaling_ : RowScaling
    train_ : csr_matrix (n_features, n_train) or ndarray (n_train, n_features), float32
        The training rows at unit length.
    targets_ : csr_matrix (n_train, n_labels), float32
        1 for a label of the row.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> model = NearestNeighbours(k=2, rows=None).fit(X, [["red"], ["red", "warm"], ["blue"]])
    >>> [(name, round(score, 2)) for name, score in model.annotate([[1.0, 0.0]], k=2)[0]]
    [('red', 1.99), ('warm', 0.99)]
    """

    kind = "nearest"

    def __init__(self, k: int = 10, *, rows: Rows = "tfidf") -> None:
        self.k = k
        self.rows = rows

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
            Not used: this takes no time.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        """
        require(
            isinstance(self.k, (int, np.integer)) and not isinstance(self.k, bool) and self.k >= 1,
            f"k is {self.k!r}; choose a whole number above 0",
        )
        inputs, targets = self._opened(X, Y, label_names)
        self.scaling_ = RowScaling.learned(inputs, self.n_features_in_, self.rows)
        train = self._unit(inputs)
        self.train_ = train.T.tocsr() if hasattr(train, "tocsr") else train
        self.targets_ = (targets > 0).astype(np.float32)
        return self

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs: all training rows and their labels."""
        arrays = [*_arrays(self.train_), *_arrays(self.targets_), self.scaling_.weight, self.scaling_.shift]
        return int(sum(array.nbytes for array in arrays))

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config = {**self._described(), "scaling": self.scaling_.method, "train_rows": self.targets_.shape[0]}
        matrices = matrix_tensors("train", self.train_) | matrix_tensors("targets", self.targets_)
        return Parts(self.kind, config, matrices | self.scaling_.tensors())

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; the training rows stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        width, rows = model.n_features_in_, int(config["train_rows"])
        model.scaling_ = RowScaling.restored(config["scaling"], t, width)
        model.train_ = matrix_from("train", t, (rows, width) if "train" in t else (width, rows))
        model.targets_ = matrix_from("targets", t, (rows, len(model.vocabulary_)))
        return model

    def neighbours(self, X: Any, k: int | None = None) -> tuple[Int64, Float32]:
        """The training rows nearest to each row.

        Returns
        -------
        rows : (n, k) int64
            Row numbers in training, nearest first; -1 where there are fewer than k.
        cosines : (n, k) float32, -inf where `rows` is -1
        """
        return self._nearest(self._checked(X), self.k if k is None else k)

    def _scores(self, inputs: Inputs) -> Float32:
        from scipy.sparse import csr_matrix

        rows, cosines = self._nearest(inputs, min(self.k, self.targets_.shape[0]))
        voters = np.arange(len(rows) + 1) * rows.shape[1]
        votes = csr_matrix(
            (np.maximum(cosines, 0).ravel(), rows.ravel(), voters), shape=(len(rows), self.targets_.shape[0])
        )
        return np.asarray((votes @ self.targets_).toarray(), np.float32)

    def _nearest(self, inputs: Inputs, k: int) -> tuple[Int64, Float32]:
        from wsabie.kernels.topk import Heap, new_heap, scan_topk, sort_topk

        heap = new_heap(n_rows(inputs), k)
        for lo, hi in row_ranges(n_rows(inputs), self.targets_.shape[0]):
            cosines = self._cosines(self._unit(rows_between(inputs, lo, hi)))
            scan_topk(cosines, 0, Heap(heap.scores[lo:hi], heap.labels[lo:hi]), 0, hi - lo)
        sort_topk(heap, 0, n_rows(inputs))
        return heap.labels, heap.scores

    def _cosines(self, rows: Matrix) -> Float32:
        if hasattr(rows, "tocsr"):
            return np.asarray((rows @ self.train_).toarray(), np.float32)
        return np.ascontiguousarray(rows @ self.train_.T)

    def _unit(self, inputs: Inputs) -> Matrix:
        """Scaled rows at unit length; a row of zeros stays."""
        scaled = self.scaling_(inputs)
        if isinstance(scaled, Csr):
            lengths = np.sqrt(row_sums(scaled.data * scaled.data, scaled.indptr))
            each = np.repeat(np.maximum(lengths, 1e-12), np.diff(scaled.indptr)).astype(np.float32)
            return as_matrix(Csr(scaled.indptr, scaled.indices, scaled.data / each), self.n_features_in_)
        norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        return scaled / np.maximum(norms, 1e-12).astype(np.float32)[:, None]


def _arrays(matrix: Matrix) -> list[Any]:
    return [matrix.data, matrix.indices, matrix.indptr] if hasattr(matrix, "tocsr") else [matrix]
