"""Hierarchical precision: how many of the first k labels lie near a right one in an is-a list.

Frome and others ("DeViSE", 2013, appendix A.3), for one true label:

    hp@k = (labels of the correct set for k among the first k) / k

The correct set is made of rings around the true label, of all that is a candidate of the row (`wsabie.labels.hops`).
With several true labels the rings are around all of them together. hp@1 is p@1. Ties count as in `siblings`.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.base.lists import Lists
from wsabie.evaluation.siblings import expected
from wsabie.kernels.topk import Heap
from wsabie.labels.hops import Hops, radius


def hierarchical_precision(
    scores: Any, best: Heap, positives: Lists, excluded: Lists, hops: Hops, ks: tuple[int, ...]
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """hp@k of a block of rows, and the highest that the correct sets allow.

    Parameters
    ----------
    scores, best, positives, excluded, ks
        As of `sibling_precision`.
    hops : Hops

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
            correct = (near <= radius(near, k)).astype(np.float32)
            values[i, row] = expected(scores[row], first, correct[labels], correct, candidate, (k,))[0]
            highest[i, row] = min(k, int(correct.sum())) / k
    names = [f"hp@{k}" for k in ks]
    return dict(zip(names, values, strict=True)), dict(zip(names, highest, strict=True))
