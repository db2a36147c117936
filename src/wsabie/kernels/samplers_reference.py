"""The slow twin of samplers: where a negative comes from."""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.kernels.candidates_reference import score
from wsabie.kernels.rng_reference import below, mix, pick, unit
from wsabie.kernels.samplers import Adaptive, Uniform, Weighted


def draw(sampler: Any, labels: Any, q: Any, counter: int) -> int:
    """A label from the sampler."""
    if isinstance(sampler, Uniform):
        return below(counter, int(sampler.n_labels))
    if isinstance(sampler, Weighted):
        return pick(sampler.chances, counter)
    rank = pick(sampler.ranks, mix(counter))
    if isinstance(sampler, Adaptive):
        f = factor(sampler, q, counter)
        return int(sampler.front[f, rank] if q[f] >= 0 else sampler.back[f, rank])
    scores = [score(labels, q, y) for y in range(len(sampler.scores))]
    return int(np.lexsort((np.arange(len(scores)), -np.array(scores)))[rank])


def factor(sampler: Any, q: Float64, counter: int) -> int:
    """A factor with chance |q_f| sigma_f; any, when all are 0."""
    heights = np.abs(q[: len(sampler.front)]) * sampler.spread[: len(sampler.front)].astype(np.float64)
    if not heights.sum() > 0:
        return below(counter, len(heights))
    return min(int(np.searchsorted(np.cumsum(heights), unit(counter) * heights.sum(), side="right")), len(heights) - 1)
