"""Lists of positive labels per row, and of labels that are no candidates."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.label_lists import LabelLists, build_label_lists
from wsabie.core.sparse_matrices import as_array


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
    row = expand_rows(lists)
    keep = ~np.isin(row * n_labels + lists.labels, expand_rows(excluded) * n_labels + excluded.labels)
    counts = np.bincount(row[keep], minlength=lists.n_rows)
    return LabelLists(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), lists.labels[keep])


def expand_rows(lists: LabelLists) -> Int64:
    """Return the row of every entry of `lists`, (nnz,)."""
    return np.repeat(np.arange(lists.n_rows, dtype=np.int64), np.diff(lists.indptr))


def _list_single_labels(labels: Any, n_labels: int) -> LabelLists:
    if labels.dtype.kind not in "iu":
        raise InputError(f"Y holds {labels.dtype} values but one label per row is given by integers")
    outside = np.flatnonzero((labels < 0) | (labels >= n_labels))
    if len(outside):
        raise InputError(f"row {outside[0]} of Y has label {labels[outside[0]]} but the labels are 0 to {n_labels - 1}")
    return LabelLists(np.arange(len(labels) + 1, dtype=np.int64), labels.astype(np.int32))
