"""Training on shards: equal to memory for one block, and independent of the shards."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shard_files import in_shards, shuffled, toy_rows
from wsabie.core.errors import InputError
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.models.base import training_rows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.trainer import EpochRunner


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 8 rows in blocks of 120."""
    monkeypatch.setattr(training_rows, "ROWS_PER_BLOCK", 120)
    monkeypatch.setattr(training_rows, "CHUNK", 8)


def read_tables(model: Any) -> list[np.ndarray]:
    return [array.copy() for array in model.space_.list_arrays().values()]


def are_equal(first: Any, second: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(read_tables(first), read_tables(second), strict=True))


def make_model(**options: Any) -> Wsabie:
    return Wsabie(**{"dim": 8, "epochs": 4, "threads": 1, "seed": 5, **options})


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("scaling", ["auto", "tfidf", None])
def test_one_block_equals_training_in_memory(tmp_path: Path, dense: bool, scaling: Any) -> None:
    rows = in_shards(toy_rows(dense=dense), tmp_path / "shards", rows=100)
    table = rows.load()
    streamed, in_memory = (
        make_model(scaling=scaling).fit(rows),
        make_model(scaling=scaling).fit(table.X, table.Y, label_names=table.label_names),
    )
    if dense and scaling is not None:  # the moments are added up shard by shard
        assert all(
            np.allclose(a, b, atol=1e-4) for a, b in zip(read_tables(streamed), read_tables(in_memory), strict=True)
        )
    else:
        assert are_equal(streamed, in_memory)
    assert streamed.settings_ == in_memory.settings_
    assert list(streamed.vocabulary_) == list(in_memory.vocabulary_)


@pytest.mark.usefixtures("small_blocks")
def test_learning_rate_falls_from_block_to_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is done of the epoch: 600 rows in blocks of 120, two epochs."""
    epoch_fractions: list[float] = []
    build_step_config = EpochRunner.build_step_config

    def noted(self: EpochRunner, space: Any, epoch: float) -> Any:
        epoch_fractions.append(epoch)
        return build_step_config(self, space, epoch)

    monkeypatch.setattr(EpochRunner, "build_step_config", noted)
    make_model(epochs=2).fit(in_shards(toy_rows(), tmp_path / "shards"))
    assert epoch_fractions[-10:] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8])


def list_blocks(rows: ShardedFeatureTable) -> training_rows.ShardedData:
    """Return the blocks that training visits."""
    sharded = training_rows.ShardedRows(rows, rows.compute_label_statistics())
    return sharded.build_data(sharded.fit_scaling(rows.n_features, None), "pairs", 5)


def list_pair_numbers(blocks: Iterable[Any]) -> list[range]:
    """Return the numbers of the pairs of each block; equal numbers would give equal draws."""
    of_blocks = [(block.targets.first_pair, len(block.targets.labels)) for block in blocks]
    return [range(first, first + n) for first, n in of_blocks]


@pytest.mark.usefixtures("small_blocks")
def test_pair_numbers_continue_across_blocks(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(), tmp_path / "shards")
    numbers = list_pair_numbers(list_blocks(rows).read_epoch(1))
    assert len(numbers) == 5
    assert [number for block in numbers for number in block] == list(range(rows.compute_label_statistics().pairs))


@pytest.mark.usefixtures("small_blocks")
def test_epoch_parts_share_no_row_and_no_pair_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_rows, "CHUNK", 8)
    rows = in_shards(toy_rows(), tmp_path / "shards")
    blocks, n = list_blocks(rows), 60
    assert blocks.count_parts(1) == n
    parts = [blocks.read_part(1, number) for number in range(n)]
    numbers = list_pair_numbers(parts)
    assert (
        sum(map(len, numbers))
        == len({pair for part in numbers for pair in part})
        == rows.compute_label_statistics().pairs
    )
    assert all(part.start == number << training_rows.PAIRS_OF_PART for number, part in enumerate(numbers))
    assert [part.epoch_progress for part in parts] == pytest.approx(np.arange(n) / n)
    assert sum(len(part.inputs.indptr) - 1 for part in parts) == 600


def test_few_rows_make_few_parts(tmp_path: Path) -> None:
    """A part is read in chunks, of which it has one at least."""
    assert list_blocks(in_shards(toy_rows(), tmp_path / "shards")).count_parts(9) == 3


def test_warm_up_row_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when the data of the trainer are built."""
    spans: list[Any] = []
    original = ShardedFeatureTable.read_spans

    def noted(self: ShardedFeatureTable, requested: Any) -> Any:
        spans.append(list(requested))
        return original(self, requested)

    monkeypatch.setattr(ShardedFeatureTable, "read_spans", noted)
    rows = in_shards(toy_rows(), tmp_path / "shards")
    list_blocks(rows)
    assert spans == []
    make_model(epochs=1, init="random").fit(rows)
    assert spans == [[(0, 1)], [(0, 600)]]
    spans.clear()
    make_model(epochs=1, init="ridge").fit(rows)
    assert spans == [[(0, 600)], [(0, 1)], [(0, 600)]]


