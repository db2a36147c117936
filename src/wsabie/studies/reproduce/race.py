"""Training against the clock: the validation figure by the seconds that went into it ([W] Figure 2)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from wsabie.base.progress import Progress, Stage
from wsabie.sources.records import Rows
from wsabie.studies.entrants import Entrant
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


def training_curves(record: Record, setting: Setting) -> Findings:
    """The validation figure against the time spent in training, epoch by epoch, and the draws of an update."""
    taking_part, missing = available(record, setting)
    task = task_of(setting.given)
    rows: list[Found] = []
    notes = [density(task.facts.train_rows, task.facts.labels)]
    limit = np.inf
    for entrant in taking_part:
        epochs, share = _trained(entrant, task, task.train, limit, setting)
        if share is not None:
            notes.append(f"{entrant.name} was stopped after {limit:.1f} s, in epoch {len(epochs) + 1}.")
        if share is not None and not epochs:
            epochs, scale = _part_of_an_epoch(entrant, task, share, setting), share
            notes.append(f"Its point is one pass over {share:.1%} of the rows, as many as it had seen by then.")
        else:
            scale = 1.0
        if not np.isfinite(limit):
            limit = LIMIT * sum(stats.seconds + stats.validation_seconds for stats in epochs)
        rows += _points(entrant, epochs, scale)
    return Findings(rows, missing, notes=notes)


def _trained(
    entrant: Entrant, task: Task, train: Rows, limit: float, setting: Setting
) -> tuple[list[EpochStats], float | None]:
    """The epochs that were done, and how much of the next one where time ran out in its midst."""
    done: list[EpochStats] = []
    watched = _Watched(setting.progress, limit)
    given: dict[str, Any] = {} if task.valid is None else {"validation": (task.valid.X, task.valid.Y)}
    model = entrant.build(**entrant.options[0])
    try:
        model.fit(train.X, train.Y, label_names=train.label_names, progress=watched, on_epoch=done.append, **given)
    except _OutOfTimeError:
        return done, watched.pairs / task.facts.train_pairs - len(done)
    return done, None


def _part_of_an_epoch(entrant: Entrant, task: Task, share: float, setting: Setting) -> list[EpochStats]:
    """One pass over a share of the training rows, taken at random."""
    rows = np.random.default_rng(setting.seed).permutation(len(task.train))[: max(1, round(share * len(task.train)))]
    short = Entrant(entrant.name, entrant.title, entrant.build, ({**entrant.options[0], "epochs": 1},))
    return _trained(short, task, task.train.take(np.sort(rows)), np.inf, setting)[0]


def _points(entrant: Entrant, epochs: list[EpochStats], scale: float) -> Iterator[Found]:
    spent = 0.0
    for stats in epochs:
        spent += stats.seconds
        epoch = (stats.epoch + 1) * scale
        figures: dict[str, Cell] = {"epoch": epoch, "seconds": spent, **stats.validation_metrics}
        figures["draws per update"] = stats.mean_draws / max(stats.violation_rate, 1e-12)
        yield Found(f"{entrant.name}, epoch {epoch:.3g}", entrant.title, figures)
