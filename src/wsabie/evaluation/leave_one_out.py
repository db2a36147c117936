"""Leave one label out: of each row with several labels one is kept for the test, the others are trained on.

The protocol of Guo et al. ("VSE-ens", AAAI 2018) and of recommenders: it asks whether the labels of a
row can be completed, so that rows are on both sides and labels are not. A row's training labels are then no candidates
(`exclude` of `evaluate_scores`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists, lists_of
from wsabie.base.sparse import to_csr
from wsabie.evaluation.splits import keyed_hash


class HeldOut(NamedTuple):
    """The two sides of every row's labels.

    Attributes
    ----------
    train : csr_matrix (n, n_labels)
        What is left; explicit negatives stay.
    test : csr_matrix (n, n_labels) int8
        1 for the label that was held out; rows that lost none are empty.
    """

    train: Matrix
    test: Matrix


def hold_out_labels(
    Y: Matrix, *, least: int = 2, share: float = 1.0, ids: Sequence[str] | None = None, seed: int = 0
) -> HeldOut:
    """Hold out one label, drawn at random, of every row that has enough.

    Parameters
    ----------
    Y : csr_matrix or array, (n, n_labels)
        Values above zero are labels of a row, values below are explicit negatives.
    least : int
        Rows with fewer labels keep them all. 1 holds out the only label of a row too, which then trains nothing.
    share : float
        Fraction of the rows with enough labels that lose one; above 0, up to 1.
    ids : sequence of str or None
        Names that decide the draw; None = the numbers of the rows.
    seed : int
        Same seed and ids = same labels, whatever the order of the rows.

    Returns
    -------
    HeldOut

    Raises
    ------
    InputError
        Parameters out of range, or no row has so many labels.

    Examples
    --------
    >>> held = hold_out_labels(np.array([[1, 1, 0], [0, -1, 1]]))
    >>> held.train.sum(axis=1).ravel().tolist(), held.test.sum(axis=1).ravel().tolist()
    ([[1, 0]], [[1, 0]])
    """
    from scipy.sparse import csr_matrix

    if least < 1 or not 0 < share <= 1:
        raise InputError(f"least = {least} and share = {share} but least is 1 or more, and share above 0 and up to 1")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")
    Y = to_csr(Y, "Y").copy()
    Y.sum_duplicates()
    n, n_labels = Y.shape
    if ids is not None and len(ids) != n:
        raise InputError(f"ids has {len(ids)} entries for {n} rows; give one per row")
    positives = lists_of(Y, n_labels, "Y", lambda data: data > 0)
    enough = np.flatnonzero(np.diff(positives.indptr) >= least)
    if not len(enough):
        raise InputError(f"no row has {least} labels or more, so that none can be held out; give rows with more")
    rows, labels = _drawn(positives, enough, share, [str(i if ids is None else ids[i]) for i in enough.tolist()], seed)
    entries = np.repeat(np.arange(n, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    Y.data[np.isin(entries, rows * n_labels + labels)] = 0
    Y.eliminate_zeros()
    return HeldOut(Y, csr_matrix((np.ones(len(rows), np.int8), (rows, labels)), (n, n_labels)))


def _drawn(positives: Lists, enough: Int64, share: float, names: list[str], seed: int) -> tuple[Int64, Int64]:
    """(rows that lose a label, the label of each): a share of the rows in `enough`, which have these names."""
    turn = np.array([keyed_hash(f"turn of {name}", seed) for name in names], np.uint64)
    chosen = np.sort(np.argsort(turn, kind="stable")[: max(1, round(share * len(enough)))])
    number = np.array([keyed_hash(f"label of {names[i]}", seed) for i in chosen.tolist()], np.uint64)
    rows = enough[chosen]
    first, last = positives.indptr[rows], positives.indptr[rows + 1]
    return rows, positives.labels[first + (number % (last - first).astype(np.uint64)).astype(np.int64)].astype(np.int64)
