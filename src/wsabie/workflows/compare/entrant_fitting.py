"""Fitting of one entrant: compile, choose an option on the validation rows, measure time and memory."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Int64
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.core.progress import SILENT, Progress, Stage
from wsabie.evaluation.score_evaluation import BlockFigures, Evaluation, EvaluationAccumulator
from wsabie.io.records import FeatureTable
from wsabie.models.base.feature_matrix import iterate_row_ranges
from wsabie.workflows.compare.comparison import ComparisonTask
from wsabie.workflows.compare.entrants import Entrant, Options

TIMED_ROWS = 1000
"""Rows for measuring the time of a prediction."""
MAX_TUNING_ROWS = 5000
"""Most validation rows that choose an option, at even steps through all of them."""

_COMPILE_ROWS = 64
_MANY_LABELS = 50


class ModelFit(NamedTuple):
    """A fitted model with its options and times.

    Attributes
    ----------
    model : object
    option : dict
        The option with the best validation figure, or the only one.
    option_figures : list of (dict, float)
        Every option with its validation figure; empty without a choice.
    fit_seconds, tuning_seconds, compile_seconds : float
    """

    model: Any
    option: Options
    option_figures: list[tuple[Options, float]]
    fit_seconds: float
    tuning_seconds: float
    compile_seconds: float


def fit_entrant(entrant: Entrant, task: ComparisonTask, tuned_on: str, progress: Progress = SILENT) -> ModelFit:
    """Fit the model of the best option.

    Parameters
    ----------
    entrant : Entrant
    task : ComparisonTask
        Without validation rows the first option is used.
    tuned_on : str
        Metric on the validation rows.
    progress : Progress

    Raises
    ------
    InputError
        There is no such metric, or the entrant has no options.
    """
    if not entrant.options:
        raise InputError(f"{entrant.title} has no options; give at least one (which may be empty)")
    compile_seconds = _compile(entrant, task, progress)
    if task.valid is None or len(entrant.options) == 1:
        model, seconds = _fit(entrant, entrant.options[0], task.train, task.valid, progress)
        return ModelFit(model, entrant.options[0], [], seconds, 0.0, compile_seconds)
    if not entrant.quick:  # it shows a bar for each fit
        return _fit_best(entrant, task, task.valid, tuned_on, progress)._replace(compile_seconds=compile_seconds)
    with progress.stage(f"choosing {entrant.title}", len(entrant.options), "settings") as bar:
        fit = _fit_best(entrant, task, task.valid, tuned_on, SILENT)
        bar.advance(len(entrant.options))
    return fit._replace(compile_seconds=compile_seconds)


def choose_tuning_metric(n_labels: int) -> str:
    """Return the metric that chooses parameters: p@10, or MAP if there are few labels."""
    return "p@10" if n_labels >= _MANY_LABELS else "MAP"


def evaluate_model(
    model: Any,
    rows: FeatureTable,
    ks: Sequence[int],
    stage: str,
    progress: Progress = SILENT,
    *,
    workers: tuple[Executor, Path] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate a model on rows, block by block, in bounded memory; `options` are those of `evaluate_scores`.

    `workers` is an executor whose workers open the model in a folder and evaluate the blocks.
    """
    accumulator = EvaluationAccumulator(rows.Y, rows.Y.shape[1], ks, **options)
    executor, folder = workers or (SerialExecutor(), None)
    labels = model.labels if folder is not None and isinstance(model, LabelSubsetModel) else None
    evaluation = _BlockEvaluation(model if folder is None else None, folder, accumulator, labels)
    blocks = ((lo, rows.X[lo:hi]) for lo, hi in iterate_row_ranges(len(rows), rows.Y.shape[1]))
    with progress.stage(stage, len(rows), "rows") as bar:
        for block in executor.map_with(_BlockEvaluation.evaluate, evaluation, blocks):
            accumulator.add(block)
            bar.advance(block.hi - block.lo)
    return accumulator.result()


class LabelSubsetModel(NamedTuple):
    """A model restricted to some labels."""

    model: Any
    labels: Int64

    def scores(self, X: Any) -> Any:
        return self.model.scores(X)[:, self.labels]


