"""Training loop: the passes of an epoch, schedule, validation, divergence."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from scipy.sparse import csr_matrix, identity

from runs import figure, make_block, make_settings, make_space, same_points, train
from wsabie.core.errors import DivergenceError
from wsabie.core.validation import check_features
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import RelationEnds
from wsabie.embedding.relation_spaces import MultiRelationSpace
from wsabie.kernels.training import deterministic_loop, sequential_loop
from wsabie.training import loops, samplers, trainer
from wsabie.training.loops import BlockVisits
from wsabie.training.samplers import PAIRS_PER_BLOCK
from wsabie.training.trainer import EpochRunner, Trainer, report_pass_progress
from wsabie.training.training_data import RowBlock, TrainingData, build_targets

BLOCK = make_block()


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "cosine"])
def test_deterministic_training_has_the_same_bits_for_1_2_and_4_threads(similarity: Any) -> None:
    runs = [train(BLOCK, make_space(similarity), make_settings(threads=n, epochs=3), monitor=figure) for n in (1, 2, 4)]
    for history, space in runs[1:]:
        assert same_points(space, runs[0][1])
        assert [s.validation for s in history] == [s.validation for s in runs[0][0]]
        assert [s.rank_histogram for s in history] == [s.rank_histogram for s in runs[0][0]]
        assert [s.loss for s in history] == [s.loss for s in runs[0][0]]


@pytest.mark.parametrize("threads", [2, 4])
def test_deterministic_dense_rows_too(threads: int) -> None:
    block = make_block(300, dense=True)
    single_threaded = train(block, make_space(), make_settings(epochs=2))[1]
    assert same_points(train(block, make_space(), make_settings(epochs=2, threads=threads))[1], single_threaded)


@pytest.mark.parametrize("deterministic", [True, False])
def test_one_seed_one_model_other_seed_other_model(deterministic: bool) -> None:
    settings = make_settings(epochs=2, deterministic=deterministic)
    first, again = (train(BLOCK, make_space(), settings)[1] for _ in range(2))
    reseeded = train(BLOCK, make_space(), replace(settings, seed=4))[1]
    assert same_points(first, again)
    assert not same_points(first, reseeded)


def test_hogwild_threads_learn_what_one_thread_learns() -> None:
    """Races change bits, not what is learned: the loss of the last epoch agrees."""
    losses = [
        train(BLOCK, make_space(), make_settings(deterministic=False, threads=n, epochs=8))[0][-1].loss for n in (1, 4)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_hogwild_threads_share_the_pairs_out(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several chunks, the last of them short: every pair is trained once, by one of the threads."""
    monkeypatch.setattr(loops, "VISITS_PER_CHUNK", 100)
    history, _ = train(BLOCK, make_space(), make_settings(deterministic=False, threads=threads, epochs=2))
    assert [s.pairs for s in history] == [len(BLOCK.targets.labels)] * 2


@pytest.mark.parametrize("deterministic", [True, False])
def test_no_row_is_longer_than_max_norm_after_an_epoch(deterministic: bool) -> None:
    lengths: list[float] = []

    def longest(space: JointSpace) -> float:
        lengths.extend(float(np.linalg.norm(t, axis=1).max()) for t in (space.features, space.labels))
        return 0.0

    settings = make_settings(max_norm=0.9, epochs=3, deterministic=deterministic)
    train(BLOCK, make_space(), settings, monitor=longest)
    assert len(lengths) == 6
    assert max(lengths) <= 0.9 * (1 + 1e-6)


