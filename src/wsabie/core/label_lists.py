"""Lists of labels, one per row: positive labels, or labels that are not candidates."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.validation import as_array, convert_to_csr


def count_label_rows(Y: Matrix) -> Int64:
    """Return the number of rows of which each label is true, (n_labels,), by a CSR matrix."""
    return np.bincount(Y.indices[Y.data > 0], minlength=Y.shape[1])


class LabelLists(NamedTuple):
    """List of label ids per row: `labels[indptr[i]:indptr[i + 1]]`, sorted, no duplicates."""

    indptr: Int64  # (n_rows + 1,)
    labels: Array  # (nnz,) int32

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def rows(self) -> Int64:
        """Row of every entry, (nnz,)."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int64), np.diff(self.indptr))

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
    require(lists.n_rows == n_rows, f"exclude has {lists.n_rows} rows but there are {n_rows}; give one row each")
    return lists


def list_positives(Y: Matrix, n_labels: int) -> LabelLists:
    """List the positive labels of each row.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels), or int array (n,)
        Values above zero are positives (explicit negatives, -1, are not); or one label per row.
    n_labels : int

    Returns
    -------
    LabelLists
        Sorted, without duplicates.

    Raises
    ------
    InputError
        Y has another width, or names a label outside 0..n_labels - 1.

    Examples
    --------
    >>> lists = list_positives(np.array([[1, 0, 1], [0, -1, 0]]), 3)
    >>> lists.indptr.tolist(), lists.labels.tolist()
    ([0, 2, 2], [0, 2])
    """
    if not hasattr(Y, "tocsr"):
        Y = as_array(Y, "Y")
        if Y.ndim == 1:
            return _list_single_labels(Y, n_labels)
    return build_label_lists(Y, n_labels, "Y", lambda data: data > 0)


def remove_excluded(lists: LabelLists, excluded: LabelLists, n_labels: int) -> LabelLists:
    """Remove the excluded labels of each row from `lists`.

    Examples
    --------
    >>> lists = list_positives(np.array([[1, 1, 0]]), 3)
    >>> remove_excluded(lists, list_positives(np.array([1]), 3), 3).labels.tolist()
    [0]
    """
    if not len(excluded.labels):
        return lists
    rows = lists.rows
    is_allowed = ~np.isin(rows * n_labels + lists.labels, excluded.rows * n_labels + excluded.labels)
    counts = np.bincount(rows[is_allowed], minlength=lists.n_rows)
    return LabelLists(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), lists.labels[is_allowed])


def _list_single_labels(labels: Any, n_labels: int) -> LabelLists:
    require(labels.dtype.kind in "iu", f"Y holds {labels.dtype} values but one label per row is given by integers")
    outside = np.flatnonzero((labels < 0) | (labels >= n_labels))
    if len(outside):
        raise InputError(f"row {outside[0]} of Y has label {labels[outside[0]]} but the labels are 0 to {n_labels - 1}")
    return LabelLists(np.arange(len(labels) + 1, dtype=np.int64), labels.astype(np.int32))
