"""A comparison: all models and baselines fitted and evaluated on the same rows, with time and memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wsabie.core.errors import DivergenceError, UnsuitableModelError
from wsabie.core.machine import collect_versions
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.metrics import select_informative_lengths
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.io.records import FeatureTable, get_groups
from wsabie.vocabulary.hierarchy import Hierarchy
from wsabie.workflows.compare.comparison import (
    HEADLINE,
    Comparison,
    ComparisonInterrupt,
    ComparisonTask,
    ModelEntry,
    ModelOmission,
    SiblingsOf,
    build_comparison_task,
)
from wsabie.workflows.compare.entrant_fitting import (
    choose_tuning_metric,
    evaluate_model,
    fit_entrant,
    measure_model_bytes,
    measure_prediction_ms,
)
from wsabie.workflows.compare.entrants import Entrant
from wsabie.workflows.compare.result_store import ModelResult, ResultStore, compute_value_digest, find_or_compute

KS = (*range(1, 11), 15, 20, 30, 40, 50)
"""List lengths at which precision and recall are measured."""


def compare_models(
    train: FeatureTable,
    valid: FeatureTable | None,
    test: FeatureTable,
    models: Sequence[Entrant],
    *,
    min_rows: int = 1,
    tuned_on: str = "auto",
    ks: Sequence[int] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    allow_overlap: bool = False,
    unknown_pairs: int = 0,
    similar: SiblingsOf | Hierarchy | None = None,
    store: ResultStore | None = None,
    on_result: Callable[[ModelEntry | ModelOmission], object] = lambda _: None,
    progress: Progress = SILENT,
) -> Comparison:
    """Fit, tune and evaluate every model on one split.

    Parameters
    ----------
    train : FeatureTable
    valid : FeatureTable or None
        Chooses parameters and epochs; without it the first option of each model is used.
    test : FeatureTable
        Evaluated once, after all choices.
    models : sequence of Entrant
        See `wsabie.workflows.compare.entrants.build_entrants`.
    min_rows : int
        Labels with fewer training rows are left out, and counted.
    tuned_on : str
        Metric that chooses among a model's options on the validation rows; "auto" is p@10, or MAP if there are
        few labels.
    ks : sequence of int, optional
        List lengths to measure at; by default those of `KS` that are shorter than the list of all labels.
    resamples, seed : int
        Of the bootstrap; it draws whole groups if the test rows have groups.
    allow_overlap : bool
        Accept test rows that are training rows too.
    unknown_pairs : int
        Test pairs that alignment dropped because the training data lack their label; they count against coverage.
    similar : Hierarchy or callable, or None
        Sibling labels, for the sibling precision: label names -> their similarities (`LabelSimilarity`). Called with
        the labels that `min_rows` leaves.
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
        The sides do not fit together, share rows, or nothing can be evaluated; or the store is of other data, settings
        or versions.
    ComparisonInterrupt
        Ctrl-C; it holds the finished models.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from wsabie.workflows.compare.entrants import build_entrants
    >>> X, Y = np.repeat(np.eye(2), 5, axis=0), csr_matrix(np.repeat(np.eye(2, dtype=int), 5, axis=0))
    >>> train = FeatureTable(X, Y, ["ship", "horse"], [f"a{i}" for i in range(10)])
    >>> test = FeatureTable(X, Y, ["ship", "horse"], [f"b{i}" for i in range(10)])
    >>> comparison = compare_models(train, None, test, build_entrants(["popularity", "nearest"]), resamples=10)
    >>> [round(entry.evaluation.means["p@1"], 2) for entry in comparison.entries]
    [0.5, 1.0]
    """
    task = build_comparison_task(
        train,
        valid,
        test,
        min_rows=min_rows,
        allow_overlap=allow_overlap,
        unknown_pairs=unknown_pairs,
        similar=similar,
    )
    n_labels = len(task.train.label_names)
    run = _ComparisonRun(
        task,
        choose_tuning_metric(n_labels) if tuned_on == "auto" else tuned_on,
        select_informative_lengths(KS, n_labels) if ks is None else ks,
        resamples,
        seed,
        progress,
    )
    if store is not None:
        store = store.with_identity(run.identity(allow_overlap))
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

    def identity(self, allow_overlap: bool) -> dict[str, Any]:
        """Return the facts that must agree for results to be comparable."""
        facts = self.task.facts
        return {
            **{f"{name} rows": mark for name, mark in facts.fingerprint.items()},
            "min_rows": facts.min_rows,
            "test pairs": facts.test_pairs,
            "allow_overlap": allow_overlap,
            "siblings": compute_value_digest(self.task.similar),
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

    def _bootstrap_options(self, evaluation: Evaluation) -> dict[str, Any]:
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
            "parameters": _list_parameters(fitted.model),
            "option": fitted.option,
            "option_figures": fitted.option_figures,
            "fit_seconds": fitted.fit_seconds,
            "tuning_seconds": fitted.tuning_seconds,
            "compile_seconds": fitted.compile_seconds,
            "predict_ms": measure_prediction_ms(fitted.model, task.test.X),
            "n_bytes": measure_model_bytes(fitted.model),
        }
        return ModelResult(facts, {"test": evaluation}, fitted.model)

    def join(self, results: Sequence[ModelEntry | ModelOmission]) -> Comparison:
        """Build the comparison of the finished models, with differences to the best baseline."""
        entries = [result for result in results if isinstance(result, ModelEntry)]
        skipped = [result for result in results if isinstance(result, ModelOmission)]
        metrics = tuple(name for name in HEADLINE if entries and name in entries[0].intervals)
        comparison = Comparison(self.task, entries, skipped, metrics, self.tuned_on, self.seed, collect_versions())
        return replace(comparison, entries=[self._add_differences(entry, comparison) for entry in entries])

    def _add_differences(self, entry: ModelEntry, comparison: Comparison) -> ModelEntry:
        differences = {}
        for metric in () if entry.baseline else comparison.metrics:
            if (best := comparison.best(metric, baselines=True)) is not None:
                pair = (figures.evaluation.per_row[metric] for figures in (entry, best))
                difference = paired_bootstrap(*pair, **self._bootstrap_options(entry.evaluation))
                differences[metric] = (best.name, difference)
        return replace(entry, differences=differences)


def _list_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model but the models among them."""
    return {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}


def _list_measured_metrics(evaluation: Evaluation) -> list[str]:
    """Return the headline metrics and every p@k and psib@k with a figure in some row."""
    names = [*HEADLINE, *(f"{kind}@{k}" for kind in ("p", "psib") for k in evaluation.ks)]
    row_metrics = [name for name in dict.fromkeys(names) if name in evaluation.per_row]
    return [name for name in row_metrics if not np.isnan(evaluation.per_row[name]).all()]
