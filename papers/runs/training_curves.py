"""Training curves: the validation figure by the seconds of training (Weston et al. 2010, Figure 2)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from papers.record import Cell, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.model_tables import build_task, format_label_density, list_available_entrants
from wsabie.core.execution import Progress, Stage
from wsabie.io.records import FeatureTable
from wsabie.training.epoch_stats import EpochStats
from wsabie.workflows.compare.comparison_task import ComparisonTask
from wsabie.workflows.compare.entrants import Entrant, Options

LIMIT = 3.0
"""Limit of the other entrants' training, as a multiple of the first entrant's time."""


class _OutOfTimeError(Exception):
    """Raised to end a fit at its time limit."""


class _TimedProgress:
    """Progress that ends training at its time limit."""

    def __init__(self, progress: Progress, seconds: float) -> None:
        self._progress, self._seconds, self._until, self.pairs = progress, seconds, np.inf, 0

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator["_TimedProgress"]:
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
        """p@10 of the best epoch, or MAP with few labels."""
        figures = [stats.validation_metrics for stats in self.epochs]
        return max((metrics.get("p@10", metrics.get("MAP", 0.0)) for metrics in figures), default=0.0)


def run_training_curves(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Record the validation figure by training time, epoch by epoch, and the draws of an update.

    Every model trains on one thread, since OWPC-SGD allows no more; the best of its learning rates is shown.
    """
    entrants, missing = list_available_entrants(record, replace(setting, threads=1))
    task = build_task(setting.required_data)
    rows: list[FindingRow] = []
    notes = [format_label_density(task.facts.train_rows, task.facts.labels)]
    limit = np.inf
    for entrant in entrants:
        runs = (_train_with_option(entrant, option, task, limit, setting) for option in entrant.options)
        run = max(runs, key=lambda run: run.best)
        if "rate" in run.option:
            notes.append(f"{entrant.name}: {run.option['rate']:.3g} times its learning rate was the best.")
        notes += run.notes
        if not np.isfinite(limit):
            limit = LIMIT * sum(stats.seconds + stats.validation_seconds for stats in run.epochs)
        rows += _make_points(entrant, run.epochs, run.scale)
    return RunFindings(rows, missing, notes=notes)


def _train_with_option(
    entrant: Entrant, option: Options, task: ComparisonTask, limit: float, setting: RunSettings
) -> _Run:
    """Train until the time limit, or once over as many rows if the limit is within the first epoch."""
    epochs, share = _train(entrant, option, task, task.train, limit, setting)
    if share is None:
        return _Run(option, epochs, 1.0, [])
    notes = [f"{entrant.name} was stopped after {limit:.1f} s, in epoch {len(epochs) + 1}."]
    if epochs:
        return _Run(option, epochs, 1.0, notes)
    rows = np.random.default_rng(setting.seed).permutation(len(task.train))[: max(1, round(share * len(task.train)))]
    train = task.train.take(np.sort(rows))
    epochs, _ = _train(entrant, {**option, "epochs": 1}, task, train, np.inf, setting)
    notes.append(f"Its point is one pass over {share:.1%} of the rows, as many as it had seen by then.")
    return _Run(option, epochs, share, notes)


def _train(
    entrant: Entrant, option: Options, task: ComparisonTask, train: FeatureTable, limit: float, setting: RunSettings
) -> tuple[list[EpochStats], float | None]:
    """Return the finished epochs, and the share of the next one if time ran out."""
    finished_epochs: list[EpochStats] = []
    timed_progress = _TimedProgress(setting.progress, limit)
    validation: dict[str, Any] = {} if task.valid is None else {"validation": (task.valid.X, task.valid.Y)}
    model = entrant.build(**option)
    try:
        model.fit(
            train.X,
            train.Y,
            label_names=train.label_names,
            progress=timed_progress,
            on_epoch=finished_epochs.append,
            **validation,
        )
    except _OutOfTimeError:
        return finished_epochs, timed_progress.pairs / task.facts.train_pairs - len(finished_epochs)
    return finished_epochs, None


def _make_points(entrant: Entrant, epochs: list[EpochStats], scale: float) -> Iterator[FindingRow]:
    spent = 0.0
    for stats in epochs:
        spent += stats.seconds
        epoch = (stats.epoch + 1) * scale
        figures: dict[str, Cell] = {"epoch": epoch, "seconds": spent, **stats.validation_metrics}
        yield FindingRow(f"{entrant.name}, epoch {epoch:.3g}", entrant.title, figures)
