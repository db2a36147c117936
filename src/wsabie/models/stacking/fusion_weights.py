"""Search for the weights of a fusion: those with the best ranking of held-out rows."""

import numpy as np

from wsabie.core.arrays import Float64
from wsabie.models.stacking.holdout_scores import HoldoutScores

STEPS = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
"""Weights that are tried, relative to that of the best model."""
MIN_GAIN = 5e-4
"""Least gain in nDCG for which a weight changes."""


def search_weights(holdout: HoldoutScores, k: int) -> Float64:
    """Return the models' weights with the best mean nDCG@k, (n_models,), by ascent from the best model."""
    identity: Float64 = np.eye(len(holdout.scores))
    figures = [float(holdout.compute_ndcg(weights, k).mean()) for weights in identity]
    weights: Float64 = identity[int(np.argmax(figures))]
    best = max(figures)
    has_improved = True
    while has_improved:
        has_improved = False
        for unit in identity:
            for step in STEPS:
                candidate = np.where(unit > 0, step, weights)
                figure = float(holdout.compute_ndcg(candidate, k).mean()) if candidate.any() else 0.0
                if figure > best + MIN_GAIN:
                    weights, best, has_improved = candidate, figure, True
    return weights
