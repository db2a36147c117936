"""Exact ranks of the positives, from given scores or from points and label vectors."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists, excluded_lists
from wsabie.base.machine import available_cores
from wsabie.base.threads import for_each
from wsabie.evaluation.metrics import Ranks, ranks_from_counts
from wsabie.evaluation.targets import positive_lists, rows_of, without
from wsabie.kernels.ranks import Counts, count_ranks, leave_out, new_scratch, rank_counts, score_listed

_CHUNK = 1024
"""Rows per task: enough to amortise the tiles of the label table, few enough to share out evenly."""


def ranks_of_scores(scores: Any, positives: Lists, excluded: Lists) -> Ranks:
    """Ranks of the positives of a block of rows.

    Parameters
    ----------
    scores : (n_rows, n_labels) float32 or float64, C order
    positives, excluded : Lists over the same rows, without a common label
    """
    n_rows, n_labels = scores.shape
    own, counts = np.empty(len(positives.labels), scores.dtype), _no_counts(positives)
    count_ranks(scores, positives, own, counts, 0, n_rows)
    if len(excluded.labels):
        other = np.asarray(scores[rows_of(excluded), excluded.labels])
        leave_out(positives, own, excluded, other, counts, 0, n_rows)
    return _ranks(positives, excluded, counts, n_labels)


def ranks_of_points(
    labels: Any, queries: Float32, Y: Matrix, *, exclude: Matrix | None = None, threads: int | None = None
) -> Ranks:
    """Ranks of the positives of points in the space; the bits are the same for any number of threads.

    Meant for the validation figures that steer training: no BLAS is used, and memory does not grow with the
    labels.

    Parameters
    ----------
    labels : kernels.similarity.Dot, Euclidean or Cosine
        `table` (n_labels, dim) and `bias` (n_labels,), both float32.
    queries : (n, dim) float32, C order
    Y : as for `positive_lists`
    exclude : csr_matrix (n, n_labels) or None
        Labels that are no candidates (and no positives) of the row.
    threads : int or None
        None = the cores this process may use.

    Raises
    ------
    InputError
        When Y or exclude do not fit, or a positive's score is NaN.

    Examples
    --------
    >>> from wsabie.kernels.similarity import Dot
    >>> labels = Dot(np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
    >>> ranks_of_points(labels, np.array([[0.1, 0.9, 0.2]], np.float32), np.array([2])).above
    array([1])
    """
    n_labels, dim = labels.table.shape
    if queries.shape[1] != dim:
        raise InputError(f"the points have {queries.shape[1]} dimensions but the label vectors {dim}; use one space")
    excluded = excluded_lists(exclude, len(queries), n_labels)
    positives = without(positive_lists(Y, n_labels), excluded, n_labels)
    if positives.n_rows != len(queries):
        raise InputError(f"Y has {positives.n_rows} rows but there are {len(queries)} points; give one row each")
    own, other = np.empty(len(positives.labels), np.float32), np.empty(len(excluded.labels), np.float32)
    counts = _no_counts(positives)

    def work(lo: int, hi: int) -> None:
        scratch = new_scratch(hi - lo, dim)
        score_listed(labels, queries, positives, own, lo, hi, scratch)
        rank_counts(labels, queries, positives, own, counts, lo, hi, scratch)
        if len(other):
            score_listed(labels, queries, excluded, other, lo, hi, scratch)
            leave_out(positives, own, excluded, other, counts, lo, hi)

    threads = threads or available_cores()
    chunk = max(64, min(_CHUNK, -(-len(queries) // threads)))
    for_each(lambda lo: work(lo, min(lo + chunk, len(queries))), range(0, len(queries), chunk), threads)
    if np.isnan(own).any():
        row = int(rows_of(positives)[np.isnan(own)][0])
        raise InputError(
            f"the score of a positive of row {row} is NaN; the model has diverged or the row is not finite"
        )
    return _ranks(positives, excluded, counts, n_labels)


def _no_counts(positives: Lists) -> Counts:
    return Counts(np.zeros(len(positives.labels), np.int32), np.zeros(len(positives.labels), np.int32))


def _ranks(positives: Lists, excluded: Lists, counts: Counts, n_labels: int) -> Ranks:
    n_candidates = n_labels - np.diff(excluded.indptr)
    return ranks_from_counts(positives.indptr, counts.above, counts.tied, n_candidates)