@pytest.mark.parametrize("deterministic", [True, False])
def test_rows_that_no_step_touches_are_held_to_the_limit_too(deterministic: bool) -> None:
    """A feature that no row has, and a label that is drawn by nobody: the first rows are longer than this limit."""
    row_block = RowBlock(np.ones((1, 30), np.float32) * (np.arange(30) != 7), BLOCK.targets)
    targets = build_targets(csr_matrix((np.ones(1, np.int8), [3], [0, 1]), (1, 40)), None, "mean")
    space = make_space()
    assert min(np.linalg.norm(space.features[7]), np.linalg.norm(space.labels, axis=1).min()) > 0.1
    settings = make_settings(max_norm=0.1, epochs=1, max_sampled=1, deterministic=deterministic)
    train(row_block._replace(targets=targets), space, settings)
    assert np.linalg.norm(space.features[7]) <= 0.1 * (1 + 1e-6)
    assert np.linalg.norm(space.labels, axis=1).max() <= 0.1 * (1 + 1e-6)


def record_orders(monkeypatch: pytest.MonkeyPatch, orders: list[Any]) -> None:
    """Every order that the loop would visit; the rehearsal, of one visit, is none."""

    def run(visits: BlockVisits) -> Iterator[int]:
        if len(visits.order) > 1:
            orders.append(visits.order.tolist())
        return iter(())

    monkeypatch.setattr(trainer, "run_blocks", run)


def test_every_block_of_an_epoch_has_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []
    record_orders(monkeypatch, orders)
    Trainer(make_settings(epochs=2)).train(make_space(), TrainingData([BLOCK, BLOCK]))
    assert len(orders) == len({tuple(order) for order in orders}) == 4
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(len(BLOCK.targets.rows)))}


def test_loss_falls_and_figures_add_up() -> None:
    history, _ = train(BLOCK, make_space(), make_settings(epochs=10))
    assert history[-1].loss < 0.9 * history[0].loss
    for epoch, stats in enumerate(history):
        assert stats.epoch == epoch
        assert stats.pairs == len(BLOCK.targets.labels)
        assert stats.violation_rate == pytest.approx(sum(stats.rank_histogram) / stats.pairs)
        assert 0 < stats.mean_draws <= 40
        assert stats.skipped == 0
        assert stats.unlabelled == 1
        assert stats.rejected > 0
        assert stats.pairs_per_second > 0
        assert stats.bytes_per_second > 0
        assert stats.as_dict()["loss"] == stats.loss
    assert [s.learning_rate for s in history] == pytest.approx([0.05 * (1 - e / 10) for e in range(10)])


def test_constant_schedule() -> None:
    history, _ = train(BLOCK, make_space(), make_settings(epochs=3, schedule="constant"))
    assert [s.learning_rate for s in history] == [0.05] * 3


def test_every_rate_follows_the_schedule_and_decay_is_the_share_of_its_own_rate() -> None:
    """Half of the rates in epoch 5 of 10, .45 in its middle; a step leaves 1 - rate * l2 of a row that it moves."""
    rates = {"feature_rate": 0.1, "learning_rate": 0.04, "weight_rate": 0.2, "bias_rate": 0.02}
    settings = make_settings(epochs=10, l2_rows=0.5, l2_labels=0.25, l2_weights=2.0, **rates)
    for epoch, fraction in ((0, 1.0), (5, 0.5), (5.5, 0.45)):
        config = EpochRunner(settings, make_space(), TrainingData([])).build_step_config(make_space(), epoch)
        steps = (
            config.learning_rate_rows,
            config.learning_rate_labels,
            config.learning_rate_weights,
            config.learning_rate_bias,
        )
        assert steps == pytest.approx([fraction * rate for rate in rates.values()])
        keeps = config.decay_rows, config.decay_labels, config.decay_weights
        assert keeps == pytest.approx([1 - fraction * rate for rate in (0.1 * 0.5, 0.04 * 0.25, 0.2 * 2)])


def test_divergence_is_noticed_in_the_epoch_it_happens_with_advice() -> None:
    settings = make_settings(max_norm=None, learning_rate=1e5, feature_rate=1e5)
    with pytest.raises(DivergenceError, match=r"epoch 1 .*max_norm.*lower the learning rate \(now 100000\)"):
        train(BLOCK, make_space(), settings)


