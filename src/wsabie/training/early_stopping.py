"""Early stopping of training by the validation figure, and the best epoch so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabie.embedding.protocols import TrainableTables
from wsabie.training.checkpoints import TrainingProgress
from wsabie.training.epoch_stats import EpochStats


@dataclass(frozen=True)
class EarlyStopping:
    """Rule that ends training once the validation figure no longer rises.

    Attributes
    ----------
    patience : int or None
        Epochs without a better figure; None: train all epochs.
    epochs : int
        Length of the schedule.
    """

    patience: int | None
    epochs: int

    def is_exhausted(self, history: Sequence[EpochStats]) -> bool:
        """Return whether half of the schedule is over and the figure has not risen for `patience` epochs.

        While the rate is high the figure of few rows fluctuates; most of the rise comes as the rate falls.
        """
        figures = [s.validation for s in history if s.validation is not None]
        if self.patience is None or len(figures) <= max(self.patience, self.epochs // 2):
            return False
        return int(np.argmax(figures)) < len(figures) - self.patience


def record_epoch(space: TrainableTables, state: TrainingProgress, stats: EpochStats) -> TrainingProgress:
    """Add an epoch to the state, and keep a copy of the space if it is the best so far."""
    state = replace(state, epoch=state.epoch + 1, history=[*state.history, stats])
    figure = stats.validation
    if figure is None or (state.best_figure is not None and figure <= state.best_figure):
        return state
    if state.best is None:
        return replace(state, best_figure=figure, best=space.copy())
    state.best.assign(space)
    return replace(state, best_figure=figure)
