"""Sibling precision: the share of the first k labels that are true or similar to a true one.

Weston et al. 2010, section 4, define it for one true label y and S in [0, 1]:

    psib@k = (S[y, y_1] + ... + S[y, y_k]) / k

With several true labels S[y, y_i] is the maximum over them: the closest true label counts. S = identity then gives p@k
for any number of true labels, and S = 1 everywhere gives 1.

With ties it is, as in `metrics`, the expected value over random orders of tied labels. Let A labels score strictly
above the k-th score and t labels have it. Each of the t is in one of the k - A remaining places with the same
probability, so that

    k psib@k = sum of S over the A labels above + (k - A) * mean of S over the t labels
"""

from typing import Any

import numpy as np

from wsabie.core.arrays import Bool, Float32, Float64
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking.topk import TopKHeap
from wsabie.vocabulary.label_similarity import LabelSimilarity


def compute_sibling_precision(
    scores: Any,
    best: TopKHeap,
    positives: LabelLists,
    excluded: LabelLists,
    similar: LabelSimilarity,
    ks: tuple[int, ...],
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """Compute psib@k of a block of rows, and the highest values that S allows.

    Parameters
    ----------
    scores : (n_rows, n_labels) float
        Without NaN.
    best : TopKHeap
        The first max(ks) + 1 candidates of each row, best first, or all if there are fewer.
    positives, excluded : LabelLists over the same rows, without a common label
    similar : LabelSimilarity
    ks : tuple of int

    Returns
    -------
    values, highest : dict of str to (n_rows,) float64
        "psib@k" for each k; NaN for rows without positives. One row of S is held at a time.
    """
    values = np.full((len(ks), len(scores)), np.nan)
    highest = values.copy()
    for row in np.flatnonzero(np.diff(positives.indptr)):
        similarity = similar.to(positives.labels[positives.indptr[row] : positives.indptr[row + 1]])
        candidate = np.ones(len(similarity), bool)
        candidate[excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]] = False
        ranked = best.labels[row] >= 0
        values[:, row] = compute_row_precision(
            scores[row], best.scores[row][ranked], similarity[best.labels[row][ranked]], similarity, candidate, ks
        )
        highest[:, row] = _compute_highest(similarity[candidate], ks)
    names = [f"psib@{k}" for k in ks]
    return dict(zip(names, values, strict=True)), dict(zip(names, highest, strict=True))


def compute_row_precision(
    scores: Any, first: Any, gains: Float32, similarity: Float32, candidate: Bool, ks: tuple[int, ...]
) -> Float64:
    """Compute psib@k of one row for each k; `first` are the scores of its first labels, `gains` their S."""
    gain_sums = np.concatenate([[0.0], np.cumsum(gains, dtype=np.float64)])
    values = np.empty(len(ks))
    for i, k in enumerate(ks):
        if k < len(first) and first[k] < first[k - 1]:
            values[i] = gain_sums[k] / k
            continue
        # labels with a score of -inf are never among the first ones, but they are candidates
        cut = first[k - 1] if k < len(first) else -np.inf
        n_above = int(np.sum(first > cut))
        tied = similarity[candidate & (scores == cut)]
        places = min(k - n_above, len(tied))
        values[i] = (gain_sums[n_above] + (places * tied.mean(dtype=np.float64) if places else 0.0)) / k
    return values


def _compute_highest(similarity: Float32, ks: tuple[int, ...]) -> Float64:
    """Compute psib@k of the best possible order."""
    n_top = min(max(ks), len(similarity))
    top = np.sort(np.partition(similarity, len(similarity) - n_top)[len(similarity) - n_top :])[::-1]
    gain_sums = np.concatenate([[0.0], np.cumsum(top, dtype=np.float64)])
    return np.array([gain_sums[min(k, n_top)] / k for k in ks])
