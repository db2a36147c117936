"""Candidates that are points of a tower: twin, worked examples, gradients, the law of the draws, threads."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import candidate_pools as candidate_pools_reference
from tests.reference import candidates as candidates_reference
from tests.reference import random_numbers as random_numbers_reference
from tests.reference import towers as towers_reference
from tests.reference import training_loops as training_loops_reference
from tests.reference import warp as warp_reference

from candidate_problems import FORMS, Pooled, fast_pool, pooled, pooled_problems, slow_pool
from passes import assert_same
from strategies import DIM, sparse_rows
from wsabie.kernels.embedding.similarity import Dot
from wsabie.kernels.training.warp import DRAWS, HISTOGRAM, REJECTED, SKIPPED, UPDATES, VISITED


@settings(max_examples=40)
@given(pooled_problems())
def test_a_block_equals_its_twin(problem: Pooled) -> None:
    assert_same(fast_pool(problem).outcome, slow_pool(problem))


@settings(max_examples=40)
@given(pooled_problems(), st.integers(2, 3))
def test_threads_change_no_bit(problem: Pooled, threads: int) -> None:
    single_threaded, shared = (fast_pool(problem, n).outcome for n in (1, threads))
    for name in ("features", "labels", "counters"):
        assert np.array_equal(getattr(single_threaded, name), getattr(shared, name))


@settings(max_examples=40)
@given(pooled_problems())
def test_positives_and_the_query_are_no_violators(problem: Pooled) -> None:
    ran, targets, at = fast_pool(problem), problem.targets, 0
    for visit in problem.order:
        positive_ids = warp_reference.list_positives(targets, int(targets.rows[visit]))
        for pair in candidate_pools_reference.list_visit_pairs(targets, visit):
            slot, v = int(ran.block.positives[at]), int(ran.block.violators[at])
            assert slot == problem.space.negatives + at
            assert ran.pool.ids[slot] == targets.labels[pair]
            assert v < 0 or int(ran.pool.ids[v]) not in positive_ids
            at += 1


# ---- worked examples


def two_pairs(**config: Any) -> Pooled:
    """Queries a and b of a feature each, items 0 and 1 of a feature each; a - 0 and b - 1; nothing else is drawn."""
    problem = pooled(
        sp.identity(2, np.float32, "csr"), sp.identity(2, np.float32, "csr"), sp.identity(2, np.int8, "csr"), "dot",
        np.random.default_rng(0), 0, **config,
    )  # fmt: skip
    problem.space.features[:], problem.space.labels[:] = 0, 0
    problem.space.features[:, :2], problem.space.labels[:, :2] = [[1, 0.5], [0, 1]], [[0.25, 0], [0.5, 0.125]]
    return problem


def test_positives_of_a_block_are_each_others_negatives_by_hand() -> None:
    """Each query has one negative, the other's item: rank 1, weight L(1) = 1."""
    a, b = np.array([1, 0.5]), np.array([0, 1])
    w0, w1 = np.array([0.25, 0]), np.array([0.5, 0.125])
    out = fast_pool(two_pairs(learning_rate_rows=0.1)).outcome
    assert out.features[:, :2] == pytest.approx(np.array([a + 0.1 * (w0 - w1), b + 0.1 * (w1 - w0)]))
    assert out.labels[:, :2] == pytest.approx(np.array([w0 + 0.1 * (a - b), w1 + 0.1 * (b - a)]))
    assert out.loss == pytest.approx((1 - a @ w0 + a @ w1) + (1 - b @ w1 + b @ w0))
    assert (out.counters[UPDATES], out.counters[DRAWS], out.counters[HISTOGRAM]) == (2, 2, 2)


def test_a_thing_that_does_not_violate_the_margin_moves_nothing() -> None:
    problem = two_pairs(margin=1e-6)
    problem.space.labels[0, 0], problem.space.labels[1, 0] = 2, -2
    out = fast_pool(problem).outcome
    assert out.counters[UPDATES] == 0
    assert np.array_equal(out.features, problem.space.features)
    assert np.array_equal(out.labels, problem.space.labels)


def test_a_thing_in_several_slots_takes_the_sum_of_their_directions() -> None:
    """Two queries belong to item 0, and the only items drawn are 0 and 1."""
    Y = sp.csr_matrix(np.array([[1, 0], [1, 0]], np.int8))
    eye = sp.identity(2, np.float32, "csr")
    problem = pooled(eye, eye.copy(), Y, "dot", np.random.default_rng(1), 30, learning_rate_rows=0.1, margin=50.0)
    ran = fast_pool(problem)
    q = problem.space.features
    assert ran.outcome.counters[UPDATES] == 2
    np.testing.assert_allclose(ran.outcome.labels[0] - problem.space.labels[0], 0.1 * (q[0] + q[1]), rtol=1e-4)
    np.testing.assert_allclose(ran.outcome.labels[1] - problem.space.labels[1], -0.1 * (q[0] + q[1]), rtol=1e-4)


