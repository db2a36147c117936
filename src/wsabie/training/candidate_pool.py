"""Shared memory for candidates that are points of a tower, in the block-synchronous loop."""

from typing import Any

import numpy as np

from wsabie.core.arrays import LANES
from wsabie.embedding.joint_space import JointSpace
from wsabie.training.samplers import PAIRS_PER_BLOCK


def allocate_pool(space: JointSpace, most_pairs: int, n_threads: int) -> Any:
    """Allocate the candidates of a block: the drawn ones and the positives of at most `most_pairs` pairs."""
    from wsabie.kernels.embedding.candidate_pools import CandidatePool
    from wsabie.kernels.embedding.towers import allocate_tile_scratch

    slots, width = space.negatives + most_pairs, LANES * len(space.width)
    points, directions = np.zeros((2, slots, width), np.float32)
    return CandidatePool(
        points=space.scored(points, np.zeros(slots, np.float32)),
        tower=space.candidate_tower(),
        ids=np.zeros(slots, np.int32),
        directions=directions,
        moved=np.zeros(slots, np.bool_),
        order=np.arange(slots),
        drawn=np.zeros(1, np.int64),
        n_sampled=space.negatives,
        marks=allocate_tile_scratch(n_threads, slots, len(space.labels)),
    )


def limit_pool_draws(space: Any, max_trials: int) -> int:
    """Limit the number of draws to the size of the pool, because further draws would repeat candidates."""
    return min(max_trials, space.negatives or PAIRS_PER_BLOCK)
