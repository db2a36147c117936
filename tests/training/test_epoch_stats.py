"""Figures of an epoch: named validation figures, and histories from before they were kept."""

import json
from dataclasses import replace

import numpy as np

from wsabie.embedding.joint_space import JointSpace
from wsabie.kernels.training import warp
from wsabie.training.epoch_stats import EpochStats, find_best_epoch, list_other_metrics, summarise_epoch
from wsabie.training.loops import StepCounters

STATS = EpochStats(
    epoch=0,
    loss=0.5,
    violation_rate=0.9,
    mean_draws=3.0,
    rank_histogram=[1, 2],
    pairs=3,
    skipped=0,
    rejected=1,
    pairs_per_second=1e5,
    bytes_per_second=1e9,
    learning_rate=0.1,
    seconds=0.1,
    validation=0.3,
    validation_metrics={"MAP": 0.3, "p@10": 0.1},
)


def test_bytes_are_those_of_rows_read_and_of_rows_read_and_written() -> None:
    """Ten pairs read 5 feature rows each; 20 labels are drawn; each of 4 steps moves 5 features and 2 labels."""
    step_counters = StepCounters.allocate(2)
    step_counters.counters[:, [warp.VISITED, warp.UPDATES, warp.DRAWS]] = [[7, 1, 15], [3, 3, 5]]
    stats = summarise_epoch(
        step_counters.sum([]), 0, 0.1, 2.0, JointSpace.random(1, 1, 100, "dot", np.random.default_rng(0)).traffic(5.0)
    )
    assert stats.bytes_per_second == 4 * 112 * (10 * 5 + 20 + 2 * 4 * (5 + 2)) / 2
    assert (stats.pairs, stats.pairs_per_second, stats.violation_rate, stats.mean_draws) == (10, 5, 0.4, 2)


def test_json_there_and_back() -> None:
    assert EpochStats(**json.loads(json.dumps(STATS.as_dict()))) == STATS


def test_a_history_without_named_figures_is_read() -> None:
    old = STATS.as_dict()
    del old["validation_metrics"]
    assert EpochStats(**old) == replace(STATS, validation_metrics={})
    assert EpochStats(**old).validation == 0.3


def test_other_metrics_are_those_beside_the_first_of_each_epoch() -> None:
    bare = replace(STATS, validation=None, validation_metrics={})
    more = replace(STATS, validation_metrics={"MAP": 0.3, "AUC": 0.8, "p@10": 0.1})
    assert list_other_metrics([bare, STATS, more]) == ["p@10", "AUC"]
    assert list_other_metrics([bare]) == list_other_metrics([]) == []


def test_best_epoch_is_that_with_the_best_figure() -> None:
    """The first of equal epochs is the best; None if the last one has no figure."""
    history = [replace(STATS, epoch=i, validation=figure) for i, figure in enumerate((0.2, 0.4, 0.4, 0.1))]
    assert find_best_epoch(history) == history[1]
    assert find_best_epoch([*history, replace(STATS, validation=None)]) is None
    assert find_best_epoch([]) is None