def test_checkpoint_checksum_depends_on_rows_groups_and_labels(tmp_path: Path) -> None:
    """A checkpoint of others is refused."""
    grouped = replace(toy_rows(), groups=[f"group {i // 5}" for i in range(600)])
    plain, rows = in_shards(toy_rows(), tmp_path / "plain"), in_shards(grouped, tmp_path / "grouped")
    of_labels = [rows.with_labels(np.array(keep)) for keep in ([0, 1, 2], [0, 1, 3])]
    tables_by_rows = [
        plain,
        *plain.split_holdout(0.2),
        *plain.split_holdout(0.3),
        rows,
        *rows.split_holdout(0.2),
        *rows.split_holdout(0.3),
    ]
    sums = [training_rows.ShardedRows(table, None).compute_checksum() for table in [*tables_by_rows, *of_labels]]
    assert len(set(sums)) == len(sums) == 12
    assert (
        sums[6]
        == training_rows.ShardedRows(
            in_shards(grouped, tmp_path / "again").split_holdout(0.2)[0], None
        ).compute_checksum()
    )


def test_linear_models_train_on_shards(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(), tmp_path / "shards")
    table = rows.load()
    in_memory = LinearRanker(epochs=2, threads=1).fit(table.X, table.Y, label_names=table.label_names)
    assert are_equal(LinearRanker(epochs=2, threads=1).fit(rows), in_memory)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("deterministic", [True, False])
def test_shards_and_threads_change_no_bit(tmp_path: Path, deterministic: bool) -> None:
    rows = toy_rows(by_label=True)
    models = []
    for size, threads, source in ((600, 1, rows), (70, 2 if deterministic else 1, shuffled(rows)), (111, 1, rows)):
        shards = in_shards(source, tmp_path / f"{size}", rows=size)
        models.append(make_model(threads=threads, deterministic=deterministic).fit(shards))
    assert are_equal(models[0], models[1])
    assert are_equal(models[0], models[2])
    assert models[0].score(rows.X, rows.Y) > 0.9


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("sampler", ["frequency", "adaptive"])
def test_samplers_get_label_frequencies(tmp_path: Path, sampler: str) -> None:
    rows = in_shards(toy_rows(), tmp_path / "shards")
    assert make_model(sampler=sampler, epochs=8).fit(rows).score(toy_rows().X, toy_rows().Y) > 0.9