@dataclass
class WorkerModel:
    """A model for workers: without `local_model` each of them opens that of the folder, to work on one thread."""

    local_model: Any
    folder: Path | None

    @cached_property
    def model(self) -> Any:
        from wsabie.models.annotators import Annotator
        from wsabie.models.loader import load

        if self.local_model is not None or self.folder is None:
            return self.local_model
        model = load(self.folder)
        model = model.model if isinstance(model, Annotator) else model
        model.threads = 1
        return model


@dataclass
class _BlockEvaluation(WorkerModel):
    """Evaluation of blocks of rows."""

    accumulator: EvaluationAccumulator
    labels: Int64 | None

    def evaluate(self, block: tuple[int, Any]) -> BlockFigures:
        lo, X = block
        scores = self.model.scores(X)
        return self.accumulator.measure(lo, scores if self.labels is None else scores[:, self.labels])


def measure_model_bytes(model: Any) -> int:
    """Return the bytes of all arrays that a prediction needs: `n_bytes`, or else its saved tensors."""
    if hasattr(model, "n_bytes"):
        return int(model.n_bytes)
    return int(sum(np.asarray(array).nbytes for array in model.to_parts().tensors.values()))


def measure_prediction_ms(model: Any, X: Any, repeats: int = 3) -> float:
    """Return median milliseconds per row for the 10 best labels, over up to `TIMED_ROWS` rows."""
    timed_rows = X[:TIMED_ROWS]
    model.rank(timed_rows[:1], 10)
    seconds = []
    for _ in range(repeats):
        start_time = time.perf_counter()
        model.rank(timed_rows, 10)
        seconds.append(time.perf_counter() - start_time)
    return float(1e3 * np.median(seconds) / timed_rows.shape[0])


class _SettingProgress(NamedTuple):
    """Progress that names the current setting."""

    progress: Progress
    number: int
    n_settings: int

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]:
        return self.progress.stage(f"{name}, setting {self.number} of {self.n_settings}", total, unit)


def _fit_best(
    entrant: Entrant, task: ComparisonTask, valid: FeatureTable, tuned_on: str, progress: Progress
) -> ModelFit:
    """Fit all options; memory holds only the best model so far."""
    start_time = time.perf_counter()
    option_figures: list[tuple[Options, float]] = []
    model, best_option, fit_seconds, highest = None, entrant.options[0], 0.0, -np.inf
    for number, option in enumerate(entrant.options, 1):
        setting_progress = _SettingProgress(progress, number, len(entrant.options))
        candidate, seconds = _fit(entrant, option, task.train, valid, setting_progress)
        value = _measure_option(candidate, valid, tuned_on)
        option_figures.append((option, value))
        if model is None or value > highest:
            model, best_option, fit_seconds, highest = candidate, option, seconds, value
    return ModelFit(model, best_option, option_figures, fit_seconds, time.perf_counter() - start_time, 0.0)


def _measure_option(model: Any, valid: FeatureTable, metric: str) -> float:
    k = metric.partition("@")[2]
    valid = valid.take(np.arange(0, len(valid), -(-len(valid) // MAX_TUNING_ROWS)))
    means = evaluate_model(model, valid, (int(k) if k.isdigit() else 10,), "").means
    if metric not in means:
        raise InputError(f"there is no metric called {metric!r}; choose one of {', '.join(means)}")
    return float(means[metric])


def _fit(
    entrant: Entrant, option: Options, train: FeatureTable, valid: FeatureTable | None, progress: Progress
) -> tuple[Any, float]:
    """Return the fitted model and the seconds of the fit."""
    validation = {"validation": (valid.X, valid.Y)} if entrant.trained and valid is not None else {}
    model, start_time = entrant.build(**option), time.perf_counter()
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress, **validation)
    return model, time.perf_counter() - start_time


def _compile(entrant: Entrant, task: ComparisonTask, progress: Progress) -> float:
    """Run everything once on a few rows with labels to finish compilation, and return the seconds."""
    if not entrant.trained:
        return 0.0
    start_time = time.perf_counter()
    with progress.stage("compiling (once)", None, ""):
        train = _select_labelled_rows(task.train)
        valid = None if task.valid is None else _select_labelled_rows(task.valid)
        model, _ = _fit(entrant, {**entrant.options[0], "epochs": 1}, train, valid, SILENT)
        model.rank(train.X[:1])
    return time.perf_counter() - start_time


def _select_labelled_rows(rows: FeatureTable) -> FeatureTable:
    return rows.take(np.flatnonzero((rows.Y > 0).getnnz(axis=1))[:_COMPILE_ROWS])
