"""Inner products of rows with tables as sparse as the rows: other rows, sums or means of rows."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Csr, Float32, Matrix, view_as_writable
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix, count_rows, restore_matrix
from wsabie.models.base.row_scaling import sum_rows

_LEAST_LENGTH = 1e-12


def scale_to_unit(inputs: FeatureMatrix) -> FeatureMatrix:
    """Return rows at unit length; rows of zeros stay.

    Examples
    --------
    >>> scale_to_unit(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if isinstance(inputs, Csr):
        lengths = np.sqrt(sum_rows(inputs.data * inputs.data, inputs.indptr))
        divisors = np.repeat(np.maximum(lengths, _LEAST_LENGTH), np.diff(inputs.indptr)).astype(np.float32)
        return inputs._replace(data=inputs.data / divisors)
    lengths = np.sqrt(np.einsum("ij,ij->i", inputs, inputs))
    units: Float32 = inputs / np.maximum(lengths, _LEAST_LENGTH).astype(np.float32)[:, None]
    return units


def convert_to_csr(matrix: Matrix) -> Csr:
    """Return a scipy matrix in the types that kernels take; arrays of the right type are not copied."""
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
    from wsabie.kernels.ranking.sparse_products import multiply_rows

    out = np.empty((count_rows(inputs), n), np.float32)
    multiply_rows(inputs, convert_to_csr(table), out)
    return out
