"""Lists of labels, one per row: true labels, or labels that are not candidates."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.sparse_matrices import convert_to_csr


class LabelLists(NamedTuple):
    """List of label ids per row: `labels[indptr[i]:indptr[i + 1]]`, sorted, no duplicates."""

    indptr: Int64  # (n_rows + 1,)
    labels: Array  # (nnz,) int32

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def part(self, lo: int, hi: int) -> "LabelLists":
        """Return the lists of the rows lo..hi-1."""
        indptr = self.indptr[lo : hi + 1]
        return LabelLists(indptr - indptr[0], self.labels[indptr[0] : indptr[-1]])


def build_label_lists(
    matrix: Matrix, n_labels: int, name: str, select: Callable[[Array], Bool] = lambda data: data != 0
) -> LabelLists:
    """List the selected entries (default: non-zeros) of each row of a matrix (n_rows, n_labels).

    Raises
    ------
    InputError
        When the matrix, which the message calls `name`, has another number of columns.

    Examples
    --------
    >>> build_label_lists(np.array([[0, 2, -1]]), 3, "Y", lambda data: data > 0).labels
    array([1], dtype=int32)
    """
    matrix = convert_to_csr(matrix, name).copy()
    if matrix.shape[1] != n_labels:
        raise InputError(f"{name} has {matrix.shape[1]} columns but there are {n_labels} labels; use the same labels")
    matrix.sum_duplicates()
    matrix.data = select(matrix.data).astype(np.int8)
    matrix.eliminate_zeros()
    return LabelLists(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def build_exclusion_lists(exclude: Matrix | None, n_rows: int, n_labels: int) -> LabelLists:
    """List the labels of each row that are not candidates: the non-zeros of `exclude`; None = none."""
    if exclude is None:
        return LabelLists(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32))
    lists = build_label_lists(exclude, n_labels, "exclude")
    if lists.n_rows != n_rows:
        raise InputError(f"exclude has {lists.n_rows} rows but there are {n_rows}; give one row each")
    return lists
