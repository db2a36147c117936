"""Tuning: sequential, deterministic, resumable; lagging trials stop, the best one is saved."""

import gc
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.core.errors import DivergenceError, InputError
from wsabie.core.execution import SILENT, SerialExecutor
from wsabie.features.base.sampling import WorkContext
from wsabie.io.records import FeatureTable
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.loader import load
from wsabie.storage.rejects import Rejects
from wsabie.workflows.model_training import TrainingRecipe
from wsabie.workflows.tune import model_tuning, search_spaces
from wsabie.workflows.tune.model_tuning import TuningPlan, TuningResult, tune_model
from wsabie.workflows.tune.search_spaces import KINDS, build_search_space
from wsabie.workflows.tune.trial_study import Trial
from wsabie.workflows.tune.tuning_page import build_trial_table, render_tuning_page

pytest.importorskip("optuna")
SMALL: Mapping[str, Any] = {"dim": [4, 8], "epochs": {"low": 2, "high": 6}, "similarity": "dot"}


def make_rows(n: int, seed: int, name: str = "r") -> FeatureTable:
    """Twelve labels, each with words of its own among noise."""
    rng = np.random.default_rng(seed)
    label = rng.integers(12, size=n)
    X = sp.random(n, 60, 0.1, format="lil", dtype=np.float32, random_state=rng)
    for i, y in enumerate(label):
        X[i, 5 * y + rng.integers(5)] = 1.0
    Y = sp.csr_matrix((np.ones(n, np.int8), (np.arange(n), label)), (n, 12))
    return FeatureTable(X.tocsr(), Y, [f"label {y}" for y in range(12)], [f"{name}{i}" for i in range(n)])


def run_tuning(
    out: Path,
    *,
    n: int = 3,
    test: FeatureTable | None = None,
    changes: Mapping[str, Any] = SMALL,
    seed: int = 0,
    **plan: Any,
) -> TuningResult:
    recipe = TrainingRecipe("rows", out / "model", Wsabie(threads=1, seed=seed), {}, holdout_share=0.3, resume=True)
    tuning_plan = TuningPlan(build_search_space(changes), trials=n, **plan)
    return tune_model(
        make_rows(120, 0), None, test, tuning_plan, recipe, WorkContext(SerialExecutor(), SILENT, Rejects(strict=True))
    )


def list_trials(result: TuningResult) -> list[Trial]:
    """The trials without their times."""
    return [replace(trial, seconds=0.0) for trial in result.trials]


def test_search_saves_the_best_trial_as_a_model(tmp_path: Path) -> None:
    result = run_tuning(tmp_path, test=make_rows(60, 1, "t"))
    assert [trial.number for trial in result.trials] == [0, 1, 2]
    assert result.trials[0].parameters == {"similarity": "dot"}
    best = max((trial for trial in result.trials if trial.state == "done"), key=lambda trial: trial.figure or 0)
    assert result.best.figure == best.figure
    annotator = load(tmp_path / "model")
    assert [stats.validation for stats in annotator.model.history_] == result.best.figures
    assert annotator.facts["tuning"]["trial"] == result.best.number
    assert result.test_figures is not None
    assert set(result.test_figures.tuned) == {"MAP", "p@1", "p@10"}
    assert (tmp_path / "trials.csv").read_text().count("\n") == 4
    assert result.as_dict()["test"]["rows"] == 60


def test_interrupted_search_equals_one_run(tmp_path: Path) -> None:
    """The past alone decides what comes next, so that a search may be stopped anywhere and have its limit raised."""
    full_run = run_tuning(tmp_path / "a", n=10, halving=True)
    for n in (1, 4, 10):
        pieces = run_tuning(tmp_path / "b", n=n)
    assert list_trials(pieces) == list_trials(full_run)
    assert list_trials(run_tuning(tmp_path / "c", n=10, seed=1)) != list_trials(full_run)


def test_concurrent_trials_know_earlier_ones(tmp_path: Path) -> None:
    one_by_one = run_tuning(tmp_path / "a", n=13, halving=False)
    three = run_tuning(tmp_path / "b", n=13, halving=False, group_size=3)
    assert list_trials(three)[:8] == list_trials(one_by_one)[:8]  # drawn at random, without a look at others
    assert list_trials(three) != list_trials(one_by_one)
    assert len({str(trial.point) for trial in three.trials[10:]}) == 3
    for n in (5, 13):  # stopped amid three, it goes on with the others of them
        pieces = run_tuning(tmp_path / "c", n=n, halving=False, group_size=3)
    assert list_trials(pieces) == list_trials(three)


def test_kill_loses_only_the_running_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_run = run_tuning(tmp_path / "a", n=4)
    fit, fits = Wsabie.fit, []

    @wraps(fit)  # with its signature, which says what `fit` takes
    def dying(self: Any, *arguments: Any, on_epoch: Any, **options: Any) -> Any:
        fits.append(self)

        def list_trials(stats: Any) -> None:
            if len(fits) == 3:
                raise KeyboardInterrupt
            on_epoch(stats)

        return fit(self, *arguments, on_epoch=list_trials, **options)

    monkeypatch.setattr(Wsabie, "fit", dying)
    with pytest.raises(KeyboardInterrupt):
        run_tuning(tmp_path / "b", n=4)
    monkeypatch.undo()
    assert (tmp_path / "b" / "trials.csv").read_text().count("\n") == 1 + 2
    assert not (tmp_path / "b" / "model").exists()
    assert list_trials(run_tuning(tmp_path / "b", n=4)) == list_trials(full_run)


