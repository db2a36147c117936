"""Fit one entrant of a comparison: compile, try its options on the validation rows, measure time and memory."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress, Stage
from wsabie.evaluation.evaluate import Evaluation, Measured, Running
from wsabie.models.inputs import row_ranges
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant, Options
from wsabie.studies.task import Task

TIMED_ROWS = 1000
"""Rows that the time of a prediction is taken from."""
MOST_JUDGED = 5000
"""Validation rows that an option is chosen on, at even steps through all of them."""

_FEW = 64


class Fitted(NamedTuple):
    """A fitted model and what it took.

    Attributes
    ----------
    model : object
    chosen : dict
        The option that was the best on the validation rows, or the only one.
    tried : list of (dict, float)
        Every option with its figure there; empty when there was nothing to choose.
    fit_seconds, tuning_seconds, compile_seconds : float
    """

    model: Any
    chosen: Options
    tried: list[tuple[Options, float]]
    fit_seconds: float
    tuning_seconds: float
    compile_seconds: float


def fit(entrant: Entrant, task: Task, tuned_on: str, progress: Progress = SILENT) -> Fitted:
    """The model of the best option.

    Parameters
    ----------
    entrant : Entrant
    task : Task
        Without validation rows the first option is taken.
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
        model, seconds = _timed_fit(entrant, entrant.options[0], task, progress)
        return Fitted(model, entrant.options[0], [], seconds, 0.0, compile_seconds)
    if not entrant.quick:  # it shows a bar for each fit
        return _best(entrant, task, task.valid, tuned_on, progress)._replace(compile_seconds=compile_seconds)
    with progress.stage(f"choosing {entrant.title}", len(entrant.options), "settings") as bar:
        found = _best(entrant, task, task.valid, tuned_on, SILENT)
        bar.advance(len(entrant.options))
    return found._replace(compile_seconds=compile_seconds)


def evaluated(
    model: Any,
    rows: Rows,
    ks: Sequence[int],
    stage: str,
    progress: Progress = SILENT,
    *,
    exclude: Matrix | None = None,
    similar: Any = None,
    hops: Any = None,
    heights: Any = None,
    there: tuple[Executor, Path] | None = None,
) -> Evaluation:
    """Judge a model on rows, block by block, in bounded memory; from `exclude` on as in `evaluate_scores`.

    `there` is an executor whose workers open the model in a folder and judge the blocks.
    """
    running = Running(rows.Y, rows.Y.shape[1], ks, exclude, similar, hops, heights)
    ranges = row_ranges(len(rows), rows.Y.shape[1])
    run, folder = there or (Serial(), None)
    job = _Judging(
        running, model if folder is None else None, folder, model.labels if isinstance(model, Among) else None
    )
    with progress.stage(stage, len(rows), "rows") as bar:
        for block in run.map_with(_Judging.of, job, ((lo, rows.X[lo:hi]) for lo, hi in ranges)):
            running.take(block)
            bar.advance(block.hi - block.lo)
    return running.result()


class Among(NamedTuple):
    """A model that knows some labels alone."""

    model: Any
    labels: Int64

    def scores(self, X: Any) -> Any:
        return self.model.scores(X)[:, self.labels]


@dataclass
class _Judging:
    """How blocks of rows are judged; travels to workers, which open the model themselves."""

    running: Running
    given: Any
    folder: Path | None
    labels: Int64 | None

    @cached_property
    def model(self) -> Any:
        if self.folder is None:
            return self.given
        model = opened_by_worker(self.folder)
        return model if self.labels is None else Among(model, self.labels)

    def of(self, block: tuple[int, Any]) -> Measured:
        lo, X = block
        return self.running.measured(lo, self.model.scores(X))


def opened_by_worker(folder: Path) -> Any:
    """The model in a folder, which works on one thread."""
    from wsabie.models.annotator import Annotator
    from wsabie.models.registry import load

    model = load(folder)
    model = model.model if isinstance(model, Annotator) else model
    model.threads = 1
    return model


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


class _Setting(NamedTuple):
    """Progress that says which of the settings is fitted."""

    progress: Progress
    number: int
    of: int

    def stage(self, name: str, total: int | None, unit: str) -> AbstractContextManager[Stage]:
        return self.progress.stage(f"{name}, setting {self.number} of {self.of}", total, unit)


def _best(entrant: Entrant, task: Task, valid: Rows, tuned_on: str, progress: Progress) -> Fitted:
    """Try all options; only the best model so far is kept in memory."""
    started = time.perf_counter()
    tried: list[tuple[Options, float]] = []
    model, chosen, fit_seconds, highest = None, entrant.options[0], 0.0, -np.inf
    for number, option in enumerate(entrant.options, 1):
        told = _Setting(progress, number, len(entrant.options))
        candidate, seconds = _timed_fit(entrant, option, task, told)
        value = _judged(candidate, valid, tuned_on)
        tried.append((option, value))
        if model is None or value > highest:
            model, chosen, fit_seconds, highest = candidate, option, seconds, value
    return Fitted(model, chosen, tried, fit_seconds, time.perf_counter() - started, 0.0)


def _judged(model: Any, valid: Rows, metric: str) -> float:
    k = metric.partition("@")[2]
    valid = valid.take(np.arange(0, len(valid), -(-len(valid) // MOST_JUDGED)))
    means = evaluated(model, valid, (int(k) if k.isdigit() else 10,), "").means
    if metric not in means:
        raise InputError(f"there is no metric called {metric!r}; choose one of {', '.join(means)}")
    return float(means[metric])


def _timed_fit(entrant: Entrant, option: Options, task: Task, progress: Progress) -> tuple[Any, float]:
    model, train = entrant.build(**option), task.train
    started = time.perf_counter()
    model.fit(train.X, train.Y, label_names=train.label_names, progress=progress, **_validation(entrant, task.valid))
    return model, time.perf_counter() - started


def _compile(entrant: Entrant, task: Task, progress: Progress) -> float:
    """Run everything once on a few rows, so that compilation is over; the seconds that took."""
    if not entrant.compiles:
        return 0.0
    started = time.perf_counter()
    few = task.train.take(_labelled(task.train))
    valid = None if task.valid is None else task.valid.take(_labelled(task.valid))
    with progress.stage("compiling (once)", None, ""):
        model = entrant.build(**{**entrant.options[0], "epochs": 1})
        model.fit(few.X, few.Y, label_names=few.label_names, **_validation(entrant, valid))
        model.rank(few.X[:1])
    return time.perf_counter() - started


def _validation(entrant: Entrant, valid: Rows | None) -> dict[str, Any]:
    return {"validation": (valid.X, valid.Y)} if entrant.validated and valid is not None else {}


def _labelled(rows: Rows) -> list[int]:
    """A few rows with labels."""
    return [int(i) for i in np.flatnonzero((rows.Y > 0).getnnz(axis=1))[:_FEW]]
