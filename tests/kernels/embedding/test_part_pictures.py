"""An item and a label that ask for an item: an edge between pictures, against whole quadruplets, slopes, the twin."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import relation_patterns as relation_patterns_reference
from tests.reference import training_loops as training_loops_reference

from candidate_problems import Pooled, fast_pool, slow_pool
from passes import TABLES, assert_same
from strategies import DIM, make_step_config, random_space, seeds, sparse_rows
from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.embedding.protocols import ComposedInputs, RelationEnds
from wsabie.embedding.relation_spaces import ItemSpace, PartsSpace
from wsabie.kernels.training.warp import UPDATES
from wsabie.training.quadruplet_visits import _scale_rows
from wsabie.training.training_data import build_targets

N_LABELS = 5


def make_part_problem(
    items: Any, entity_ids: Any, label_ids: Any, Y: Any, rng: Any, negatives: int, weight: float, **config: Any
) -> Pooled:
    """Items, with labels beside them, that ask for items; Y has the pairs, and the asking item is not a violator."""
    inputs, entity_ids = check_features(items), np.asarray(entity_ids, np.int32)
    points = random_space(items.shape[1], N_LABELS, "dot", rng)
    step_config = make_step_config(items.shape[0], **config)
    for table in (points.features, points.labels):
        tables.clip_row_norms(table, float(step_config.max_norm_rows))
    space = PartsSpace(points, points.labels, 0.3).view(RelationEnds("pictures", "items", "items", inputs, negatives))
    hidden = sp.csr_matrix((np.ones(len(entity_ids), np.int8), entity_ids, np.arange(len(entity_ids) + 1)), Y.shape)
    targets = build_targets(Y, None, "mean", 0, hidden)
    sides = ComposedInputs(
        _scale_rows(inputs, weight), entity_ids, entity_ids[targets.rows], np.asarray(label_ids, np.int32)
    )
    return Pooled(space, sides, targets, step_config, np.arange(len(targets.rows)))


@st.composite
def asking(draw: Any) -> Pooled:
    rng = np.random.default_rng(draw(seeds))
    n, m, d = draw(st.integers(1, 7)), draw(st.integers(1, 12)), draw(st.integers(1, 9))
    items = sparse_rows(m, d, draw(st.sampled_from([0.3, 1.0])), rng)
    items = items if draw(st.booleans()) else items.toarray()
    entity_ids = rng.integers(0, m, n)
    Y = sp.random(n, m, 0.4, format="lil", random_state=rng)
    Y[np.arange(n), entity_ids] = 0
    Y = (Y.tocsr() != 0).astype(np.int8)
    Y.sort_indices()
    problem = make_part_problem(
        items, entity_ids, rng.integers(-1, N_LABELS, n), Y, rng, draw(st.sampled_from([0, 1, 5, 40])),
        draw(st.sampled_from([0.0, 0.3, 1.0])),
        margin=draw(st.sampled_from([0.1, 1.0, 3.0])), max_sampled=draw(st.sampled_from([1, 1000])),
        max_norm_rows=draw(st.sampled_from([np.inf, 0.8])), max_norm_labels=draw(st.sampled_from([np.inf, 0.8])),
        decay_rows=draw(st.sampled_from([1.0, 0.9])), decay_labels=draw(st.sampled_from([1.0, 0.9])),
        seed=draw(seeds),
    )  # fmt: skip
    return problem._replace(order=rng.permutation(len(problem.targets.rows)))


@settings(max_examples=40)
@given(asking())
def test_a_block_equals_its_twin(problem: Pooled) -> None:
    assert_same(fast_pool(problem).outcome, slow_pool(problem))


@settings(max_examples=30)
@given(asking(), st.integers(2, 3))
def test_threads_change_no_bit(problem: Pooled, threads: int) -> None:
    single_threaded, shared = (fast_pool(problem, n).outcome for n in (1, threads))
    for name in (*TABLES, "counters"):
        assert np.array_equal(getattr(single_threaded, name), getattr(shared, name))


@given(seeds)
def test_the_query_ranks_items_as_whole_quadruplets_do(seed: int) -> None:
    """Edges of f_q that do not touch the ranked picture are the same for all its candidates."""
    rng = np.random.default_rng(seed)
    items, r, s = rng.standard_normal((6, 4)), 0.3, 0.6
    Y = sp.csr_matrix(([1], ([0], [1])), (1, 6), np.int8)
    problem = make_part_problem(items, [0], [3], Y, rng, 0, s)
    V, U, W = (
        problem.space.features,
        problem.space.label_points,
        rng.standard_normal((N_LABELS, tables.compute_padded_width(DIM))),
    )

    def score_quadruplet(part: int, object_label: int = 1, part_label: int = 3) -> float:
        edges = (items[0] @ V) @ U[object_label] + (items[part] @ V) @ U[part_label]
        edges += r * W[object_label] @ W[part_label] + s * (items[0] @ V) @ (items[part] @ V)
        return float(edges)

    q = relation_patterns_reference.encode_query(
        training_loops_reference.convert_to_float64(problem.space.pattern(problem.inputs)), 0
    )
    for part in range(1, 6):
        folded = q @ (items[part] @ V) - q @ (items[1] @ V)
        np.testing.assert_allclose(folded, score_quadruplet(part) - score_quadruplet(1), rtol=1e-4, atol=1e-4)


@given(st.integers(-1, N_LABELS - 1), seeds)
def test_a_step_follows_finite_differences_of_the_score(other_label: int, seed: int) -> None:
    """The step follows f(J) - f(K) in both tables: V stands on either side of the edge."""
    rng = np.random.default_rng(seed)
    items, s = rng.standard_normal((3, 4)).astype(np.float32), 0.6
    Y = sp.csr_matrix(([1], ([0], [1])), (1, 3), np.int8)  # picture 0 asks, 1 is right, 2 is all that violates
    problem = make_part_problem(items, [0], [other_label], Y, rng, 8, s, margin=50.0)
    space = problem.space
    assert isinstance(space, ItemSpace)
    V, U = space.features.astype(np.float64), space.label_points.astype(np.float64)

    def gap() -> float:
        q = s * (items[0] @ V) + (U[other_label] if other_label >= 0 else 0)
        return float(q @ (items[1] @ V) - q @ (items[2] @ V))

    outcome = slow_pool(problem)
    if not outcome.counters[UPDATES]:
        return  # the violator was not drawn
    for table, moved in ((V, outcome.features), (U, outcome.words)):
        slope = np.zeros_like(table)
        for at in np.ndindex(len(table), DIM):
            value, ends = table[at], []
            for table[at] in (value + 1e-4, value - 1e-4):
                ends.append(gap())
            table[at] = value
            slope[at] = (ends[0] - ends[1]) / 2e-4
        np.testing.assert_allclose(moved - table, 0.05 * slope, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("negatives", [0, 32])
def test_a_pass_of_several_blocks_has_the_same_bits_for_1_2_and_3_threads(negatives: int) -> None:
    rng = np.random.default_rng(3)
    items, entity_ids = sparse_rows(90, 25, 0.2, rng), rng.integers(0, 90, 900)
    positives = (entity_ids + rng.integers(1, 90, 900)) % 90
    Y = sp.csr_matrix((np.ones(900, np.int8), positives, np.arange(901)), (900, 90))
    problem = make_part_problem(
        items, entity_ids, rng.integers(0, N_LABELS, 900), Y, rng, negatives, 0.5, max_norm_rows=1.0
    )
    single_threaded, *multi_threaded = (fast_pool(problem, n).outcome for n in (1, 2, 3))
    assert single_threaded.counters[UPDATES] > 500
    assert not np.array_equal(single_threaded.words, problem.space.label_points)
    for out in multi_threaded:
        for name in (*TABLES, "counters"):
            assert np.array_equal(getattr(single_threaded, name), getattr(out, name))