def test_other_data_and_settings_are_refused(tmp_path: Path) -> None:
    run_tuning(tmp_path, n=1)
    with pytest.raises(InputError, match="another metric"):
        run_tuning(tmp_path, n=2, metric="p@1")
    with pytest.raises(InputError, match="another space"):
        run_tuning(tmp_path, n=2, changes={**SMALL, "dim": [4, 9]})
    with pytest.raises(InputError, match="another seed"):
        run_tuning(tmp_path, n=2, seed=3)


def test_stated_metric_chooses_the_epoch(tmp_path: Path) -> None:
    result = run_tuning(tmp_path, n=2, metric="p@1")
    history = load(tmp_path / "model").model.history_
    assert [list(stats.validation_metrics) for stats in history] == [["p@1", "MAP", "p@10"]] * len(history)
    assert max(stats.validation_metrics["p@1"] for stats in history) == result.best.figure


def test_lagging_trials_are_stopped_and_never_chosen(tmp_path: Path) -> None:
    halved, full = (run_tuning(tmp_path / str(halving), n=10, halving=halving) for halving in (True, False))
    stopped = [trial for trial in halved.trials if trial.state == "stopped"]
    assert stopped
    assert all(len(trial.figures) < trial.epochs for trial in stopped)
    assert all(trial.state == "done" for trial in full.trials)
    assert halved.best.state == "done"


def test_time_limit_ends_a_search_within_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps a minute at every look: the defaults come to their end, the next trial does not."""
    now = iter(range(0, 10**9, 60))
    monkeypatch.setattr(model_tuning.time, "monotonic", lambda: float(next(now)))
    recipe = TrainingRecipe("rows", tmp_path / "model", Wsabie(threads=1), {}, holdout_share=0.3, resume=True)
    plan = TuningPlan(build_search_space({**SMALL, "epochs": 2}), trials=None, minutes=8.0)
    result = tune_model(make_rows(120, 0), None, None, plan, recipe, WorkContext(SerialExecutor(), SILENT, Rejects()))
    assert [trial.state for trial in result.trials] == ["done"]


def test_diverging_trial_is_reported_and_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Wsabie.fit

    @wraps(fit)  # with its signature, which says what `fit` takes
    def failing(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.dim == 8:
            raise DivergenceError("training diverged in epoch 1")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(Wsabie, "fit", failing)
    result = run_tuning(tmp_path, n=6)
    failed = [trial for trial in result.trials if trial.state == "failed"]
    assert failed
    assert all(trial.reason == "training diverged in epoch 1" and trial.figure is None for trial in failed)
    assert "failed" in {row[1] for row in build_trial_table(result, result.trials).rows}
    assert f"{len(failed)} failed" in render_tuning_page(result, "rows")
    monkeypatch.setattr(Wsabie, "fit", lambda self, *fit_arguments, **options: failing(self.set_params(dim=8)))
    with pytest.raises(InputError, match="no trial came to its end: training diverged"):
        run_tuning(tmp_path / "none", n=2)


def test_one_model_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[Any] = []
    alive: list[int] = []

    def build(**parameters: Any) -> Any:
        model = Wsabie(**parameters)
        if "threads" in parameters:  # others only tell the defaults
            gc.collect()
            alive.append(sum(hasattr(trained, "space_") for ref in models if (trained := ref()) is not None))
            models.append(weakref.ref(model))
        return model

    kind = replace(KINDS["wsabie"], build=build)
    monkeypatch.setattr(search_spaces, "KINDS", {"wsabie": kind})
    run_tuning(tmp_path, n=5)
    assert len(models) == 6
    assert set(alive) == {0}


def test_final_model_may_learn_validation_rows(tmp_path: Path) -> None:
    result = run_tuning(tmp_path, n=2, all_rows=True, test=make_rows(60, 1, "t"))
    annotator = load(tmp_path / "model")
    assert annotator.facts["rows"] == 120
    assert annotator.facts["validation_rows"] == 0
    assert len(annotator.model.history_) == result.best.epoch
    assert annotator.model.history_[0].pairs == 120


def test_overlapping_or_unknown_test_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="test rows are training rows too"):
        run_tuning(tmp_path, n=1, test=make_rows(120, 0))
    unknown = replace(make_rows(20, 1, "t"), label_names=[f"other {y}" for y in range(12)])
    with pytest.raises(InputError, match="no test row has a label"):
        run_tuning(tmp_path, n=1, test=unknown)
    assert (tmp_path / "trials.csv").exists() is False


@pytest.mark.parametrize("gap", [0.1, 0.0, -0.1])
def test_verdict_follows_the_test_difference(tmp_path: Path, gap: float) -> None:
    from wsabie.evaluation.bootstrap import Interval, PairedDifference
    from wsabie.workflows.tune.model_tuning import TestFigures

    result = run_tuning(tmp_path, n=2)
    figures = {"MAP": Interval(0.5, 0.4, 0.6)}
    difference = {"MAP": PairedDifference(gap, gap - 0.05, gap + 0.05, 0.5)}
    tested = replace(result, best=result.trials[1], test_figures=TestFigures(10, figures, figures, difference))
    verdicts = {0.1: "tuning was worth it", 0.0: "the test rows show no difference", -0.1: "tuning did harm"}
    assert tested.verdict().startswith(verdicts[gap])
    assert "only test rows tell" in replace(tested, test_figures=None).verdict()
    assert "the defaults were the best of 2 trials" in replace(tested, best=result.trials[0]).verdict()


def test_page_shows_every_trial(tmp_path: Path) -> None:
    result = run_tuning(tmp_path, n=4)
    html = render_tuning_page(result, "a <b>")
    assert html.count("<polyline") >= 4
    assert "a &lt;b&gt;" in html
    assert all(f"trial {trial.number}: MAP" in html for trial in result.trials)
