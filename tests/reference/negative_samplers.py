"""The slow twin of samplers: where a negative comes from."""

from typing import Any

import numpy as np
from tests.reference.candidates import score_label
from tests.reference.random_numbers import draw_below, draw_from_alias, draw_unit, mix_bits

from wsabie.core.arrays import Float64
from wsabie.kernels.training.negative_samplers import AdaptiveSamplerState, AliasTable, UniformSamplerState


def draw_label(sampler: Any, labels: Any, q: Any, counter: int) -> int:
    """A label from the sampler."""
    if isinstance(sampler, UniformSamplerState):
        return draw_below(counter, int(sampler.n_labels))
    if isinstance(sampler, AliasTable):
        return draw_from_alias(sampler, counter)
    rank = draw_from_alias(sampler.ranks, mix_bits(counter))
    if isinstance(sampler, AdaptiveSamplerState):
        f = draw_factor(sampler, q, counter)
        return int(sampler.highest_labels[f, rank] if q[f] >= 0 else sampler.lowest_labels[f, rank])
    scores = [score_label(labels, q, y) for y in range(len(sampler.scores))]
    return int(np.lexsort((np.arange(len(scores)), -np.array(scores)))[rank])


def draw_factor(sampler: Any, q: Float64, counter: int) -> int:
    """A factor with chance |q_f| sigma_f; any, when all are 0."""
    heights = np.abs(q[: len(sampler.highest_labels)]) * sampler.factor_std[: len(sampler.highest_labels)].astype(
        np.float64
    )
    if not heights.sum() > 0:
        return draw_below(counter, len(heights))
    return min(
        int(np.searchsorted(np.cumsum(heights), draw_unit(counter) * heights.sum(), side="right")), len(heights) - 1
    )
