"""Exact ranks of the positives, from scores or from points and label vectors."""

from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Float32, Matrix
from wsabie.core.errors import InputError
from wsabie.core.execution import run_in_ranges
from wsabie.core.label_lists import LabelLists, build_exclusion_lists, list_positives, remove_excluded
from wsabie.core.machine import resolve_threads
from wsabie.evaluation.metrics import PositiveRanks, build_ranks
from wsabie.kernels.ranking import label_ranks

_CHUNK = 1024
"""Rows per task: enough to amortise the tiles of the label table, few enough to balance the load."""


def rank_scores(scores: Array, positives: LabelLists, excluded: LabelLists) -> PositiveRanks:
    """Rank the positives of a block of rows.

    Parameters
    ----------
    scores : (n_rows, n_labels) float32 or float64, C order
    positives, excluded : LabelLists over the same rows, without a common label
    """
    n_rows, n_labels = scores.shape
    true_scores, counts = np.empty(len(positives.labels), scores.dtype), _allocate_counts(positives)
    label_ranks.count_ranks(scores, positives, true_scores, counts, 0, n_rows)
    if len(excluded.labels):
        excluded_scores = np.asarray(scores[excluded.rows, excluded.labels])
        label_ranks.subtract_excluded_labels(positives, true_scores, excluded, excluded_scores, counts, 0, n_rows)
    return _build_ranks(positives, excluded, counts, n_labels)


def rank_embeddings(
    labels: Any, queries: Float32, Y: Matrix, *, exclude: Matrix | None = None, threads: int | None = None
) -> PositiveRanks:
    """Rank the positives of points in the space; the bits are the same for any number of threads.

    The validation figures that steer training use this function: it uses no BLAS, and its memory does not grow with the
    labels.

    Parameters
    ----------
    labels : kernels.similarity.Dot, Euclidean or Cosine
        `table` (n_labels, dim) and `bias` (n_labels,), both float32.
    queries : (n, dim) float32, C order
    Y : see `list_positives`
    exclude : csr_matrix (n, n_labels) or None
        Labels that are not candidates (and no positives) of the row.
    threads : int or None
        None: the cores that this process may use.

    Raises
    ------
    InputError
        Y or exclude do not fit, or a positive's score is NaN.

    Examples
    --------
    >>> from wsabie.kernels.embedding.similarity import Dot
    >>> labels = Dot(np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
    >>> rank_embeddings(labels, np.array([[0.1, 0.9, 0.2]], np.float32), np.array([2])).n_above
    array([1])
    """
    n_labels, dim = labels.table.shape
    if queries.shape[1] != dim:
        raise InputError(f"the points have {queries.shape[1]} dimensions but the label vectors {dim}; use one space")
    excluded = build_exclusion_lists(exclude, len(queries), n_labels)
    positives = remove_excluded(list_positives(Y, n_labels), excluded, n_labels)
    if positives.n_rows != len(queries):
        raise InputError(f"Y has {positives.n_rows} rows but there are {len(queries)} points; give one row each")
    true_scores, excluded_scores = (np.empty(len(lists.labels), np.float32) for lists in (positives, excluded))
    counts = _allocate_counts(positives)

    def rank_range(lo: int, hi: int) -> None:
        scratch = label_ranks.allocate_scratch(hi - lo, dim)
        label_ranks.score_listed_labels(labels, queries, positives, true_scores, lo, hi, scratch)
        label_ranks.count_query_ranks(labels, queries, positives, true_scores, counts, lo, hi, scratch)
        if len(excluded_scores):
            label_ranks.score_listed_labels(labels, queries, excluded, excluded_scores, lo, hi, scratch)
            label_ranks.subtract_excluded_labels(positives, true_scores, excluded, excluded_scores, counts, lo, hi)

    threads = resolve_threads(threads)
    chunk = max(64, min(_CHUNK, -(-len(queries) // threads)))
    run_in_ranges(rank_range, len(queries), chunk, threads)
    if np.isnan(true_scores).any():
        row = int(positives.rows[np.isnan(true_scores)][0])
        fact = f"the score of a positive of row {row} is NaN"
        raise InputError(f"{fact}; the model has diverged or the row is not finite")
    return _build_ranks(positives, excluded, counts, n_labels)


def _allocate_counts(positives: LabelLists) -> label_ranks.RankCounts:
    return label_ranks.RankCounts(np.zeros(len(positives.labels), np.int32), np.zeros(len(positives.labels), np.int32))


def _build_ranks(
    positives: LabelLists, excluded: LabelLists, counts: label_ranks.RankCounts, n_labels: int
) -> PositiveRanks:
    n_candidates = n_labels - np.diff(excluded.indptr)
    return build_ranks(positives.indptr, counts.n_above, counts.n_tied, n_candidates)
