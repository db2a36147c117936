"""Workers of averaged training without Ray, in turns: they learn what one learns, from shards of a toy task."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import interleaved_workers
from shard_files import in_shards, toy_rows
from wsabie.core.errors import InputError
from wsabie.core.machine import count_available_cores
from wsabie.distributed.averaging_trainer import make_averaging_trainer
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.models.joint_embedding.estimator import Wsabie


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> ShardedFeatureTable:
    return in_shards(toy_rows(3000), tmp_path_factory.mktemp("rows") / "shards")


def fit_model(rows: ShardedFeatureTable, **options: Any) -> Wsabie:
    training, held_out = rows.split_holdout(0.2)
    validation_rows = held_out.read_first(500)
    return Wsabie(dim=16, epochs=8, threads=1, init="random").fit(
        training, validation=(validation_rows.X, validation_rows.Y), **options
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_workers_in_turns_learn_what_one_learns(rows: ShardedFeatureTable, n: int) -> None:
    rounds: list[Any] = []
    single, many = (
        fit_model(rows),
        fit_model(rows, trainer=interleaved_workers.make_interleaved_trainer(n, on_round=rounds.append)),
    )
    assert [epoch.pairs for epoch in many.history_] == [epoch.pairs for epoch in single.history_]
    assert [epoch.unlabelled for epoch in many.history_] == [epoch.unlabelled for epoch in single.history_]
    assert many.history_[-1].validation == pytest.approx(single.history_[-1].validation, abs=0.03)
    assert {epoch.workers for epoch in rounds} >= {n}
    assert (rounds[0].drift > 0.001) == (n > 1)


def test_early_stopping_and_checkpoints_are_those_of_any_training(
    rows: ShardedFeatureTable, tmp_path: Path, every_epoch: None
) -> None:
    trainer = interleaved_workers.make_interleaved_trainer(2)

    def stop(stats: Any) -> None:
        if stats.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_model(rows, trainer=trainer, checkpoint=tmp_path / "c", on_epoch=stop)
    epochs: list[int] = []
    model = fit_model(
        rows, trainer=trainer, checkpoint=tmp_path / "c", resume=True, on_epoch=lambda s: epochs.append(s.epoch)
    )
    assert epochs == [4, 5, 6, 7]
    assert len(model.history_) == 8
    plain_model = fit_model(rows, checkpoint=tmp_path / "c", resume=True)  # a finished one, by either trainer
    assert len(plain_model.history_) == 8


def test_models_without_averaged_training_are_refused(rows: ShardedFeatureTable) -> None:
    from wsabie.models.estimator_specs import build_estimator

    first_rows = rows.read_first(20)
    with pytest.raises(InputError, match=r"many machines train on rows in shards; .*`shards\(DATA, "):
        Wsabie(epochs=1).fit(first_rows.X, first_rows.Y, trainer=make_averaging_trainer("local"))
    with pytest.raises(InputError, match="a weight per feature are not trained on many machines"):
        build_estimator("linear-warp", {"epochs": 1}).fit(rows, trainer=make_averaging_trainer("local"))
    with pytest.raises(InputError, match="0 nodes cannot train"):
        make_averaging_trainer("local", 0)
    cores = count_available_cores()
    with pytest.raises(InputError, match=f"which has {cores}; give `nodes={cores}` at most"):
        make_averaging_trainer("local", cores + 1)
    make_averaging_trainer("local", cores)
    make_averaging_trainer("127.0.0.1:1", cores + 1)  # a cluster's nodes have cores of their own
