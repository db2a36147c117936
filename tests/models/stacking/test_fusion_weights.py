"""Weights of a fusion: the search on held-out scores."""

import numpy as np
import scipy.sparse as sp

from wsabie.models.stacking.fusion_weights import search_weights
from wsabie.models.stacking.holdout_scores import HoldoutScores


def test_weights_join_models_that_know_different_rows() -> None:
    rng = np.random.default_rng(0)
    truth = sp.csr_matrix((np.ones(400, bool), (np.arange(400), rng.integers(0, 20, 400))), shape=(400, 20))
    good, noise = 3 * truth.toarray().astype(np.float32), rng.standard_normal((2, 400, 20)).astype(np.float32)
    is_first = (np.arange(400) < 200)[:, None]
    scores = [
        noise[0] + good * is_first,
        noise[1] + good * ~is_first,
        rng.standard_normal((400, 20)).astype(np.float32),
    ]
    holdout = HoldoutScores.from_scores(scores, truth)
    weights = search_weights(holdout, 10)
    assert weights[0] > 0
    assert weights[1] > 0
    assert weights[2] <= 1 / 16
    best_single = max(holdout.compute_ndcg(unit, 10).mean() for unit in np.eye(3))
    assert holdout.compute_ndcg(weights, 10).mean() > best_single + 0.1
