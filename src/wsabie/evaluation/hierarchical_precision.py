"""Hierarchical precision: the share of the first k labels that lie near a true one in an is-a list.

Frome and others ("DeViSE", 2013, appendix A.3), for one true label:

    hp@k = (labels of the correct set for k among the first k) / k

The correct set consists of rings of candidates around the true label (`wsabie.vocabulary.hierarchy_distance`). Several
true labels share the rings. hp@1 is p@1. Ties count as in `sibling_precision`.
"""

from typing import Any

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.core.label_lists import LabelLists
from wsabie.evaluation.sibling_precision import compute_row_precision
from wsabie.kernels.ranking.topk import TopKHeap
from wsabie.vocabulary.hierarchy_distance import HopDistances, find_radius


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
