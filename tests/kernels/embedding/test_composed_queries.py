"""An item and a label beside it: what folds into one query is the difference of whole quadruplets, and both loops equal
their twin."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import candidates as candidates_reference
from tests.reference import relation_patterns as relation_patterns_reference
from tests.reference import training_loops as training_loops_reference
from tests.reference import warp as warp_reference

from passes import TABLES, assert_same, fast_block, fast_sequential, slow
from strategies import DIM, Problem, make_problem, make_step_config, problems, random_space, seeds, with_labels_beside
from wsabie.embedding.protocols import ComposedInputs
from wsabie.embedding.relation_spaces import PartsSpace


@settings(max_examples=40)
@given(problems(), st.booleans(), seeds)
def test_the_plain_loop_equals_its_twin(problem: Problem, shared: bool, seed: int) -> None:
    composed = with_labels_beside(problem, shared=shared, rng=np.random.default_rng(seed))
    assert_same(fast_sequential(composed), slow(composed, block=False))


@settings(max_examples=40)
@given(problems(), st.booleans(), seeds)
def test_a_block_equals_its_twin(problem: Problem, shared: bool, seed: int) -> None:
    composed = with_labels_beside(problem, shared=shared, rng=np.random.default_rng(seed))
    assert_same(fast_block(composed), slow(composed, block=True))


@settings(max_examples=20)
@given(problems(sparse=False), st.booleans(), seeds)
def test_dense_rows_equal_the_twin(problem: Problem, shared: bool, seed: int) -> None:
    composed = with_labels_beside(problem, shared=shared, rng=np.random.default_rng(seed))
    assert_same(fast_block(composed), slow(composed, block=True))


@given(problems(), st.booleans(), seeds, st.data())
def test_owners_change_no_bit(problem: Problem, shared: bool, seed: int, data: st.DataObject) -> None:
    composed = with_labels_beside(problem, shared=shared, rng=np.random.default_rng(seed))
    d = problem.space.n_features
    cuts = sorted(data.draw(st.lists(st.integers(0, d), min_size=1, max_size=3)))
    single_owner, owned = fast_block(composed), fast_block(composed, [0, *cuts, d])
    for name in (*TABLES, "counters"):
        assert np.array_equal(getattr(single_owner, name), getattr(owned, name))


@given(problems())
def test_without_labels_beside_it_is_the_pair(problem: Problem) -> None:
    """Bit for bit."""
    pair = problem._replace(space=with_labels_beside(problem, shared=True, rng=np.random.default_rng(0)).space.items)
    rows = np.arange(problem.Y.shape[0], dtype=np.int32)
    sides = ComposedInputs(problem.inputs, rows, problem.targets.rows, np.full(len(rows), -1, np.int32))
    alone_in_parts = problem._replace(space=PartsSpace(pair.space, pair.space.labels, 0.7), inputs=sides)
    for run in (fast_sequential, fast_block):
        from_pair, from_state = run(pair), run(alone_in_parts)
        for name in ("features", "labels", "bias", "counters"):
            assert np.array_equal(getattr(from_pair, name), getattr(from_state, name))


@given(st.booleans(), seeds)
def test_the_query_ranks_as_whole_quadruplets_do(shared: bool, seed: int) -> None:
    """Edges of f_q (Mesnil et al. 2014, section 3) beside the ranked label are equal for all candidates."""
    rng = np.random.default_rng(seed)
    problem = make_problem(
        random_space(6, 9, "dot", rng),
        rng.standard_normal((2, 6)),
        sp.csr_matrix(np.eye(2, 9, dtype=np.int8)),
        make_step_config(9),
    )
    space = with_labels_beside(problem, shared=shared, rng=rng).space
    V, U, W, X = space.items.features, space.items.labels, space.words, problem.X

    def score_quadruplet(object_label: int, part_label: int) -> float:
        item_score = (X[0] @ V) @ U[object_label] + (X[1] @ V) @ U[part_label]
        return float(item_score + 0.7 * W[object_label] @ W[part_label])

    for item, other_label, score in (
        (0, 4, lambda label: score_quadruplet(label, 4)),
        (1, 7, lambda label: score_quadruplet(7, label)),
    ):
        entity = np.array([item], np.int32)
        pattern = space.pattern(ComposedInputs(problem.inputs, entity, entity, np.array([other_label], np.int32)))
        q, labels = (
            relation_patterns_reference.encode_query(training_loops_reference.convert_to_float64(pattern), 0),
            training_loops_reference.convert_to_float64(space.label_arrays()),
        )
        for label in range(9):
            folded = candidates_reference.score_label(labels, q, label) - candidates_reference.score_label(labels, q, 0)
            np.testing.assert_allclose(folded, score(label) - score(0), atol=1e-4)


@given(st.booleans(), st.integers(-1, 4), seeds)
def test_a_step_follows_finite_differences_of_the_score(shared: bool, other_label: int, seed: int) -> None:
    """The step follows f(y) - f(v) in every table, also if the label beside the item is y or v."""
    rng = np.random.default_rng(seed)
    problem = make_problem(
        random_space(3, 5, "dot", rng), rng.standard_normal((1, 3)), _one_label(), make_step_config(5)
    )
    space = with_labels_beside(problem, shared=shared, rng=rng).space
    none = np.zeros(1, np.int32)
    pattern = training_loops_reference.convert_to_float64(
        space.pattern(ComposedInputs(problem.inputs, none, none, np.array([other_label], np.int32)))
    )
    labels = training_loops_reference.convert_to_float64(space.label_arrays())
    pattern = pattern._replace(table=labels.words if hasattr(labels, "words") else labels.table)
    tables = [pattern.tower.table, *([labels.points.table, labels.words] if not shared else [labels.table])]
    old_tables = [table.copy() for table in tables]
    q = relation_patterns_reference.encode_query(pattern, 0)
    step = warp_reference.warp_step(
        problem.targets, labels, problem.config, problem.sampler, 0, 0, q, np.zeros(64, np.int64)
    )
    if step.violator < 0:
        return

    def gap() -> float:
        q = relation_patterns_reference.encode_query(pattern, 0)
        return candidates_reference.score_label(labels, q, step.positive) - candidates_reference.score_label(
            labels, q, step.violator
        )

    slopes = [_slope(table, gap) for table in tables]
    config = problem.config
    for y, sign in ((step.positive, 1), (step.violator, -1)):
        candidates_reference.update_label(labels, config, y, q, sign * step.weight)
    relation_patterns_reference.backprop_queries(pattern, [(0, step.direction)], config)
    for table, old, slope in zip(tables, old_tables, slopes, strict=True):
        np.testing.assert_allclose(table - old, 0.05 * step.weight * slope, rtol=1e-4, atol=1e-6)


def _one_label() -> sp.csr_matrix:
    return sp.csr_matrix(([1], ([0], [1])), (1, 5), np.int8)


def _slope(table: np.ndarray, gap: Callable[[], float]) -> np.ndarray:
    """Central differences in the columns that are not padding, 0 in the others."""
    slope = np.zeros_like(table)
    for at in np.ndindex(table.shape[0], DIM):
        value = table[at]
        ends = []
        for table[at] in (value + 1e-4, value - 1e-4):
            ends.append(gap())
        table[at] = value
        slope[at] = (ends[0] - ends[1]) / 2e-4
    return slope
