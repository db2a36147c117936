"""One pass over a block of rows: Hogwild, or block-synchronous with the same bits for any number of threads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from wsabie.base.arrays import LANES, Csr, Float64, Int64
from wsabie.space.joint import JointSpace, toy_things
from wsabie.space.protocol import Inputs, Space, of_things
from wsabie.training.pools import new_pool
from wsabie.training.samplers import PAIRS_PER_BLOCK, Sampler, Sampling, sampling_of
from wsabie.training.targets import RowBlock, build_targets
from wsabie.training.threads import Threads

VISITS_PER_CHUNK = 4096
BLOCKS_PER_CHUNK = 16
VISITS_PER_OWPC_CHUNK = 64
_MANY_BLOCKS = 128
_SAMPLED = 1 << 17  # non-zeros that tell how the features' work is spread


@dataclass
class Tally:
    """Counters of all threads, a row each, in lines of their own."""

    counters: Int64  # (threads, N_COUNTERS)
    loss: Float64  # (threads, 16), column 0 in use

    @classmethod
    def new(cls, threads: int) -> "Tally":
        from wsabie.kernels.warp import N_COUNTERS

        return cls(np.zeros((threads, N_COUNTERS), np.int64), np.zeros((threads, 16)))


def run_hogwild(
    space: Space,
    block: RowBlock,
    rule: Any,
    sampling: Sampling,
    order: Int64,
    threads: Threads,
    tally: Tally,
) -> Iterator[int]:
    """Algorithm 1 in `threads` threads that share the tables without locks (one thread: the plain sequential loop).

    Weights that are decayed or held to a norm are left to one of them: a step over a scale that another thread is just
    multiplying into its row (`candidates.fold_scale`) would be a million times too long.
    """
    from wsabie.kernels.sequential import run_visits

    pattern, labels = space.pattern(block.inputs), sampling.labels(space)
    scratch = _scratch(space, threads.n)
    n = 1 if rule.keep_weights != 1 or np.isfinite(rule.max_norm_weights) else threads.n
    step = VISITS_PER_CHUNK * n
    for first, last in sampling.parts(_pairs_before(block, order)):
        sampling.refresh(space, threads)
        for start in range(first, last, step):
            stop = min(start + step, last)
            bounds = np.linspace(start, stop, n + 1).astype(np.int64)

            def work(t: int, bounds: Int64 = bounds) -> None:
                if t < n:
                    run_visits(
                        pattern, labels, block.targets, rule, sampling.per_thread[t], order, bounds[t], bounds[t + 1],
                        scratch[t], tally.counters[t], tally.loss[t], space.width,
                    )  # fmt: skip

            threads.each(work)
            yield stop - start


def run_blocks(
    space: Space,
    block: RowBlock,
    rule: Any,
    sampling: Sampling,
    order: Int64,
    threads: Threads,
    tally: Tally,
) -> Iterator[int]:
    """Blocks against frozen tables, then owner-computes updates (`wsabie.kernels.blocks`)."""
    from wsabie.kernels import blocks

    plan = _Plan(space, block, order, sampling, threads.n)
    pattern, labels = space.pattern(block.inputs), plan.labels
    step = block.turn or BLOCKS_PER_CHUNK * threads.n
    for first, last in plan.parts:
        sampling.refresh(space, threads)
        for lo in range(first, last, step):
            hi = min(lo + step, last)

            def work(t: int, lo: int = lo, hi: int = hi) -> None:
                blocks.run_blocks(
                    pattern, labels, block.targets, rule, sampling.per_thread[t], plan.whole, plan.cuts, lo, hi,
                    plan.bounds, plan.label_bounds, threads.counts, t, tally.counters[t], tally.loss[t], space.width,
                )  # fmt: skip

            threads.each(work)
            yield int(plan.cuts[hi] - plan.cuts[lo])


def run_owpc(
    space: Space,
    block: RowBlock,
    rule: Any,
    sampling: Sampling,
    order: Int64,
    threads: Threads,
    tally: Tally,
) -> Iterator[int]:
    """Exact ranks, all violators at once, one visit after the other in this thread: nothing is drawn."""
    from wsabie.kernels.owpc import run_visits_owpc

    pattern, labels = space.pattern(block.inputs), space.label_arrays()
    scratch, scores = _scratch(space, 1)[0], np.zeros(space.n_labels, np.float32)
    for start in range(0, len(order), VISITS_PER_OWPC_CHUNK):
        stop = min(start + VISITS_PER_OWPC_CHUNK, len(order))
        run_visits_owpc(
            pattern, labels, block.targets, rule, order, start, stop, scores, scratch,
            tally.counters[0], tally.loss[0], space.width,
        )  # fmt: skip
        yield stop - start


def _scratch(space: Space, n_threads: int) -> npt.NDArray[np.float32]:
    """Room for a query and a direction per thread, in cache lines of its own."""
    return np.zeros((n_threads, 2, LANES * len(space.width) + 32), np.float32)


Run = Callable[[Space, RowBlock, Any, Sampling, Int64, Threads, Tally], Iterator[int]]
"""A pass over visits in their order; says after every chunk how many it made."""


def rehearse(space: Space, block: RowBlock, rule: Any, sampler: Sampler, run: Run, sketched: bool = False) -> None:
    """One visit of a toy whose arrays have the types of this space and block: afterwards the loop is compiled.

    Without this the first visits of a run would wait for the compiler; from its cache it takes a moment.
    """
    from scipy.sparse import csr_matrix

    toy = space.toy()
    inputs = toy_things(block.inputs, 1)
    rows = RowBlock(inputs, build_targets(csr_matrix([[1, 0]], dtype=np.int8), None, "mean"))
    rule = rule._replace(losses=rule.losses[:3])
    with Threads(1) as threads:
        sampling = sampling_of(sampler, toy, np.ones(2, np.int64), 1, sketched)
        for _ in run(toy, rows, rule, sampling, np.arange(1), threads, Tally.new(1)):
            pass


class _Plan:
    """Which visits make which block, which blocks lie between two looks of the sampler, and the scratch of them all."""

    def __init__(self, space: Space, block: RowBlock, order: Int64, sampling: Sampling, n_threads: int) -> None:
        from wsabie.kernels.blocks import Block
        from wsabie.kernels.towers import new_marks

        firsts = _pairs_before(block, order)
        # a pool is drawn for so many pairs, and relations take turns of so many
        may_double = space.candidates is None and block.turn is None
        cuts = [lo + _cut(firsts[lo : hi + 1] - firsts[lo], may_double) for lo, hi in sampling.parts(firsts)]
        self.cuts = np.concatenate([np.zeros(1, np.int64), *(part[1:] for part in cuts)])
        self.parts = list(pairwise(np.cumsum([0, *(len(part) - 1 for part in cuts)]).tolist()))
        slots, pairs = (int(np.diff(ends).max(initial=0)) for ends in (self.cuts, firsts[self.cuts]))
        queries, directions = np.zeros((2, slots, LANES * len(space.width)), np.float32)
        self.whole = Block(
            order,
            firsts,
            queries,
            directions,
            np.zeros(slots, np.bool_),
            np.zeros(slots),
            np.zeros(pairs, np.int64),
            np.zeros(pairs, np.int64),
            np.zeros(pairs, np.float32),
            new_marks(n_threads, slots, space.n_features),
        )
        self.bounds = self.label_bounds = _bounds(space.n_features, of_things(block.inputs), n_threads)
        self.labels = sampling.labels(space)
        if isinstance(space, JointSpace) and space.candidates is not None:
            self.labels = new_pool(space, pairs, n_threads)
            if space.labels is not space.features:  # else the same rows have the same owner on both sides
                self.label_bounds = _bounds(len(space.labels), space.candidates, n_threads)


def _pairs_before(block: RowBlock, order: Int64) -> Int64:
    """Pairs of all visits before each in the order, and of all."""
    return np.concatenate([[0], np.cumsum(np.diff(block.targets.starts)[order])]).astype(np.int64)


def _cut(firsts: Int64, may_double: bool) -> Int64:
    """Block boundaries in the order: as many visits as hold PAIRS_PER_BLOCK pairs, or twice that where there are many.

    A thread brings the table into its cache once a block; where blocks are few, larger ones would learn less.
    """
    n_blocks = max(1, -(-int(firsts[-1]) // PAIRS_PER_BLOCK))
    if may_double and n_blocks >= _MANY_BLOCKS:
        n_blocks = -(-n_blocks // 2)
    wanted = np.linspace(0, firsts[-1], n_blocks + 1)
    return np.unique(np.searchsorted(firsts, wanted)).astype(np.int64)


def _bounds(n: int, inputs: Inputs, n_threads: int) -> Int64:
    """A range of features per thread with an equal share of the non-zeros, (n_threads + 1,)."""
    load = np.arange(1, n + 1)
    if isinstance(inputs, Csr):
        load = np.cumsum(np.bincount(_sample(inputs.indices), minlength=n))
    share = np.arange(1, n_threads) * (load[-1] / n_threads) if n else np.zeros(0)
    return np.concatenate([[0], np.searchsorted(load, share), [n]]).astype(np.int64)


def _sample(indices: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Enough of them, at random places: an even stride would see one field alone of rows that all have the same."""
    if len(indices) <= _SAMPLED:
        return indices
    return indices[np.random.default_rng(0).integers(len(indices), size=_SAMPLED)]
