"""One comparison: metrics of a manual fit, options chosen on validation rows, skipped models."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from awkward_rows import toy_rows

from wsabie.core.errors import DivergenceError, InputError
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.io.records import FeatureTable, count_labels
from wsabie.models.base import feature_matrix
from wsabie.models.baselines import Popularity
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.nearest_neighbours import NearestNeighbours
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.workflows.compare import comparison as module
from wsabie.workflows.compare.comparison import compare_models, measure_prediction_ms
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrants import Entrant, build_entrants

TRAIN, VALID, TEST = toy_rows(60, "a", 0), toy_rows(24, "b", 1), toy_rows(24, "c", 2)
TASK, VALIDATED = build_comparison_task(TRAIN, None, TEST), build_comparison_task(TRAIN, VALID, TEST)


def test_metrics_equal_those_of_a_manual_fit(comparison: Comparison) -> None:
    for entry, model in (("popularity", Popularity()), ("nearest", NearestNeighbours(**comparison["nearest"].option))):
        model.fit(TRAIN.X, TRAIN.Y, label_names=TRAIN.label_names)
        n = len(TRAIN.label_names)
        expected = evaluate_scores([(0, model.scores(TEST.X))], TEST.Y, ks=[k for k in module.KS if k < n])
        assert comparison[entry].evaluation.means == pytest.approx(expected.means, nan_ok=True)


def test_blocks_do_not_change_metrics(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_matrix, "BLOCK_BYTES", 100)
    again = compare_models(
        TASK, [Entrant("nearest", "k-NN", partial(NearestNeighbours, **comparison["nearest"].option))]
    )
    assert again.entries[0].evaluation.means == comparison["nearest"].evaluation.means


def test_best_option_on_validation_rows_is_chosen(comparison: Comparison) -> None:
    entry = comparison["nearest"]
    by_hand = {}
    for k in (1, 5):
        model = NearestNeighbours(k).fit(TRAIN.X, TRAIN.Y)
        by_hand[k] = evaluate_scores([(0, model.scores(VALID.X))], VALID.Y, ks=(10,)).means["MAP"]
    assert comparison.tuned_on == "MAP"  # among a dozen labels p@10 tells nothing
    assert {option["k"]: value for option, value in entry.option_figures} == pytest.approx(by_hand)
    assert by_hand[entry.option["k"]] == max(by_hand.values())
    assert entry.model.k == entry.parameters["k"] == entry.option["k"]
    assert entry.tuning_seconds > entry.fit_seconds > 0


def test_first_option_is_chosen_without_validation_rows() -> None:
    comparison = compare_models(
        TASK, [Entrant("nearest", "k-NN", NearestNeighbours, ({"k": 3}, {"k": 5}))], resamples=5
    )
    assert comparison.entries[0].option == {"k": 3}
    assert comparison.entries[0].option_figures == []


def test_main_model_stops_early_and_is_compared_with_the_best_baseline(comparison: Comparison) -> None:
    entry = comparison["wsabie"]
    assert entry.model.history_[0].validation is not None
    assert entry.compile_seconds > 0
    assert set(entry.differences) == set(comparison.metrics)
    for metric, (name, difference) in entry.differences.items():
        best = max(("popularity", "nearest"), key=lambda n: comparison[n].evaluation.means[metric])
        assert name == best
        groups = [TEST.groups[i] for i in entry.evaluation.rows] if TEST.groups else None
        ours, theirs = entry.evaluation.per_row[metric], comparison[best].evaluation.per_row[metric]
        assert difference == paired_bootstrap(ours, theirs, groups=groups, resamples=50)
        assert entry.intervals[metric] == bootstrap_all({"": ours}, groups=groups, resamples=50)[""]
    assert comparison["nearest"].differences == {}


def test_groups_widen_the_intervals() -> None:
    doubled = TEST.take([i for i in range(12) for _ in range(2)])
    alike = replace(doubled, ids=[f"t{i}" for i in range(24)], groups=[f"g{i // 2}" for i in range(24)])
    independent = replace(alike, groups=None)
    entrant = Entrant("popularity", "popularity", Popularity)
    widths = []
    for test in (alike, independent):
        interval = (
            compare_models(build_comparison_task(TRAIN, None, test), [entrant], resamples=400)
            .entries[0]
            .intervals["MAP"]
        )
        widths.append(interval.high - interval.low)
    assert widths[0] > 1.15 * widths[1]  # sqrt(2) in the long run


class Diverging(Popularity):
    """A model whose training goes wrong."""

    def fit(self, X: Any, Y: Any, **options: Any) -> Any:
        raise DivergenceError("the numbers exploded; lower the learning rate")


def test_too_large_or_diverging_models_are_skipped() -> None:
    models = [
        Entrant("one-vs-rest", "one-versus-rest", partial(OneVsRest, max_gigabytes=1e-9)),
        Entrant("popularity", "most frequent", Popularity),
        Entrant("wild", "wild", Diverging),
    ]
    comparison = compare_models(TASK, models, resamples=5)
    assert [entry.name for entry in comparison.entries] == ["popularity"]
    assert [skipped.name for skipped in comparison.skipped] == ["one-vs-rest", "wild"]
    assert "needs" in comparison.skipped[0].reason
    assert "exploded" in comparison.skipped[1].reason
    assert comparison.as_dict()["skipped"][1] == {
        "name": "wild",
        "title": "wild",
        "reason": "the numbers exploded; lower the learning rate",
    }


def test_input_errors_are_not_skipped() -> None:
    with pytest.raises(InputError, match="whole number above 0"):
        compare_models(TASK, [Entrant("nearest", "k-NN", partial(NearestNeighbours, k=0))])


def test_memory_includes_every_array_of_a_prediction(comparison: Comparison) -> None:
    model = comparison["wsabie"].model
    assert model.n_bytes >= 4 * 20 * (18 + 6)
    assert comparison["nearest"].model.n_bytes == comparison["nearest"].n_bytes
    assert measure_prediction_ms(model, TEST.X, repeats=1) > 0


def test_equal_seeds_give_equal_metrics() -> None:
    models = [Entrant("wsabie", "WARP", partial(Wsabie, dim=20, epochs=2, threads=1, seed=3), baseline=False)]
    first, two = (compare_models(TASK, models, resamples=20, seed=1).as_dict() for _ in range(2))
    for document in (first, two):
        for entry in document["models"]:
            for name in ("fit_seconds", "tuning_seconds", "compile_seconds", "predict_ms_per_row"):
                entry.pop(name)
    assert first == two
    assert json.dumps(first, allow_nan=False)


def test_undefined_metric_is_left_out() -> None:
    rows = FeatureTable(
        np.eye(4, 2, dtype=np.float32), sp.csr_matrix(np.ones((4, 2), np.int8)), ["a", "b"], list("abcd")
    )
    comparison = compare_models(
        build_comparison_task(rows, None, replace(rows, ids=list("efgh"))),
        [Entrant("popularity", "p", Popularity)],
        resamples=5,
    )
    assert "MAP" in comparison.metrics
    assert "AUC" not in comparison.metrics  # there is no label that is not true
    assert comparison.as_dict()["models"][0]["metrics"]["AUC"] is None


class OneBar:
    """Progress of a terminal that can draw one bar at a time."""

    def __init__(self) -> None:
        self.open = False
        self.stages: list[tuple[str, int]] = []

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator["OneBar"]:
        assert not self.open, "one bar inside another"
        self.open, self.n_done = True, 0
        yield self
        self.open = False
        assert total is None or self.n_done == total
        self.stages.append((name, self.n_done))

    def advance(self, n: int = 1, **figures: float) -> None:
        self.n_done += n


def test_progress_has_a_stage_for_each_model() -> None:
    progress = OneBar()
    models = [
        Entrant("nearest", "k-NN", NearestNeighbours, ({"k": 1}, {"k": 2}), quick=True),
        Entrant("one-vs-rest", "linear", partial(OneVsRest, threads=1), ({"C": 1.0}, {"C": 2.0})),
    ]
    compare_models(VALIDATED, models, resamples=5, progress=progress)
    assert progress.stages == [
        ("choosing k-NN", 2),
        ("judging k-NN", 24),
        ("one-versus-rest, setting 1 of 2", 6),
        ("one-versus-rest, setting 2 of 2", 6),
        ("judging linear", 24),
    ]


def test_siblings_are_computed_for_the_remaining_labels() -> None:
    kinds = Hierarchy((name, "kind") for name in TRAIN.label_names)
    counts = count_labels(TRAIN)
    least = int(counts.max())
    task = build_comparison_task(TRAIN, None, TEST, min_rows=least, similar=kinds)
    comparison = compare_models(task, build_entrants(["popularity"]), resamples=5, ks=(1, 10))
    entry = comparison.entries[0]
    assert comparison.task.similar is not None
    assert comparison.task.similar.n_labels == int((counts >= least).sum()) < len(TRAIN.label_names)
    assert entry.evaluation.means["psib@1"] == 1  # every label is a sibling of every other
    assert entry.intervals["psib@1"].mean == 1
    assert "psib@10" in comparison.metrics
