"""The WARP step: worked examples of Algorithm 1, every clause of the written conventions, and the law of the draws."""

import math
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import candidates as candidates_reference
from tests.reference import random_numbers as random_numbers_reference
from tests.reference import towers as towers_reference
from tests.reference import training_loops as training_loops_reference
from tests.reference import warp as warp_reference

from passes import Proposed, fast_proposals, fast_sequential
from strategies import DIM, Problem, make_problem, make_step_config, problems, random_space
from wsabie.kernels.embedding.similarity import Dot
from wsabie.kernels.training import warp
from wsabie.kernels.training.warp import DRAWS, HISTOGRAM, REJECTED, SKIPPED, UPDATES, VISITED
from wsabie.training.rank_losses import build_losses

X0, VIOLATOR, FAR = 1.0, 0.5, -5.0  # scores: of the true label, of a violator of margin 1, of all others
HINGE = 1 - X0 + VIOLATOR


def scored(scores: Any, Y: Any, **config: Any) -> Problem:
    """Rows that all have the same query e_0, and labels whose scores are given."""
    scores, Y = np.asarray(scores, np.float32), sp.csr_matrix(np.asarray(Y, np.int8))
    space = random_space(1, len(scores), "dot", np.random.default_rng(0))
    space.features[:], space.labels[:] = 0, 0
    space.features[0, 0], space.labels[:, 0] = 1, scores
    X = sp.csr_matrix(np.ones((Y.shape[0], 1), np.float32))
    return make_problem(space, X, Y, make_step_config(len(scores), **config))


def one_true(n_labels: int, violators: int, n_rows: int = 1, **config: Any) -> Problem:
    """Label 0 is true; so many of the others violate the margin, with a hinge of HINGE."""
    scores = np.full(n_labels, FAR)
    scores[0], scores[1 : 1 + violators] = X0, VIOLATOR
    Y = np.zeros((n_rows, n_labels))
    Y[:, 0] = 1
    return scored(scores, Y, **config)


def drawn_labels(n_labels: int, pair: int, seed: int = 1, n: int = 500) -> list[int]:
    """The labels that a pair's stream gives, in order."""
    counter, out = random_numbers_reference.start_stream(seed, 0, pair), []
    for _ in range(n):
        counter = random_numbers_reference.advance_counter(counter)
        out.append(random_numbers_reference.draw_below(counter, n_labels))
    return out


# ---- worked examples


def test_algorithm_1_by_hand() -> None:
    """5 of 49 others violate: the weight is L(floor(49 / N)), N = draws other than the true label until a violator."""
    out = fast_proposals(one_true(50, 5))
    negatives = [y for y in drawn_labels(50, 0) if y != 0]
    n = 1 + next(t for t, y in enumerate(negatives) if 1 <= y <= 5)
    rank = 49 // n
    weight = sum(1 / j for j in range(1, rank + 1))
    assert out.violators.tolist() == [negatives[n - 1]]
    assert out.weights[0] == pytest.approx(weight, rel=1e-6)
    assert out.counters[DRAWS] == n
    assert out.counters[HISTOGRAM + int(math.log2(rank))] == 1
    assert out.loss == pytest.approx(weight * HINGE, rel=1e-6)


def test_step_by_hand() -> None:
    """Two labels: the violator is certain, the rank 1, the weight L(1) = 1; all four rows move by step * e_0 or W."""
    problem = scored([X0, VIOLATOR], [[1, 0]], learning_rate_rows=0.1, learning_rate_labels=0.2, learning_rate_bias=0.3)
    out = fast_sequential(problem)
    assert out.features[0, 0] == pytest.approx(1 + 0.1 * (X0 - VIOLATOR))
    assert out.labels[:, 0] == pytest.approx([X0 + 0.2, VIOLATOR - 0.2])
    assert out.bias == pytest.approx([0.3, -0.3])
    assert out.loss == pytest.approx(HINGE)


def test_score_on_the_margin_is_no_violation() -> None:
    """Only f_v > f_y - margin violates."""
    assert fast_proposals(scored([1, 0], [[1, 0]], margin=1.0)).violators[0] == -1
    assert fast_proposals(scored([1, 0], [[1, 0]], margin=1.0 + 1e-6)).violators[0] == 1