# ---- gradients


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_a_step_goes_down_the_gradient_of_the_hinges(similarity: Any, shared: bool) -> None:
    """weight * (margin - f_y + f_v) over all pairs, as a function of the rows behind queries and candidates.

    By finite differences in float64; the move of the kernel, divided by its step, is minus that gradient.
    """
    rng, step = np.random.default_rng(8), 1e-3
    items = sparse_rows(7, 5, 0.7, rng)[1:]
    queries = items if shared else sparse_rows(7, 4, 0.7, rng)[1:]
    Y = sp.csr_matrix(np.roll(np.eye(6, dtype=np.int8), 1, 1))
    hidden = sp.identity(6, np.int8, "csr")
    problem = pooled(queries, items, Y, similarity, rng, 8, hidden, margin=50.0, learning_rate_rows=step)
    ran, space = fast_pool(problem), problem.space
    towers = [
        training_loops_reference.convert_to_float64(tower)
        for tower in (space.tower(problem.inputs), space.candidate_tower())
    ]
    scored = type(space.label_arrays())

    def loss(V: Any, W: Any) -> float:
        total = 0.0
        for at, i in enumerate(problem.targets.rows):
            q = towers_reference.encode_entity(towers[0]._replace(table=V), int(i))
            y, v = (int(slots[at]) for slots in (ran.block.positives, ran.block.violators))
            two = [
                towers_reference.encode_entity(towers[1]._replace(table=W), int(ran.pool.ids[slot])) for slot in (y, v)
            ]
            f = [candidates_reference.score_label(scored(np.array(two), np.zeros(2)), q, k) for k in (0, 1)]
            total += float(ran.block.weights[at]) * (50.0 - f[0] + f[1])
        return total

    V, W = space.features.astype(float), space.labels.astype(float)
    assert (ran.block.violators[:6] >= 0).all()
    assert loss(V, W) == pytest.approx(ran.outcome.loss, rel=1e-5)
    sides = [(V, ran.outcome.features, lambda t: (t, t))] if shared else [
        (V, ran.outcome.features, lambda t: (t, W)), (W, ran.outcome.labels, lambda t: (V, t))
    ]  # fmt: skip
    for table, moved, get_points in sides:
        gradient = np.zeros_like(table)
        for cell in np.ndindex(len(table), DIM):
            shift = np.zeros_like(table)
            shift[cell] = 1e-5
            gradient[cell] = (loss(*get_points(table + shift)) - loss(*get_points(table - shift))) / 2e-5
        np.testing.assert_allclose((moved - table) / step, -gradient, rtol=4e-3, atol=4e-3)
        assert np.abs(gradient).max() > 0.05


# ---- draws and ranks


def far_queries(n_items: int, n_queries: int, negatives: int, **config: Any) -> Pooled:
    """Every query is paired with item 0, whose score is 1; all others score 0."""
    X = sp.csr_matrix((np.ones(n_items, np.float32), np.r_[0, np.ones(n_items - 1, int)], np.arange(n_items + 1)))
    Y = sp.csr_matrix((np.ones(n_queries, np.int8), (np.arange(n_queries), np.zeros(n_queries, int))),
                      (n_queries, n_items))  # fmt: skip
    problem = pooled(np.zeros(n_queries), X, Y, "dot", np.random.default_rng(0), negatives, **config)
    problem.space.features[:], problem.space.labels[:] = 0, 0
    problem.space.features[0, 0] = problem.space.labels[0, 0] = 1
    return problem


def test_samples_are_uniform_and_new_for_every_block_epoch_and_seed() -> None:
    """40 items, 1,024 drawn for a block: chi-square of 39 degrees of freedom, mean 39 and deviation 8.8."""
    draws = set()
    for seed, epoch in ((1, 0), (1, 1), (2, 0)):
        problem = far_queries(40, 9, 1024, seed=seed, epoch=epoch)
        ids = fast_pool(problem).pool.ids[:1024]
        counts = np.bincount(ids, minlength=40)
        assert ((counts - 25.6) ** 2 / 25.6).sum() < 39 + 4 * np.sqrt(78)
        draws.add(ids.tobytes())
    assert len(draws) == 3
    first, second = (
        candidate_pools_reference.gather_pool(
            Dot, problem.space.candidate_tower(), problem.targets, problem.config, [], k, 9
        )
        for k in (0, 256)
    )
    assert first.ids != second.ids


def test_the_second_block_of_a_pass_has_other_items_than_the_first() -> None:
    problem = far_queries(1000, 512, 64)
    first = problem._replace(order=problem.order[:256])
    assert not np.array_equal(fast_pool(problem).pool.ids[:64], fast_pool(first).pool.ids[:64])


def test_negatives_are_tried_in_the_order_of_the_pairs_stream() -> None:
    problem = far_queries(1000, 5, 64, margin=2.0)
    ran = fast_pool(problem)
    for pair in range(5):
        counter = random_numbers_reference.advance_counter(random_numbers_reference.start_stream(1, 0, pair))
        while ran.pool.ids[random_numbers_reference.draw_below(counter, 64)] == 0:
            counter = random_numbers_reference.advance_counter(counter)
        assert ran.block.violators[pair] == random_numbers_reference.draw_below(counter, 64)


