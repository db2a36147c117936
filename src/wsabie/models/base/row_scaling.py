"""Scaling of input rows, stored with the model and applied before every ranking."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wsabie.core.arrays import (
    Array,
    Csr,
    Float32,
    Float64,
    Int64,
    Matrix,
    allocate_array,
    iterate_slices,
    view_as_writable,
)
from wsabie.core.errors import InputError, require
from wsabie.features.base.word_extractor import compute_idf
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.storage.schema_validation import check_array, read_config

Scaling = Literal["auto", "tfidf"] | None
Method = Literal["none", "log", "tfidf", "standard", "homogeneous"]
CONSTANT = 0.5
"""Value of the constant feature that dense rows of mean length 1 get before they are brought to unit length."""
ONE_UNIT = 3.0
"""Dense columns count as of one unit if their root mean square deviation is at most so many medians."""
_LOGS = np.log1p(np.arange(256)).astype(np.float32)


@dataclass(frozen=True)
class RowScaling:
    """A fixed map of rows.

    Attributes
    ----------
    method : {"none", "log", "tfidf", "standard", "homogeneous"}
        "log": log(1 + x) at unit length. "tfidf": log(1 + x) * idf at unit length. "standard": (x - shift) * weight.
        "homogeneous": the same with a constant feature behind it, at unit length. Rows have a length of about 1 each
        way, so that learning rates mean the same.
    weight : (n_features,) float32
        After the log: 1 or idf. Dense columns: the same for all (columns of one unit), or 1 / (deviation *
        sqrt(columns that vary)). "homogeneous" has the constant as one more. Empty for "none".
    shift : (n_features,) float32
        Mean; empty unless dense.
    """

    method: Method
    weight: Float32
    shift: Float32

    @classmethod
    def fit(cls, X: FeatureMatrix, n_features: int, scaling: Scaling, constant: bool = False) -> "RowScaling":
        """Fit a scaling to training rows.

        "auto" is "log" for non-negative sparse rows, and centres dense ones. Centred rows have no common direction, so
        an embedding of them cannot prefer frequent labels. With `constant` they get a feature that all rows share
        ("homogeneous").

        An embedding learns the importance of a feature, and idf would overrate rare ones; nearest neighbours learn
        nothing and need "tfidf" (benchmarks/pages/defaults.md).
        """
        require(scaling in ("auto", "tfidf", None), f'scaling is {scaling!r}; choose "auto", "tfidf" or None')
        if not isinstance(X, Csr):
            return cls.from_columns(scaling, lambda: _compute_moments(X), constant)
        least = float(X.data.min(initial=0))
        return cls.from_counts(scaling, n_features, X.n_rows, least, lambda: _count_positive_rows(X, n_features))

    @classmethod
    def from_counts(
        cls, scaling: Scaling, n_features: int, n_rows: int, least: float, count_rows: Callable[[], Int64]
    ) -> "RowScaling":
        """Build the scaling of sparse rows from the least value and each feature's number of rows above 0."""
        empty = np.zeros(0, np.float32)
        if scaling is None or least < 0:
            return cls("none", empty, empty)
        if scaling == "auto":
            return cls("log", np.ones(n_features, np.float32), empty)
        return cls("tfidf", compute_idf(count_rows(), n_rows), empty)

    @classmethod
    def from_columns(
        cls, scaling: Scaling, moments: Callable[[], tuple[Float64, Float64]], constant: bool = False
    ) -> "RowScaling":
        """Build the scaling of dense rows from the mean and the standard deviation of each column."""
        if scaling is None:
            return cls("none", np.zeros(0, np.float32), np.zeros(0, np.float32))
        mean, deviation = moments()
        weight, shift = _compute_column_weights(deviation).astype(np.float32), mean.astype(np.float32)
        if constant:
            return cls("homogeneous", np.append(weight, np.float32(CONSTANT)), shift)
        return cls("standard", weight, shift)

    @property
    def n_added(self) -> int:
        """Number of features that scaling adds behind the given ones."""
        return int(self.method == "homogeneous")

    def tensors(self) -> dict[str, Float32]:
        """Return the arrays by their names in a model folder."""
        return {"scaling/weight": self.weight, "scaling/shift": self.shift}

    @classmethod
    def from_tensors(cls, method: Method, tensors: Mapping[str, Array], n_features: int) -> "RowScaling":
        """Restore a scaling; ValueError if the sizes of `tensors` do not fit `method`."""
        method = read_config(Method, method)  # type: ignore[arg-type]
        weight = 0 if method == "none" else n_features + int(method == "homogeneous")
        shift = n_features if method in ("standard", "homogeneous") else 0
        sizes = {"scaling/weight": weight, "scaling/shift": shift}
        return cls(method, *(check_array(tensors, name, "float32", (n,)) for name, n in sizes.items()))

    def find_refused_rows(self, X: Matrix) -> Int64:
        """Return the numbers of sparse rows with a negative value where counts are expected."""
        if self.method not in ("log", "tfidf") or X.data.min(initial=0) >= 0:
            return np.zeros(0, np.int64)
        return np.unique(np.searchsorted(X.indptr, np.flatnonzero(X.data < 0), side="right") - 1)

    def __call__(self, X: FeatureMatrix, *, out: Float32 | None = None) -> FeatureMatrix:
        """Return the scaled rows; they share index arrays with the input, values are new.

        Values of sparse rows are written to the array `out` if there is one, which may be that of the input values.
        """
        if self.method == "none":
            return X
        if isinstance(X, Csr):
            data = allocate_array(X.data.shape, np.float32) if out is None else out
            return self._scale_counts(X, data)
        if self.method in ("log", "tfidf"):
            raise InputError("this model was trained on sparse rows; give a sparse matrix (scipy.sparse.csr_matrix(X))")
        if self.method == "standard":
            centred = X - self.shift
            centred *= self.weight
            return centred
        return self._scale_columns(X)

    def _scale_columns(self, X: Float32) -> Float32:
        out = np.empty((len(X), len(self.weight)), np.float32)
        np.subtract(X, self.shift, out=out[:, :-1])
        out[:, -1] = 1
        out *= self.weight
        out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        return out

    def _scale_counts(self, X: Csr, data: Float32) -> Csr:
        if self.method in ("standard", "homogeneous"):
            raise InputError("this model was trained on dense rows; give a dense array (X.toarray())")
        if X.data.min(initial=0) < 0:
            low = int(np.argmin(X.data))
            row = int(np.searchsorted(X.indptr, low, side="right")) - 1
            raise InputError(
                f"row {row} has the negative value {X.data[low]:g} where counts are expected (training rows had none); "
                "correct the row, or train with scaling=None"
            )
        from wsabie.kernels.features.sparse_rows import normalise_log_counts

        normalise_log_counts(Csr(*map(view_as_writable, X)), view_as_writable(self.weight), _LOGS, data)
        return Csr(X.indptr, X.indices, data)


