"""Sibling precision: how many of the first k labels are right or close to right.

Weston, Bengio and Usunier (2010, section 4) define it for one true label y and S in [0, 1]:

    psib@k = (S[y, y_1] + ... + S[y, y_k]) / k

With several true labels S[y, y_i] is the maximum over them: a suggestion counts by the true label that it is closest
to. S = identity then gives p@k for any number of true labels, and S = 1 everywhere gives 1.

Ties: as in `metrics`, the expected value over random orders of tied labels. Let A labels score strictly above the k-th
score and t labels have it; each of the t stands in one of the k - A places left with the same probability, so that

    k psib@k = sum of S over the A labels above + (k - A) * mean of S over the t labels
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Bool, Float32, Float64
from wsabie.base.lists import Lists
from wsabie.kernels.topk import Heap
from wsabie.labels.similar import Similar


def sibling_precision(
    scores: Any, best: Heap, positives: Lists, excluded: Lists, similar: Similar, ks: tuple[int, ...]
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """psib@k of a block of rows, and the highest that S allows.

    Parameters
    ----------
    scores : (n_rows, n_labels) float
        Without NaN.
    best : Heap
        The first max(ks) + 1 candidates of each row, best first, or all where there are fewer.
    positives, excluded : Lists over the same rows, without a common label
    similar : Similar
    ks : tuple of int

    Returns
    -------
    values, highest : dict of str to (n_rows,) float64
        "psib@k" for each k; NaN for rows without positives. One row of S is held at a time.
    """
    values = np.full((len(ks), len(scores)), np.nan)
    highest = values.copy()
    for row in np.flatnonzero(np.diff(positives.indptr)):
        alike = similar.to(positives.labels[positives.indptr[row] : positives.indptr[row + 1]])
        candidate = np.ones(len(alike), bool)
        candidate[excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]] = False
        ranked = best.labels[row] >= 0
        values[:, row] = expected(
            scores[row], best.scores[row][ranked], alike[best.labels[row][ranked]], alike, candidate, ks
        )
        highest[:, row] = _highest(alike[candidate], ks)
    names = [f"psib@{k}" for k in ks]
    return dict(zip(names, values, strict=True)), dict(zip(names, highest, strict=True))


def expected(scores: Any, first: Any, gains: Float32, alike: Float32, candidate: Bool, ks: tuple[int, ...]) -> Float64:
    """psib@k of one row for each k; `first` are the scores of its first labels, `gains` their S."""
    summed = np.concatenate([[0.0], np.cumsum(gains, dtype=np.float64)])
    values = np.empty(len(ks))
    for i, k in enumerate(ks):
        if k < len(first) and first[k] < first[k - 1]:
            values[i] = summed[k] / k
            continue
        # no label of a score of -inf is among the first ones: it is a candidate all the same
        cut = first[k - 1] if k < len(first) else -np.inf
        above = int(np.sum(first > cut))
        tied = alike[candidate & (scores == cut)]
        places = min(k - above, len(tied))
        values[i] = (summed[above] + (places * tied.mean(dtype=np.float64) if places else 0.0)) / k
    return values


def _highest(alike: Float32, ks: tuple[int, ...]) -> Float64:
    """psib@k of the best possible order."""
    most = min(max(ks), len(alike))
    top = np.sort(np.partition(alike, len(alike) - most)[len(alike) - most :])[::-1]
    summed = np.concatenate([[0.0], np.cumsum(top, dtype=np.float64)])
    return np.array([summed[min(k, most)] / k for k in ks])
