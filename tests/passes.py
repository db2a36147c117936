"""Run a problem through a fast pass or its slow twin; each works on a copy and returns what came out."""

import math
from typing import Any, NamedTuple

import numpy as np
from tests.reference import relation_patterns as relation_patterns_reference
from tests.reference import training_loops as training_loops_reference

from strategies import Problem
from wsabie.training.kernel_threads import KernelThreads

TABLES = ("features", "labels", "weights", "bias", "words")


class Outcome(NamedTuple):
    """Tables after a pass, unpadded columns included, and what the counters say."""

    features: Any
    labels: Any
    weights: Any
    bias: Any
    words: Any
    counters: Any
    loss: float


class Proposed(NamedTuple):
    """Steps that a block of visits would take."""

    violators: Any  # a pair each, in the order of the visits
    weights: Any
    directions: Any  # a visit each
    counters: Any
    loss: float


def fast_sequential(problem: Problem) -> Outcome:
    """`kernels.sequential.run_visits` over the whole order."""
    from wsabie.kernels.training.sequential_loop import run_visits
    from wsabie.kernels.training.warp import N_COUNTERS

    space = problem.space.copy()
    counters, loss = np.zeros(N_COUNTERS, np.int64), np.zeros(1)
    scratch = np.zeros((2, 16 * len(space.width)), np.float32)
    pattern, labels = space.pattern(problem.inputs), space.label_arrays()
    n, order, sampler = len(problem.order), problem.order, problem.sampler
    run_visits(
        pattern, labels, problem.targets, problem.config, sampler, order, 0, n, scratch, counters, loss, space.width
    )
    return outcome(space, counters, float(loss[0]))


def fast_owpc(problem: Problem) -> Outcome:
    """`run_visits` with `ViolatorScores` over the whole order."""
    from wsabie.kernels.training.sequential_loop import ViolatorScores, run_visits
    from wsabie.kernels.training.warp import N_COUNTERS

    space = problem.space.copy()
    counters, loss = np.zeros(N_COUNTERS, np.int64), np.zeros(1)
    scratch, scores = np.zeros((2, 16 * len(space.width)), np.float32), np.zeros(space.n_labels, np.float32)
    run_visits(
        space.pattern(problem.inputs), space.label_arrays(), problem.targets, problem.config, ViolatorScores(scores),
        problem.order, 0, len(problem.order), scratch, counters, loss, space.width,
    )  # fmt: skip
    return outcome(space, counters, float(loss[0]))


def outcome(space: Any, counters: Any, loss: float) -> Outcome:
    """State of a space after a pass; tables that it lacks are None."""
    space.finish_epoch(None, None)
    arrays = space.list_arrays()
    return Outcome(*(arrays.get(name) for name in TABLES), counters, loss)


def fast_proposals(problem: Problem) -> Proposed:
    """Result of the first phase of `kernels.blocks` for the whole order as one block."""
    _, block, counters, loss = run_one_block(problem, [0, problem.space.n_features])
    return Proposed(block.violators, block.weights, block.directions, counters, loss)


def fast_block(problem: Problem, bounds: Any = None, tile: int | None = None) -> Outcome:
    """`kernels.blocks`: the whole order as one block; `bounds` shares the features out to threads."""
    owned = [0, problem.space.n_features] if bounds is None else bounds
    space, block, counters, loss = run_one_block(problem, owned, tile)
    assert not block.tile_scratch.moved_flags.any()
    return outcome(space, counters, loss)


def run_one_block(problem: Problem, bounds: Any, tile: int | None = None) -> tuple[Any, Any, Any, float]:
    """The space after it, the block, the counters of all threads and the loss."""
    from wsabie.kernels.embedding.towers import allocate_tile_scratch
    from wsabie.kernels.training.deterministic_loop import ExampleBlock, run_blocks
    from wsabie.kernels.training.warp import N_COUNTERS

    space, targets, order = problem.space.copy(), problem.targets, problem.order.astype(np.int64)
    n, n_threads = len(order), len(bounds) - 1
    pair_starts = np.concatenate([[0], np.cumsum(np.diff(targets.starts)[order])]).astype(np.int64)
    block = ExampleBlock(
        order,
        pair_starts,
        *np.zeros((2, n, 16 * len(space.width)), np.float32),
        np.zeros(n, np.bool_),
        np.zeros(n),
        *np.zeros((2, pair_starts[-1]), np.int64),
        np.zeros(pair_starts[-1], np.float32),
        allocate_tile_scratch(n_threads, n, space.n_features),
    )
    owned = np.array(bounds, np.int64)
    counters, losses = np.zeros((n_threads, N_COUNTERS), np.int64), np.zeros((n_threads, 1))
    pattern, labels, cuts = space.pattern(problem.inputs), space.label_arrays(), np.array([0, n])
    if tile is not None:
        pattern = pattern._replace(tower=pattern.tower._replace(tile=tile))
    with KernelThreads(n_threads) as threads:
        threads.run_each(
            lambda t: run_blocks(
                pattern, labels, targets, problem.config, problem.sampler, block, cuts, owned, owned,
                threads.counts, t, counters[t], losses[t], space.width,
            )
        )  # fmt: skip
    assert not block.tile_scratch.moved_flags.any()  # or the next block would project rows that it has not moved
    return space, block, counters.sum(axis=0), float(losses.sum())


def slow(problem: Problem, *, block: bool) -> Outcome:
    """The twin of `fast_sequential` or of `fast_block`."""
    run = training_loops_reference.run_block if block else training_loops_reference.run_visits
    return _twin(problem, lambda *state: run(*state, problem.sampler, problem.order))


def slow_owpc(problem: Problem) -> Outcome:
    """The twin of `fast_owpc`."""
    return _twin(problem, lambda *state: training_loops_reference.run_owpc_visits(*state, problem.order))


def _twin(problem: Problem, run: Any) -> Outcome:
    pattern = training_loops_reference.convert_to_float64(problem.space.pattern(problem.inputs))
    labels, tower = (
        training_loops_reference.convert_to_float64(problem.space.label_arrays()),
        relation_patterns_reference.get_tower(pattern),
    )
    if hasattr(pattern, "item_ids"):  # the label beside an item is a row of the table that is ranked
        pattern = pattern._replace(table=labels.words if hasattr(labels, "words") else labels.table)
    moved = run(pattern, labels, problem.targets, problem.config)
    points, weights = getattr(labels, "points", labels), getattr(labels, "weights", labels)
    has_points, has_weights = tower is not None, hasattr(weights, "scale")
    return Outcome(
        tower.table if has_points else None,
        points.table if has_points else None,
        weights.table if has_weights else None,
        points.bias,
        getattr(labels, "words", None),
        moved.counters,
        moved.loss,
    )


def assert_same(fast: Outcome, twin: Outcome) -> None:
    """Counters equal, numbers within what float32 leaves of them."""
    np.testing.assert_array_equal(fast.counters, twin.counters)
    assert math.isclose(fast.loss, twin.loss, rel_tol=1e-4, abs_tol=1e-5)
    for name in TABLES:
        if getattr(twin, name) is None:
            assert getattr(fast, name) is None
            continue
        np.testing.assert_allclose(getattr(fast, name), getattr(twin, name), rtol=1e-3, atol=2e-5)
