"""Cuts of a deterministic pass: by pairs alone, never by threads."""

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from passes import fast_block
from runs import make_block, make_space
from strategies import Problem, label_rows, make_problem, make_step_config, seeds, sparse_rows, with_free_vectors
from wsabie.core.arrays import Csr
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.kernels.training import deterministic_loop
from wsabie.kernels.training.warp import VISITED
from wsabie.training import loops
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import _SAMPLE_SIZE, BlockVisits, StepCounters, _BlockPlan, run_blocks, run_hogwild
from wsabie.training.samplers import PAIRS_PER_BLOCK, NegativeSampler
from wsabie.training.training_data import RowBlock, build_targets

ROOT = Path(__file__).resolve().parents[2]


@given(seeds, st.integers(1, 900), st.sampled_from([0.0, 0.05, 0.9]))
def test_blocks_hold_about_256_pairs_and_every_visit_once(seed: int, n: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    targets = build_targets(label_rows(n, 40, rate, 0, rng), None, "mean")
    block = RowBlock(np.zeros((n, 30), np.float32), targets)
    order = rng.permutation(len(targets.rows))
    plans = [_BlockPlan(make_space(), block, order, NegativeSampler([]), threads) for threads in (1, 3)]
    for plan in plans:
        visits, pairs = np.diff(plan.cuts), np.diff(plan.example_block.pair_starts[plan.cuts])
        assert (plan.cuts[0], plan.cuts[-1], pairs.sum()) == (0, len(order), len(targets.labels))
        assert (pairs <= PAIRS_PER_BLOCK + 8).all()
        assert len(pairs) <= -(-len(targets.labels) // PAIRS_PER_BLOCK)
        assert (
            len(plan.example_block.queries)
            == len(plan.example_block.directions)
            == len(plan.example_block.moved)
            == visits.max(initial=0)
        )
        assert (
            len(plan.example_block.positives)
            == len(plan.example_block.violators)
            == len(plan.example_block.weights)
            == pairs.max(initial=0)
        )
        assert np.array_equal(plan.cuts, plans[0].cuts)
        assert np.array_equal(plan.example_block.order, order)


@pytest.mark.parametrize("turn", [None, 1])
def test_many_blocks_are_twice_as_large_but_for_those_that_take_turns(turn: int | None) -> None:
    targets = build_targets(csr_matrix(np.ones((40_000, 1), np.int8)), None, "mean")
    block = RowBlock(np.zeros((40_000, 30), np.float32), targets, blocks_per_turn=turn)
    plan = _BlockPlan(make_space(), block, np.arange(40_000), NegativeSampler([]), 1)
    assert np.diff(plan.cuts).max() in (range(500, 513) if turn is None else range(250, 257))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_owners_share_the_features_by_their_load(dense: bool, threads: int) -> None:
    block, space = make_block(300, dense), make_space()
    plan = _BlockPlan(space, block, np.arange(len(block.targets.rows)), NegativeSampler([]), threads)
    bounds = plan.bounds
    assert (bounds[0], bounds[-1], len(bounds)) == (0, space.n_features, threads + 1)
    assert (np.diff(bounds) >= 0).all()
    load = np.full(30, 300) if dense else np.bincount(block.inputs.indices, minlength=30)
    shares = [load[lo:hi].sum() for lo, hi in itertools.pairwise(bounds)]
    assert max(shares) <= load.sum() / threads + load.max()


def test_owners_share_rows_that_have_the_same_number_of_fields() -> None:
    """Four fields a row, in order: an even stride through the non-zeros would see one of them alone."""
    n = 3 * _SAMPLE_SIZE // 4
    fields = np.random.default_rng(0).integers([0, 10, 30, 35], [10, 30, 35, 50], (n, 4))
    inputs = Csr(np.arange(n + 1) * 4, fields.ravel().astype(np.int32), np.ones(4 * n, np.float32))
    block = RowBlock(inputs, build_targets(csr_matrix(np.ones((n, 1), np.int8)), None, "mean"))
    space = JointSpace.random(50, 2, 8, "dot", np.random.default_rng(0))
    bounds = _BlockPlan(space, block, np.arange(n), NegativeSampler([]), 2).bounds
    shares = [np.bincount(inputs.indices)[lo:hi].sum() / len(inputs.indices) for lo, hi in itertools.pairwise(bounds)]
    assert shares == pytest.approx([0.5, 0.5], abs=0.06)


def test_threads_whose_first_fails_do_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has one feature, as in a pair list."""
    rng, n, last_threads = np.random.default_rng(0), 60_000, []
    inputs = Csr(np.arange(n + 1), rng.integers(0, 30, n).astype(np.int32), np.ones(n, np.float32))
    problem = one_label_a_row(64, 1.2)
    Y = csr_matrix((np.ones(n, np.int8), rng.integers(0, 40, n), np.arange(n + 1)), (n, 40))
    block, kernel = RowBlock(inputs, build_targets(Y, None, "mean")), deterministic_loop.run_blocks

    def failing(*arguments: Any) -> None:
        if arguments[10] == 0:
            time.sleep(0.01)
            raise ZeroDivisionError
        kernel(*arguments)
        last_threads.append(arguments[10])

    monkeypatch.setattr(deterministic_loop, "run_blocks", failing)
    with KernelThreads(4) as threads, pytest.raises(ZeroDivisionError):
        list(
            run_blocks(
                BlockVisits(
                    make_space(),
                    block,
                    problem.config,
                    NegativeSampler([problem.sampler] * 4),
                    np.arange(n),
                    threads,
                    StepCounters.allocate(4),
                )
            )
        )
    assert sorted(last_threads) == [1, 2, 3]


def one_label_a_row(n: int, limit: float) -> Problem:
    """n pairs, each a visit of its own, in a random order; no row of the tables is longer than the limit."""
    rng, space = np.random.default_rng(0), make_space()
    tables.clip_row_norms(space.features, limit)
    tables.clip_row_norms(space.labels, limit)
    Y = csr_matrix(np.eye(40, dtype=np.int8)[rng.integers(0, 40, n)])
    config = make_step_config(40, max_norm_rows=limit, max_norm_labels=limit)
    return make_problem(space, sparse_rows(n, 30, 0.2, rng), Y, config, rng.permutation(n))


def after_blocks(problem: Problem, n_threads: int) -> JointSpace:
    """The space after `run_blocks` over the whole order."""
    space, block = problem.space.copy(), RowBlock(problem.inputs, problem.targets)
    with KernelThreads(n_threads) as threads:
        sampling = NegativeSampler([problem.sampler] * n_threads)
        step_counters = StepCounters.allocate(n_threads)
        list(run_blocks(BlockVisits(space, block, problem.config, sampling, problem.order, threads, step_counters)))
    return space


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("pairs", "blocks"), [(768, 3), (769, 4), (127 * 256, 127), (127 * 256 + 1, 64)])
def test_the_bits_are_those_of_blocks_of_256_pairs_one_after_the_other(pairs: int, blocks: int, threads: int) -> None:
    """By hand, full blocks and one pair more, which makes 128 blocks 64: seed, data and the size of a block decide."""
    problem = one_label_a_row(pairs, 1.2)
    by_hand = problem.space.copy()
    for part in np.array_split(problem.order, blocks):
        outcome = fast_block(problem._replace(space=by_hand, order=part))
        by_hand.features[:], by_hand.labels[:] = outcome.features, outcome.labels
    space = after_blocks(problem, threads)
    assert np.array_equal(space.features, by_hand.features)
    assert np.array_equal(space.labels, by_hand.labels)


class RecordingSampler(NegativeSampler):
    """A sampler that must look again after so many pairs, and notes what had been visited when it did."""

    def __init__(self, problem: Problem, n_threads: int, period: int | None) -> None:
        super().__init__([problem.sampler] * n_threads, period)
        self.visited: list[int] = []
        self.refreshed_after: list[int] = []

    def refresh(self, space: Any, threads: KernelThreads) -> None:
        self.refreshed_after.append(sum(self.visited))


@pytest.mark.parametrize("run", [run_blocks, run_hogwild])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_pass_is_planned_once_however_often_the_sampler_looks(
    run: Any, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every visit has one pair here: 700 of them make three parts, which end where a block ends."""
    problem, planned, plan = one_label_a_row(700, 1.2), [], loops._BlockPlan
    monkeypatch.setattr(loops, "_BlockPlan", lambda *arguments: planned.append(arguments) or plan(*arguments))
    sampling, step_counters = RecordingSampler(problem, n_threads, 300), StepCounters.allocate(n_threads)
    block = RowBlock(problem.inputs, problem.targets)
    with KernelThreads(n_threads) as threads:
        arguments = BlockVisits(problem.space, block, problem.config, sampling, problem.order, threads, step_counters)
        for visits in run(arguments):
            sampling.visited.append(visits)
    assert sampling.refreshed_after == [0, 300, 600]
    assert step_counters.counters[:, VISITED].sum() == sum(sampling.visited) == 700
    assert len(planned) == (run is run_blocks)


def test_looks_change_the_cuts_and_nothing_else() -> None:
    """The bits are those of a pass for each part; every part begins a block."""
    problem = one_label_a_row(700, 1.2)
    single_pass, parts = problem.space.copy(), problem.space.copy()
    block = RowBlock(problem.inputs, problem.targets)
    with KernelThreads(1) as threads:
        for space, period, orders in (
            (single_pass, 300, [problem.order]),
            (parts, None, np.split(problem.order, [300, 600])),
        ):
            for order in orders:
                sampling = RecordingSampler(problem, 1, period)
                step_counters = StepCounters.allocate(1)
                list(run_blocks(BlockVisits(space, block, problem.config, sampling, order, threads, step_counters)))
    assert np.array_equal(single_pass.features, parts.features)
    assert np.array_equal(single_pass.labels, parts.labels)


def test_free_vectors_stay_within_the_limit_with_the_same_bits_for_2_threads() -> None:
    problem = with_free_vectors(one_label_a_row(700, 0.8))
    single_threaded, shared = (after_blocks(problem, n) for n in (1, 2))
    assert np.array_equal(single_threaded.features, shared.features)
    assert np.array_equal(single_threaded.labels, shared.labels)
    assert not (single_threaded.features == problem.space.features).all(axis=1).any()  # every vector moved
    assert np.linalg.norm(single_threaded.features, axis=1).max() <= 0.8 * (1 + 1e-6)


@pytest.mark.parametrize("page", ["docs/decisions/deterministic-threads.md", "docs/how-to/training.md"])
def test_the_size_of_a_block_is_the_documented_one(page: str) -> None:
    assert f"of about {PAIRS_PER_BLOCK} pairs" in (ROOT / page).read_text(encoding="utf-8")
