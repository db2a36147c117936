"""A comparison: all models and baselines fitted and evaluated on the same rows, with time and memory."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.core.errors import DivergenceError, UnsuitableModelError
from wsabie.core.execution import SILENT, Progress, Stage
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import collect_versions
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.io.records import FeatureTable, get_groups
from wsabie.models.base.label_model import LabelModel
from wsabie.workflows.batch_inference import evaluate_model
from wsabie.workflows.compare.comparison_table import (
    HEADLINE,
    Comparison,
    ComparisonInterrupt,
    ModelEntry,
    ModelOmission,
)
from wsabie.workflows.compare.comparison_task import ComparisonTask
from wsabie.workflows.compare.entrants import Entrant, Options
from wsabie.workflows.compare.result_store import ModelResult, ResultStore, compute_value_fingerprint, find_or_compute

TIMED_ROWS = 1000
"""Rows for measuring the time of a prediction."""
MAX_TUNING_ROWS = 5000
"""Most validation rows that choose an option, at even steps through all of them."""

_COMPILE_ROWS = 64
_MANY_LABELS = 50
KS = (*range(1, 11), 15, 20, 30, 40, 50)
"""List lengths at which precision and recall are measured."""


def fit_entrant(entrant: Entrant, task: ComparisonTask, tuned_on: str, progress: Progress = SILENT) -> ModelResult:
    """Fit the model of the best option; the facts are the option, the figures of all options, and seconds.

    Parameters
    ----------
    entrant : Entrant
    task : ComparisonTask
        Without validation rows the first option is used.
    tuned_on : str
        Metric on the validation rows.
    progress : Progress

    """
    compile_seconds, start_time = _compile(entrant, task, progress), time.perf_counter()
    options = entrant.options if task.valid is not None else entrant.options[:1]
    option_figures: list[tuple[Options, float]] = []
    best: Any = None  # model, option and seconds: memory holds only the best model so far
    is_quick = entrant.quick and len(options) > 1  # others show a bar for each fit
    stage = progress.stage(f"choosing {entrant.title}", len(options), "settings") if is_quick else nullcontext()
    with stage as bar:
        for number, option in enumerate(options, 1):
            shown = SILENT if is_quick else _SettingProgress(progress, number, len(options))
            model, seconds = _fit(entrant, option, task.train, task.valid, shown)
            if task.valid is not None and len(options) > 1:
                option_figures.append((option, _measure_option(model, task.valid, tuned_on)))
            if best is None or option_figures[-1][1] > max(value for _, value in option_figures[:-1]):
                best = model, option, seconds
        if bar is not None:
            bar.advance(len(options))
    tuning_seconds = time.perf_counter() - start_time if option_figures else 0.0
    facts = {
        "option": best[1],
        "option_figures": option_figures,
        "fit_seconds": best[2],
        "tuning_seconds": tuning_seconds,
        "compile_seconds": compile_seconds,
    }
    return ModelResult(facts, model=best[0])


def choose_tuning_metric(n_labels: int) -> str:
    """Return the metric that chooses parameters: p@10, or MAP if there are few labels."""
    return "p@10" if n_labels >= _MANY_LABELS else "MAP"


def measure_prediction_ms(model: LabelModel, X: Matrix, repeats: int = 3) -> float:
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
    """Progress that names the current setting if there are several."""

    progress: Progress
    number: int
    n_settings: int

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]:
        setting = f", setting {self.number} of {self.n_settings}" if self.n_settings > 1 else ""
        return self.progress.stage(f"{name}{setting}", total, unit)


def _measure_option(model: LabelModel, valid: FeatureTable, metric: str) -> float:
    valid = valid.take(np.arange(0, len(valid), -(-len(valid) // MAX_TUNING_ROWS)))
    return evaluate_model(model, valid, (10,), "").means[metric]


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


def compare_models(
    task: ComparisonTask,
    models: Sequence[Entrant],
    *,
    ks: Sequence[int] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    store: ResultStore | None = None,
    on_result: Callable[[ModelEntry | ModelOmission], object] = lambda _: None,
    progress: Progress = SILENT,
) -> Comparison:
    """Fit, tune and evaluate every model on one split.

    Parameters
    ----------
    task : ComparisonTask
        See `build_comparison_task`. Its test side is evaluated once, after all choices.
    models : sequence of Entrant
        See `wsabie.workflows.compare.entrants.build_entrants`.
    ks : sequence of int, optional
        List lengths to measure at; by default those of `KS` that are shorter than the list of all labels.
    resamples, seed : int
        Settings of the bootstrap; it draws whole groups if the test rows have groups.
    store : ResultStore or None
        Saves every result at once, and supplies the results of an interrupted run.
    on_result : callable
        Called with every finished result.
    progress : Progress

    Returns
    -------
    Comparison
        A model that is too large or diverges is listed as skipped, with the reason.

    Raises
    ------
    InputError
        Nothing can be evaluated; or the store is of other data, settings or versions.
    ComparisonInterrupt
        Ctrl-C; it holds the finished models.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from wsabie import FeatureTable
    >>> from wsabie.workflows.compare.comparison_task import build_comparison_task
    >>> from wsabie.workflows.compare.entrants import build_entrants
    >>> X, Y = np.repeat(np.eye(2), 5, axis=0), csr_matrix(np.repeat(np.eye(2, dtype=int), 5, axis=0))
    >>> train = FeatureTable(X, Y, ["ship", "horse"], [f"a{i}" for i in range(10)])
    >>> test = FeatureTable(X, Y, ["ship", "horse"], [f"b{i}" for i in range(10)])
    >>> task = build_comparison_task(train, None, test)
    >>> comparison = compare_models(task, build_entrants(["popularity", "nearest"]), resamples=10)
    >>> [round(entry.evaluation.means["p@1"], 2) for entry in comparison.entries]
    [0.5, 1.0]
    """
    n_labels = len(task.train.label_names)
    ks = select_informative_lengths(KS, n_labels) if ks is None else ks
    run = _ComparisonRun(task, choose_tuning_metric(n_labels), ks, resamples, seed, progress)
    if store is not None:
        store = store.with_identity(run.identity())
    results: list[ModelEntry | ModelOmission] = []
    try:
        for entrant in models:
            results.append(run.evaluate(entrant, store))
            on_result(results[-1])
    except KeyboardInterrupt as stop:
        raise ComparisonInterrupt(run.join(results)) from stop
    return run.join(results)


@dataclass(frozen=True)
class _ComparisonRun:
    """Settings that all models of a comparison share."""

    task: ComparisonTask
    tuned_on: str
    ks: Sequence[int]
    resamples: int
    seed: int
    progress: Progress

    def identity(self) -> JsonObject:
        """Return the facts that must agree for results to be comparable."""
        facts = self.task.facts
        return {
            **{f"{name} rows": mark for name, mark in facts.fingerprint.items()},
            "min_rows": facts.min_rows,
            "test pairs": facts.test_pairs,
            "allow_overlap": self.task.allow_overlap,
            "siblings": compute_value_fingerprint(self.task.similar),
            "tuned_on": self.tuned_on,
            "ks": self.ks,
            "resamples": self.resamples,
            "seed": self.seed,
            "versions": collect_versions(),
        }

    def evaluate(self, entrant: Entrant, store: ResultStore | None) -> ModelEntry | ModelOmission:
        """Return the result of one model: from the store, or fitted, evaluated and stored."""
        if store is not None:
            parameters = [_list_parameters(entrant.build(**option)) for option in entrant.options]
            store = store.with_identity({**store.identity, "parameters": parameters})
        result = find_or_compute(store, entrant.name, lambda: self._fit_and_evaluate(entrant))
        if "reason" in result.facts:
            return ModelOmission(entrant.name, entrant.title, result.facts["reason"])
        evaluation = result.evaluations["test"]
        values = {name: evaluation.per_row[name] for name in _list_measured_metrics(evaluation)}
        return ModelEntry(
            name=entrant.name,
            title=entrant.title,
            baseline=entrant.baseline,
            **{**result.facts, "option_figures": [(option, value) for option, value in result.facts["option_figures"]]},
            evaluation=evaluation,
            intervals=bootstrap_all(values, **self._bootstrap_options(evaluation)),
            model=result.model,
        )

    def _bootstrap_options(self, evaluation: Evaluation) -> JsonObject:
        groups = get_groups(self.task.test, evaluation.rows)
        return {"groups": groups, "resamples": self.resamples, "seed": self.seed}

    def _fit_and_evaluate(self, entrant: Entrant) -> ModelResult:
        task = self.task
        try:
            fitted = fit_entrant(entrant, task, self.tuned_on, self.progress)
        except (UnsuitableModelError, DivergenceError) as error:
            return ModelResult({"reason": str(error)})
        stage = f"judging {entrant.title}"
        evaluation = evaluate_model(fitted.model, task.test, self.ks, stage, self.progress, similar=task.similar)
        facts = {
            **fitted.facts,
            "parameters": _list_parameters(fitted.model),
            "predict_ms": measure_prediction_ms(fitted.model, task.test.X),
            "n_bytes": fitted.model.n_bytes,
        }
        return replace(fitted, facts=facts, evaluations={"test": evaluation})

    def join(self, results: Sequence[ModelEntry | ModelOmission]) -> Comparison:
        """Build the comparison of the finished models, with differences to the best baseline."""
        entries = [result for result in results if isinstance(result, ModelEntry)]
        skipped = [result for result in results if isinstance(result, ModelOmission)]
        metrics = tuple(name for name in HEADLINE if entries and name in entries[0].intervals)
        joined = Comparison(self.task, entries, skipped, metrics, self.tuned_on, self.seed, collect_versions())
        return replace(joined, entries=[self._add_differences(entry, joined) for entry in entries])

    def _add_differences(self, entry: ModelEntry, joined: Comparison) -> ModelEntry:
        differences = {}
        for metric in () if entry.baseline else joined.metrics:
            if (best := joined.best(metric, baselines=True)) is not None:
                pair = (figures.evaluation.per_row[metric] for figures in (entry, best))
                difference = paired_bootstrap(*pair, **self._bootstrap_options(entry.evaluation))
                differences[metric] = (best.name, difference)
        return replace(entry, differences=differences)


def _list_parameters(model: LabelModel) -> JsonObject:
    """Return the parameters of a model but the models among them."""
    return {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}


def _list_measured_metrics(evaluation: Evaluation) -> list[str]:
    """Return the headline metrics and every p@k and psib@k with a figure in some row."""
    names = [*HEADLINE, *(f"{metric}@{k}" for metric in ("p", "psib") for k in evaluation.ks)]
    row_metrics = [name for name in dict.fromkeys(names) if name in evaluation.per_row]
    return [name for name in row_metrics if not np.isnan(evaluation.per_row[name]).all()]
