"""A worker trains the part that it was asked for, whatever it has read ahead."""

from functools import partial

import numpy as np
import pytest

from shard_files import in_shards, toy_rows
from wsabie.distributed.averaging_trainer import AveragingRunner, AveragingWorker
from wsabie.models.base import training_rows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.trainer import Trainer


class FleetError(Exception):
    """With what a worker is made of."""


class FleetlessRunner(AveragingRunner):
    """Goes no further than to the workers."""

    def _build_fleet(self, settings, space, data):
        raise FleetError(settings, space, data)


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """worker() -> one that has begun, on 600 rows in 60 parts."""
    monkeypatch.setattr(training_rows, "CHUNK", 8)
    monkeypatch.setattr("wsabie.models.base.training_rows.CHUNK", 8)
    with pytest.raises(FleetError) as error:
        Wsabie(dim=8, threads=1, init="random").fit(
            in_shards(toy_rows(), tmp_path / "shards"),
            trainer=partial(Trainer, make_runner=partial(FleetlessRunner, address="")),
        )

    def begin_worker():
        averaging_worker = AveragingWorker(*error.value.args)
        averaging_worker.prepare()
        return averaging_worker

    return begin_worker


def train(worker, *parts):
    """The reports of these parts of an epoch, each given as (part, coming)."""
    return [worker.train(1, part, next_part) for part, next_part in parts]


def check(reports, expected):
    for a, b in zip(reports, expected, strict=True):
        assert (a.pairs, a.rows_read, a.unlabelled) == (b.pairs, b.rows_read, b.unlabelled)
        np.testing.assert_array_equal(a.loss, b.loss)
        np.testing.assert_array_equal(a.counters, b.counters)


def test_a_part_that_was_read_meanwhile_is_the_one_that_was_told(worker):
    check(train(worker(), (1, 2), (2, 3), (3, None)), train(worker(), (1, None), (2, None), (3, None)))


def test_another_part_than_the_one_that_was_read_is_trained_where_it_is_asked_for(worker):
    first, second = worker(), worker()
    check(train(first, (1, 2), (3, None)), train(second, (1, None), (3, None)))
    for mine, theirs in zip(first.space.list_arrays().values(), second.space.list_arrays().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(train(worker(), (1, 2), (2, None))[1].loss, train(worker(), (1, 2), (3, None))[1].loss)


def test_the_same_number_of_another_epoch_is_another_part(worker):
    first, second = worker(), worker()
    first.train(1, 1, 2)
    second.train(1, 1)
    check([first.train(2, 2)], [second.train(2, 2)])
