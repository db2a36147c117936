"""Samplers: draws by hand, chances met, the passes equal to their twin with each of them."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import negative_samplers as negative_samplers_reference
from tests.reference import random_numbers as random_numbers_reference

from passes import assert_same, fast_block, fast_sequential, slow
from strategies import Problem, random_space, sampled_problems, seeds
from wsabie.kernels.training import negative_samplers
from wsabie.kernels.training.negative_samplers import AdaptiveSamplerState, AliasTable, FullSortSamplerState
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import (
    PAIRS_PER_BLOCK,
    SamplerConfig,
    build_alias_table,
    compute_rank_chances,
    create_sampler,
)

WIDTH = (None, None)


@numba.njit
def picks(alias: Any, counters: Any) -> Any:
    return np.array([negative_samplers.draw_from_alias(alias, c) for c in counters])


@numba.njit
def draws(sampler: Any, labels: Any, q: Any, counters: Any, width: Any) -> Any:
    return np.array([negative_samplers.draw_label(sampler, labels, q, c, width) for c in counters])


@settings(max_examples=40)
@given(sampled_problems())
def test_a_pass_equals_the_twin(problem: Problem) -> None:
    assert_same(fast_sequential(problem), slow(problem, block=False))


@settings(max_examples=30)
@given(sampled_problems())
def test_a_block_equals_the_twin(problem: Problem) -> None:
    assert_same(fast_block(problem), slow(problem, block=True))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda c: sum(c) > 0.1))
def test_an_alias_table_holds_the_chances(chances: list[float]) -> None:
    """Summed up over the places: each keeps a share of 1/n and hands the rest to another."""
    expected = np.array(chances) / sum(chances)
    alias, n = build_alias_table(expected), len(expected)
    own_share = alias.thresholds / 2.0**32 / n
    probabilities = own_share + np.bincount(alias.aliases, weights=1 / n - own_share, minlength=n)
    np.testing.assert_allclose(probabilities, expected, atol=1e-9 * n)


def test_draws_meet_the_chances() -> None:
    chances = np.array([0.5, 0.0, 0.3, 0.2])
    n = 40_000
    counters = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    counts = np.bincount(picks(build_alias_table(chances), counters), minlength=4)
    assert counts[1] == 0
    assert np.all(np.abs(counts - n * chances) <= 4 * np.sqrt(n * chances * (1 - chances)))


@given(seeds, st.integers(1, 60))
def test_the_label_of_a_rank_is_that_of_a_full_sort(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, n).astype(np.float32)  # many ties
    expected = np.lexsort((np.arange(n), -scores))
    for r in range(n):
        assert negative_samplers.select_label_of_rank(scores, np.zeros(n, np.int32), r) == expected[r]


def adaptive(n_labels: int, rank_scale: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """A space, its adaptive sampler, and the object that refreshes it."""
    space = random_space(1, n_labels, "dot", np.random.default_rng(seed))
    sampling = create_sampler(SamplerConfig("adaptive", rank_scale=rank_scale), space, np.ones(n_labels, np.int64), 1)
    with KernelThreads(1) as threads:
        sampling.refresh(space, threads)
    return space, sampling.per_thread[0], sampling


@given(seeds, st.integers(2, 70), st.sampled_from([0.02, 0.3]))
def test_fronts_and_backs_are_the_ends_of_a_full_sort(seed: int, n_labels: int, rank_scale: float) -> None:
    space, sampler, _ = adaptive(n_labels, rank_scale, seed)
    n_ranks = sampler.highest_labels.shape[1]
    for f in range(space.dim):
        column = space.labels[:, f]
        order = np.lexsort((np.arange(n_labels), -column))
        assert np.array_equal(column[sampler.highest_labels[f]], column[order[:n_ranks]])
        assert np.array_equal(column[sampler.lowest_labels[f]], column[order[::-1][:n_ranks]])
    np.testing.assert_allclose(sampler.factor_std[: space.dim], space.labels[:, : space.dim].std(0), rtol=1e-5)
    assert not sampler.factor_std[space.dim :].any()


def test_the_end_is_chosen_by_the_sign_and_zero_is_positive() -> None:
    """Ranks count from the chosen end (Guo et al. 2018, section 4): r = 1 is the first or the last label."""
    alias = AliasTable(np.array([1 << 32], np.uint64), np.zeros(1, np.int32))  # always the first rank
    sampler = AdaptiveSamplerState(np.ones(32, np.float32), np.int32([[7]]), np.int32([[3]]), alias)
    labels = random_space(1, 9, "dot", np.random.default_rng(0)).label_arrays()
    counters = np.arange(5, dtype=np.uint64)
    for value, expected in ((2.0, 7), (-2.0, 3), (0.0, 7)):
        q = np.full(32, value, np.float32)
        assert (draws(sampler, labels, q, counters, WIDTH) == expected).all()


def test_factors_are_drawn_by_size_times_spread() -> None:
    """p(f) ~ |q_f| sigma_f."""
    factor_std, q = np.zeros(32, np.float32), np.zeros(32, np.float32)
    factor_std[:3], q[:3] = (1, 2, 4), (3, -1, 0.25)
    alias = AliasTable(np.array([1 << 32], np.uint64), np.zeros(1, np.int32))
    order = np.arange(3, dtype=np.int32)[:, None]
    labels, n = random_space(1, 9, "dot", np.random.default_rng(0)).label_arrays(), 30_000
    counters = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    counts = np.bincount(
        draws(AdaptiveSamplerState(factor_std, order, order, alias), labels, q, counters, WIDTH), minlength=3
    )
    chances = np.array([3, 2, 1]) / 6
    assert np.all(np.abs(counts - n * chances) <= 4 * np.sqrt(n * chances * (1 - chances)))


def test_adaptive_draws_rank_higher_than_uniform_ones_and_a_full_sort_highest() -> None:
    """The mixture of factors stands for the full sort without being it (docs/reference/conventions.md)."""
    space, sampler, _ = adaptive(2000, 0.02)
    labels, rng = space.label_arrays(), np.random.default_rng(5)
    chances = compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.02), 2000)
    full = FullSortSamplerState(np.zeros(2000, np.float32), np.zeros(2000, np.int32), build_alias_table(chances))
    counters = np.arange(400, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ranks: dict[str, list[float]] = {"adaptive": [], "full": []}
    for _ in range(20):
        q = np.zeros(32, np.float32)
        q[:20] = rng.standard_normal(20)
        place = np.argsort(np.argsort(-(labels.table @ q)))
        ranks["adaptive"].append(place[draws(sampler, labels, q, counters, WIDTH)].mean())
        ranks["full"].append(place[draws(full, labels, q, counters, WIDTH)].mean())
    expected = float((np.arange(len(chances)) * chances).sum())
    assert np.mean(ranks["full"]) == pytest.approx(expected, rel=0.1)
    assert expected < np.mean(ranks["adaptive"]) < 0.8 * 1000


def test_a_query_of_zeros_draws_any_factor() -> None:
    space, sampler, _ = adaptive(50, 0.1)
    counters = np.arange(200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    factors = draws(sampler, space.label_arrays(), np.zeros(32, np.float32), counters, WIDTH)
    assert factors.min() >= 0
    assert factors.max() < 50
    assert len(set(factors.tolist())) > 10


def test_the_twin_draws_the_same() -> None:
    space, sampler, _ = adaptive(60, 0.1)
    q = np.random.default_rng(1).standard_normal(32).astype(np.float32)
    q[20:] = 0
    counters = [random_numbers_reference.mix_bits(c) for c in range(300)]
    fast = draws(sampler, space.label_arrays(), q, np.array(counters, np.uint64), WIDTH)
    slow_ones = [negative_samplers_reference.draw_label(sampler, None, q.astype(float), c) for c in counters]
    assert fast.tolist() == slow_ones


def test_refreshing_is_due_every_n_log_n_pairs() -> None:
    space, _, sampling = adaptive(80, 0.1)
    assert sampling.period == math.ceil(80 * math.log(80))
    pair_starts = np.concatenate([[0], np.cumsum(np.full(400, 2))])
    assert sampling.split_visits(pair_starts) == [(0, 176), (176, 352), (352, 400)]  # 351 pairs, in visits of two
    assert sampling.split_visits(np.arange(801)) == [(0, 351), (351, 702), (702, 800)]
    assert np.array_equal(sampling.highest_labels[:, 0], space.labels[:, : space.dim].argmax(0))


def test_few_labels_are_ordered_once_a_block() -> None:
    """30 ln 30 is 103; nothing moves for 256 pairs in deterministic mode."""
    assert adaptive(30, 0.1)[2].period == PAIRS_PER_BLOCK
