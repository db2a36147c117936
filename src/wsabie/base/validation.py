"""What is checked at the door: features become float32 with int32 columns; bad numbers are named with their place."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Float32
from wsabie.base.errors import InputError, InputTypeError
from wsabie.base.mapped import parts
from wsabie.base.sparse import CsrArrays, csr_arrays, dense_array, is_ordered


def check_features(X: Any, *, n_features: int | None = None, what: str = "X", who: str = "this model") -> Csr | Float32:
    """Rows of features as kernels take them: `Csr` for scipy sparse input, else a contiguous float32 array.

    Parameters
    ----------
    X : sparse matrix or array-like, (n, n_features)
        Any real dtype. Sparse rows come out sorted, without duplicates (summed).
    n_features : int or None
        The width that the model was trained with.
    what, who : str
        Names of the rows and of the model in sentences.

    Raises
    ------
    InputError
        Not two-dimensional, another width, complex or text, or NaN or infinity (the first place is named).
    """
    sparse = hasattr(X, "tocsr")
    X = csr_arrays(X, what) if sparse else _dense(X, what)
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(
            f"{what} has {X.shape[1]} features, but {who} is expecting {n_features} features as input; "
            "extract the features with the same settings as for training"
        )
    return _sparse(X, what) if sparse else X


def _dense(given: Any, what: str) -> Float32:
    X = dense_array(given, what, "features")
    if X.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {what} has dtype {X.dtype}; give real numbers")
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            out = np.ascontiguousarray(X, np.float32)
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"{what} holds something that is not a number ({error}); give real numbers") from error
    bad = ~np.isfinite(out)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InputError(
            f"{what} holds {_named(float(X[i, j]))} at row {i}, column {j} (Input contains NaN, infinity "
            "or a value too large for float32); replace or drop such rows"
        )
    return out


def _sparse(arrays: CsrArrays, what: str) -> Csr:
    if arrays.shape[1] > np.iinfo(np.int32).max:
        raise InputError(f"{what} has {arrays.shape[1]:,} features; at most {np.iinfo(np.int32).max:,} are supported")
    if not is_ordered(arrays.indptr, arrays.indices):
        arrays = _in_order(arrays)
    with np.errstate(over="ignore"):
        data = np.asarray(arrays.data, np.float32)
    for part in parts(len(data)):
        bad = np.flatnonzero(~np.isfinite(data[part])) + part.start
        if len(bad):
            row = int(np.searchsorted(arrays.indptr, bad[0], side="right")) - 1
            raise InputError(
                f"{what} holds {_named(arrays.data[bad[0]])} at row {row}, column {arrays.indices[bad[0]]} (Input "
                "contains NaN, infinity or a value too large for float32); replace or drop such rows"
            )
    return Csr(arrays.indptr.astype(np.int64, copy=False), np.ascontiguousarray(arrays.indices, np.int32), data)


def _in_order(arrays: CsrArrays) -> CsrArrays:
    """The same rows sorted, a cell that comes twice summed."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(arrays[:3], shape=arrays.shape, copy=True)
    matrix.sum_duplicates()
    return CsrArrays(matrix.data, matrix.indices, matrix.indptr, arrays.shape)


def _named(value: Any) -> str:
    return "NaN" if np.isnan(value) else f"{value:g}"


def sample_weights(given: Any, rows: int) -> Float32:
    """What each row counts for, (rows,) float32.

    Raises
    ------
    InputError
        Not one finite number from 0 on for every row, or nothing but zeros.
    """
    told = f"sample_weight must be {rows} finite non-negative numbers, one per row"
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            weights = np.asarray(given)
            weights = weights.astype(np.float32, casting="same_kind" if weights.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError) as error:
        raise InputError(told) from error
    require(weights.shape == (rows,) and bool(np.isfinite(weights).all()) and bool((weights >= 0).all()), told)
    require(bool(weights.any()), "sample_weight is zero for every row; give at least one row a weight")
    return weights


def require(condition: bool, sentence: str) -> None:
    """Raise InputError with `sentence` unless `condition` holds."""
    if not condition:
        raise InputError(sentence)


def whole_number(value: Any, name: str) -> int:
    """`value` as an integer of 1 or more.

    Raises
    ------
    InputError
        It is something else.
    """
    usable = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)
    require(usable, f"{name} is {value!r}; choose a whole number above 0")
    return int(value)
