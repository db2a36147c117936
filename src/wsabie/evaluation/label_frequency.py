"""Accuracy by label frequency, to show whether a model finds rare labels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError
from wsabie.evaluation.score_evaluation import LabelFigures


class FrequencyBin(NamedTuple):
    """Labels with `low` to `high` training rows (inclusive), and the accuracy of their ranks.

    `recall` and `reciprocal_rank` are means over labels with support, where each label counts once; NaN without any.
    """

    low: int
    high: int
    n_labels: int
    n_rows: int
    recall: float
    reciprocal_rank: float


def group_by_frequency(
    figures: LabelFigures, training_counts: Int64, edges: Sequence[int] | None = None
) -> list[FrequencyBin]:
    """Compute the accuracy per band of training frequency.

    Parameters
    ----------
    figures : LabelFigures
    training_counts : (n_labels,) int
        Training rows that carry each label.
    edges : sequence of int or None
        Lower ends of the bands; None = 0, 1, 2, 4, 8 ... up to the largest count.

    Raises
    ------
    InputError
        The counts are for another number of labels.

    Examples
    --------
    >>> figures = LabelFigures(1, np.array([1, 2]), np.array([0.0, 0.5]), np.array([0.25, 0.75]))
    >>> group_by_frequency(figures, np.array([1, 3]))[1]
    FrequencyBin(low=2, high=3, n_labels=1, n_rows=2, recall=0.5, reciprocal_rank=0.75)
    """
    counts = np.asarray(training_counts)
    if counts.shape != figures.support.shape:
        raise InputError(f"there are training counts for {len(counts)} labels but {len(figures.support)} labels")
    lows = sorted(edges) if edges is not None else [0, *(2**i for i in range(int(counts.max()).bit_length()))]
    highs = [low - 1 for low in lows[1:]] + [max(int(counts.max()), lows[-1])]
    bands = [(low, high, (counts >= low) & (counts <= high)) for low, high in zip(lows, highs, strict=True)]
    return [
        FrequencyBin(
            low,
            high,
            int(band.sum()),
            int(figures.support[band].sum()),
            _mean(figures.recall[band & (figures.support > 0)]),
            _mean(figures.reciprocal_rank[band & (figures.support > 0)]),
        )
        for low, high, band in bands
        if band.any()
    ]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
