"""What counts as right: lists of positive labels per row, and lists of labels that are no candidates."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists, lists_of
from wsabie.base.sparse import as_array


def positive_lists(Y: Matrix, n_labels: int) -> Lists:
    """The positive labels of each row.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels), or int array (n,)
        Values above zero are positives (explicit negatives, -1, are not); or one label per row.
    n_labels : int

    Returns
    -------
    Lists
        Sorted, without duplicates.

    Raises
    ------
    InputError
        When Y has another width, or names a label outside 0..n_labels - 1.

    Examples
    --------
    >>> lists = positive_lists(np.array([[1, 0, 1], [0, -1, 0]]), 3)
    >>> lists.indptr.tolist(), lists.labels.tolist()
    ([0, 2, 2], [0, 2])
    """
    if not hasattr(Y, "tocsr"):
        Y = as_array(Y, "Y")
        if Y.ndim == 1:
            return _one_each(Y, n_labels)
    return lists_of(Y, n_labels, "Y", lambda data: data > 0)


def without(lists: Lists, excluded: Lists, n_labels: int) -> Lists:
    """`lists` minus the excluded labels of the same rows.

    Examples
    --------
    >>> lists = positive_lists(np.array([[1, 1, 0]]), 3)
    >>> without(lists, positive_lists(np.array([1]), 3), 3).labels.tolist()
    [0]
    """
    if not len(excluded.labels):
        return lists
    row = rows_of(lists)
    keep = ~np.isin(row * n_labels + lists.labels, rows_of(excluded) * n_labels + excluded.labels)
    counts = np.bincount(row[keep], minlength=lists.n_rows)
    return Lists(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), lists.labels[keep])


def rows_of(lists: Lists) -> Int64:
    """The row of every entry of `lists`, (nnz,)."""
    return np.repeat(np.arange(lists.n_rows, dtype=np.int64), np.diff(lists.indptr))


def _one_each(labels: Any, n_labels: int) -> Lists:
    if labels.dtype.kind not in "iu":
        raise InputError(f"Y holds {labels.dtype} values but one label per row is given by integers")
    outside = np.flatnonzero((labels < 0) | (labels >= n_labels))
    if len(outside):
        raise InputError(f"row {outside[0]} of Y has label {labels[outside[0]]} but the labels are 0 to {n_labels - 1}")
    return Lists(np.arange(len(labels) + 1, dtype=np.int64), labels.astype(np.int32))
