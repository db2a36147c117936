"""Scaling of input rows, a part of the model: learned in fit, stored with it, applied in every rank."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base import mapped
from wsabie.base.arrays import Csr, Float32, Float64, Int64, Matrix, under_one_type
from wsabie.base.errors import InputError
from wsabie.features.weighting import idf
from wsabie.models.inputs import Inputs
from wsabie.storage.schema import check_array, read_config

Rows = Literal["auto", "tfidf"] | None
Method = Literal["none", "log", "tfidf", "standard", "homogeneous"]
CONSTANT = 0.5
"""The constant feature behind dense rows of mean length 1, before they are brought to unit length."""
ONE_UNIT = 3.0
"""Dense columns are taken to be of one unit while their root mean square deviation is at most so many medians."""
_LOGS = np.log1p(np.arange(256)).astype(np.float32)


class Seen(NamedTuple):
    """Statistics of training rows, of which those are asked for that a scaling takes."""

    n_rows: int
    least: float  # of all values, at most 0
    above_0: Callable[[], Any]  # rows in which each feature is above 0, (n_features,)
    moments: Callable[[], Any]  # mean and standard deviation of each dense column


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
        Of the log: 1 or idf. Of dense columns: the same for all (columns of one unit), or 1 / (deviation *
        sqrt(columns that vary)). "homogeneous" has the constant as one more. Empty for "none".
    shift : (n_features,) float32
        Mean; empty unless dense.
    """

    method: Method
    weight: Float32
    shift: Float32

    @classmethod
    def learned(cls, X: Inputs, n_features: int, rows: Rows, constant: bool = False) -> "RowScaling":
        """Statistics of training rows; "auto": "log" for non-negative sparse rows, dense ones are centred.

        Centred rows point nowhere in common, so that an embedding of them has nothing by which frequent labels could
        come first: with `constant` they get a feature that all share ("homogeneous").

        An embedding learns how much a feature matters, and idf on top of that overrates rare ones: without it the
        generated visual-word task S has a validation MAP of .468 in place of .433 (docs/defaults.md). Nearest
        neighbours learn nothing and need "tfidf".
        """
        if isinstance(X, Csr):
            least = float(X.data.min(initial=0))
            seen = Seen(X.n_rows, least, lambda: _seen(X, n_features), lambda: None)
            return cls.told(seen, n_features, rows, dense=False, constant=constant)
        return cls.told(Seen(len(X), 0.0, lambda: None, lambda: _moments(X)), n_features, rows, True, constant)

    @classmethod
    def told(cls, seen: "Seen", n_features: int, rows: Rows, dense: bool, constant: bool = False) -> "RowScaling":
        """As `learned`, from statistics of the rows."""
        nothing = np.zeros(0, np.float32)
        if rows not in ("auto", "tfidf", None):
            raise InputError(f'rows is {rows!r}; choose "auto", "tfidf" or None')
        if rows is None or (not dense and seen.least < 0):
            return cls("none", nothing, nothing)
        if not dense:
            if rows == "auto":
                return cls("log", np.ones(n_features, np.float32), nothing)
            return cls("tfidf", idf(seen.above_0(), seen.n_rows), nothing)
        mean, deviation = seen.moments()
        weight, shift = _column_weights(deviation).astype(np.float32), mean.astype(np.float32)
        if constant:
            return cls("homogeneous", np.append(weight, np.float32(CONSTANT)), shift)
        return cls("standard", weight, shift)

    @property
    def n_added(self) -> int:
        """Features that scaled rows have behind those that are given."""
        return int(self.method == "homogeneous")

    def tensors(self) -> dict[str, Float32]:
        """The arrays as a model folder names them."""
        return {"scaling/weight": self.weight, "scaling/shift": self.shift}

    @classmethod
    def restored(cls, method: Method, tensors: Mapping[str, Any], n_features: int) -> "RowScaling":
        """The scaling that `method` and `tensors` describe; sizes that do not agree raise ValueError."""
        method = read_config(Method, method)  # type: ignore[arg-type]
        weight = 0 if method == "none" else n_features + int(method == "homogeneous")
        shift = n_features if method in ("standard", "homogeneous") else 0
        sizes = {"scaling/weight": weight, "scaling/shift": shift}
        return cls(method, *(check_array(tensors, name, "float32", (n,)) for name, n in sizes.items()))

    def refused(self, X: Matrix) -> Int64:
        """Numbers of the sparse rows with a negative value where counts are expected."""
        if self.method not in ("log", "tfidf") or X.data.min(initial=0) >= 0:
            return np.zeros(0, np.int64)
        return np.unique(np.searchsorted(X.indptr, np.flatnonzero(X.data < 0), side="right") - 1)

    def __call__(self, X: Inputs, *, into: Float32 | None = None) -> Inputs:
        """The scaled rows; index arrays are shared with the input, values are new.

        Those of sparse rows go `into` an array where one is given; it may be that of the values themselves.
        """
        if self.method == "none":
            return X
        if isinstance(X, Csr):
            return self._unit_logs(X, mapped.empty(X.data.shape, np.float32) if into is None else into)
        if self.method in ("log", "tfidf"):
            raise InputError("this model was trained on sparse rows; give a sparse matrix (scipy.sparse.csr_matrix(X))")
        if self.method == "standard":
            out = X - self.shift
            out *= self.weight
            return out
        return self._homogeneous(X)

    def _homogeneous(self, X: Float32) -> Float32:
        out = np.empty((len(X), len(self.weight)), np.float32)
        np.subtract(X, self.shift, out=out[:, :-1])
        out[:, -1] = 1
        out *= self.weight
        out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
        return out

    def _unit_logs(self, X: Csr, data: Float32) -> Csr:
        if self.method in ("standard", "homogeneous"):
            raise InputError("this model was trained on dense rows; give a dense array (X.toarray())")
        if X.data.min(initial=0) < 0:
            low = int(np.argmin(X.data))
            row = int(np.searchsorted(X.indptr, low, side="right")) - 1
            raise InputError(
                f"row {row} has the negative value {X.data[low]:g} where counts are expected (training rows had none); "
                "correct the row, or train with rows=None"
            )
        from wsabie.kernels.unit_rows import unit_logs

        unit_logs(Csr(*map(under_one_type, X)), under_one_type(self.weight), _LOGS, data)
        return Csr(X.indptr, X.indices, data)


