"""One pass over a block of rows: Hogwild, or block-synchronous with the same bits for any number of threads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Float64, Int64
from wsabie.space.joint import JointSpace
from wsabie.training.targets import RowBlock, build_targets
from wsabie.training.threads import Threads

PAIRS_PER_BLOCK = 256
"""Pairs that are weighed against the same frozen tables in deterministic mode. Never a function of the threads."""
VISITS_PER_CHUNK = 4096
_SAMPLED = 1 << 17  # non-zeros that tell how the features' work is spread

OnChunk = Callable[[int], None]


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
    space: JointSpace,
    block: RowBlock,
    rule: Any,
    order: Int64,
    threads: Threads,
    tally: Tally,
    on_chunk: OnChunk,
) -> None:
    """Algorithm 1 in `threads` threads that share the tables without locks (one thread: the plain sequential loop)."""
    from wsabie.kernels.sequential import run_visits

    pattern, labels = space.pattern(block.inputs), space.label_arrays()
    scratch = np.zeros((threads.n, 2, space.labels.shape[1] + 32), np.float32)
    step = VISITS_PER_CHUNK * threads.n
    for start in range(0, len(order), step):
        stop = min(start + step, len(order))
        bounds = np.linspace(start, stop, threads.n + 1).astype(np.int64)

        def work(t: int, bounds: Int64 = bounds) -> None:
            run_visits(
                pattern, labels, block.targets, rule, order, bounds[t], bounds[t + 1],
                scratch[t], tally.counters[t], tally.loss[t], space.width,
            )  # fmt: skip

        threads.each(work)
        on_chunk(stop - start)


def run_blocks(
    space: JointSpace,
    block: RowBlock,
    rule: Any,
    order: Int64,
    threads: Threads,
    tally: Tally,
    on_chunk: OnChunk,
) -> None:
    """Blocks against frozen tables, then owner-computes updates (`wsabie.kernels.blocks`)."""
    from wsabie.kernels.blocks import apply_block, propose_block

    pattern, labels = space.pattern(block.inputs), space.label_arrays()
    plan = _Plan(space, block, order, threads.n)
    done = 0
    for slots in plan.blocks():
        bounds = np.linspace(0, len(slots.order), threads.n + 1).astype(np.int64)

        def propose(t: int, bounds: Int64 = bounds, slots: Any = slots) -> None:
            propose_block(
                pattern, labels, block.targets, rule, slots, bounds[t], bounds[t + 1],
                tally.counters[t], space.width,
            )  # fmt: skip

        def apply(t: int, slots: Any = slots) -> None:
            apply_block(pattern, labels, block.targets, rule, slots, t, threads.n, plan.work[t], space.width)

        threads.each(propose)
        threads.each(apply)
        tally.loss[0, 0] += slots.losses.sum()
        done += len(slots.order)
        if done >= VISITS_PER_CHUNK:
            on_chunk(done)
            done = 0
    on_chunk(done)


def rehearse(space: JointSpace, block: RowBlock, rule: Any, *, deterministic: bool) -> None:
    """One visit of a toy whose arrays have the types of this space and block: afterwards the loop is compiled.

    Without this the first visits of a run would wait for the compiler; from its cache it takes a moment.
    """
    from scipy.sparse import csr_matrix

    toy = JointSpace.random(1, 2, space.dim, space.similarity, np.random.default_rng(0))
    one = np.ones((1, 1), np.float32)
    inputs = Csr(np.arange(2), np.zeros(1, np.int32), one[0]) if isinstance(block.inputs, Csr) else one
    rows = RowBlock(inputs, build_targets(csr_matrix([[1, 0]], dtype=np.int8), None, "mean"))
    run = run_blocks if deterministic else run_hogwild
    with Threads(1) as threads:
        run(toy, rows, rule._replace(losses=rule.losses[:3]), np.arange(1), threads, Tally.new(1), lambda visits: None)


class _Plan:
    """Which visits make which block, and the scratch that all blocks share."""

    def __init__(self, space: JointSpace, block: RowBlock, order: Int64, n_threads: int) -> None:
        self.order = order
        sizes = np.diff(block.targets.starts)[order]
        self.pairs = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.cuts = self._cut()
        slots, pairs = (
            int(np.diff(self.cuts).max(initial=0)),
            int(np.diff(self.pairs[self.cuts]).max(initial=0)),
        )
        columns = space.labels.shape[1]
        self.queries, self.directions = np.zeros((2, slots, columns), np.float32)
        self.moved, self.losses = np.zeros(slots, np.bool_), np.zeros(slots)
        self.violators, self.weights = np.zeros(pairs, np.int64), np.zeros(pairs, np.float32)
        self.work = _owners(space, block, order, self.cuts, n_threads)

    def _cut(self) -> Int64:
        """Block boundaries in the order: as many visits as hold PAIRS_PER_BLOCK pairs."""
        n_blocks = max(1, -(-int(self.pairs[-1]) // PAIRS_PER_BLOCK))
        wanted = np.linspace(0, self.pairs[-1], n_blocks + 1)
        return np.unique(np.searchsorted(self.pairs, wanted)).astype(np.int64)

    def blocks(self) -> Any:
        """kernels.blocks.Block views, one after the other."""
        from wsabie.kernels.blocks import Block

        for lo, hi in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            m = int(hi - lo)
            firsts = self.pairs[lo : hi + 1] - self.pairs[lo]
            yield Block(
                self.order[lo:hi],
                firsts,
                self.queries[:m],
                self.directions[:m],
                self.moved[:m],
                self.losses[:m],
                self.violators,
                self.weights,
            )


def _owners(space: JointSpace, block: RowBlock, order: Int64, cuts: Int64, n_threads: int) -> list[Any]:
    """Per thread: a range of features with an equal share of the non-zeros, and room to sort a block's share."""
    from wsabie.kernels.towers import Work

    n = space.n_features
    if isinstance(block.inputs, Csr):
        sizes = np.diff(block.inputs.indptr)[block.targets.rows[order]]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        capacity = int(np.diff(ends[cuts]).max(initial=0))
        sample = block.inputs.indices[:: len(block.inputs.indices) // _SAMPLED + 1]
        load = np.cumsum(np.bincount(sample, minlength=n))
    else:
        capacity, load = 0, np.arange(1, n + 1)
    share = np.arange(1, n_threads) * (load[-1] / n_threads) if n else np.zeros(0)
    bounds = np.concatenate([[0], np.searchsorted(load, share), [n]]).astype(np.int64)
    return [
        Work(
            np.zeros(n, np.int32),
            np.zeros(n + 1, np.int32),
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.float32),
            bounds,
        )
        for _ in range(n_threads)
    ]
