"""What a search is given, made ready: tables and queries for BLAS and kernels, candidates, exclusions."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix, under_one_type
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists, excluded_lists
from wsabie.base.mapped import parts
from wsabie.base.sparse import to_csr

_ROWS_AT_ONCE = 1 << 14
_FAR = 16
"""Squared distance of the points' mean from the origin, over their mean squared distance from it, that is far."""


def table_rows(values: Any, what: str) -> Any:
    """As `float32_rows`, but halves stay float16."""
    half = isinstance(values, np.ndarray) and values.dtype == np.float16
    return _rows(values if half else numbers(values, what), what)


def float32_rows(values: Any, what: str) -> Float32:
    """float32 with contiguous rows, as BLAS takes it without a copy."""
    rows: Float32 = _rows(numbers(values, what), what)
    return rows


def _rows(values: Any, what: str) -> Any:
    if values.ndim != 2:
        raise InputError(f"{what} has {values.ndim} dimension(s) but rows of vectors are needed")
    step, width = values.strides[0], values.shape[1] * values.itemsize
    regular = values.strides[1] == values.itemsize and step >= width and not step % values.itemsize
    return values if regular and values.flags.aligned else np.ascontiguousarray(values)


def numbers(values: Any, what: str) -> Float32:
    """As float32; what are no real numbers is refused."""
    sparse = hasattr(values, "tocsr")
    try:
        values = np.asarray(values)
        if sparse or values.dtype.kind == "c":
            raise TypeError("sparse" if sparse else "complex")
        converted: Float32 = values.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read as real numbers ({error}); give a dense array of them") from error
    return converted


def flat(table: Any) -> tuple[Any, int]:
    """The memory that the rows span as one dimension (halves as kernels take them), and the step from row to row."""
    if table.dtype == np.float16:
        table = table.view(np.uint16)
    n, stride = len(table), table.strides[0] // table.itemsize
    size = (n - 1) * stride + table.shape[1] if n else 0
    return under_one_type(np.lib.stride_tricks.as_strided(table, (size,), (table.itemsize,))), stride


def squares(table: Any) -> Float32:
    """Squared lengths of the rows."""
    out = np.empty(len(table), np.float32)
    for part in parts(len(table), _ROWS_AT_ONCE):
        some = table[part].astype(np.float32, copy=False)
        np.einsum("ij,ij->i", some, some, out=out[part])
    return out


def longest(table: Float32, norm2: Float32) -> float:
    """The length of the longest vector, also where its square is too small for float32."""
    largest = float(norm2.max(initial=0))
    if largest < 1e-30:
        largest = float(np.einsum("ij,ij->i", table, table, dtype=np.float64).max(initial=0))
    return float(np.sqrt(largest))


def far_centre(table: Float32) -> Float32 | None:
    """The mean of points that lie far from the origin, else None.

    Distances do not know where the origin is, but |q|^2 - 2 qw + |w|^2 loses its digits far from it.
    """
    if not len(table):
        return None
    centre = table.mean(axis=0, dtype=np.float64)
    spread = np.einsum("ij,ij->", table, table, dtype=np.float64) / len(table) - centre @ centre
    return centre.astype(np.float32) if centre @ centre > _FAR * spread else None


def candidates_of(candidates: Any, n_labels: int) -> Int64:
    """Label numbers, ascending, each once."""
    try:
        given = np.asarray(candidates)
    except ValueError as error:
        raise InputError(f"the candidates are lists of different lengths ({error}); give label numbers") from error
    if given.ndim != 1:
        raise InputError(f"the candidates have {given.ndim} dimensions; give one list of label numbers")
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"the candidates are of type {given.dtype}; give label numbers")
    ids: Int64 = given.astype(np.int64)
    if not (ids[1:] > ids[:-1]).all():
        ids = np.unique(ids)
    if len(ids) and not (ids[0] >= 0 and ids[-1] < n_labels):
        bad = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(f"candidate {bad} does not exist; labels are numbered 0 to {n_labels - 1}")
    return ids


def as_rows(exclude: Any) -> Any:
    """What is excluded, in a form of which rows can be taken."""
    return to_csr(exclude, "exclude") if hasattr(exclude, "tocsr") else exclude


def hidden_labels(exclude: Matrix | None, n_rows: int, n_labels: int, chosen: Int64 | None) -> Lists | None:
    """The excluded labels of each query, by their place among the candidates."""
    if exclude is None:
        return None
    lists = excluded_lists(exclude, n_rows, n_labels)
    if chosen is None:
        return lists
    place = np.full(n_labels, -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    known = place[lists.labels] >= 0
    before = np.concatenate([[0], np.cumsum(known)])
    return Lists(before[lists.indptr], place[lists.labels[known]])
