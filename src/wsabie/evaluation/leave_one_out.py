"""Leave-one-out split of labels: of each row with several labels one is tested, the others train.

This is the protocol of Guo et al. 2018 ("VSE-ens") and of recommenders. It measures how well a model completes the
labels of a row: rows are on both sides, (row, label) pairs are not. The training labels of a row are then no candidates
(`exclude` of `evaluate_scores`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.label_lists import LabelLists, build_label_lists
from wsabie.core.sparse_matrices import convert_to_csr
from wsabie.evaluation.splits import hash_with_seed


class LabelHoldout(NamedTuple):
    """Training and test labels of every row.

    Attributes
    ----------
    train : csr_matrix (n, n_labels)
        The remaining labels; explicit negatives stay.
    test : csr_matrix (n, n_labels) int8
        1 for the held-out label; rows without one are empty.
    """

    train: Matrix
    test: Matrix


def hold_out_labels(
    Y: Matrix, *, least: int = 2, share: float = 1.0, ids: Sequence[str] | None = None, seed: int = 0
) -> LabelHoldout:
    """Hold out one random label of every row with enough labels.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are labels of a row, values below are explicit negatives.
    least : int
        Rows with fewer labels keep them all. 1 holds out the only label of a row too, which then trains nothing.
    share : float
        Fraction of the rows with enough labels that lose one; above 0, up to 1.
    ids : sequence of str or None
        Names that decide the draw; None: the numbers of the rows.
    seed : int
        The same seed and ids give the same labels, in any order of the rows.

    Returns
    -------
    LabelHoldout

    Raises
    ------
    InputError
        A parameter is out of range, or no row has so many labels.

    Examples
    --------
    >>> sides = hold_out_labels(np.array([[1, 1, 0], [0, -1, 1]]))
    >>> sides.train.sum(axis=1).ravel().tolist(), sides.test.sum(axis=1).ravel().tolist()
    ([[1, 0]], [[1, 0]])
    """
    from scipy.sparse import csr_matrix

    if least < 1 or not 0 < share <= 1:
        raise InputError(f"least = {least} and share = {share} but least is 1 or more, and share above 0 and up to 1")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")
    Y = convert_to_csr(Y, "Y").copy()
    Y.sum_duplicates()
    n, n_labels = Y.shape
    if ids is not None and len(ids) != n:
        raise InputError(f"ids has {len(ids)} entries for {n} rows; give one per row")
    positives = build_label_lists(Y, n_labels, "Y", lambda data: data > 0)
    eligible = np.flatnonzero(np.diff(positives.indptr) >= least)
    if not len(eligible):
        raise InputError(f"no row has {least} labels or more, so that none can be held out; give rows with more")
    rows, labels = _draw_labels(
        positives, eligible, share, [str(i if ids is None else ids[i]) for i in eligible.tolist()], seed
    )
    entries = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    Y.data[np.isin(entries, rows * n_labels + labels)] = 0
    Y.eliminate_zeros()
    return LabelHoldout(Y, csr_matrix((np.ones(len(rows), np.int8), (rows, labels)), (n, n_labels)))


def _draw_labels(
    positives: LabelLists, eligible: Int64, share: float, names: list[str], seed: int
) -> tuple[Int64, Int64]:
    """Draw a share of the rows in `eligible`, which have these names, and a label of each."""
    turns = np.array([hash_with_seed(f"turn of {name}", seed) for name in names], np.uint64)
    positions = np.sort(np.argsort(turns, kind="stable")[: max(1, round(share * len(eligible)))])
    hashes = np.array([hash_with_seed(f"label of {names[i]}", seed) for i in positions.tolist()], np.uint64)
    rows = eligible[positions]
    first, last = positives.indptr[rows], positives.indptr[rows + 1]
    return rows, positives.labels[first + (hashes % (last - first).astype(np.uint64)).astype(np.int64)].astype(np.int64)
