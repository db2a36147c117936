"""Validation of input: features become float32 with int32 columns; errors name the place."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Csr, Float32, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.file_backed_arrays import iterate_slices
from wsabie.core.sparse_matrices import CsrArrays, convert_numbers, dense_array, extract_csr_arrays, has_sorted_indices


def check_features(
    X: Matrix, *, n_features: int | None = None, input_name: str = "X", model_name: str = "this model"
) -> Csr | Float32:
    """Return rows of features for kernels: `Csr` for scipy sparse input, else a float32 array.

    Parameters
    ----------
    X : sparse matrix or array-like, (n, n_features)
        Any real dtype. Sparse rows come out sorted, without duplicates (summed).
    n_features : int or None
        The width that the model was trained with.
    input_name, model_name : str
        Names of the rows and of the model in sentences.

    Raises
    ------
    InputError
        Not two-dimensional, another width, complex or text, or NaN or infinity (the first place is named).
    """
    sparse = hasattr(X, "tocsr")
    X = extract_csr_arrays(X, input_name) if sparse else _check_dense(X, input_name)
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(
            f"{input_name} has {X.shape[1]} features, but {model_name} is expecting {n_features} features as input; "
            "extract the features with the same settings as for training"
        )
    return _check_sparse(X, input_name) if sparse else X


def _check_dense(values: ArrayLike, input_name: str) -> Float32:
    X = dense_array(values, input_name, "features")
    with np.errstate(over="ignore"):  # what becomes infinite is refused below
        out: Float32 = convert_numbers(X, np.float32, input_name)
    bad = ~np.isfinite(out)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise _make_value_error(input_name, float(X[i, j]), i, j)
    return out


def _check_sparse(arrays: CsrArrays, input_name: str) -> Csr:
    if arrays.shape[1] > np.iinfo(np.int32).max:
        raise InputError(
            f"{input_name} has {arrays.shape[1]:,} features; at most {np.iinfo(np.int32).max:,} are supported"
        )
    if not has_sorted_indices(arrays.indptr, arrays.indices):
        arrays = _sort_rows(arrays)
    with np.errstate(over="ignore"):
        data = np.asarray(arrays.data, np.float32)
    for part in iterate_slices(len(data)):
        entries = np.flatnonzero(~np.isfinite(data[part])) + part.start
        if len(entries):
            entry = entries[0]
            row = int(np.searchsorted(arrays.indptr, entry, side="right")) - 1
            raise _make_value_error(input_name, arrays.data[entry], row, arrays.indices[entry])
    return Csr(arrays.indptr.astype(np.int64, copy=False), np.ascontiguousarray(arrays.indices, np.int32), data)


def _sort_rows(arrays: CsrArrays) -> CsrArrays:
    """Return the same rows with sorted columns; duplicate cells are summed."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(arrays[:3], shape=arrays.shape, copy=True)
    matrix.sum_duplicates()
    return CsrArrays(matrix.data, matrix.indices, matrix.indptr, arrays.shape)


def _make_value_error(input_name: str, value: float, row: int, column: int) -> InputError:
    number = "NaN" if np.isnan(value) else f"{value:g}"
    return InputError(
        f"{input_name} holds {number} at row {row}, column {column} (Input contains NaN, infinity or a value too large "
        "for float32); replace or drop such rows"
    )


def check_sample_weights(values: ArrayLike, rows: int) -> Float32:
    """Return the weight of each row, (rows,) float32.

    Raises
    ------
    InputError
        Not one finite number from 0 on for every row, or nothing but zeros.
    """
    message = f"sample_weight must be {rows} finite non-negative numbers, one per row"
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            weights = np.asarray(values)
            weights = weights.astype(np.float32, casting="same_kind" if weights.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError) as error:
        raise InputError(message) from error
    require(weights.shape == (rows,) and bool(np.isfinite(weights).all()) and bool((weights >= 0).all()), message)
    require(bool(weights.any()), "sample_weight is zero for every row; give at least one row a weight")
    return weights


def check_positive_integer(value: Any, name: str) -> int:
    """Return `value` as an integer of 1 or more.

    Raises
    ------
    InputError
        It is something else.
    """
    is_usable = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)
    require(is_usable, f"{name} is {value!r}; choose a whole number above 0")
    return int(value)
