"""Training loop over epochs: validation, best model, divergence, checkpoints."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import DivergenceError
from wsabie.core.execution import SILENT, Progress, Stage
from wsabie.embedding.protocols import TrainableTables
from wsabie.training.checkpoints import CheckpointFolder, TrainingProgress
from wsabie.training.epoch_runner import EpochMonitor, EpochRunner
from wsabie.training.epoch_stats import EpochStats, summarise_epoch
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.settings import TrainingSettings
from wsabie.training.training_data import TrainingData

MAX_COORDINATE = 1e6
"""Absolute value of a coordinate above which training counts as diverged."""
OnEpoch = Callable[[EpochStats], None]
MakeRunner = Callable[[TrainingSettings, TrainableTables, TrainingData], EpochRunner]


@dataclass
class Trainer:
    """Trainer of a space, in place.

    Parameters
    ----------
    settings : TrainingSettings
    monitor : EpochMonitor or None
        Its first figure selects the best epoch, and training stops when that figure no longer rises.
    on_epoch : callable or None
        Called with the figures of every epoch.
    checkpoints : CheckpointFolder or None
        Folder to save to after epochs, and to resume from.
    progress : Progress
    make_runner : callable
        Returns the runner of the epochs from the settings, the space and the data.
    """

    settings: TrainingSettings
    _: KW_ONLY
    monitor: EpochMonitor | None = None
    on_epoch: OnEpoch | None = None
    checkpoints: CheckpointFolder | None = None
    progress: Progress = SILENT
    make_runner: MakeRunner = EpochRunner

    def train(self, space: TrainableTables, data: TrainingData) -> list[EpochStats]:
        """Run all epochs; afterwards `space` has the tables of the best one (of the last without a monitor).

        Raises
        ------
        DivergenceError
            The loss or the tables are no longer finite.
        """
        n_epochs = self.settings.epochs
        with closing(self.make_runner(self.settings, space, data)) as runner:
            checkpoint = None if self.checkpoints is None else self.checkpoints.restore(space)
            state = checkpoint or TrainingProgress(0, [], None, None)
            if state.epoch < n_epochs:
                runner.prepare(self.progress, self.monitor)
            remaining_pairs = data.n_pairs * (n_epochs - state.epoch)
            with (
                KernelThreads(self.settings.threads) as threads,
                self.progress.stage("training", remaining_pairs, "pairs") as stage,
            ):
                while state.epoch < n_epochs and not self._is_exhausted(state.history):
                    stats = self._run_epoch(runner, state.epoch, threads, stage)
                    state = self._record_epoch(space, state, stats)
                    if self.on_epoch is not None:
                        self.on_epoch(stats)
                    if self.checkpoints is not None:
                        self.checkpoints.save(space, state)
        if state.best is not None:
            space.assign(state.best)
        return state.history

    def _run_epoch(self, runner: EpochRunner, epoch: int, threads: KernelThreads, stage: Stage) -> EpochStats:
        settings, space, started = self.settings, runner.space, time.perf_counter()
        epoch_pass = runner.run_epoch(epoch, threads, stage)
        space.finish_epoch(settings.max_norm, settings.max_norm_weights)
        seconds = time.perf_counter() - started
        traffic = space.traffic(epoch_pass.rows_read / max(runner.data.n_pairs, 1))
        stats = summarise_epoch(epoch_pass, epoch, settings.get_rate(epoch), seconds, traffic)
        check_divergence(space, stats, self.settings)
        stats = self._validate(space, stats)
        name, value = next(iter(stats.validation_metrics.items()), ("loss", stats.loss))
        stage.advance(0, **{name: value})
        return stats

    def _record_epoch(self, space: TrainableTables, state: TrainingProgress, stats: EpochStats) -> TrainingProgress:
        """Add an epoch to the state, and keep a copy of the space if it is the best so far."""
        state = replace(state, epoch=state.epoch + 1, history=[*state.history, stats])
        figure = stats.validation
        if figure is None or (state.best_figure is not None and figure <= state.best_figure):
            return state
        if state.best is None:
            return replace(state, best_figure=figure, best=space.copy())
        state.best.assign(space)
        return replace(state, best_figure=figure)

    def _is_exhausted(self, history: list[EpochStats]) -> bool:
        """Return whether half of the schedule is over and the figure has not risen for `patience` epochs.

        While the rate is high the figure of few rows fluctuates; most of the rise comes as the rate falls.
        """
        figures = [s.validation for s in history if s.validation is not None]
        patience = self.settings.patience
        if patience is None or len(figures) <= max(patience, self.settings.epochs // 2):
            return False
        return int(np.argmax(figures)) < len(figures) - patience

    def _validate(self, space: TrainableTables, stats: EpochStats) -> EpochStats:
        if self.monitor is None:
            return stats
        started = time.perf_counter()
        figures = dict(self.monitor.figures(space))
        seconds, figure = time.perf_counter() - started, next(iter(figures.values()))
        return replace(stats, validation=figure, validation_metrics=figures, validation_seconds=seconds)


def check_divergence(space: TrainableTables, stats: EpochStats, settings: TrainingSettings) -> None:
    """Raise DivergenceError where the loss or a coordinate is not finite, or beyond `MAX_COORDINATE`."""
    coordinates = [table for name, table in space.list_arrays().items() if name != "norm2"]
    peak = float(np.max([*map(_find_peak, coordinates), abs(stats.loss)]))
    if not np.isfinite(peak) or peak > MAX_COORDINATE:
        limit = "set max_norm (1 to 3) or " if settings.max_norm is None else ""
        raise DivergenceError(
            f"training diverged in epoch {stats.epoch + 1} (loss {stats.loss:.3g}, largest coordinate {peak:.3g}); "
            f"{limit}lower the learning rate (now {settings.learning_rate:g}), and look at the scale of the features"
        )


def _find_peak(table: Float32) -> float:
    """Return the largest absolute value; NaN if a value is not finite."""
    return float(max(table.max(initial=0), -table.min(initial=0))) if np.isfinite(table).all() else float("nan")
