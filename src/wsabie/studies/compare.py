"""One comparison: every model and baseline fitted on the same rows, judged on the same rows, with time and memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wsabie.base.errors import DivergenceError, UnsuitableError
from wsabie.base.machine import versions
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation
from wsabie.evaluation.metrics import telling
from wsabie.labels.hierarchy import Hierarchy
from wsabie.sources.records import Rows, groups_of
from wsabie.studies.comparison import HEADLINE, Comparison, Entry, Skipped
from wsabie.studies.entrants import Entrant
from wsabie.studies.fitting import evaluated, fit, model_bytes, predict_ms
from wsabie.studies.result_store import Result, ResultStore, digest
from wsabie.studies.task import SiblingsOf, Task, make_task

KS = (*range(1, 11), 15, 20, 30, 40, 50)
"""Lengths of the list at which precision and recall are measured."""


_MANY_LABELS = 50


class StoppedComparison(KeyboardInterrupt):
    """Ctrl-C in a comparison.

    Parameters
    ----------
    comparison : Comparison
        Of the models that are finished.
    """

    def __init__(self, comparison: Comparison) -> None:
        super().__init__()
        self.comparison = comparison


def compare(
    train: Rows,
    valid: Rows | None,
    test: Rows,
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
    on_result: Callable[[Entry | Skipped], object] = lambda _: None,
    progress: Progress = SILENT,
) -> Comparison:
    """Fit, tune and judge every model on one split.

    Parameters
    ----------
    train : Rows
    valid : Rows or None
        Chooses parameters and epochs; without it the first option of each model is taken.
    test : Rows
        Read once, after everything is chosen.
    models : sequence of Entrant
        See `wsabie.studies.entrants.entrants`.
    min_rows : int
        Labels with fewer training rows are left out, and counted.
    tuned_on : str
        Metric that chooses among a model's options on the validation rows; "auto" is p@10, or MAP where 10 labels are
        nearly all there are.
    ks : sequence of int, optional
        Lengths of the list to measure at; by itself those of `KS` that are shorter than the list of all labels.
    resamples, seed : int
        Of the bootstrap; whole groups are drawn where the test rows have groups.
    allow_overlap : bool
        Accept test rows that are training rows too.
    unknown_pairs : int
        Pairs of the test data whose label the training data lack, where aligning has dropped them: they count
        against coverage.
    similar : Hierarchy or callable, or None
        Which labels are alike, for the sibling precision: label names -> S between them (`Similar`). It is asked with
        the labels that `min_rows` leaves.
    store : ResultStore or None
        Keeps the result of every model as soon as it is finished, and has those of a run that was stopped.
    on_result : callable
        Is told every result when it is finished.
    progress : Progress

    Returns
    -------
    Comparison
        A model that is too large or diverges is listed as skipped, with the reason.

    Raises
    ------
    InputError
        The sides do not fit together, share rows, or nothing can be judged; or the store is of other data, settings
        or versions.
    StoppedComparison
        Ctrl-C; it has the models that were finished.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from wsabie.studies.entrants import entrants
    >>> X, Y = np.repeat(np.eye(2), 5, axis=0), csr_matrix(np.repeat(np.eye(2, dtype=int), 5, axis=0))
    >>> train = Rows(X, Y, ["ship", "horse"], [f"a{i}" for i in range(10)])
    >>> test = Rows(X, Y, ["ship", "horse"], [f"b{i}" for i in range(10)])
    >>> found = compare(train, None, test, entrants(["popularity", "nearest"]), resamples=10)
    >>> [round(entry.evaluation.means["p@1"], 2) for entry in found.entries]
    [0.5, 1.0]
    """
    task = make_task(
        train,
        valid,
        test,
        min_rows=min_rows,
        allow_overlap=allow_overlap,
        unknown_pairs=unknown_pairs,
        similar=similar,
    )
    n_labels = len(task.train.label_names)
    ks = telling(KS, n_labels) if ks is None else ks
    if tuned_on == "auto":
        tuned_on = "p@10" if n_labels >= _MANY_LABELS else "MAP"
    drawn = {"resamples": resamples, "seed": seed}
    if store is not None:
        store = store.with_identity(_identity(task, allow_overlap, tuned_on=tuned_on, ks=ks, **drawn))
    results: list[Entry | Skipped] = []
    try:
        for entrant in models:
            results.append(_result(entrant, task, tuned_on, ks, store, progress, drawn))
            on_result(results[-1])
    except KeyboardInterrupt as stop:
        raise StoppedComparison(_joined(task, results, tuned_on, **drawn)) from stop
    return _joined(task, results, tuned_on, **drawn)


def _joined(task: Task, results: Sequence[Entry | Skipped], tuned_on: str, resamples: int, seed: int) -> Comparison:
    """The comparison of what is finished, with differences to the best baseline."""
    entries = [one for one in results if isinstance(one, Entry)]
    skipped = [one for one in results if isinstance(one, Skipped)]
    metrics = tuple(name for name in HEADLINE if entries and name in entries[0].intervals)
    found = Comparison(task, entries, skipped, metrics, tuned_on, seed, versions())
    return replace(found, entries=[_with_differences(entry, found, resamples) for entry in entries])


def _identity(task: Task, allow_overlap: bool, **settings: Any) -> dict[str, Any]:
    """Return the facts that must agree for results to be comparable."""
    sides = {f"{name} rows": mark for name, mark in task.facts.fingerprint.items()}
    counts = {"min_rows": task.facts.min_rows, "test pairs": task.facts.test_pairs, "allow_overlap": allow_overlap}
    return {**sides, **counts, "siblings": digest(task.similar), **settings, "versions": versions()}


def _result(
    entrant: Entrant,
    task: Task,
    tuned_on: str,
    ks: Sequence[int],
    store: ResultStore | None,
    progress: Progress,
    drawn: dict[str, int],
) -> Entry | Skipped:
    """The result of one model: from the store where it is finished, else fitted, judged and kept."""
    if store is not None:
        options = [entrant.build(**option).get_params() for option in entrant.options]
        given = [{name: value for name, value in one.items() if not hasattr(value, "get_params")} for one in options]
        store = store.with_identity({**store.identity, "parameters": given})
    result = None if store is None else store.find(entrant.name)
    if result is None:
        result = _fitted_result(entrant, task, tuned_on, ks, progress)
        if store is not None:
            store.add(entrant.name, result)
    if "reason" in result.facts:
        return Skipped(entrant.name, entrant.title, result.facts["reason"])
    evaluation = result.evaluations["test"]
    groups = groups_of(task.test, evaluation.rows)
    measured = {name: evaluation.per_row[name] for name in _measured(evaluation)}
    return Entry(
        name=entrant.name,
        title=entrant.title,
        baseline=entrant.baseline,
        **{**result.facts, "tried": [(option, value) for option, value in result.facts["tried"]]},
        evaluation=evaluation,
        intervals=bootstrap_all(measured, groups=groups, **drawn),
        model=result.model,
    )


def _fitted_result(entrant: Entrant, task: Task, tuned_on: str, ks: Sequence[int], progress: Progress) -> Result:
    try:
        fitted = fit(entrant, task, tuned_on, progress)
    except (UnsuitableError, DivergenceError) as error:
        return Result({"reason": str(error)})
    model = fitted.model
    evaluation = evaluated(model, task.test, ks, f"judging {entrant.title}", progress, similar=task.similar)
    facts = {
        "parameters": {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")},
        "chosen": fitted.chosen,
        "tried": fitted.tried,
        "fit_seconds": fitted.fit_seconds,
        "tuning_seconds": fitted.tuning_seconds,
        "compile_seconds": fitted.compile_seconds,
        "predict_ms": predict_ms(model, task.test.X),
        "n_bytes": model_bytes(model),
    }
    return Result(facts, {"test": evaluation}, model)


def _measured(evaluation: Evaluation) -> list[str]:
    """The headline metrics and every p@k and psib@k, as far as some row has a figure (AUC needs a wrong label)."""
    names = [*HEADLINE, *(f"{kind}@{k}" for kind in ("p", "psib") for k in evaluation.ks)]
    known = [name for name in dict.fromkeys(names) if name in evaluation.per_row]
    return [name for name in known if not np.isnan(evaluation.per_row[name]).all()]


def _with_differences(entry: Entry, found: Comparison, resamples: int) -> Entry:
    if entry.baseline:
        return entry
    against = {}
    for metric in found.metrics:
        best = found.best(metric, baselines=True)
        if best is not None:
            difference = paired_bootstrap(
                entry.evaluation.per_row[metric],
                best.evaluation.per_row[metric],
                groups=groups_of(found.task.test, entry.evaluation.rows),
                resamples=resamples,
                seed=found.seed,
            )
            against[metric] = (best.name, difference)
    return replace(entry, against=against)