@pytest.mark.usefixtures("small_blocks", "every_epoch")
def test_stopped_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    training_rows_, validation_rows = in_shards(toy_rows(), tmp_path / "shards").split_holdout(0.2)
    sample = validation_rows.read_first(50)
    options: dict[str, Any] = {"validation": (sample.X, sample.Y)}

    def stop(stats: EpochStats) -> None:
        if stats.epoch == 1:
            raise KeyboardInterrupt

    uninterrupted = make_model().fit(training_rows_, **options)
    with pytest.raises(KeyboardInterrupt):
        make_model().fit(training_rows_, checkpoint=tmp_path / "c", on_epoch=stop, **options)
    epochs: list[int] = []
    on = make_model(threads=2).fit(
        training_rows_,
        checkpoint=tmp_path / "c",
        resume=True,
        on_epoch=lambda stats: epochs.append(stats.epoch),
        **options,
    )
    assert epochs == [1, 2, 3]  # the epoch that was told is made again: it was stopped before it was saved
    assert are_equal(uninterrupted, on)
    with pytest.raises(InputError, match="made with other data"):
        make_model().fit(validation_rows, checkpoint=tmp_path / "c", resume=True, **options)


def test_labels_come_only_from_the_shards(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(), tmp_path / "shards")
    with pytest.raises(InputError, match="bring their labels;"):
        make_model().fit(rows, toy_rows().Y)
    with pytest.raises(InputError, match="requires y to be passed"):
        make_model().fit(toy_rows().X)


def draw_tickets(n: int, at_once: int) -> np.ndarray:
    """The tickets of all rows, which are drawn some at a time: by them the kept ones are known again."""
    sizes = ((lo, min(at_once, n - lo)) for lo in range(0, n, at_once))
    tickets = [np.random.default_rng([make_model().seed, 7, lo]).exponential(size=size) for lo, size in sizes]
    return np.concatenate(tickets).astype(np.float32)


