"""Passes over a block of rows: Hogwild, or block-synchronous with bits that no thread count changes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import LANES, Csr, Float64, Int64
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import EmbeddingSpace, EntityInputs, KernelArrays, select_tower_inputs
from wsabie.kernels.embedding.candidates import CandidatePool
from wsabie.kernels.embedding.towers import allocate_tile_scratch
from wsabie.kernels.training import deterministic_loop, sequential_loop
from wsabie.kernels.training.warp import N_COUNTERS
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import PAIRS_PER_BLOCK, NegativeSampler
from wsabie.training.training_data import RowBlock

VISITS_PER_CHUNK = 4096
BLOCKS_PER_CHUNK = 16
VISITS_PER_EXACT_CHUNK = 64
_MANY_BLOCKS = 128
_SAMPLE_SIZE = 1 << 17  # non-zeros that show how the work is spread over the features


class EpochTotals(NamedTuple):
    """Totals of training an epoch, or a part of one.

    Attributes
    ----------
    counters : (n_counters,) int64
        See `wsabie.kernels.training.warp`.
    loss : float
    pairs : int
    rows_read : float
        Feature rows that the visits read.
    unlabelled : int
        Rows without a true label.
    """

    counters: Int64
    loss: float
    pairs: int
    rows_read: float
    unlabelled: int


@dataclass
class StepCounters:
    """Counters of all threads, one row each, in separate cache lines."""

    counters: Int64  # (threads, N_COUNTERS)
    loss: Float64  # (threads, 16), column 0 in use

    @classmethod
    def allocate(cls, threads: int) -> "StepCounters":
        return cls(np.zeros((threads, N_COUNTERS), np.int64), np.zeros((threads, 16)))

    def sum(self, reads: Iterable[tuple[int, float, int]]) -> EpochTotals:
        """Return the sums over threads; `reads` has pairs, rows of features and unlabelled rows by block."""
        pairs, rows_read, unlabelled = np.sum([(0, 0.0, 0), *reads], axis=0).tolist()
        return EpochTotals(self.counters.sum(0), float(self.loss.sum()), int(pairs), rows_read, int(unlabelled))


class BlockVisits(NamedTuple):
    """Visits of a block in their order, with the arrays and threads of a pass over them."""

    space: EmbeddingSpace
    block: RowBlock
    step_config: KernelArrays
    sampler: NegativeSampler
    order: Int64
    threads: KernelThreads
    step_counters: StepCounters


def run_hogwild(visits: BlockVisits) -> Iterator[int]:
    """Run Algorithm 1 in threads that share the tables without locks (one thread: the sequential loop).

    Weights with decay or a norm limit are trained by one thread: a step over a scale that another thread is just
    multiplying into its row (`candidates.apply_scale`) would be a million times too long. So are visits that score all
    labels and draw none ("owpc"), in short chunks.
    """
    space, block, step_config, sampling, order, threads, step_counters = visits
    pattern, labels = space.pattern(block.inputs), sampling.label_arrays(space)
    # a query and a direction per thread, in separate cache lines
    scratch = np.zeros((threads.n, 2, LANES * len(space.width) + 32), np.float32)
    is_exact = isinstance(sampling.per_thread[0], sequential_loop.ViolatorScores)
    has_scales = step_config.decay_weights != 1 or np.isfinite(step_config.max_norm_weights)
    n = 1 if is_exact or has_scales else threads.n
    step = VISITS_PER_EXACT_CHUNK if is_exact else VISITS_PER_CHUNK * n
    for first, last in sampling.split_visits(_count_pairs_before(block, order)):
        sampling.refresh(space, threads)
        for start in range(first, max(last, first + 1), step):
            stop = min(start + step, last)
            bounds = np.linspace(start, stop, n + 1).astype(np.int64)

            def work(t: int, bounds: Int64 = bounds) -> None:
                if t < n:
                    sequential_loop.run_visits(
                        pattern, labels, block.targets, step_config, sampling.per_thread[t], order, bounds[t],
                        bounds[t + 1], scratch[t], step_counters.counters[t], step_counters.loss[t], space.width,
                    )  # fmt: skip

            threads.run_each(work)
            yield stop - start


def run_blocks(visits: BlockVisits) -> Iterator[int]:
    """Run blocks against frozen tables, then owner-computes updates (see `deterministic_loop`)."""
    space, block, step_config, sampling, order, threads, step_counters = visits
    plan = _BlockPlan(space, block, order, sampling, threads.n)
    pattern, labels = space.pattern(block.inputs), plan.labels
    step = block.blocks_per_turn or BLOCKS_PER_CHUNK * threads.n
    for first, last in plan.parts:
        sampling.refresh(space, threads)
        for lo in range(first, max(last, first + 1), step):
            hi = min(lo + step, last)

            def work(t: int, lo: int = lo, hi: int = hi) -> None:
                deterministic_loop.run_blocks(
                    pattern, labels, block.targets, step_config, sampling.per_thread[t], plan.example_block,
                    plan.cuts[lo : hi + 1], plan.bounds, plan.label_bounds, threads.counts, t,
                    step_counters.counters[t], step_counters.loss[t], space.width,
                )  # fmt: skip

            threads.run_each(work)
            yield int(plan.cuts[hi] - plan.cuts[lo])


VisitLoop = Callable[[BlockVisits], Iterator[int]]
"""A pass over visits in their order; it yields the number of visits of each chunk."""


class _BlockPlan:
    """Partition of visits into blocks and of blocks into periods of the sampler, with scratch memory."""

    def __init__(
        self, space: EmbeddingSpace, block: RowBlock, order: Int64, sampling: NegativeSampler, n_threads: int
    ) -> None:
        pair_starts = _count_pairs_before(block, order)
        # the size of a pool and the turns of relations depend on the number of pairs
        allow_double = space.candidates is None and block.blocks_per_turn is None
        parts = sampling.split_visits(pair_starts)
        cuts = [lo + _cut_blocks(pair_starts[lo : hi + 1] - pair_starts[lo], allow_double) for lo, hi in parts]
        self.cuts = np.concatenate([np.zeros(1, np.int64), *(part[1:] for part in cuts)])
        self.parts = list(pairwise(np.cumsum([0, *(len(part) - 1 for part in cuts)]).tolist()))
        slots, pairs = (int(np.diff(ends).max(initial=0)) for ends in (self.cuts, pair_starts[self.cuts]))
        queries, directions = np.zeros((2, slots, LANES * len(space.width)), np.float32)
        self.example_block = deterministic_loop.ExampleBlock(
            order,
            pair_starts,
            queries,
            directions,
            np.zeros(slots, np.bool_),
            np.zeros(slots),
            np.zeros(pairs, np.int64),
            np.zeros(pairs, np.int64),
            np.zeros(pairs, np.float32),
            allocate_tile_scratch(n_threads, slots, space.n_features),
        )
        inputs = select_tower_inputs(block.inputs)
        self.bounds = self.label_bounds = _split_features(space.n_features, inputs, n_threads)
        self.labels = sampling.label_arrays(space)
        if isinstance(space, JointSpace) and space.candidates is not None:
            self.labels = _allocate_pool(space, pairs, n_threads)
            if space.labels is not space.features:  # shared rows keep the same owner on both sides
                self.label_bounds = _split_features(len(space.labels), space.candidates, n_threads)


def _allocate_pool(space: JointSpace, max_pairs: int, n_threads: int) -> KernelArrays:
    """Allocate the candidates of a block: the drawn ones and the positives of at most `max_pairs` pairs."""
    slots, width = space.negatives + max_pairs, LANES * len(space.width)
    points, directions = np.zeros((2, slots, width), np.float32)
    return CandidatePool(
        points=space.build_scoring_arrays(points, np.zeros(slots, np.float32)),
        tower=space.candidate_tower(),
        ids=np.zeros(slots, np.int32),
        directions=directions,
        moved=np.zeros(slots, np.bool_),
        order=np.arange(slots),
        n_drawable=np.zeros(1, np.int64),
        n_sampled=space.negatives,
        tile_scratch=allocate_tile_scratch(n_threads, slots, len(space.labels)),
    )


def _count_pairs_before(block: RowBlock, order: Int64) -> Int64:
    """Count the pairs of all visits before each in the order, and of all visits."""
    return np.concatenate([[0], np.cumsum(np.diff(block.targets.starts)[order])]).astype(np.int64)


def _cut_blocks(pair_starts: Int64, allow_double: bool) -> Int64:
    """Cut the order into blocks of PAIRS_PER_BLOCK pairs, or of twice as many if there are many blocks."""
    # a thread brings the table into its cache once a block; with few blocks, larger ones would learn less
    n_blocks = max(1, -(-int(pair_starts[-1]) // PAIRS_PER_BLOCK))
    if allow_double and n_blocks >= _MANY_BLOCKS:
        n_blocks = -(-n_blocks // 2)
    even_bounds = np.linspace(0, pair_starts[-1], n_blocks + 1)
    return np.unique(np.searchsorted(pair_starts, even_bounds)).astype(np.int64)


def _split_features(n: int, inputs: EntityInputs, n_threads: int) -> Int64:
    """Split the features into a range per thread with equal shares of the non-zeros, (n_threads + 1,)."""
    load = np.arange(1, n + 1)
    if isinstance(inputs, Csr):
        load = np.cumsum(np.bincount(_sample_indices(inputs.indices), minlength=n))
    share = np.arange(1, n_threads) * (load[-1] / n_threads) if n else np.zeros(0)
    return np.concatenate([[0], np.searchsorted(load, share), [n]]).astype(np.int64)


def _sample_indices(indices: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Sample indices at random positions, because an even stride could hit the same field of every row."""
    if len(indices) <= _SAMPLE_SIZE:
        return indices
    return indices[np.random.default_rng(0).integers(len(indices), size=_SAMPLE_SIZE)]
