"""Checked input of searches: tables and queries for BLAS and kernels, candidates, exclusions."""

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Array, Float32, Int64, Matrix, iterate_slices, view_as_writable
from wsabie.core.errors import InputError, require
from wsabie.core.label_lists import LabelLists, build_exclusion_lists

_ROWS_AT_ONCE = 1 << 14
_FAR = 16
"""Ratio from which points lie far from the origin: squared distance of their mean over their variance."""


def prepare_table_rows(values: Array, subject: str) -> Array:
    """Return rows like `prepare_float32_rows`, but keep float16."""
    is_half = isinstance(values, np.ndarray) and values.dtype == np.float16
    return _rows(values if is_half else convert_to_float32(values, subject), subject)


def prepare_float32_rows(values: ArrayLike, subject: str) -> Float32:
    """Return float32 with contiguous rows, which BLAS takes without a copy."""
    return _rows(convert_to_float32(values, subject), subject)


def _rows(values: Array, subject: str) -> Array:
    require(values.ndim == 2, f"{subject} has {values.ndim} dimension(s) but rows of vectors are needed")
    step, width = values.strides[0], values.shape[1] * values.itemsize
    is_regular = values.strides[1] == values.itemsize and step >= width and not step % values.itemsize
    return values if is_regular and values.flags.aligned else np.ascontiguousarray(values)


def convert_to_float32(values: ArrayLike, subject: str) -> Float32:
    """Return values as float32; refuse anything but real numbers."""
    is_sparse = hasattr(values, "tocsr")
    try:
        values = np.asarray(values)
        if is_sparse or values.dtype.kind == "c":
            raise TypeError("sparse" if is_sparse else "complex")
        converted: Float32 = values.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{subject} cannot be read as real numbers ({error}); give a dense array of them") from error
    return converted


def flatten_table(table: Array) -> tuple[Array, int]:
    """Return the memory of the rows as one dimension (halves as uint16), and the step from row to row."""
    if table.dtype == np.float16:
        table = table.view(np.uint16)
    n, stride = len(table), table.strides[0] // table.itemsize
    size = (n - 1) * stride + table.shape[1] if n else 0
    return view_as_writable(np.lib.stride_tricks.as_strided(table, (size,), (table.itemsize,))), stride


def compute_squared_norms(table: Array) -> Float32:
    """Return the squared lengths of the rows."""
    out = np.empty(len(table), np.float32)
    for part in iterate_slices(len(table), _ROWS_AT_ONCE):
        rows = table[part].astype(np.float32, copy=False)
        np.einsum("ij,ij->i", rows, rows, out=out[part])
    return out


def compute_max_norm(table: Float32, norm2: Float32) -> float:
    """Return the length of the longest vector, also where its square is too small for float32."""
    largest = float(norm2.max(initial=0))
    if largest < 1e-30:
        largest = float(np.einsum("ij,ij->i", table, table, dtype=np.float64).max(initial=0))
    return float(np.sqrt(largest))


def find_far_centre(table: Float32) -> Float32 | None:
    """Return the mean of points that lie far from the origin, else None.

    Distances do not depend on the origin, but |q|^2 - 2 qw + |w|^2 loses digits far from it.
    """
    if not len(table):
        return None
    centre = table.mean(axis=0, dtype=np.float64)
    spread = np.einsum("ij,ij->", table, table, dtype=np.float64) / len(table) - centre @ centre
    return centre.astype(np.float32) if centre @ centre > _FAR * spread else None


def prepare_candidates(candidates: ArrayLike, n_labels: int) -> Int64:
    """Return label numbers, ascending, each once."""
    try:
        numbers = np.asarray(candidates)
    except ValueError as error:
        raise InputError(f"the candidates are lists of different lengths ({error}); give label numbers") from error
    require(numbers.ndim == 1, f"the candidates have {numbers.ndim} dimensions; give one list of label numbers")
    if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(f"the candidates are of type {numbers.dtype}; give label numbers")
    ids: Int64 = numbers.astype(np.int64)
    if not (ids[1:] > ids[:-1]).all():
        ids = np.unique(ids)
    if len(ids) and not (ids[0] >= 0 and ids[-1] < n_labels):
        bad = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(f"candidate {bad} does not exist; labels are numbered 0 to {n_labels - 1}")
    return ids


def list_hidden_labels(exclude: Matrix | None, n_rows: int, n_labels: int, candidate_ids: Int64 | None) -> LabelLists:
    """Return the excluded labels of each query, by their place among the candidates."""
    lists = build_exclusion_lists(exclude, n_rows, n_labels)
    if candidate_ids is None or not len(lists.labels):
        return lists
    place = np.full(n_labels, -1, np.int32)
    place[candidate_ids] = np.arange(len(candidate_ids), dtype=np.int32)
    is_candidate = place[lists.labels] >= 0
    offsets = np.concatenate([[0], np.cumsum(is_candidate)])
    return LabelLists(offsets[lists.indptr], place[lists.labels[is_candidate]])
