"""Checked feature rows, sparse or dense: how many there are, some of them, and how other libraries know them."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64, Matrix
from wsabie.space import protocol
from wsabie.storage.schema import check_array

Inputs = Csr | Float32
AnyInputs = TypeVar("AnyInputs", Csr | Float32, protocol.Inputs)

BLOCK_BYTES = 32 << 20
"""Scores held at once while ranking or evaluating."""


def n_rows(inputs: protocol.Inputs) -> int:
    """Rows of checked features."""
    return inputs.n_rows if isinstance(inputs, Csr) else len(inputs)


def rows_between(inputs: AnyInputs, lo: int, hi: int) -> AnyInputs:
    """The rows lo..hi - 1, sharing memory with `inputs`.

    Examples
    --------
    >>> rows = Csr(np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.ones(3, np.float32))
    >>> rows_between(rows, 1, 2).indices.tolist()
    [0, 2]
    """
    if not isinstance(inputs, Csr):
        return inputs[lo:hi]
    start, end = inputs.indptr[lo], inputs.indptr[hi]
    return Csr(inputs.indptr[lo : hi + 1] - start, inputs.indices[start:end], inputs.data[start:end])


def take_rows(inputs: AnyInputs, rows: Int64) -> AnyInputs:
    """A copy of the rows of those numbers, in their order.

    Examples
    --------
    >>> rows = Csr(np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.ones(3, np.float32))
    >>> take_rows(rows, np.array([1, 0])).indices.tolist()
    [0, 2, 4]
    """
    if not isinstance(inputs, Csr):
        return np.ascontiguousarray(inputs[rows])  # type: ignore[return-value]
    counts = np.diff(inputs.indptr)[rows]
    at = np.repeat(inputs.indptr[rows] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Csr(starts, inputs.indices[at], inputs.data[at])


def row_ranges(n: int, width: int, n_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Blocks lo, hi of rows whose `width` float32 scores each fill at most `n_bytes` (None: `BLOCK_BYTES`).

    A block has at least one row.

    Examples
    --------
    >>> list(row_ranges(5, width=8, n_bytes=64))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, (BLOCK_BYTES if n_bytes is None else n_bytes) // (4 * max(width, 1)))
    for lo in range(0, n, step):
        yield lo, min(lo + step, n)


def as_matrix(inputs: Inputs, n_features: int) -> Matrix:
    """Checked rows as scipy or NumPy knows them, sharing memory."""
    from scipy.sparse import csr_matrix

    if not isinstance(inputs, Csr):
        return inputs
    return csr_matrix((inputs.data, inputs.indices, inputs.indptr), shape=(inputs.n_rows, n_features))


def matrix_tensors(name: str, matrix: Matrix) -> dict[str, Any]:
    """A matrix as the arrays of a model folder: one when it is dense, three when it is sparse.

    Examples
    --------
    >>> sorted(matrix_tensors("train", as_matrix(Csr(np.array([0, 1]), np.array([0]), np.ones(1)), 2)))
    ['train/data', 'train/indices', 'train/indptr']
    """
    if not hasattr(matrix, "tocsr"):
        return {name: matrix}
    return {f"{name}/{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def matrix_from(name: str, tensors: Mapping[str, Any], shape: tuple[int, int]) -> Matrix:
    """The matrix that `matrix_tensors` took apart, sharing memory; parts that do not agree raise ValueError."""
    from scipy.sparse import csr_matrix

    if name in tensors:
        return check_array(tensors, name, "float32", shape)
    whole = "int32 int64"
    indptr, indices = check_lists(name, tensors, shape, (whole, whole))
    data = check_array(tensors, f"{name}/data", "float32", indices.shape)
    return csr_matrix((data, indices, indptr), shape=shape)


def check_lists(
    name: str, tensors: Mapping[str, Any], shape: tuple[int, int], dtypes: tuple[str, str]
) -> tuple[Any, Any]:
    """Return the arrays `indptr` and `indices` of a sparse matrix in a model folder.

    Parameters
    ----------
    name : str
        Of the matrix.
    tensors : mapping of str to array
    shape : (int, int)
    dtypes : (str, str)
        Names of the types that each may have, as for `check_array`.

    Raises
    ------
    ValueError
        One has another type or length, or points outside.
    """
    indptr = check_array(tensors, f"{name}/indptr", dtypes[0], (shape[0] + 1,))
    indices = check_array(tensors, f"{name}/indices", dtypes[1], (None,), below=shape[1])
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{name}/indptr does not agree with {name}/indices")
    return indptr, indices