def test_direction_is_the_gradient_of_the_weighted_hinge() -> None:
    """For dot: weight * (W_y - W_v)."""
    rng = np.random.default_rng(3)
    space = random_space(4, 9, "dot", rng)
    Y = sp.csr_matrix(np.eye(1, 9, dtype=np.int8))
    problem = make_problem(space, sp.csr_matrix(rng.random((1, 4), np.float32)), Y, make_step_config(9, margin=50.0))
    out = fast_proposals(problem)
    expected = out.weights[0] * (space.labels[0] - space.labels[out.violators[0]])
    np.testing.assert_allclose(out.directions[0], expected, rtol=1e-5, atol=1e-7)


# ---- gradient of the whole loss


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_one_step_goes_down_the_gradient_of_the_loss(similarity: Any) -> None:
    """weight * (margin - f_y + f_v) as a function of V and both label rows, by finite differences in float64.

    The move of the fast kernel, divided by its step, is minus that gradient.
    """
    rng = np.random.default_rng(8)
    space = random_space(5, 6, similarity, rng)
    X = sp.csr_matrix(np.array([[0, 1.5, 0, -0.5, 2]], np.float32))
    step = 1e-3
    config = make_step_config(6, margin=50.0, learning_rate_rows=step, learning_rate_labels=step)
    problem = make_problem(space, X, sp.csr_matrix(np.eye(1, 6, 2, dtype=np.int8)), config)
    out = fast_sequential(problem)
    proposal = fast_proposals(problem)
    violator, weight = int(proposal.violators[0]), float(proposal.weights[0])

    def loss(V: Any, W: Any) -> float:
        tower = training_loops_reference.convert_to_float64(space.tower(problem.inputs))._replace(table=V)
        labels = training_loops_reference.convert_to_float64(space.label_arrays())._replace(table=W)
        q = towers_reference.encode_entity(tower, 0)
        return weight * (
            50.0
            - candidates_reference.score_label(labels, q, 2)
            + candidates_reference.score_label(labels, q, violator)
        )

    V, W = space.features.astype(float), space.labels.astype(float)
    for table, moved, wrt_V in ((V, out.features, True), (W, out.labels, False)):
        gradient = np.zeros_like(table)
        for cell in np.ndindex(len(table), DIM):
            shift = np.zeros_like(table)
            shift[cell] = 1e-5
            up, down = ((table + s, W) if wrt_V else (V, table + s) for s in (shift, -shift))
            gradient[cell] = (loss(*up) - loss(*down)) / 2e-5
        np.testing.assert_allclose((moved - table) / step, -gradient, rtol=2e-3, atol=2e-3)
        assert np.abs(gradient).max() > 0.05


# ---- conventions


@settings(max_examples=60)
@given(problems())
def test_violators_violate_and_are_no_true_labels(problem: Problem) -> None:
    plain = {
        "logistic": False,
        "order_statistic_cdf": np.ones(1, np.float32),
    }  # a positive of the pair's own, and a margin
    problem = problem._replace(config=problem.config._replace(**plain))
    out, targets = fast_proposals(problem), problem.targets
    tower = training_loops_reference.convert_to_float64(problem.space.tower(problem.inputs))
    labels, at = training_loops_reference.convert_to_float64(problem.space.label_arrays()), 0
    for visit in problem.order:
        i = int(targets.rows[visit])
        q = towers_reference.encode_entity(tower, i)
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            v = int(out.violators[at])
            if v >= 0:
                assert v not in warp_reference.list_positives(targets, i)
                raised_score = candidates_reference.score_label(labels, q, v) + problem.config.margin
                assert raised_score > candidates_reference.score_label(labels, q, int(targets.labels[pair])) - 1e-4
                assert out.weights[at] >= targets.weights[pair] * (1 - 1e-6)  # L(rank) is at least L(1) = 1
            else:
                assert out.weights[at] == 0
            at += 1


def test_rank_estimate_counts_negatives_alone() -> None:
    """4 of 6 labels are true: Y_neg = 2; draws of true labels are thrown back and do not count."""
    Y = [[1, 1, 1, 1, 0, 0]]
    out = fast_proposals(scored([X0, X0, X0, X0, VIOLATOR, VIOLATOR], Y))
    assert out.counters[VISITED] == out.counters[UPDATES] == out.counters[DRAWS] == 4
    assert out.counters[REJECTED] > 0
    assert out.weights == pytest.approx(np.full(4, (1 + 1 / 2) / 4))  # L(floor(2 / 1)), a quarter for each


