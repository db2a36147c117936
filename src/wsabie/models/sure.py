"""Labels that a model is sure enough of: those from a probability on that may differ from label to label."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64

SEEN = 100
"""Labels among which those that are sure enough are looked for, at least."""

Least = Callable[[Int64], Float64]
"""From which probabilities on labels count, by their columns."""


def rank_sure(model: Any, X: Any, k: int, least: Least, **among: Any) -> tuple[Int64, Float32, Float64]:
    """The best labels of rows that are probable enough; where there is none, no tag fits.

    Parameters
    ----------
    model : LabelModel
        With probabilities (`calibration_`).
    X : (n_rows, n_features) array or sparse matrix
    k : int
        Labels of a row, at most.
    least : callable
    **among
        As `rank` takes them: `candidates`, `exact`.

    Returns
    -------
    labels, scores, probabilities : (n_rows, up to k) int64, float32, float64
        Best first; behind the last label of a row -1 and 0.

    Examples
    --------
    >>> from wsabie.models.wsabie import Wsabie
    >>> X = np.eye(2, dtype=np.float32)
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(X, ["red", "green"], validation=(X, ["red", "green"]))
    >>> rank_sure(model, X, 1, lambda columns: np.where(columns == 0, 0.0, 1.1))[0].tolist()
    [[0], [0]]
    """
    width = len(among.get("candidates") or model.vocabulary_)
    labels, scores = model.rank(X, min(max(k, SEEN), width), **among)
    p = model.calibration_.predict_proba(scores, labels)
    sure = (labels >= 0) & (p >= least(labels))
    order = np.argsort(~sure, axis=1, kind="stable")[:, :k]  # the sure ones first, as they were
    labels, scores, p, sure = (np.take_along_axis(table, order, axis=1) for table in (labels, scores, p, sure))
    return np.where(sure, labels, -1), np.where(sure, scores, 0).astype(np.float32), np.where(sure, p, 0.0)
