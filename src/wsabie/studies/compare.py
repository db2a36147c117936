"""One comparison: every model and baseline fitted on the same rows, judged on the same rows, with time and memory."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import DivergenceError, InputError
from wsabie.base.machine import versions
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation, evaluate_scores
from wsabie.models.one_vs_rest import TooLargeError
from wsabie.models.scored import row_ranges
from wsabie.sources.records import Rows
from wsabie.studies.comparison import HEADLINE, Comparison, Entry, Skipped
from wsabie.studies.entrants import Entrant, Options
from wsabie.studies.task import Task, make_task

KS = (*range(1, 11), 15, 20, 30, 40, 50)
"""Lengths of the list at which precision and recall are measured."""

TIMED_ROWS = 1000
"""Rows that the time of a prediction is taken from."""

_BLOCK_BYTES = 32 << 20


def compare(
    train: Rows,
    valid: Rows | None,
    test: Rows,
    models: Sequence[Entrant],
    *,
    min_rows: int = 1,
    tuned_on: str = "p@10",
    ks: Sequence[int] = KS,
    resamples: int = 1000,
    seed: int = 0,
    allow_overlap: bool = False,
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
        Metric that chooses among a model's options on the validation rows.
    ks : sequence of int
    resamples, seed : int
        Of the bootstrap; whole groups are drawn where the test rows have groups.
    allow_overlap : bool
        Accept test rows that are training rows too.
    progress : Progress

    Returns
    -------
    Comparison
        A model that is too large or diverges is listed as skipped, with the reason.

    Raises
    ------
    InputError
        The sides do not fit together, share rows, or nothing can be judged.

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
    task = make_task(train, valid, test, min_rows=min_rows, allow_overlap=allow_overlap)
    entries: list[Entry] = []
    skipped: list[Skipped] = []
    metrics = tuple(name for name in HEADLINE if "@" not in name or int(name.split("@")[1]) in ks)
    for entrant in models:
        try:
            fitted = _fit(entrant, task, tuned_on, progress)
        except (TooLargeError, DivergenceError) as error:
            skipped.append(Skipped(entrant.name, entrant.title, str(error)))
            continue
        evaluation = _evaluated(fitted.model, task.test, ks, f"judging {entrant.title}", progress)
        intervals = bootstrap_all(
            {name: evaluation.per_row[name] for name in _with_precisions(evaluation, metrics)},
            groups=_groups(task.test, evaluation),
            resamples=resamples,
            seed=seed,
        )
        entries.append(_entry(entrant, fitted, task, evaluation, intervals))
    found = Comparison(task, entries, skipped, metrics, tuned_on, seed, versions())
    return replace(found, entries=[_with_differences(entry, found, resamples) for entry in entries])


class _Fitted(NamedTuple):
    model: Any
    chosen: Options
    tried: list[tuple[Options, float]]
    fit_seconds: float
    tuning_seconds: float
    compile_seconds: float


def _fit(entrant: Entrant, task: Task, tuned_on: str, progress: Progress) -> _Fitted:
    """The model of the best option."""
    compile_seconds = _compiled(entrant, task, progress)
    options = entrant.options if task.valid is not None else entrant.options[:1]
    if len(options) == 1:
        model, seconds = _timed_fit(entrant, options[0], task, progress)
        return _Fitted(model, options[0], [], seconds, 0.0, compile_seconds)
    started = time.perf_counter()
    best: tuple[float, float, Any, Options] | None = None
    tried = []
    for option in options:
        model, seconds = _timed_fit(entrant, option, task, progress)
        value = _validation(model, task.valid, tuned_on, f"choosing {entrant.title}", progress)
        tried.append((option, value))
        if best is None or value > best[0]:
            best = (value, seconds, model, option)
    if best is None:
        raise InputError(f"{entrant.title} has no options; give at least one")
    return _Fitted(best[2], best[3], tried, best[1], time.perf_counter() - started, compile_seconds)


def _compiled(entrant: Entrant, task: Task, progress: Progress) -> float:
    """Run the kernels once on a few rows; the seconds that took."""
    if not entrant.compiles:
        return 0.0
    started = time.perf_counter()
    few = task.train.take(_first_labelled(task.train))
    with progress.stage("compiling (once)", None, ""):
        model = entrant.build(**{**entrant.options[0], "epochs": 1})
        model.fit(few.X, few.Y, label_names=few.label_names)
        model.rank(few.X[:1])
    return time.perf_counter() - started


def _first_labelled(rows: Rows, n: int = 64) -> list[int]:
    """A few rows of which at least one has a label."""
    return [int(i) for i in np.flatnonzero((rows.Y > 0).getnnz(axis=1))[:n]]


def _timed_fit(entrant: Entrant, option: Options, task: Task, progress: Progress) -> tuple[Any, float]:
    model = entrant.build(**option)
    train = task.train
    more: dict[str, Any] = {}
    if entrant.validated and task.valid is not None:
        more["validation"] = (task.valid.X, task.valid.Y)
    started = time.perf_counter()
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress, **more)
    return model, time.perf_counter() - started


def _validation(model: Any, valid: Rows | None, metric: str, stage: str, progress: Progress) -> float:
    if valid is None:
        raise InputError("parameters are chosen on validation rows, and there are none")
    k = int(metric.split("@")[1]) if "@" in metric else 10
    means: dict[str, float] = _evaluated(model, valid, (k,), stage, progress).means
    if metric not in means:
        raise InputError(f"there is no metric called {metric!r}; choose one of {', '.join(means)}")
    return float(means[metric])


def _evaluated(model: Any, rows: Rows, ks: Sequence[int], stage: str, progress: Progress) -> Evaluation:
    with progress.stage(stage, len(rows), "rows") as bar:

        def blocks() -> Iterator[tuple[int, Float32]]:
            for lo, hi in row_ranges(len(rows), rows.Y.shape[1], _BLOCK_BYTES):
                yield lo, model.scores(rows.X[lo:hi])
                bar.advance(hi - lo)

        return evaluate_scores(blocks(), rows.Y, ks=ks)


def _entry(entrant: Entrant, fitted: _Fitted, task: Task, evaluation: Evaluation, intervals: dict[str, Any]) -> Entry:
    model = fitted.model
    return Entry(
        name=entrant.name,
        title=entrant.title,
        baseline=entrant.baseline,
        parameters=model.get_params(),
        chosen=fitted.chosen,
        tried=fitted.tried,
        fit_seconds=fitted.fit_seconds,
        tuning_seconds=fitted.tuning_seconds,
        compile_seconds=fitted.compile_seconds,
        predict_ms=predict_ms(model, task.test.X),
        n_bytes=model_bytes(model),
        evaluation=evaluation,
        intervals=intervals,
        model=model,
    )


def model_bytes(model: Any) -> int:
    """Bytes of every array that a prediction needs: `n_bytes` where a model says it, else its saved tensors."""
    if hasattr(model, "n_bytes"):
        return int(model.n_bytes)
    return int(sum(np.asarray(array).nbytes for array in model.to_parts().tensors.values()))


def predict_ms(model: Any, X: Any, k: int = 10, repeats: int = 3) -> float:
    """Milliseconds per row for the k best labels: the median of some runs over up to `TIMED_ROWS` rows."""
    some = X[:TIMED_ROWS]
    model.rank(some[:1], k)
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        model.rank(some, k)
        seconds.append(time.perf_counter() - started)
    return float(1e3 * np.median(seconds) / some.shape[0])


def _with_precisions(evaluation: Evaluation, metrics: Sequence[str]) -> list[str]:
    """The headline metrics, and every p@k for the bands of its curve."""
    return [*metrics, *(f"p@{k}" for k in evaluation.ks if f"p@{k}" not in metrics)]


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
                groups=_groups(found.task.test, entry.evaluation),
                resamples=resamples,
                seed=found.seed,
            )
            against[metric] = (best.name, difference)
    return replace(entry, against=against)


def _groups(rows: Rows, evaluation: Evaluation) -> list[str] | None:
    """The groups of the rows that count; a row without one is its own."""
    if rows.groups is None:
        return None
    return [rows.groups[i] or f"row {rows.ids[i]}" for i in evaluation.rows]
