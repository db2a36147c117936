"""Hierarchical error of the ImageNet challenges of 2010 and 2011 (Frome et al. 2013, appendix A.3).

The challenges withdrew it later, because it is insensitive.

    herr@k = the least height of the lowest common ancestor of a true label and one of the first k labels

It is 0 if a true label is among them (`wsabie.vocabulary.hierarchy_distance`); lower is better. With ties it is the
expected value over random orders of tied labels. Let A labels score strictly above the k-th score, and t labels have
it, with the errors d_1 <= ... <= d_t. The least error of m = k - A labels drawn from them is d_i with probability
C(t - i, m - 1) / C(t, m).
"""

from typing import Any

import numpy as np

from wsabie.core.arrays import Bool, Float64
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking.topk import TopKHeap
from wsabie.vocabulary.hierarchy_distance import AncestorHeights


def compute_hierarchical_error(
    scores: Any,
    best: TopKHeap,
    positives: LabelLists,
    excluded: LabelLists,
    heights: AncestorHeights,
    ks: tuple[int, ...],
) -> dict[str, Float64]:
    """Compute herr@k of a block of rows.

    Parameters
    ----------
    scores, best, positives, excluded, ks
        See `compute_sibling_precision`.
    heights : AncestorHeights

    Returns
    -------
    dict of str to (n_rows,) float64
        "herr@k" for each k; NaN for rows without positives.
    """
    values = np.full((len(ks), len(scores)), np.nan)
    for row in np.flatnonzero(np.diff(positives.indptr)):
        candidate = np.ones(heights.n_labels, bool)
        candidate[excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]] = False
        errors = heights.between(positives.labels[positives.indptr[row] : positives.indptr[row + 1]])
        first = best.scores[row][best.labels[row] >= 0]
        values[:, row] = [_compute_row_error(scores[row], first, errors, candidate, k) for k in ks]
    return {f"herr@{k}": value for k, value in zip(ks, values, strict=True)}


def _compute_row_error(scores: Any, first: Any, errors: Float64, candidate: Bool, k: int) -> float:
    """Compute herr@k of one row; `first` are the scores of its first labels."""
    # labels with a score of -inf are never among the first ones, but they are candidates
    cut = first[k - 1] if k <= len(first) else -np.inf
    is_above = candidate & (scores > cut)
    tied = np.sort(errors[candidate & (scores == cut)])
    least_above = float(errors[is_above].min(initial=np.inf))
    n_drawn = min(k - int(is_above.sum()), len(tied))
    if not n_drawn:
        return least_above
    i = np.arange(len(tied) - n_drawn)
    chance = np.cumprod(np.append(n_drawn / len(tied), (len(tied) - i - n_drawn) / (len(tied) - i - 1)))
    return float(chance @ np.minimum(tied[: len(chance)], least_above))
