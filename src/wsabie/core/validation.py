"""Validation of input: features become float32 with int32 columns; errors name the place.

The index arrays of sparse matrices are verified before any use: scipy follows them unchecked in compiled code, which
would read, and write, outside the memory. A matrix that another thread changes meanwhile is not covered.
"""

from operator import index
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from wsabie.core.arrays import Array, Csr, Float32, Int64, Matrix, iterate_slices
from wsabie.core.errors import InputError, InputTypeError, bracket_detail, require

_REMEDY = "build the matrix again, such as by scipy.sparse.csr_matrix((data, (rows, columns)), shape)"
_MAX_INT64 = np.iinfo(np.int64).max


class CsrArrays(NamedTuple):
    """Arrays of a CSR matrix whose indices all lie inside its shape."""

    data: Array  # (nnz,) real numbers
    indices: Array  # (nnz,) int32 or int64
    indptr: Array  # (n_rows + 1,) int32 or int64
    shape: tuple[int, int]


def convert_to_csr(matrix: Matrix, input_name: str) -> Matrix:
    """Return a matrix from outside, sparse or dense, as a csr_matrix that shares its memory where it can.

    Raises
    ------
    InputError
        It has not two dimensions, holds no real numbers, or its indices point outside.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> convert_to_csr(coo_array(np.eye(2)), "Y").indices.tolist()
    [0, 1]
    """
    from scipy.sparse import csr_matrix

    if hasattr(matrix, "tocsr"):
        arrays = extract_csr_arrays(matrix, input_name)
        return csr_matrix(arrays[:3], shape=arrays.shape)
    return csr_matrix(_check_numbers(dense_array(matrix, input_name), input_name))


def dense_array(values: ArrayLike, input_name: str, unit: str = "columns") -> Array:
    """Return an array-like as an array of two dimensions.

    Raises
    ------
    InputError
        It has not two dimensions, or rows of different lengths.
    """
    array = as_array(values, input_name, unit)
    if array.ndim == 0:  # None, a generator, rows in shards
        problem = f"{input_name} is {type(values).__name__}, and neither a sparse matrix nor an array"
        raise InputError(f"{problem}; Expected 2D array, one row per example")
    _refuse_other_dimensions(array.ndim, input_name)
    return array


def as_array(values: ArrayLike, input_name: str, unit: str = "columns") -> Array:
    """Return an array-like as an array of any dimensions; InputError where its rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{input_name} has rows of different lengths; give every row the same {unit}") from error


def extract_csr_arrays(matrix: Matrix, input_name: str) -> CsrArrays:
    """Return the checked CSR arrays of a sparse matrix in any form; entries need not be in order.

    Raises
    ------
    InputError
        As `convert_to_csr`.
    """
    try:
        return _check_arrays(matrix, input_name)
    except InputError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, RuntimeError) as error:
        raise InputError(f"{input_name} is not a whole sparse matrix{bracket_detail(error)}; {_REMEDY}") from error


def _check_arrays(matrix: Matrix, input_name: str) -> CsrArrays:
    """Check and convert a matrix for `extract_csr_arrays`; a broken one may raise any error."""
    from scipy.sparse import issparse

    if not issparse(matrix):
        matrix = matrix.tocsr()
        if not issparse(matrix):
            raise InputTypeError(f"{input_name} is {type(matrix).__name__}, and no sparse matrix; {_REMEDY}")
    n_rows, n_columns = _check_shape(matrix.shape, input_name)
    if matrix.format not in ("csr", "csc"):  # NumPy and no compiled code makes the entries of other forms
        entries = _list_entries(matrix, input_name) if matrix.format == "lil" else matrix.tocoo()
        matrix = _check_coo(entries, input_name).tocsr()
    by_row = matrix.format == "csr"
    lines, width = (n_rows, n_columns) if by_row else (n_columns, n_rows)
    indptr = _check_integers(matrix.indptr, f"indptr of {input_name}")
    indices = _check_integers(matrix.indices, f"indices of {input_name}")
    data = _check_numbers(matrix.data, input_name)
    arrays = _check_compressed(data, indices, indptr, lines, input_name)
    _refuse_outside(arrays[1], width, input_name, "column" if by_row else "row")
    if not by_row:
        from scipy.sparse import csc_matrix

        csr = csc_matrix(arrays, shape=(n_rows, n_columns)).tocsr()
        arrays = csr.data, csr.indices, csr.indptr
    return CsrArrays(*arrays, (n_rows, n_columns))


def has_sorted_indices(indptr: Array, indices: Array) -> bool:
    """Return True where the indices of each row rise, so that none comes twice.

    Examples
    --------
    >>> (
    ...     has_sorted_indices(np.array([0, 2, 3]), np.array([0, 2, 1])),
    ...     has_sorted_indices(np.array([0, 3]), np.array([0, 2, 1])),
    ... )
    (True, False)
    """
    for part in iterate_slices(len(indices) - 1):
        rising = indices[part.start + 1 : part.stop + 1] > indices[part]
        first, last = np.searchsorted(indptr, [part.start + 1, part.stop + 1])
        rising[indptr[first:last] - part.start - 1] = True  # a new row
        if not rising.all():
            return False
    return True


def _check_compressed(
    data: Array, indices: Array, indptr: Array, lines: int, input_name: str
) -> tuple[Array, Array, Array]:
    """Return the arrays up to the last entry; InputError where `indptr` points outside of them."""
    fault = ""
    if data.ndim != 1:
        fault = f"its data has {data.ndim} dimensions"
    elif len(indptr) != lines + 1:
        fault = f"its indptr has {len(indptr):,} entries, and {lines + 1:,} are needed"
    elif indptr[0] != 0:
        fault = f"its indptr begins with {indptr[0]}"
    elif (is_falling := indptr[1:] < indptr[:-1]).any():
        place = int(is_falling.argmax())
        fault = f"its indptr falls from {indptr[place]} to {indptr[place + 1]} at entry {place + 1}"
    elif indptr[-1] > min(len(indices), len(data)):
        fault = f"its indptr ends at {indptr[-1]:,}, but it has {len(indices):,} indices and {len(data):,} values"
    _refuse_fault(fault, input_name)
    return data[: indptr[-1]], indices[: indptr[-1]], indptr


def _refuse_fault(fault: str, input_name: str) -> None:
    """Raise InputError for a fault of a matrix; "" is none."""
    require(not fault, f"{input_name} is not a whole sparse matrix: {fault}; {_REMEDY}")


def _refuse_outside(indices: Array, width: int, input_name: str, name: str) -> None:
    low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    if low < 0 or high >= width:
        raise InputError(
            f"{input_name} holds the {name} number {low if low < 0 else high}, but its {width:,} {name}s are numbered "
            "from 0; build the matrix with the right shape"
        )


def _check_shape(shape: Any, input_name: str) -> tuple[int, int]:
    _refuse_other_dimensions(len(shape), input_name)
    n_rows, n_columns = map(index, shape)
    if not (0 <= n_rows <= _MAX_INT64 and 0 <= n_columns <= _MAX_INT64):
        raise InputError(f"{input_name} has the shape {tuple(shape)}, which no matrix can have; {_REMEDY}")
    return n_rows, n_columns


def _refuse_other_dimensions(n_dimensions: int, input_name: str) -> None:
    if n_dimensions != 2:
        raise InputError(
            f"{input_name} has {n_dimensions} dimension(s); Expected 2D array. Reshape your data: one row per example"
        )


def _check_integers(values: ArrayLike, input_name: str) -> Array:
    """Return one dimension of native signed integers."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{input_name} has {array.ndim} dimension(s) of {array.dtype}, and whole numbers are needed; {_REMEDY}"
        )
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{input_name} holds {array.max()}, and its entries are numbered from 0; {_REMEDY}")
    small = array.dtype.itemsize < 4 or (array.dtype.kind, array.dtype.itemsize) == ("i", 4)
    return np.ascontiguousarray(array, np.int32 if small else np.int64)