def test_at_most_max_sampled_negatives_are_drawn() -> None:
    for trials in (1, 7):
        out = fast_proposals(one_true(100, 0, max_sampled=trials))
        assert out.counters[DRAWS] == trials
        assert out.violators[0] == -1
        assert out.counters[UPDATES] == 0


def test_algorithm_1_draws_as_many_as_there_are_negatives() -> None:
    out = fast_proposals(one_true(30, 0, max_sampled=10**9))
    assert out.counters[DRAWS] == 29


def test_a_row_with_one_negative_among_many_does_not_search_for_ever() -> None:
    """One label in 5,000 is negative: 2T + 10 = 12 draws for each pair, then no step."""
    Y = np.ones((1, 5000))
    Y[0, 77] = 0
    out = fast_proposals(scored(np.zeros(5000), Y))
    assert out.counters[REJECTED] + out.counters[DRAWS] <= 12 * 4999
    assert out.counters[REJECTED] >= 11 * 4999
    assert out.counters[UPDATES] < 100


def test_rows_without_negatives_and_pairs_without_weight_are_skipped_and_counted() -> None:
    problem = scored([1, 1], [[1, 1], [1, 0], [0, 0]])
    out = fast_proposals(problem)
    assert (out.counters[VISITED], out.counters[SKIPPED]) == (3, 2)
    assert out.violators.tolist() == [-1, -1, 1]
    weightless = problem.targets._replace(weights=np.zeros(3, np.float32))
    out = fast_proposals(problem._replace(targets=weightless))
    assert out.counters[SKIPPED] == 3
    assert not out.directions.any()


def test_one_label_alone_is_skipped() -> None:
    out = fast_proposals(scored([1], [[1]]))
    assert (out.counters[SKIPPED], out.counters[DRAWS]) == (1, 0)


def test_explicit_negatives_are_tried_first_with_rank_1_and_count_no_draws() -> None:
    Y = np.zeros((1, 1000))
    Y[0, 0], Y[0, 500] = 1, -1
    scores = np.full(1000, FAR)
    scores[[0, 500]] = X0, VIOLATOR
    out = fast_proposals(scored(scores, Y))
    assert out.violators.tolist() == [500]
    assert out.weights[0] == 1
    assert out.counters[DRAWS] == 0
    assert out.counters[HISTOGRAM] == 1


def test_explicit_negative_that_does_not_violate_leaves_the_search_to_the_others() -> None:
    out = fast_proposals(scored([X0, VIOLATOR, FAR], [[1, 0, -1]] * 40, max_sampled=1000))
    assert set(out.violators.tolist()) == {1, -1}  # two draws miss label 1 in a quarter of the rows
    assert out.counters[DRAWS] >= 40


@pytest.mark.parametrize(("score", "draws"), [(VIOLATOR, 0), (FAR, 40)])
def test_logistic_takes_an_explicit_negative_while_it_violates_and_then_draws(score: float, draws: int) -> None:
    """Every draw counts, explicit negative or not and whatever its score: all labels come."""
    out = fast_proposals(scored([X0, FAR, FAR, score], [[1, 0, 0, -1]] * 40, logistic=True))
    assert out.counters[DRAWS] == draws
    assert out.counters[UPDATES] == 40
    assert set(out.violators.tolist()) == ({1, 2, 3} if draws else {3})


def test_auc_takes_one_negative_and_no_weight() -> None:
    auc = {"losses": build_losses("auc", "precision", 200), "max_sampled": 1}
    out = fast_proposals(one_true(200, 100, n_rows=300, **auc))
    assert out.counters[DRAWS] == 300
    assert set(out.weights.tolist()) == {0.0, 1.0}
    rate = out.counters[UPDATES] / 300
    assert abs(rate - 100 / 199) < 4 * math.sqrt(0.25 / 300)


def test_label_biases_count_in_the_margin() -> None:
    problem = scored([X0, FAR], [[1, 0]])
    assert fast_proposals(problem).violators[0] == -1
    problem.space.bias[1] = 6
    assert fast_proposals(problem).violators[0] == 1


def test_seed_and_epoch_change_the_draws() -> None:
    base = one_true(500, 250, n_rows=20)
    violators_of_runs = [
        fast_proposals(base._replace(config=base.config._replace(**change))).violators.tolist()
        for change in ({}, {"seed": 2}, {"epoch": 1}, {})
    ]
    assert violators_of_runs[0] == violators_of_runs[3]
    assert violators_of_runs[0] != violators_of_runs[1] != violators_of_runs[2] != violators_of_runs[0]


