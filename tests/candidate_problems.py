"""Problems whose candidates have features: made by hypothesis, run through a block of the kernel or its twin."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from tests.reference import candidate_pools as candidate_pools_reference
from tests.reference import training_loops as training_loops_reference

from passes import Outcome
from strategies import label_rows, make_step_config, random_space, seeds, sparse_rows
from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import StepCounters, _BlockPlan
from wsabie.training.samplers import NegativeSampler
from wsabie.training.training_data import RowBlock, build_targets

FORMS = (
    ("sparse", "sparse", "dot"),
    ("sparse", "sparse", "euclidean"),
    ("sparse", "sparse", "cosine"),
    ("dense", "dense", "dot"),
    ("sparse", "dense", "dot"),
    ("dense", "sparse", "euclidean"),
    ("free", "sparse", "dot"),
    ("free", "dense", "cosine"),
)
"""Queries, candidates, similarity: every dispatch, but not every product of them, each of which is compiled."""


class Pooled(NamedTuple):
    """A relation to items with features, as the loops take it."""

    space: JointSpace
    inputs: Any
    targets: Any
    config: Any
    order: Any

    @property
    def block(self) -> RowBlock:
        return RowBlock(self.inputs, self.targets)


def pooled(
    queries: Any,
    candidates: Any,
    Y: Any,
    similarity: Any,
    rng: Any,
    negatives: int,
    hidden: Any = None,
    **config_options: Any,
) -> Pooled:
    """Queries may be numbers of free vectors, or the candidates themselves: then both sides share one table."""
    shared = queries is candidates
    n_rows = int(queries.max(initial=0)) + 1 if queries.ndim == 1 else queries.shape[1]
    base = random_space(n_rows, candidates.shape[1], similarity, rng)
    inputs = queries.astype(np.int32) if queries.ndim == 1 else check_features(queries)
    labels = base.features if shared else base.labels
    space = JointSpace(
        base.dim, similarity, base.features, labels, base.bias[:0],
        inputs if shared else check_features(candidates), negatives,
    )  # fmt: skip
    targets = build_targets(Y, None, "mean", 0, hidden)
    config = make_step_config(Y.shape[1], **config_options)
    for table in (space.features, space.labels):
        tables.clip_row_norms(table, float(config.max_norm_rows))
    return Pooled(space, inputs, targets, config, np.arange(len(targets.rows)))


@st.composite
def pooled_problems(draw: Any) -> Pooled:
    """At most one block of pairs, of every kind."""
    rng = np.random.default_rng(draw(seeds))
    form, of_candidates, similarity = draw(st.sampled_from(FORMS))
    shared = form == of_candidates and draw(st.booleans())
    n, n_items, d = draw(st.integers(1, 7)), draw(st.integers(1, 14)), draw(st.integers(1, 9))
    density = draw(st.sampled_from([0.3, 1.0]))
    items = sparse_rows(n_items, d, density, rng)
    candidates = items if of_candidates == "sparse" else items.toarray()
    if shared:
        queries: Any = candidates
        n = n_items
    elif form == "free":
        queries = rng.integers(0, 5, n)
    else:
        queries = sparse_rows(n, draw(st.integers(1, 9)), density, rng)
        queries = queries if form == "sparse" else queries.toarray()
    Y, hidden = label_rows(n, n_items, draw(st.sampled_from([0.15, 0.5])), 0, rng).tolil(), None
    if shared:
        Y.setdiag(0)
        hidden = sp.identity(n, np.int8, "csr")
    problem = pooled(
        queries, candidates, Y.tocsr(), similarity, rng, draw(st.sampled_from([0, 0, 1, 5, 40])), hidden,
        margin=draw(st.sampled_from([0.1, 1.0, 3.0])),
        max_sampled=draw(st.sampled_from([1, 3, 1000])),
        max_norm_rows=draw(st.sampled_from([np.inf, 1.2, 0.8])),
        decay_rows=draw(st.sampled_from([1.0, 0.9])),
        seed=draw(seeds),
        epoch=draw(st.integers(0, 5)),
    )  # fmt: skip
    return problem._replace(order=rng.permutation(len(problem.targets.rows)))


class Ran(NamedTuple):
    """Tables and counters after a block of the kernel."""

    outcome: Outcome
    block: Any
    pool: Any


def copied(space: JointSpace) -> JointSpace:
    """Tables of its own; one that is shared stays shared."""
    copy = space.copy()
    if space.labels is space.features:
        copy.labels = copy.features
    return copy


def fast_pool(problem: Pooled, n_threads: int = 1) -> Ran:
    """`kernels.blocks` over an order that is one block."""
    from wsabie.kernels.training.deterministic_loop import run_blocks
    from wsabie.kernels.training.negative_samplers import PoolSamplerState

    space, step_counters = copied(problem.space), StepCounters.allocate(n_threads)
    plan = _BlockPlan(
        space, problem.block, problem.order.astype(np.int64), NegativeSampler([PoolSamplerState()]), n_threads
    )
    pattern = space.pattern(problem.inputs)
    with KernelThreads(n_threads) as threads:
        threads.run_each(
            lambda t: run_blocks(
                pattern,
                plan.labels,
                problem.targets,
                problem.config,
                PoolSamplerState(),
                plan.example_block,
                plan.cuts,
                plan.bounds,
                plan.label_bounds,
                threads.counts,
                t,
                step_counters.counters[t],
                step_counters.loss[t],
                space.width,
            )
        )
    outcome = Outcome(
        space.features,
        space.labels,
        None,
        None,
        getattr(space, "label_points", None),
        step_counters.counters.sum(0),
        float(step_counters.loss[:, 0].sum()),
    )
    return Ran(outcome, plan.example_block, plan.labels)


def slow_pool(problem: Pooled) -> Outcome:
    """The twin of `fast_pool`."""
    space = problem.space
    pattern, candidates = (
        training_loops_reference.convert_to_float64(side)
        for side in (space.pattern(problem.inputs), space.candidate_tower())
    )
    tower, pattern_table = pattern.tower, getattr(pattern, "table", None)
    if space.labels is space.features:
        candidates = candidates._replace(table=tower.table)
    scored = type(space.label_arrays())
    moved = candidate_pools_reference.run_block(
        pattern, candidates, scored, problem.targets, problem.config, problem.order, space.negatives
    )
    return Outcome(tower.table, candidates.table, None, None, pattern_table, moved.counters, moved.loss)
