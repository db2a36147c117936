"""Scaling of input rows, a part of the model: learned in fit, stored with it, applied in every rank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wsabie.base.arrays import Csr, Float32, Float64
from wsabie.base.errors import InputError
from wsabie.features.weighting import idf
from wsabie.models.inputs import Inputs

Rows = Literal["auto", "tfidf"] | None
Method = Literal["none", "log", "tfidf", "standard"]
_ROWS_AT_ONCE = 1 << 14  # so that what is held besides the rows stays small


@dataclass(frozen=True)
class RowScaling:
    """A fixed map of rows.

    Attributes
    ----------
    method : {"none", "log", "tfidf", "standard"}
        "log": log(1 + x) at unit length. "tfidf": log(1 + x) * idf at unit length. "standard": (x - mean) / deviation
        / sqrt(n_features). Rows have a length of about 1 each way, so that learning rates mean the same.
    weight : (n_features,) float32
        1, idf, or 1 / (deviation * sqrt(n_features)); empty for "none".
    shift : (n_features,) float32
        Mean; empty unless "standard".
    """

    method: Method
    weight: Float32
    shift: Float32

    @classmethod
    def learned(cls, X: Inputs, n_features: int, rows: Rows) -> "RowScaling":
        """Statistics of training rows; "auto": "log" for non-negative sparse rows, "standard" for dense ones.

        An embedding learns how much a feature matters, and idf on top of that overrates rare ones: without it the
        generated visual-word task S has a validation MAP of .468 in place of .433 (docs/defaults.md). Nearest
        neighbours learn nothing and need "tfidf".
        """
        nothing = np.zeros(0, np.float32)
        if rows not in ("auto", "tfidf", None):
            raise InputError(f'rows is {rows!r}; choose "auto", "tfidf" or None')
        if rows is None or (isinstance(X, Csr) and X.data.min(initial=0) < 0):
            return cls("none", nothing, nothing)
        if isinstance(X, Csr):
            if rows == "auto":
                return cls("log", np.ones(n_features, np.float32), nothing)
            seen = np.bincount(X.indices[X.data > 0], minlength=n_features)
            return cls("tfidf", idf(seen, X.n_rows), nothing)
        mean, deviation = _moments(X)
        scale = 1 / (np.where(deviation > 0, deviation, 1) * np.sqrt(X.shape[1]))
        return cls("standard", scale.astype(np.float32), mean.astype(np.float32))

    def tensors(self) -> dict[str, Float32]:
        """The arrays as a model folder names them."""
        return {"scaling/weight": self.weight, "scaling/shift": self.shift}

    @classmethod
    def restored(cls, method: Method, tensors: Mapping[str, Any], n_features: int) -> "RowScaling":
        """The scaling that `method` and `tensors` describe; sizes that do not agree raise ValueError."""
        scaling = cls(method, tensors["scaling/weight"], tensors["scaling/shift"])
        shift = n_features if method == "standard" else 0
        if scaling.weight.shape != (0 if method == "none" else n_features,) or scaling.shift.shape != (shift,):
            raise ValueError("the sizes of scaling/weight, scaling/shift do not agree with the rest")
        return scaling

    def __call__(self, X: Inputs) -> Inputs:
        """The scaled rows; index arrays are shared with the input, values are new."""
        if self.method == "none":
            return X
        if isinstance(X, Csr):
            return self._unit_logs(X)
        if self.method in ("log", "tfidf"):
            raise InputError("this model was trained on sparse rows; give a sparse matrix (scipy.sparse.csr_matrix(X))")
        out = X - self.shift
        out *= self.weight
        return out

    def _unit_logs(self, X: Csr) -> Csr:
        if self.method == "standard":
            raise InputError("this model was trained on dense rows; give a dense array (X.toarray())")
        low = int(np.argmin(X.data)) if len(X.data) else 0
        if len(X.data) and X.data[low] < 0:
            row = int(np.searchsorted(X.indptr, low, side="right")) - 1
            raise InputError(
                f"row {row} has the negative value {X.data[low]:g} where counts are expected (training rows had none); "
                "correct the row, or train with rows=None"
            )
        data = np.log1p(X.data)
        for lo in range(0, X.n_rows, _ROWS_AT_ONCE):
            indptr = X.indptr[lo : lo + _ROWS_AT_ONCE + 1]
            part = data[indptr[0] : indptr[-1]]
            part *= self.weight[X.indices[indptr[0] : indptr[-1]]]
            lengths = np.maximum(np.sqrt(row_sums(part * part, indptr - indptr[0])), np.float32(1e-12))
            part /= np.repeat(lengths, np.diff(indptr))
        return Csr(X.indptr, X.indices, data)


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
