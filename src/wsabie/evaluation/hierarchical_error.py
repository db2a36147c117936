"""The hierarchical error of the ImageNet challenges of 2010 and 2011, since withdrawn as insensitive ([D] A.3).

    herr@k = the least height of the lowest common ancestor of a true label and one of the first k labels

0 where a true label is among them (`wsabie.labels.heights`); lower is better. Ties: the expected value over random
orders of tied labels. Let A labels score strictly above the k-th score, and t labels have it, with the errors d_1 <=
... <= d_t: the least error of m = k - A labels drawn from them is d_i with probability C(t - i, m - 1) / C(t, m).
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Bool, Float64
from wsabie.base.lists import Lists
from wsabie.kernels.topk import Heap
from wsabie.labels.heights import Heights


def hierarchical_error(
    scores: Any, best: Heap, positives: Lists, excluded: Lists, heights: Heights, ks: tuple[int, ...]
) -> dict[str, Float64]:
    """herr@k of a block of rows.

    Parameters
    ----------
    scores, best, positives, excluded, ks
        As of `sibling_precision`.
    heights : Heights

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
        values[:, row] = [_least(scores[row], first, errors, candidate, k) for k in ks]
    return {f"herr@{k}": value for k, value in zip(ks, values, strict=True)}


def _least(scores: Any, first: Any, errors: Float64, candidate: Bool, k: int) -> float:
    """Of one row; `first` are the scores of its first labels."""
    # no label of a score of -inf is among the first ones: it is a candidate all the same
    cut = first[k - 1] if k <= len(first) else -np.inf
    over = candidate & (scores > cut)
    tied = np.sort(errors[candidate & (scores == cut)])
    least = float(errors[over].min(initial=np.inf))
    drawn = min(k - int(over.sum()), len(tied))
    if not drawn:
        return least
    i = np.arange(len(tied) - drawn)
    chance = np.cumprod(np.append(drawn / len(tied), (len(tied) - i - drawn) / (len(tied) - i - 1)))
    return float(chance @ np.minimum(tied[: len(chance)], least))
