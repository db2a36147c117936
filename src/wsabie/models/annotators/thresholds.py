"""Labels whose probability reaches a threshold, which may differ from label to label."""

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64

MIN_CANDIDATES = 100
"""Fewest best labels whose probabilities are compared with the thresholds."""

Least = Callable[[Int64], Float64]
"""Returns the lowest probability with which each label counts, from an array of label numbers."""


def rank_above(model: Any, X: Any, k: int, least: Least, **among: Any) -> tuple[Int64, Float32, Float64]:
    """Return the best labels of rows among those whose probability reaches the threshold.

    Parameters
    ----------
    model : LabelModel
        With probabilities (`calibration_`).
    X : (n_rows, n_features) array or sparse matrix
    k : int
        Most labels of a row.
    least : callable
    **among
        Options of `rank`: `candidates`, `exact`.

    Returns
    -------
    labels, scores, probabilities : (n_rows, up to k) int64, float32, float64
        Best first; after the last label of a row come -1 and 0.

    Examples
    --------
    >>> from wsabie.models.wsabie.estimator import Wsabie
    >>> X = np.eye(2, dtype=np.float32)
    >>> model = Wsabie(dim=4, threads=1, epochs=20).fit(X, ["red", "green"], validation=(X, ["red", "green"]))
    >>> rank_above(model, X, 1, lambda columns: np.where(columns == 0, 0.0, 1.1))[0].tolist()
    [[0], [0]]
    """
    width = len(among.get("candidates") or model.vocabulary_)
    labels, scores = model.rank(X, min(max(k, MIN_CANDIDATES), width), **among)
    probabilities = model.calibration_.predict_proba(scores, labels)
    is_above = (labels >= 0) & (probabilities >= least(labels))
    order = np.argsort(~is_above, axis=1, kind="stable")[:, :k]  # labels above the threshold first, in their order
    labels, scores, probabilities, is_above = (
        np.take_along_axis(table, order, axis=1) for table in (labels, scores, probabilities, is_above)
    )
    return (
        np.where(is_above, labels, -1),
        np.where(is_above, scores, 0).astype(np.float32),
        np.where(is_above, probabilities, 0.0),
    )