def _count_positive_rows(X: Csr, n_features: int) -> Int64:
    """Return the number of rows in which each feature is above 0, (n_features,)."""
    counts = np.zeros(n_features, np.int64)
    for part in iterate_slices(len(X.data)):
        counts += np.bincount(X.indices[part][X.data[part] > 0], minlength=n_features)
    return counts


def _compute_column_weights(deviation: Float64) -> Float64:
    """Return the factors of centred columns with which the mean square of a row's length is 1."""
    # the spread of columns of one unit, such as components, pixels or the output of a network, says how much they
    # matter; the spread of columns of different units says nothing
    deviation = np.where(deviation < np.finfo(np.float32).tiny, 0, deviation)  # or 1 / deviation would be infinite
    varying = deviation[deviation > 0]
    if not len(varying):
        return np.ones(len(deviation))
    length = np.sqrt((varying * varying).sum())
    if length <= ONE_UNIT * np.sqrt(len(varying)) * np.median(varying):
        return np.full(len(deviation), 1 / length)
    weights: Float64 = 1 / (np.where(deviation > 0, deviation, 1) * np.sqrt(len(varying)))
    return weights


def _compute_moments(X: Float32) -> tuple[Float64, Float64]:
    """Return mean and standard deviation of each column, without NumPy's float64 copy of X."""
    mean: Float64 = X.mean(0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    step = max(1, (1 << 20) // X.shape[1])
    for lo in range(0, len(X), step):
        gaps = X[lo : lo + step] - mean
        squares += np.einsum("ij,ij->j", gaps, gaps)
    return mean, np.sqrt(squares / len(X))


def sum_rows(values: Float32, indptr: np.ndarray) -> Float32:
    """Return the sum of the values of each CSR row; 0 for empty rows."""
    out = np.zeros(len(indptr) - 1, np.float32)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        out[filled] = np.add.reduceat(values, indptr[filled])
    return out


def square_lengths(inputs: FeatureMatrix) -> Float32:
    """Return the squared lengths of rows, (n,)."""
    if isinstance(inputs, Csr):
        return sum_rows(inputs.data * inputs.data, inputs.indptr)
    return np.asarray(np.einsum("ij,ij->i", inputs, inputs))


_LEAST_LENGTH = 1e-12


def scale_to_unit(inputs: FeatureMatrix) -> FeatureMatrix:
    """Return rows at unit length; rows of zeros stay.

    Examples
    --------
    >>> scale_to_unit(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths: Float32 = np.maximum(np.sqrt(square_lengths(inputs)), _LEAST_LENGTH).astype(np.float32)
    if isinstance(inputs, Csr):
        return inputs._replace(data=np.divide(inputs.data, np.repeat(lengths, np.diff(inputs.indptr))))
    return np.asarray(inputs / lengths[:, None])