@pytest.mark.parametrize("at_once", [1 << 14, 100])
def test_replay_buffer_is_filled_from_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """All at once it is that of rows in memory; some at a time it counts the same rows, and has some of every part."""
    monkeypatch.setattr(training_rows, "ROWS_READ", at_once)
    rows = in_shards(toy_rows(), tmp_path / "shards", rows=70)
    table = rows.load()
    in_memory = make_model(replay=50).fit(table.X, table.Y, label_names=table.label_names)
    streamed = make_model(replay=50).fit(rows)
    assert are_equal(streamed, in_memory)
    for model in (streamed, in_memory):
        assert len(model.replay_buffer_) == 50
    mine, theirs = streamed.replay_buffer_, in_memory.replay_buffer_
    assert mine.n_seen == theirs.n_seen == len(table)
    assert np.array_equal(mine.label_counts, theirs.label_counts)
    assert np.array_equal(mine.feature_counts, theirs.feature_counts)
    same = np.array_equal(mine.tickets, theirs.tickets) and np.array_equal(mine.rows.data, theirs.rows.data)
    assert same == (at_once > len(table))
    places = [np.flatnonzero(draw_tickets(len(table), at_once) == ticket)[0] for ticket in mine.tickets]
    assert set(np.array(places) // 100) == set(range(6))
    more = toy_rows(seed=1)
    assert streamed.partial_fit(more.X, more.Y, label_names=more.label_names, epochs=2).score(table.X, table.Y) > 0.9


def test_training_on_shards_starts_from_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that it lacks stand at the mean of their rows, wherever these lie."""
    monkeypatch.setattr(training_rows, "ROWS_READ", 100)
    rows = in_shards(toy_rows(), tmp_path / "shards", rows=70)
    table, names = rows.load(), rows.label_names
    few = table.with_labels(np.arange(len(names) - 1))
    start = make_model().fit(few.X, few.Y, label_names=few.label_names)
    options: dict[str, Any] = {"init_model": start, "epochs": 1, "learning_rate": 1e-6}
    streamed = make_model(**options).fit(rows)
    in_memory = make_model(**options).fit(table.X, table.Y, label_names=names)
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(read_tables(streamed), read_tables(in_memory), strict=True))
    assert np.allclose(streamed.label_vectors[:-1], start.label_vectors, atol=1e-4)


def test_many_shards_stay_within_the_open_file_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.io.shards.shard_folder.MAX_OPEN_SHARDS", 2)
    many, single_shard = (in_shards(toy_rows(), tmp_path / str(size), rows=size) for size in (50, 600))
    assert are_equal(make_model(epochs=2).fit(many), make_model(epochs=2).fit(single_shard))
    assert many.shards.shard.cache_info().currsize == 2  # type: ignore[attr-defined]


def test_reopened_shards_are_not_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = in_shards(toy_rows(), tmp_path / "shards", rows=50)
    monkeypatch.setattr("wsabie.io.shards.shard_folder.MAX_OPEN_SHARDS", 2)
    first = many.read_spans([(0, 600)])[0]
    monkeypatch.setattr("wsabie.storage.column_files._check_lengths", lambda _: pytest.fail("looked through again"))
    assert np.array_equal(many.read_spans([(0, 600)])[0].data, first.data)  # type: ignore[union-attr]


# ---- what is set aside


def of(rows: ShardedFeatureTable) -> set[str]:
    return {name for block in rows.iterate_blocks(64) for name in block.ids}


def test_holdout_is_a_random_share_of_the_rows(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(by_label=True), tmp_path / "shards", rows=70)
    training_part, validation_part = rows.split_holdout(0.25)
    assert len(of(validation_part)) == validation_part.compute_label_statistics().rows == 150
    assert of(training_part) | of(validation_part) == {f"row-{i}" for i in range(600)}
    assert not of(training_part) & of(validation_part)
    assert (
        validation_part.compute_label_statistics().of_label.min() > 10
    )  # every label, although the source is sorted by them
    assert of(validation_part) == of(
        in_shards(shuffled(toy_rows()), tmp_path / "other", rows=600).split_holdout(0.25)[1]
    )


@pytest.mark.usefixtures("small_blocks")
def test_holdout_keeps_groups_together(tmp_path: Path) -> None:
    rows = replace(toy_rows(), groups=[f"group {i // 5}" for i in range(600)])
    training_part, validation_part = in_shards(rows, tmp_path / "shards", rows=70).split_holdout(0.25)
    sides = [{int(name.split("-")[1]) // 5 for name in of(side)} for side in (training_part, validation_part)]
    assert not sides[0] & sides[1]
    assert 0.15 < len(sides[1]) / 120 < 0.35
    assert training_part.compute_label_statistics().rows == len(of(training_part)) == 600 - len(of(validation_part))
    history: list[EpochStats] = []
    make_model(epochs=1).fit(training_part, on_epoch=history.append)
    assert history[0].pairs == training_part.compute_label_statistics().pairs


def test_dropped_labels_are_dropped_on_both_sides(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(), tmp_path / "shards", rows=70)
    few = rows.with_labels(np.array([1, 4, 5]))
    table = toy_rows().with_labels([1, 4, 5])
    truth = few.compute_label_statistics()
    assert truth.of_label.tolist() == (table.Y > 0).sum(0).A1.tolist()
    assert truth.unlabelled == int((np.diff(table.Y.indptr) == 0).sum()) == 400
    assert few.load().label_names == ["label 1", "label 4", "label 5"]
    again = few.with_labels(np.array([2]))
    assert again.load().Y.sum() == table.Y[:, 2].sum()


def test_first_of_no_rows_is_empty(tmp_path: Path) -> None:
    rows = in_shards(toy_rows(4), tmp_path / "shards")
    training_part, validation_part = rows.split_holdout(0.1)
    assert (len(validation_part.read_first(2000)), len(training_part.read_first(2000))) == (0, 4)


@pytest.mark.parametrize("share", [-1.0, 0.0, 1.0, 2.0, float("nan")])
def test_invalid_holdout_shares_are_refused(tmp_path: Path, share: float) -> None:
    with pytest.raises(InputError, match=r"the share set aside is .*; give a number between 0 and 1"):
        in_shards(toy_rows(4), tmp_path / "shards").split_holdout(share)


@pytest.mark.parametrize("number", [-1, 4])
def test_missing_row_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(InputError, match=f"has no row {number}; give 0 to 3"):
        in_shards(toy_rows(4), tmp_path / "shards").read_row(number)