def test_a_rank_is_among_all_items_where_they_are_drawn() -> None:
    """All others violate: the first draw does, and the rank is their number."""
    ran = fast_pool(far_queries(1000, 50, 64, margin=2.0))
    L = sum(1 / k for k in range(1, 1000))
    assert ran.block.weights[:50] == pytest.approx(np.full(50, L), rel=1e-5)
    assert ran.outcome.counters[HISTOGRAM + 9] == 50


def in_batch(n: int, n_items: int, n_positives: int, **config: Any) -> Pooled:
    """n queries with `own` items each, drawn from each other; every margin is violated."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(n_items, n_positives, replace=False) for _ in range(n)])
    Y = sp.csr_matrix((np.ones(n * n_positives, np.int8), columns, np.arange(n + 1) * n_positives), (n, n_items))
    Y.sort_indices()
    eye = sp.identity(n_items, np.float32, "csr")
    return pooled(np.arange(n), eye, Y, "dot", rng, 0, margin=50.0, **config)


def test_a_rank_is_among_the_slots_that_hold_a_negative_where_none_are_drawn() -> None:
    """100 pairs of 100 queries, with items that come several times: not all 200 items."""
    problem = in_batch(100, 200, 1)
    ran = fast_pool(problem)
    shares = [(problem.targets.labels != y).sum() for y in problem.targets.labels]
    expected = [sum(1 / k for k in range(1, n + 1)) for n in shares]
    assert ran.block.weights[:100] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n_positives", [3, 60])
def test_queries_with_many_items_have_the_others_of_the_block_for_negatives(n_positives: int) -> None:
    """A visit holds 8 pairs at most: with 60 items each, a block of 48 pairs has 40 of others."""
    problem = in_batch(6, 5000, n_positives)
    order = np.flatnonzero(np.r_[True, np.diff(problem.targets.rows) > 0])  # the first visit of each
    out = fast_pool(problem._replace(order=order)).outcome
    assert out.counters[SKIPPED] == 0
    assert out.counters[UPDATES] == out.counters[VISITED]


def test_a_rank_is_never_beyond_the_number_of_items() -> None:
    """More slots than items: losses have an entry for each item, and what lies beyond them is not theirs."""
    problem = in_batch(120, 4, 1)
    ran = fast_pool(problem)
    assert len(problem.config.losses) == 5
    assert ran.block.weights[:120] == pytest.approx(np.full(120, 1 + 1 / 2 + 1 / 3), rel=1e-5)
    assert_same(ran.outcome, slow_pool(problem))


def test_a_query_to_which_all_items_belong_is_skipped_and_counted() -> None:
    for negatives in (0, 16):
        problem = far_queries(1, 3, negatives)
        out = fast_pool(problem).outcome
        assert (out.counters[VISITED], out.counters[SKIPPED], out.counters[DRAWS]) == (3, 3, 0)


def test_at_most_max_sampled_negatives_are_tried() -> None:
    out = fast_pool(far_queries(1000, 20, 64, margin=0.5, max_sampled=7)).outcome
    assert (out.counters[DRAWS], out.counters[UPDATES]) == (140, 0)
    assert out.counters[REJECTED] < 10


# ---- several blocks


@pytest.mark.parametrize(("form", "of_candidates", "shared"), [
    (*form, shared) for form in sorted({form[:2] for form in FORMS}) for shared in {False, form[0] == form[1]}
])  # fmt: skip
@pytest.mark.parametrize("negatives", [0, 32])
def test_a_pass_of_several_blocks_has_the_same_bits_for_1_2_and_3_threads(
    form: str, of_candidates: str, shared: bool, negatives: int
) -> None:
    rng = np.random.default_rng(3)
    items = sparse_rows(90, 25, 0.2, rng)
    items = items if of_candidates == "sparse" else items.toarray()
    dense_source = sparse_rows(90, 11, 0.3, rng)
    queries: Any = {"sparse": dense_source, "dense": dense_source.toarray(), "free": np.arange(90)}[form]
    Y = sp.random(90, 90, 0.12, format="lil", random_state=rng)
    Y.setdiag(0)
    hidden = sp.identity(90, np.int8, "csr") if shared else None
    problem = pooled(items if shared else queries, items, (Y.tocsr() != 0).astype(np.int8), "dot", rng, negatives,
                     hidden, max_norm_rows=1.0)  # fmt: skip
    single_threaded, *multi_threaded = (fast_pool(problem, n).outcome for n in (1, 2, 3))
    assert single_threaded.counters[UPDATES] > 600
    assert not np.array_equal(single_threaded.labels, problem.space.labels)
    for out in multi_threaded:
        for name in ("features", "labels", "counters"):
            assert np.array_equal(getattr(single_threaded, name), getattr(out, name))
        assert out.loss == pytest.approx(single_threaded.loss, rel=1e-12)
    assert np.linalg.norm(single_threaded.labels, axis=1).max() <= 1 + 1e-6
