"""Checked feature rows, sparse or dense: slices, conversion, storage and products with a table."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Csr, Float32, Int64, Matrix, count_rows, view_as_writable
from wsabie.embedding import protocols
from wsabie.storage.schema_validation import check_array, check_sparse_indices

FeatureMatrix = Csr | Float32
AnyRows = TypeVar("AnyRows", Csr | Float32, protocols.EntityInputs)
RowParts: TypeAlias = Iterable[tuple[FeatureMatrix, Matrix]]
"""Scaled rows with their labels, csr_matrix (n, n_labels), all at once or in parts."""

BLOCK_BYTES = 32 << 20
"""Bytes of scores that ranking and evaluation hold at once."""


def slice_rows(inputs: AnyRows, lo: int, hi: int) -> AnyRows:
    """Return the rows lo..hi - 1, sharing memory with `inputs`.

    Examples
    --------
    >>> rows = Csr(np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.ones(3, np.float32))
    >>> slice_rows(rows, 1, 2).indices.tolist()
    [0, 2]
    """
    if not isinstance(inputs, Csr):
        return inputs[lo:hi]
    start, end = inputs.indptr[lo], inputs.indptr[hi]
    return Csr(inputs.indptr[lo : hi + 1] - start, inputs.indices[start:end], inputs.data[start:end])


def take_rows(inputs: AnyRows, rows: Int64) -> AnyRows:
    """Return a copy of the rows with these numbers, in their order.

    Examples
    --------
    >>> rows = Csr(np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.ones(3, np.float32))
    >>> take_rows(rows, np.array([1, 0])).indices.tolist()
    [0, 2, 4]
    """
    if not isinstance(inputs, Csr):
        return np.ascontiguousarray(inputs[rows])  # type: ignore[return-value]
    counts = np.diff(inputs.indptr)[rows]
    positions = np.repeat(inputs.indptr[rows] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Csr(starts, inputs.indices[positions], inputs.data[positions])


def iterate_row_ranges(n: int, width: int, n_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield ranges (lo, hi) of rows whose float32 scores fill at most `n_bytes` (None: `BLOCK_BYTES`).

    A row has `width` scores, and a range at least one row.

    Examples
    --------
    >>> list(iterate_row_ranges(5, width=8, n_bytes=64))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, (BLOCK_BYTES if n_bytes is None else n_bytes) // (4 * max(width, 1)))
    for lo in range(0, n, step):
        yield lo, min(lo + step, n)


def convert_to_matrix(inputs: FeatureMatrix, n_features: int) -> Matrix:
    """Return checked rows as a scipy matrix or a NumPy array, sharing memory."""
    if not isinstance(inputs, Csr):
        return inputs
    return csr_matrix((inputs.data, inputs.indices, inputs.indptr), shape=(inputs.n_rows, n_features))


def dump_matrix(name: str, matrix: Matrix) -> dict[str, Array]:
    """Return a matrix as arrays of a model folder: one if it is dense, three if it is sparse.

    Examples
    --------
    >>> sorted(dump_matrix("train", convert_to_matrix(Csr(np.array([0, 1]), np.array([0]), np.ones(1)), 2)))
    ['train/data', 'train/indices', 'train/indptr']
    """
    if not hasattr(matrix, "tocsr"):
        return {name: matrix}
    return {f"{name}/{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def restore_matrix(name: str, tensors: Mapping[str, Array], shape: tuple[int, int]) -> Matrix:
    """Restore a matrix from the arrays of `dump_matrix`, sharing memory; ValueError if they do not agree."""
    if name in tensors:
        return check_array(tensors, name, "float32", shape)
    index_dtypes = "int32 int64"
    indptr, indices = check_sparse_indices(tensors, name, (index_dtypes, index_dtypes), shape)
    data = check_array(tensors, f"{name}/data", "float32", indices.shape)
    return csr_matrix((data, indices, indptr), shape=shape)


def convert_from_matrix(matrix: Matrix) -> Csr:
    """Return a scipy matrix as rows for kernels; arrays of the right type are not copied."""
    typed = ((matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.float32))
    return Csr(*(view_as_writable(np.asarray(array, dtype)) for array, dtype in typed))


def index_by_feature(table: Matrix) -> Matrix:
    """Return a table for `multiply_rows`: a sparse one is transposed, to list its rows by feature."""
    return csr_matrix(table.T) if hasattr(table, "tocsr") else table


def restore_table(name: str, tensors: Mapping[str, Array], shape: tuple[int, int]) -> Matrix:
    """Restore an `index_by_feature` table of this shape from the arrays of `dump_matrix`."""
    return restore_matrix(name, tensors, shape if name in tensors else shape[::-1])


def multiply_rows(inputs: FeatureMatrix, table: Matrix, n: int) -> Float32:
    """Return inner products of rows with the n rows of an `index_by_feature` table, (n_rows, n) float32."""
    if not hasattr(table, "tocsr"):
        rows = convert_to_matrix(inputs, table.shape[1])
        return np.ascontiguousarray(rows @ table.T, np.float32)
    from wsabie.kernels.features.sparse_rows import multiply_rows

    out = np.empty((count_rows(inputs), n), np.float32)
    multiply_rows(inputs, convert_from_matrix(table), out)
    return out
