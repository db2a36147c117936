"""A comparison: all models and baselines fitted and evaluated on the same rows, with time and memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from wsabie.workflows.compare.comparison import HEADLINE, Comparison, ModelEntry, ModelOmission
from wsabie.workflows.compare.comparison_task import ComparisonTask, SiblingsOf, build_comparison_task
from wsabie.workflows.compare.entrant_fitting import (
    evaluate_model,
    fit_entrant,
    measure_model_bytes,
    measure_prediction_ms,
)
from wsabie.workflows.compare.entrants import Entrant
from wsabie.workflows.compare.result_store import ModelResult, ResultStore, compute_value_digest

KS = (*range(1, 11), 15, 20, 30, 40, 50)
"""List lengths at which precision and recall are measured."""


_MANY_LABELS = 50


class ComparisonInterrupt(KeyboardInterrupt):
    """Ctrl-C in a comparison.

    Parameters
    ----------
    comparison : Comparison
        Of the finished models.
    """

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self.comparison = comparison


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
    ks = select_informative_lengths(KS, n_labels) if ks is None else ks
    if tuned_on == "auto":
        tuned_on = "p@10" if n_labels >= _MANY_LABELS else "MAP"
    bootstrap_options = {"resamples": resamples, "seed": seed}
    if store is not None:
        store = store.with_identity(_identity(task, allow_overlap, tuned_on=tuned_on, ks=ks, **bootstrap_options))
    results: list[ModelEntry | ModelOmission] = []
    try:
        for entrant in models:
            results.append(_find_or_fit(entrant, task, tuned_on, ks, store, progress, bootstrap_options))
            on_result(results[-1])
    except KeyboardInterrupt as stop:
        raise ComparisonInterrupt(_join_results(task, results, tuned_on, **bootstrap_options)) from stop
    return _join_results(task, results, tuned_on, **bootstrap_options)


def _join_results(
    task: ComparisonTask, results: Sequence[ModelEntry | ModelOmission], tuned_on: str, resamples: int, seed: int
) -> Comparison:
    """Build the comparison of the finished models, with differences to the best baseline."""
    entries = [result for result in results if isinstance(result, ModelEntry)]
    skipped = [result for result in results if isinstance(result, ModelOmission)]
    metrics = tuple(name for name in HEADLINE if entries and name in entries[0].intervals)
    comparison = Comparison(task, entries, skipped, metrics, tuned_on, seed, collect_versions())
    return replace(comparison, entries=[_add_differences(entry, comparison, resamples) for entry in entries])


def _identity(task: ComparisonTask, allow_overlap: bool, **settings: Any) -> dict[str, Any]:
    """Return the facts that must agree for results to be comparable."""
    sides = {f"{name} rows": mark for name, mark in task.facts.fingerprint.items()}
    counts = {"min_rows": task.facts.min_rows, "test pairs": task.facts.test_pairs, "allow_overlap": allow_overlap}
    return {
        **sides,
        **counts,
        "siblings": compute_value_digest(task.similar),
        **settings,
        "versions": collect_versions(),
    }


def _find_or_fit(
    entrant: Entrant,
    task: ComparisonTask,
    tuned_on: str,
    ks: Sequence[int],
    store: ResultStore | None,
    progress: Progress,
    bootstrap_options: dict[str, int],
) -> ModelEntry | ModelOmission:
    """Return the result of one model: from the store, or fitted, evaluated and stored."""
    if store is not None:
        options = [entrant.build(**option).get_params() for option in entrant.options]
        parameters = [
            {name: value for name, value in option.items() if not hasattr(value, "get_params")} for option in options
        ]
        store = store.with_identity({**store.identity, "parameters": parameters})
    result = None if store is None else store.find(entrant.name)
    if result is None:
        result = _fit_and_evaluate(entrant, task, tuned_on, ks, progress)
        if store is not None:
            store.add(entrant.name, result)
    if "reason" in result.facts:
        return ModelOmission(entrant.name, entrant.title, result.facts["reason"])
    evaluation = result.evaluations["test"]
    groups = get_groups(task.test, evaluation.rows)
    values = {name: evaluation.per_row[name] for name in _list_measured_metrics(evaluation)}
    return ModelEntry(
        name=entrant.name,
        title=entrant.title,
        baseline=entrant.baseline,
        **{**result.facts, "tried": [(option, value) for option, value in result.facts["tried"]]},
        evaluation=evaluation,
        intervals=bootstrap_all(values, groups=groups, **bootstrap_options),
        model=result.model,
    )


def _fit_and_evaluate(
    entrant: Entrant, task: ComparisonTask, tuned_on: str, ks: Sequence[int], progress: Progress
) -> ModelResult:
    try:
        fitted = fit_entrant(entrant, task, tuned_on, progress)
    except (UnsuitableModelError, DivergenceError) as error:
        return ModelResult({"reason": str(error)})
    model = fitted.model
    evaluation = evaluate_model(model, task.test, ks, f"judging {entrant.title}", progress, similar=task.similar)
    facts = {
        "parameters": {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")},
        "chosen": fitted.option,
        "tried": fitted.option_figures,
        "fit_seconds": fitted.fit_seconds,
        "tuning_seconds": fitted.tuning_seconds,
        "compile_seconds": fitted.compile_seconds,
        "predict_ms": measure_prediction_ms(model, task.test.X),
        "n_bytes": measure_model_bytes(model),
    }
    return ModelResult(facts, {"test": evaluation}, model)


def _list_measured_metrics(evaluation: Evaluation) -> list[str]:
    """Return the headline metrics and every p@k and psib@k with a figure in some row."""
    names = [*HEADLINE, *(f"{kind}@{k}" for kind in ("p", "psib") for k in evaluation.ks)]
    row_metrics = [name for name in dict.fromkeys(names) if name in evaluation.per_row]
    return [name for name in row_metrics if not np.isnan(evaluation.per_row[name]).all()]


def _add_differences(entry: ModelEntry, comparison: Comparison, resamples: int) -> ModelEntry:
    if entry.baseline:
        return entry
    differences = {}
    for metric in comparison.metrics:
        best = comparison.best(metric, baselines=True)
        if best is not None:
            difference = paired_bootstrap(
                entry.evaluation.per_row[metric],
                best.evaluation.per_row[metric],
                groups=get_groups(comparison.task.test, entry.evaluation.rows),
                resamples=resamples,
                seed=comparison.seed,
            )
            differences[metric] = (best.name, difference)
    return replace(entry, against=differences)