def _seen(X: Csr, n_features: int) -> Int64:
    """In how many rows each feature is above 0, (n_features,)."""
    seen = np.zeros(n_features, np.int64)
    for part in mapped.parts(len(X.data)):
        seen += np.bincount(X.indices[part][X.data[part] > 0], minlength=n_features)
    return seen


def _column_weights(deviation: Float64) -> Float64:
    """What centred columns are multiplied by, so that the mean square of a row's length is 1.

    Columns of one unit, such as components, pixels or the output of a network, say by their spread how much they
    matter, and the least of them are mostly noise; columns of different units say nothing.
    """
    deviation = np.where(deviation < np.finfo(np.float32).tiny, 0, deviation)  # or 1 / deviation would be infinite
    varying = deviation[deviation > 0]
    if not len(varying):
        return np.ones(len(deviation))
    length = np.sqrt((varying * varying).sum())
    if length <= ONE_UNIT * np.sqrt(len(varying)) * np.median(varying):
        return np.full(len(deviation), 1 / length)
    weights: Float64 = 1 / (np.where(deviation > 0, deviation, 1) * np.sqrt(len(varying)))
    return weights


def _moments(X: Float32) -> tuple[Float64, Float64]:
    """Mean and standard deviation of each column; NumPy's own would hold a float64 copy of X."""
    mean: Float64 = X.mean(0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    step = max(1, (1 << 20) // X.shape[1])
    for lo in range(0, len(X), step):
        gaps = X[lo : lo + step] - mean
        squares += np.einsum("ij,ij->j", gaps, gaps)
    return mean, np.sqrt(squares / len(X))


def row_sums(values: Float32, indptr: np.ndarray) -> Float32:
    """Sum of the values of each CSR row; empty rows give 0."""
    out = np.zeros(len(indptr) - 1, np.float32)
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        out[filled] = np.add.reduceat(values, indptr[filled])
    return out
