"""Candidates that are points of a tower, for the block-synchronous loop: the memory that the threads share."""

from typing import Any

import numpy as np

from wsabie.base.arrays import LANES
from wsabie.space.joint import JointSpace
from wsabie.training.samplers import PAIRS_PER_BLOCK


def new_pool(space: JointSpace, most_pairs: int, n_threads: int) -> Any:
    """Room for the candidates of a block: the drawn ones and the positives of at most `most_pairs` pairs."""
    from wsabie.kernels.pools import Pool
    from wsabie.kernels.towers import new_marks

    slots, width = space.negatives + most_pairs, LANES * len(space.width)
    points, directions = np.zeros((2, slots, width), np.float32)
    return Pool(
        points=space.scored(points, np.zeros(slots, np.float32)),
        tower=space.candidate_tower(),
        ids=np.zeros(slots, np.int32),
        directions=directions,
        moved=np.zeros(slots, np.bool_),
        order=np.arange(slots),
        drawn=np.zeros(1, np.int64),
        n_sampled=space.negatives,
        marks=new_marks(n_threads, slots, len(space.labels)),
    )


def pool_trials(space: Any, max_trials: int) -> int:
    """How many negatives to draw at most where they come from a pool: as many as it has, the same ones come again."""
    return min(max_trials, space.negatives or PAIRS_PER_BLOCK)
