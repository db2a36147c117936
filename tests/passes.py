"""Run a problem through a fast pass or its slow twin; each works on a copy and returns what came out."""

import math
from typing import Any, NamedTuple

import numpy as np

from strategies import Problem
from wsabie.kernels import reference
from wsabie.training.threads import Threads


class Outcome(NamedTuple):
    """Tables after a pass, unpadded columns included, and what the counters say."""

    features: Any
    labels: Any
    bias: Any
    counters: Any
    loss: float


class Proposed(NamedTuple):
    """What a block of visits would do."""

    violators: Any  # a pair each, in the order of the visits
    weights: Any
    directions: Any  # a visit each
    counters: Any
    loss: float


def fast_sequential(problem: Problem) -> Outcome:
    """`kernels.sequential.run_visits` over the whole order."""
    from wsabie.kernels.patterns import Pair
    from wsabie.kernels.sequential import run_visits
    from wsabie.kernels.warp import N_COUNTERS

    space = problem.space.copy()
    counters, loss = np.zeros(N_COUNTERS, np.int64), np.zeros(1)
    scratch = np.zeros((2, space.labels.shape[1]), np.float32)
    pattern, labels = Pair(space.tower(problem.inputs)), space.label_arrays()
    n, order = len(problem.order), problem.order
    run_visits(pattern, labels, problem.targets, problem.rule, order, 0, n, scratch, counters, loss, space.width)
    return Outcome(space.features, space.labels, space.bias, counters, float(loss[0]))


def fast_proposals(problem: Problem) -> Proposed:
    """What the first phase of `kernels.blocks` leaves of the whole order as one block."""
    _, block, counters, loss = run_one_block(problem, [0, problem.space.n_features])
    return Proposed(block.violators, block.weights, block.directions, counters, loss)


def fast_block(problem: Problem, bounds: Any = None) -> Outcome:
    """`kernels.blocks`: the whole order as one block; `bounds` shares the features out to threads."""
    space, _, counters, loss = run_one_block(problem, [0, problem.space.n_features] if bounds is None else bounds)
    return Outcome(space.features, space.labels, space.bias, counters, loss)


def run_one_block(problem: Problem, bounds: Any) -> tuple[Any, Any, Any, float]:
    """The space after it, the block, the counters of all threads and the loss."""
    from wsabie.kernels.blocks import Block, run_blocks
    from wsabie.kernels.patterns import Pair
    from wsabie.kernels.towers import Work
    from wsabie.kernels.warp import N_COUNTERS

    space, targets, order = problem.space.copy(), problem.targets, problem.order.astype(np.int64)
    n, d, n_threads = len(order), space.n_features, len(bounds) - 1
    firsts = np.concatenate([[0], np.cumsum(np.diff(targets.starts)[order])]).astype(np.int64)
    block = Block(
        order,
        firsts,
        *np.zeros((2, n, space.labels.shape[1]), np.float32),
        np.zeros(n, np.bool_),
        np.zeros(n),
        np.zeros(firsts[-1], np.int64),
        np.zeros(firsts[-1], np.float32),
    )
    room = int(np.diff(problem.X.indptr)[targets.rows].sum()) if hasattr(problem.X, "indptr") else 0
    owned = np.array(bounds, np.int64)
    works = [
        Work(*np.zeros((2, d + 1), np.int32), np.zeros(room, np.int32), np.zeros(room, np.float32), owned)
        for _ in range(n_threads)
    ]
    counters, losses = np.zeros((n_threads, N_COUNTERS), np.int64), np.zeros((n_threads, 1))
    pattern, labels, cuts = Pair(space.tower(problem.inputs)), space.label_arrays(), np.array([0, n])
    with Threads(n_threads) as threads:
        threads.each(
            lambda t: run_blocks(
                pattern, labels, targets, problem.rule, block, cuts, 0, 1, works[t],
                threads.counts, t, counters[t], losses[t], space.width,
            )
        )  # fmt: skip
    assert not any(work.starts.any() for work in works)
    return space, block, counters.sum(axis=0), float(losses.sum())


def slow(problem: Problem, *, block: bool) -> Outcome:
    """The twin of `fast_sequential` or of `fast_block`."""
    tower = reference.double(problem.space.tower(problem.inputs))
    labels = reference.double(problem.space.label_arrays())
    if block:
        moved = reference.run_block(tower, labels, problem.targets, problem.rule, problem.order)
    else:
        order, rule = problem.order, problem.rule
        moved = reference.run_visits(tower, labels, problem.targets, rule, order)
    return Outcome(tower.table, labels.table, labels.bias, moved.counters, moved.loss)


def assert_same(fast: Outcome, twin: Outcome) -> None:
    """Counters equal, numbers within what float32 leaves of them."""
    np.testing.assert_array_equal(fast.counters, twin.counters)
    assert math.isclose(fast.loss, twin.loss, rel_tol=1e-4, abs_tol=1e-5)
    for name in ("features", "labels", "bias"):
        np.testing.assert_allclose(getattr(fast, name), getattr(twin, name), rtol=1e-3, atol=2e-5)
