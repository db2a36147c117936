"""Run a problem through a fast pass or its slow twin; each works on a copy and returns what came out."""

import math
from typing import Any, NamedTuple

import numpy as np

from strategies import Problem
from wsabie.kernels import reference


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


def new_block(problem: Problem) -> Any:
    """One block that holds the whole order."""
    from wsabie.kernels.blocks import Block

    sizes = np.diff(problem.targets.starts)[problem.order]
    firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n, columns = len(problem.order), problem.space.labels.shape[1]
    return Block(
        problem.order.astype(np.int64),
        firsts,
        *np.zeros((2, n, columns), np.float32),
        np.zeros(n, np.bool_),
        np.zeros(n),
        np.zeros(firsts[-1], np.int64),
        np.zeros(firsts[-1], np.float32),
    )


def fast_proposals(problem: Problem) -> Proposed:
    """`kernels.blocks.propose_block` over the whole order."""
    from wsabie.kernels.blocks import propose_block
    from wsabie.kernels.patterns import Pair
    from wsabie.kernels.warp import N_COUNTERS

    space, block = problem.space, new_block(problem)
    counters = np.zeros(N_COUNTERS, np.int64)
    pattern, labels = Pair(space.tower(problem.inputs)), space.label_arrays()
    targets, rule, n = problem.targets, problem.rule, len(problem.order)
    propose_block(pattern, labels, targets, rule, block, 0, n, counters, space.width)
    return Proposed(block.violators, block.weights, block.directions, counters, float(block.losses.sum()))


def fast_block(problem: Problem, bounds: Any = None) -> Outcome:
    """`kernels.blocks`: the whole order as one block; `bounds` shares the features out to owners."""
    from wsabie.kernels.blocks import apply_block, propose_block
    from wsabie.kernels.patterns import Pair
    from wsabie.kernels.towers import Work
    from wsabie.kernels.warp import N_COUNTERS

    space, block = problem.space.copy(), new_block(problem)
    counters = np.zeros(N_COUNTERS, np.int64)
    pattern, labels = Pair(space.tower(problem.inputs)), space.label_arrays()
    targets, rule, n = problem.targets, problem.rule, len(problem.order)
    propose_block(pattern, labels, targets, rule, block, 0, n, counters, space.width)
    d = space.n_features
    bounds = np.array([0, d] if bounds is None else bounds, np.int64)
    room = int(np.diff(problem.X.indptr)[targets.rows].sum()) if hasattr(problem.X, "indptr") else 0
    for owner in range(len(bounds) - 1):
        work = Work(
            np.zeros(d, np.int32),
            np.zeros(d + 1, np.int32),
            np.zeros(room, np.int32),
            np.zeros(room, np.float32),
            bounds,
        )
        apply_block(pattern, labels, targets, rule, block, owner, len(bounds) - 1, work, space.width)
        assert not work.starts.any()
    return Outcome(space.features, space.labels, space.bias, counters, float(block.losses.sum()))


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
