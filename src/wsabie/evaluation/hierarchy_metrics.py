"""Metrics that give credit for labels near a true one: sibling and hierarchical precision, and error.

Weston et al. 2010, section 4, define sibling precision for one true label y and S in [0, 1]:

    psib@k = (S[y, y_1] + ... + S[y, y_k]) / k

With several true labels S[y, y_i] is the maximum over them: the closest true label counts. S = identity then gives p@k
for any number of true labels, and S = 1 everywhere gives 1.

Hierarchical precision of one true label (Frome et al. 2013, appendix A.3):

    hp@k = (labels of the correct set for k among the first k) / k

The correct set consists of rings of candidates around the true label (`wsabie.vocabulary.hierarchy_distances`). Several
true labels share the rings. hp@1 is p@1.

Hierarchical error of the ImageNet challenges of 2010 and 2011, which withdrew it later because it is insensitive:

    herr@k = the least height of the lowest common ancestor of a true label and one of the first k labels

It is 0 if a true label is among them; lower is better.

With ties all are expected values over random orders of tied labels. Let A labels score strictly above
the k-th score and t labels have it. Each of the t has one of the k - A remaining ranks with the same probability, so

    k psib@k = sum of S over the A labels above + (k - A) * mean of S over the t labels

and likewise for hp@k. Of errors d_1 <= ... <= d_t of the t labels, the least of m = k - A drawn ones is d_i with
probability C(t - i, m - 1) / C(t, m).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Bool, Float32, Float64, Int64
from wsabie.core.label_lists import LabelLists
from wsabie.kernels.ranking.topk import TopKHeap
from wsabie.vocabulary.hierarchy_distances import AncestorHeights, HopDistances, find_radius
from wsabie.vocabulary.label_similarity import LabelSimilarity


class RankedRow(NamedTuple):
    """Scores of all labels of a row, its first labels with their scores, and which labels are candidates."""

    scores: Array
    first_scores: Array
    first_labels: Int64
    candidate: Bool


RowMetric = Callable[[RankedRow, Int64, Any, tuple[int, ...]], tuple[Sequence[float] | Float64, Any]]
"""(row, true labels, relation of labels, ks) -> values and highest possible values, or None, for each k."""


def compute_hierarchy_metrics(
    scores: Array,
    best: TopKHeap,
    positives: LabelLists,
    excluded: LabelLists,
    relations: Mapping[str, tuple[RowMetric, Any]],
    ks: tuple[int, ...],
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """Compute the metrics of a block of rows, and the highest values that the relations of labels allow.

    Parameters
    ----------
    scores : (n_rows, n_labels) float
        Without NaN.
    best : TopKHeap
        The first max(ks) + 1 candidates of each row, best first, or all if there are fewer.
    positives, excluded : LabelLists over the same rows, without a common label
    relations : mapping of str to (callable, object)
        Function of a row and the relation of labels that it reads, by the name of the metric.
    ks : tuple of int

    Returns
    -------
    values, highest : dict of str to (n_rows,) float64
        "name@k" for each k; NaN for rows without positives. One row of a relation is held at a time.
    """
    values, highest = dict[str, Float64](), dict[str, Float64]()
    for name in relations:
        values |= {f"{name}@{k}": np.full(len(scores), np.nan) for k in ks}
    for row in np.flatnonzero(np.diff(positives.indptr)):
        true_labels = positives.labels[positives.indptr[row] : positives.indptr[row + 1]]
        candidate = np.ones(scores.shape[1], bool)
        candidate[excluded.labels[excluded.indptr[row] : excluded.indptr[row + 1]]] = False
        is_ranked = best.labels[row] >= 0
        ranked = RankedRow(scores[row], best.scores[row][is_ranked], best.labels[row][is_ranked], candidate)
        for name, (measure, relation) in relations.items():
            figures, ceilings = measure(ranked, true_labels, relation, ks)
            for i, k in enumerate(ks):
                values[f"{name}@{k}"][row] = figures[i]
                if ceilings is not None:
                    highest.setdefault(f"{name}@{k}", np.full(len(scores), np.nan))[row] = ceilings[i]
    return values, highest


def compute_sibling_precision(
    row: RankedRow, true_labels: Int64, similar: LabelSimilarity, ks: tuple[int, ...]
) -> tuple[Float64, Float64]:
    """Compute psib@k of a row, and that of the best possible order."""
    similarity = similar.max_similarity(true_labels)
    candidates = similarity[row.candidate]
    n_top = min(max(ks), len(candidates))
    top = np.sort(np.partition(candidates, len(candidates) - n_top)[len(candidates) - n_top :])[::-1]
    gain_sums = np.concatenate([[0.0], np.cumsum(top, dtype=np.float64)])
    highest = np.array([gain_sums[min(k, n_top)] / k for k in ks])
    return _average_similarity(row, similarity, ks), highest


def compute_hierarchical_precision(
    row: RankedRow, true_labels: Int64, hops: HopDistances, ks: tuple[int, ...]
) -> tuple[list[float], list[float]]:
    """Compute hp@k of a row, and the highest values that the correct sets allow."""
    near = hops.compute_hops(true_labels, max(ks), row.candidate)
    correct_sets = [(near <= find_radius(near, k)).astype(np.float32) for k in ks]
    values = [float(_average_similarity(row, correct, (k,))[0]) for correct, k in zip(correct_sets, ks, strict=True)]
    return values, [min(k, int(correct.sum())) / k for correct, k in zip(correct_sets, ks, strict=True)]


def compute_hierarchical_error(
    row: RankedRow, true_labels: Int64, heights: AncestorHeights, ks: tuple[int, ...]
) -> tuple[list[float], None]:
    """Compute herr@k of a row."""
    errors = heights.compute_heights(true_labels)
    return [_compute_least_error(row, errors, k) for k in ks], None


def _average_similarity(row: RankedRow, similarity: Float32, ks: tuple[int, ...]) -> Float64:
    """Return the mean similarity of the first k labels of a row, as expected over ties, for each k."""
    first = row.first_scores
    gain_sums = np.concatenate([[0.0], np.cumsum(similarity[row.first_labels], dtype=np.float64)])
    values = np.empty(len(ks))
    for i, k in enumerate(ks):
        if k < len(first) and first[k] < first[k - 1]:
            values[i] = gain_sums[k] / k
            continue
        # labels with a score of -inf are never among the first ones, but they are candidates
        cut = first[k - 1] if k < len(first) else -np.inf
        n_above = int(np.sum(first > cut))
        tied = similarity[row.candidate & (row.scores == cut)]
        n_drawn = min(k - n_above, len(tied))
        values[i] = (gain_sums[n_above] + (n_drawn * tied.mean(dtype=np.float64) if n_drawn else 0.0)) / k
    return values


def _compute_least_error(row: RankedRow, errors: Float64, k: int) -> float:
    """Compute herr@k of one row."""
    first = row.first_scores
    # labels with a score of -inf are never among the first ones, but they are candidates
    cut = first[k - 1] if k <= len(first) else -np.inf
    is_above = row.candidate & (row.scores > cut)
    tied = np.sort(errors[row.candidate & (row.scores == cut)])
    least_above = float(errors[is_above].min(initial=np.inf))
    n_drawn = min(k - int(is_above.sum()), len(tied))
    if not n_drawn:
        return least_above
    i = np.arange(len(tied) - n_drawn)
    chance = np.cumprod(np.append(n_drawn / len(tied), (len(tied) - i - n_drawn) / (len(tied) - i - 1)))
    return float(chance @ np.minimum(tied[: len(chance)], least_above))