def _check_numbers(values: ArrayLike, input_name: str) -> Array:
    """Return real numbers of a type that scipy computes with."""
    array = np.asarray(values)
    native = array.dtype.newbyteorder("=")
    if array.dtype.kind not in "biuf":
        native = np.dtype(np.float64)
    elif array.dtype == np.float16:
        native = np.dtype(np.float32)
    return convert_numbers(array, native, input_name)


def convert_numbers(array: Array, dtype: npt.DTypeLike, input_name: str) -> Array:
    """Return an array as real numbers of a type, contiguous; InputError where it holds others."""
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {input_name} has dtype {array.dtype}; give real numbers")
    try:
        return np.ascontiguousarray(array, dtype)
    except (TypeError, ValueError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        raise kind(f"{input_name} holds something that is not a number ({error}); give real numbers") from error


def _check_coo(matrix: Matrix, input_name: str) -> Matrix:
    from scipy.sparse import coo_matrix

    rows, columns = (_check_integers(ids, f"coordinates of {input_name}") for ids in matrix.coords)
    data = _check_numbers(matrix.data, input_name)
    if data.shape != rows.shape or data.shape != columns.shape:
        counts = f"{len(rows):,} rows, {len(columns):,} columns and {data.size:,} values"
        _refuse_fault(f"it has {counts} of entries", input_name)
    for ids, width, name in zip((rows, columns), matrix.shape, ("row", "column"), strict=True):
        _refuse_outside(ids, width, input_name, name)
    return coo_matrix((data, (rows, columns)), matrix.shape)


def _list_entries(matrix: Matrix, input_name: str) -> SimpleNamespace:
    """Return the entries of a matrix of lists, whose compiled conversion does not check their lengths."""
    lengths = [[len(row) for row in lists] for lists in (matrix.rows, matrix.data)]
    if lengths[0] != lengths[1] or len(lengths[0]) != matrix.shape[0]:
        _refuse_fault("its lists of columns and of values differ", input_name)
    rows = np.repeat(np.arange(matrix.shape[0]), lengths[0])
    columns = _check_integers(
        [column for row in matrix.rows for column in row] or np.empty(0, np.int64), f"rows of {input_name}"
    )
    data = _check_numbers([value for row in matrix.data for value in row] or np.empty(0), input_name)
    return SimpleNamespace(coords=(rows, columns), data=data.astype(matrix.dtype), shape=matrix.shape)


def build_incidence(
    rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32
) -> Matrix:
    """Return a sparse matrix of ones at these places; a place that comes twice adds up."""
    from scipy.sparse import csr_matrix

    places = np.asarray(rows), np.asarray(columns)
    return csr_matrix((np.ones(len(places[0]), dtype), places), shape)


def gather_entries(matrix: Matrix, rows: npt.ArrayLike) -> Int64:
    """Return the columns of all entries of some rows, row after row, int64."""
    numbers = np.asarray(rows, np.int64)
    starts = matrix.indptr[numbers].astype(np.int64)
    counts = matrix.indptr[numbers + 1] - starts
    offsets = np.repeat(starts - np.cumsum(counts) + counts, counts)
    return np.asarray(matrix.indices[offsets + np.arange(len(offsets))], np.int64)


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
        "for float32); replace or drop these rows"
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
