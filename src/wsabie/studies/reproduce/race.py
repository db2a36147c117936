"""Training against the clock: the validation figure by the seconds that went into it ([W] Figure 2)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.progress import Progress, Stage
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant, Options
from wsabie.studies.reproduce.models import available, density, task_of
from wsabie.studies.reproduce.record import Cell, Findings, Found, Record, Setting
from wsabie.studies.task import Task
from wsabie.training.stats import EpochStats

LIMIT = 3.0
"""Training of the others is stopped after this multiple of the first entrant's time."""


class _OutOfTimeError(Exception):
    """Ends a fit from within."""


class _Watched:
    """A progress whose training stage is not told of pairs for longer than the limit."""

    def __init__(self, progress: Progress, seconds: float) -> None:
        self._progress, self._seconds, self._until, self.pairs = progress, seconds, np.inf, 0

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator["_Watched"]:
        with self._progress.stage(name, total, unit) as self._stage:
            self._until = time.perf_counter() + self._seconds if name == "training" else np.inf
            yield self

    _stage: Stage

    def advance(self, n: int = 1, **figures: float) -> None:
        self._stage.advance(n, **figures)
        self.pairs += n
        if n and time.perf_counter() > self._until:
            raise _OutOfTimeError


class _Run(NamedTuple):
    """A model's training with one option."""

    option: Options
    epochs: list[EpochStats]
    scale: float
    notes: list[str]

    @property
    def best(self) -> float:
        """p@10 of the best epoch, or MAP where there are too few labels."""
        figures = [stats.validation_metrics for stats in self.epochs]
        return max((found.get("p@10", found.get("MAP", 0.0)) for found in figures), default=0.0)


def training_curves(record: Record, setting: Setting) -> Findings:
    """The validation figure against the time spent in training, epoch by epoch, and the draws of an update.

    Every model trains on one thread, as OWPC-SGD can on no more; of its learning rates the best is shown.
    """
    taking_part, missing = available(record, replace(setting, threads=1))
    task = task_of(setting.given)
    rows: list[Found] = []
    notes = [density(task.facts.train_rows, task.facts.labels)]
    limit = np.inf
    for entrant in taking_part:
        runs = (_run(entrant, option, task, limit, setting) for option in entrant.options)
        run = max(runs, key=lambda run: run.best)
        if "rate" in run.option:
            notes.append(f"{entrant.name}: {run.option['rate']:.3g} times its learning rate was the best.")
        notes += run.notes
        if not np.isfinite(limit):
            limit = LIMIT * sum(stats.seconds + stats.validation_seconds for stats in run.epochs)
        rows += _points(entrant, run.epochs, run.scale)
    return Findings(rows, missing, notes=notes)


def _run(entrant: Entrant, option: Options, task: Task, limit: float, setting: Setting) -> _Run:
    """The epochs until time runs out, or a pass over as many rows as were seen where that is in the first one."""
    epochs, share = _trained(entrant, option, task, task.train, limit, setting)
    if share is None:
        return _Run(option, epochs, 1.0, [])
    notes = [f"{entrant.name} was stopped after {limit:.1f} s, in epoch {len(epochs) + 1}."]
    if epochs:
        return _Run(option, epochs, 1.0, notes)
    rows = np.random.default_rng(setting.seed).permutation(len(task.train))[: max(1, round(share * len(task.train)))]
    train = task.train.take(np.sort(rows))
    epochs, _ = _trained(entrant, {**option, "epochs": 1}, task, train, np.inf, setting)
    notes.append(f"Its point is one pass over {share:.1%} of the rows, as many as it had seen by then.")
    return _Run(option, epochs, share, notes)


def _trained(
    entrant: Entrant, option: Options, task: Task, train: Rows, limit: float, setting: Setting
) -> tuple[list[EpochStats], float | None]:
    """The epochs that were done, and how much of the next one where time ran out in its midst."""
    done: list[EpochStats] = []
    watched = _Watched(setting.progress, limit)
    given: dict[str, Any] = {} if task.valid is None else {"validation": (task.valid.X, task.valid.Y)}
    model = entrant.build(**option)
    try:
        model.fit(train.X, train.Y, label_names=train.label_names, progress=watched, on_epoch=done.append, **given)
    except _OutOfTimeError:
        return done, watched.pairs / task.facts.train_pairs - len(done)
    return done, None


def _points(entrant: Entrant, epochs: list[EpochStats], scale: float) -> Iterator[Found]:
    spent = 0.0
    for stats in epochs:
        spent += stats.seconds
        epoch = (stats.epoch + 1) * scale
        figures: dict[str, Cell] = {"epoch": epoch, "seconds": spent, **stats.validation_metrics}
        figures["draws per update"] = stats.mean_draws / max(stats.violation_rate, 1e-12)
        yield Found(f"{entrant.name}, epoch {epoch:.3g}", entrant.title, figures)