# ---- what is exact when the draws leave no choice


def test_weight_2_is_the_example_twice() -> None:
    """One negative per row, so the violator is certain, and one block, so that both copies meet the same tables.

    Then for "dot" the direction of weight 2 is the sum of the two copies' directions, to the last bit.
    """
    once = scored([X0, VIOLATOR], [[1, 0]])
    twice = scored([X0, VIOLATOR], [[1, 0], [1, 0]])
    double = fast_proposals(once._replace(targets=once.targets._replace(weights=np.float32([2]))))
    pair = fast_proposals(twice)
    assert pair.violators.tolist() == [1, 1]
    assert np.array_equal(double.directions[0], pair.directions[0] + pair.directions[1])
    assert double.loss == pair.loss
    assert double.weights[0] == pair.weights.sum()


def test_order_of_the_labels_changes_nothing_when_one_negative_is_left() -> None:
    """Two labels, exchanged: every step is the same, rows and columns exchanged with them."""
    rng = np.random.default_rng(5)
    X = sp.random(40, 6, 0.5, format="csr", dtype=np.float32, random_state=rng)
    Y = np.eye(2, dtype=np.int8)[rng.integers(0, 2, 40)]
    space = random_space(6, 2, "dot", rng)
    swapped = space.copy()
    swapped.labels[:] = space.labels[::-1]
    straight = fast_sequential(make_problem(space, X, sp.csr_matrix(Y), make_step_config(2)))
    swapped_outcome = fast_sequential(make_problem(swapped, X, sp.csr_matrix(Y[:, ::-1]), make_step_config(2)))
    # 12 draws in a row of the true label, once in 4,096 pairs, would break this; the seed has none
    assert straight.counters[UPDATES] == swapped_outcome.counters[UPDATES] > 10
    assert np.array_equal(straight.features, swapped_outcome.features)
    assert np.array_equal(straight.labels, swapped_outcome.labels[::-1])


# ---- statistics


def exact_law(n: int, k: int, trials: int) -> tuple[float, float, float]:
    """E[floor(n / N)], its variance, and P(no violator in `trials` draws), when k of n negatives violate (SPEC A13)."""
    i, p = np.arange(1, trials + 1), k / n
    chance = (1 - p) ** (i - 1) * p
    estimate = n // i
    mean = float((estimate * chance).sum())
    return mean, float((estimate**2 * chance).sum()) - mean**2, float((1 - p) ** trials)


@pytest.mark.parametrize("k", [1, 2, 10, 100, 900])
@pytest.mark.parametrize("trials", [999, 50])
def test_mean_of_the_estimated_rank_follows_the_exact_law(k: int, trials: int) -> None:
    """With L(k) = k and a constant hinge the summed loss is the sum of the estimated ranks."""
    n, rows = 999, 4000
    losses = np.arange(n + 2, dtype=np.float32)
    problem = one_true(n + 1, k, n_rows=rows, losses=losses, max_sampled=trials, seed=11)
    out = fast_proposals(problem)
    mean, variance, missed = exact_law(n, k, trials)
    assert abs(out.loss / HINGE / rows - mean) < 4 * math.sqrt(variance / rows)
    none = 1 - out.counters[UPDATES] / rows
    assert abs(none - missed) <= 4 * math.sqrt(missed * (1 - missed) / rows) + 1e-12


def test_no_update_at_margin_rank_1_is_1_over_e() -> None:
    """(1 - 1/Y_neg)^Y_neg = .368 for T = Y_neg: what Algorithm 1 misses at the top of the list (SPEC G5)."""
    n, rows = 999, 20_000
    out = fast_proposals(one_true(n + 1, 1, n_rows=rows))
    expected = (1 - 1 / n) ** n
    assert expected == pytest.approx(0.368, abs=5e-4)
    assert abs(1 - out.counters[UPDATES] / rows - expected) < 4 * math.sqrt(expected * (1 - expected) / rows)


