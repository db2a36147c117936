"""Search for the weights of a fusion: those with the best ranking of held-out rows."""

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.models.stacking.holdout_scores import HoldoutScores

STEPS = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
"""Weights that are tried, relative to that of the best model."""
MIN_GAIN = 5e-4
"""Least gain in nDCG for which a weight changes."""


def search_weights(holdout: HoldoutScores, k: int) -> Float64:
    """Return the weights with the best mean nDCG@k, (n_models,), by steepest ascent from the best model.

    Each turn changes the one weight that gains most, so that the order of the models does not matter.
    """
    identity: Float64 = np.eye(len(holdout.scores))
    weights: Float64 = identity[0]
    candidates, best = list(identity), 0.0
    while True:
        figures = [float(holdout.compute_ndcg(candidate, k).mean()) for candidate in candidates]
        number = int(np.argmax(figures))
        if figures[number] <= best + MIN_GAIN:
            return weights
        weights, best = candidates[number], figures[number]
        neighbours: list[Float64] = [np.where(unit > 0, step, weights) for unit in identity for step in STEPS]
        candidates = [neighbour for neighbour in neighbours if neighbour.any()]
