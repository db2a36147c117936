"""Metrics that give credit for labels near a true one: sibling and hierarchical precision, hierarchical error.

Weston et al. 2010, section 4, define sibling precision for one true label y and S in [0, 1]:

    psib@k = (S[y, y_1] + ... + S[y, y_k]) / k

With several true labels S[y, y_i] is the maximum over them: the closest true label counts. S = identity then gives p@k
for any number of true labels, and S = 1 everywhere gives 1.

Hierarchical precision of one true label (Frome et al. 2013, appendix A.3):

    hp@k = (labels of the correct set for k among the first k) / k

The correct set consists of rings of candidates around the true label (`wsabie.vocabulary.hierarchy_distance`). Several
true labels share the rings. hp@1 is p@1.

Hierarchical error of the ImageNet challenges of 2010 and 2011, which withdrew it later because it is insensitive:

    herr@k = the least height of the lowest common ancestor of a true label and one of the first k labels

It is 0 if a true label is among them; lower is better.

With ties all are, as in `metrics`, expected values over random orders of tied labels. Let A labels score strictly above
the k-th score and t labels have it. Each of the t is in one of the k - A remaining places with the same probability, so

    k psib@k = sum of S over the A labels above + (k - A) * mean of S over the t labels

and likewise for hp@k. Of errors d_1 <= ... <= d_t of the t labels, the least of m = k - A drawn ones is d_i with
probability C(t - i, m - 1) / C(t, m).
"""

from typing import Any

import numpy as np

from wsabie.core.arrays import Bool, Float32, Float64
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking.topk import TopKHeap
from wsabie.vocabulary.hierarchy_distance import AncestorHeights, HopDistances, find_radius
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


def compute_hierarchical_precision(
    scores: Any, best: TopKHeap, positives: LabelLists, excluded: LabelLists, hops: HopDistances, ks: tuple[int, ...]
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """Compute hp@k of a block of rows, and the highest values that the correct sets allow.

    Parameters
    ----------
    scores, best, positives, excluded, ks
        See `compute_sibling_precision`.
    hops : HopDistances

    Returns
    -------
    values, highest : dict of str to (n_rows,) float64
        "hp@k" for each k; NaN for rows without positives.
    """
    values = np.full((len(ks), len(scores)), np.nan)
    highest = values.copy()
    for row in np.flatnonzero(np.diff(positives.indptr)):
        candidate = np.ones(hops.n_labels, bool)
        candidate[excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]] = False
        true = positives.labels[positives.indptr[row] : positives.indptr[row + 1]]
        near = hops.around(true, max(ks), candidate)
        ranked = best.labels[row] >= 0
        first, labels = best.scores[row][ranked], best.labels[row][ranked]
        for i, k in enumerate(ks):
            correct = (near <= find_radius(near, k)).astype(np.float32)
            values[i, row] = compute_row_precision(scores[row], first, correct[labels], correct, candidate, (k,))[0]
            highest[i, row] = min(k, int(correct.sum())) / k
    names = [f"hp@{k}" for k in ks]
    return dict(zip(names, values, strict=True)), dict(zip(names, highest, strict=True))


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