@pytest.mark.parametrize("table", ["features", "labels"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_bad_number_is_enough(table: str, bad: float) -> None:
    space = make_space()
    getattr(space, table)[5, 3] = bad
    with np.errstate(invalid="ignore"), pytest.raises(DivergenceError, match="lower the learning rate"):
        train(BLOCK, space, make_settings())


class Recorder:
    """A Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None, str]] = []
        self.steps: list[int] = []
        self.figures: list[dict[str, float]] = []

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Any:
        self.stages.append((name, total, unit))
        yield self

    def advance(self, n: int = 1, **figures: float) -> None:
        self.steps.append(n)
        self.figures += [figures] if figures else []


@pytest.mark.parametrize("deterministic", [True, False])
def test_progress_adds_up_to_all_pairs_in_steps_short_enough_for_ctrl_c(
    deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Visits have 6 pairs here, and 12 at most."""
    monkeypatch.setattr(loops, "VISITS_PER_CHUNK", 50)
    monkeypatch.setattr(loops, "BLOCKS_PER_CHUNK", 1)
    recorder, pairs = Recorder(), len(BLOCK.targets.labels)
    settings = make_settings(epochs=2, deterministic=deterministic, threads=2)
    train(BLOCK, make_space(), settings, progress=recorder)
    assert sum(recorder.steps) == pytest.approx(2 * pairs, abs=20)
    assert max(recorder.steps) <= 2 * max(50 * 12, PAIRS_PER_BLOCK + 12)
    assert [total for name, total, _ in recorder.stages if name == "training"] == [2 * pairs]


@pytest.mark.parametrize("monitor", [None, lambda space: 0.5])
def test_progress_shows_the_figure_that_decides_or_the_loss(monitor: Any) -> None:
    recorder = Recorder()
    history, _ = train(BLOCK, make_space(), make_settings(epochs=2), progress=recorder, monitor=monitor)
    assert recorder.figures == [{"loss": s.loss} if monitor is None else {"figure": 0.5} for s in history]


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("dense", "sketched"), [(False, False), (True, False), (False, True)])
def test_compiling_is_announced_once_and_is_of_the_types_that_training_has(
    deterministic: bool, dense: bool, sketched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "SKETCHED_FROM", 1 if sketched else samplers.SKETCHED_FROM)
    recorder, block, settings = Recorder(), make_block(60, dense), make_settings(epochs=1, deterministic=deterministic)
    called: dict[int, set[Any]] = {}

    def recorded(name: str, kernel: Any) -> Any:
        def call(*arguments: Any) -> None:
            called.setdefault(len(recorder.stages), set()).add((name, *map(numba.typeof, arguments)))
            kernel(*arguments)

        return call

    for module, name in ((sequential_loop, "run_visits"), (deterministic_loop, "run_blocks")):
        monkeypatch.setattr(module, name, recorded(name, getattr(module, name)))
    monkeypatch.setattr(trainer, "_compiled_types", set())
    for threads in (2, 1):
        train(block, make_space(), replace(settings, threads=threads), progress=recorder)
    assert [name for name, _, _ in recorder.stages] == ["compiling (once)", "training", "training"]
    assert len(called[1]) == 1
    assert called[1] == called[2] == called[3]
    assert ("Sketched" in str(called[1])) == sketched
    monkeypatch.setattr(samplers, "SKETCHED_FROM", samplers.SKETCHED_FROM if sketched else 1)
    train(block, make_space(), replace(settings, threads=1), progress=recorder)
    again = [name for name, _, _ in recorder.stages][3:]
    assert again == (["training"] if sketched else ["compiling (once)", "training"])


def test_keyboard_interrupt_leaves_at_once() -> None:
    class Impatient(Recorder):
        def advance(self, n: int = 1, **figures: float) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(BLOCK, make_space(), make_settings(threads=2), progress=Impatient())


def test_several_blocks_of_rows_make_one_epoch() -> None:
    """The trainer eats an iterator of blocks: all pairs of all blocks are visited."""
    blocks = [make_block(50), make_block(90)]
    n_pairs = sum(len(b.targets.labels) for b in blocks)
    history = Trainer(make_settings(epochs=2)).train(make_space(), TrainingData(blocks))
    assert [s.pairs for s in history] == [n_pairs] * 2
    assert [s.unlabelled for s in history] == [2] * 2


# ---- relations in turns


def relations(n: int = 200, **second: Any) -> tuple[Any, list[RowBlock]]:
    """A space of two tables; items of the one with features are related to items of the other, and to their like."""
    rng = np.random.default_rng(0)
    inputs = check_features(csr_matrix(rng.random((n, 30), np.float32) * (rng.random((n, 30)) < 0.2)))
    space = MultiRelationSpace.random({"thing": 30, "name": 40}, 20, "dot", np.random.default_rng(9))
    pairs = [(rng.random((n, width)) < rate).astype(np.int8) for width, rate in ((40, 0.05), (n, 0.02))]
    np.fill_diagonal(pairs[1], 0)
    names, like = map(csr_matrix, pairs)
    ends = RelationEnds("names", "thing", "name"), RelationEnds("like", "thing", "thing", inputs, 16)
    hidden = identity(n, np.int8, "csr")
    blocks = [
        RowBlock(inputs, build_targets(names, None, "mean"), ends[0], blocks_per_turn=1),
        RowBlock(inputs, build_targets(like, None, "mean", names.nnz, hidden), ends[1], blocks_per_turn=1),
    ]
    return space, [blocks[0], blocks[1]._replace(**second)]


def train_relations(space: Any, blocks: list[RowBlock], **changes: Any) -> Any:
    """(history, space) after a run; a space of relations has no biases."""
    return Trainer(make_settings(bias_rate=0.0, **changes)).train(space, TrainingData(blocks)), space


@pytest.mark.parametrize("weight", [0.25, 0.4, 1, 2.5])
def test_every_pair_of_a_relation_is_visited_as_often_as_its_weight_says(
    weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each of four epochs, and no pair twice in a round, which has its own key for draws."""
    visits: dict[int, list[tuple[float, int, Any]]] = {}

    def run(block_visits: BlockVisits) -> Iterator[int]:
        config = block_visits.step_config
        visits.setdefault(len(block_visits.block.targets.rows), []).append(
            (float(config.learning_rate_rows), config.epoch, block_visits.order)
        )
        yield len(block_visits.order)

    monkeypatch.setattr(trainer, "run_blocks", run)
    monkeypatch.setattr(trainer.EpochRunner, "_find_uncompiled", lambda *given: {})
    space, (names, like) = relations(weight=weight)
    train_relations(space, [names, like], epochs=4)
    for block in (names, like):
        n, runs = len(block.targets.rows), visits[len(block.targets.rows)]
        rates = sorted({rate for rate, _, _ in runs})
        n_visits = [sum(len(order) for step_rate, _, order in runs if step_rate == rate) for rate in rates]
        assert n_visits == pytest.approx([n * block.weight] * 4, abs=1)
        rounds = [
            np.concatenate([order for _, step_rate, order in runs if step_rate == epoch_number])
            for epoch_number in range(runs[-1][1] + 1)
        ]
        assert [len(order) for order in rounds[:-1]] == [n] * (len(rounds) - 1)
        assert all(np.bincount(order).max() == 1 for order in rounds)
        assert sum(map(len, rounds)) == round(4 * n * block.weight)
        assert len({order.tobytes() for order in rounds}) == len(rounds)


def test_every_round_of_an_epoch_draws_anew() -> None:
    """Nothing moves: with the same draws the mean loss of two rounds would be that of one."""
    losses = {}
    for weight in (1, 2):
        space, blocks = relations(weight=weight)
        rates = {"learning_rate": 1e-12, "feature_rate": 1e-12}
        history, _ = train_relations(space, [blocks[1]], epochs=1, **rates)
        losses[weight] = history[0].loss
    assert losses[2] == pytest.approx(losses[1], rel=0.1)
    assert abs(losses[2] - losses[1]) > 1e-6


def test_relations_end_together_however_long_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    visit_log: list[tuple[str, int]] = []
    run_blocks = trainer.run_blocks

    def run(block_visits: BlockVisits) -> Iterator[int]:
        for visits in run_blocks(block_visits):
            visit_log.append((block_visits.block.ends.name, visits))
            yield visits

    monkeypatch.setattr(trainer, "run_blocks", run)
    monkeypatch.setattr(trainer.EpochRunner, "_find_uncompiled", lambda *given: {})
    space, blocks = relations(600)
    history, _ = train_relations(space, blocks, epochs=1)
    assert history[0].pairs == sum(len(block.targets.labels) for block in blocks)
    totals = {
        name: sum(visits for relation_name, visits in visit_log if relation_name == name) for name in ("names", "like")
    }
    assert len(visit_log) > 10
    progress_ = dict.fromkeys(totals, 0.0)
    for name, visits in visit_log:
        assert progress_[name] == pytest.approx(
            min(progress_.values())
        )  # it is the turn of the one that has come least far
        progress_[name] += visits / totals[name]
    assert progress_ == pytest.approx({"names": 1, "like": 1})


@pytest.mark.parametrize("negatives", [0, 16])
def test_relations_have_the_same_bits_for_1_2_and_3_threads(negatives: int) -> None:
    runs = []
    for threads in (1, 2, 3):
        space, blocks = relations(400)
        blocks[1] = blocks[1]._replace(ends=blocks[1].ends._replace(negatives=negatives), weight=1.5)
        runs.append(train_relations(space, blocks, threads=threads, epochs=3))
    for history, space in runs[1:]:
        assert all(np.array_equal(space.tables[name], table) for name, table in runs[0][1].tables.items())
        assert [s.loss for s in history] == [s.loss for s in runs[0][0]]
        assert [s.rank_histogram for s in history] == [s.rank_histogram for s in runs[0][0]]


@pytest.mark.parametrize("number", [0, 1])
def test_a_relation_alone_is_the_training_of_its_view(number: int) -> None:
    """Turns cut the pass into calls and change nothing else: the bits are those of a space with the two tables."""
    space, blocks = relations(400)
    ends = blocks[number].ends
    assert space.view(ends).features is space.tables["thing"]
    separate = space.copy().view(ends)
    train_relations(space, [blocks[number]])
    train_relations(separate, [blocks[number]._replace(ends=None, blocks_per_turn=None)])
    assert np.array_equal(space.tables[ends.query], separate.features)
    assert np.array_equal(space.tables[ends.target], separate.labels)


def test_rows_without_a_pair_are_counted_though_they_hide_themselves() -> None:
    space, (_, like) = relations(50)
    history, _ = train_relations(space, [like], epochs=1)
    assert history[0].unlabelled == 50 - len(np.unique(like.targets.rows)) > 0


def test_every_epoch_visits_all_in_another_order_that_the_seed_decides(monkeypatch: Any) -> None:
    orders: list[Any] = []
    record_orders(monkeypatch, orders)
    for seed in (3, 3, 4):
        train(BLOCK, make_space(), make_settings(epochs=2, seed=seed))
    n = len(BLOCK.targets.rows)
    assert all(np.array_equal(np.sort(order), np.arange(n)) for order in orders)
    first, second, again, _, reseeded, _ = orders
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, reseeded)
    assert not np.array_equal(first, np.arange(n))


def test_progress_is_told_of_pairs() -> None:
    """Three rows with 12, 3 and 1 pairs are 4 visits: 4 pairs each, in the mean."""
    Y = csr_matrix(np.array([[1] * 12, [1] * 3 + [0] * 9, [1] + [0] * 11], np.int8))
    block, steps = RowBlock(np.zeros((3, 1), np.float32), build_targets(Y, None, "mean")), []

    class Bar:
        def advance(self, n: int = 1, **figures: Any) -> None:
            steps.append(n)

    assert list(report_pass_progress(iter([1, 2, 1]), Bar(), block)) == [1, 2, 1]
    assert steps == [4, 8, 4]