@pytest.mark.parametrize(
    ("n_labels", "k", "mean", "weight", "missed"),
    [
        (15_952, 1, 9.5, 1.188, 0.368),
        (15_952, 2, 17.9, 1.839, 0.135),
        (15_952, 5, 40.3, 2.763, 0.007),
        (15_952, 10, 73.8, 3.455, 0.0),
        (15_952, 100, 510, 5.743, 0.0),
        (1_000, 1, 6.7, None, 0.368),
        (109_444, 1, 11.4, None, 0.368),
    ],
)
def test_exact_law_reproduces_the_published_table(
    n_labels: int, k: int, mean: float, weight: float | None, missed: float
) -> None:
    """Table H: E[(Y-1)/N], E[L(floor((Y-1)/N))] and P(no update), N capped at Y - 1."""
    n = n_labels - 1
    i = np.arange(1, n + 1)
    chance = (1 - k / n) ** (i - 1) * k / n
    assert (n / i * chance).sum() == pytest.approx(mean, rel=0.01)
    assert (1 - k / n) ** n == pytest.approx(missed, abs=6e-4)
    if weight is not None:
        harmonic = np.concatenate([[0], np.cumsum(1 / i)])
        assert (harmonic[n // i] * chance).sum() == pytest.approx(weight, abs=2e-3)


@pytest.mark.parametrize("k", [1, 2, 10, 100])
def test_mean_weight_follows_the_exact_law_of_the_precision_loss(k: int) -> None:
    n, rows = 999, 4000
    out = fast_proposals(one_true(n + 1, k, n_rows=rows, seed=5))
    i = np.arange(1, n + 1)
    chance = (1 - k / n) ** (i - 1) * k / n
    L = build_losses("warp", "precision", n + 1)[n // i].astype(float)
    mean = float((L * chance).sum())
    variance = float((L**2 * chance).sum()) - mean**2
    assert abs(out.weights.mean() - mean) < 4 * math.sqrt(variance / rows)


def test_mean_draws_follow_the_exact_law() -> None:
    """Remark 2 of the paper: draws <= min((Y-1) / rank, Y-1); exactly (1 - (1-p)^T) / p."""
    n, k, rows = 999, 10, 4000
    out = fast_proposals(one_true(n + 1, k, n_rows=rows, seed=3))
    p = k / n
    expected = (1 - (1 - p) ** n) / p
    assert expected <= n / k
    assert abs(out.counters[DRAWS] / rows - expected) < 4 * math.sqrt((1 - p) / p**2 / rows)


# ---- leaves


@numba.njit
def each_is_positive(targets: Any, i: int, n_labels: int) -> Any:
    return np.array([warp.is_positive(targets, i, y) for y in range(n_labels)])


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
@settings(max_examples=25)
def test_is_positive_says_what_the_lists_say(seed: int, n_labels: int) -> None:
    """Also where 64 bits cannot tell labels apart."""
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((3, n_labels)) < rng.random()).astype(np.int8))
    problem = make_problem(random_space(1, n_labels, "dot", rng), sp.csr_matrix((3, 1), dtype=np.float32), Y, None)
    for i in range(3):
        assert np.array_equal(each_is_positive(problem.targets, i, n_labels), Y[[i]].toarray()[0] > 0)


def test_log2_floor() -> None:
    assert [warp.floor_log2(n) for n in (1, 2, 3, 4, 7, 8, 2**31)] == [0, 1, 1, 2, 2, 3, 31]


def test_twin_draws_what_the_kernel_draws() -> None:
    """The twin's search and the kernel's stop at the same label (here with rejections and a cap)."""
    Y = np.zeros((6, 40))
    Y[:, :25] = 1
    scores = np.where(np.arange(40) % 7 == 0, VIOLATOR, FAR)
    scores[:25] = X0
    problem = scored(scores, Y, max_sampled=3)
    slow = training_loops_reference.convert_to_float64(Dot(problem.space.labels, problem.space.bias))
    q, out = np.eye(1, 32)[0], fast_proposals(problem)
    searches: list[warp_reference.ViolatorSearch] = []
    for pair in range(150):
        counter, i = random_numbers_reference.start_stream(1, 0, pair), pair // 25
        config, sampler = problem.config, problem.sampler
        searches.append(warp_reference.find_violator(problem.targets, slow, config, sampler, i, q, X0 - 1, counter))
    assert out.violators.tolist() == [f.violator for f in searches]
    assert_counts(out, searches)


def assert_counts(out: Proposed, searches: list[Any]) -> None:
    assert out.counters[DRAWS] == sum(f.n_draws for f in searches)
    assert out.counters[REJECTED] == sum(f.rejected for f in searches)
    assert {f.n_draws for f in searches} >= {1, 2, 3}
