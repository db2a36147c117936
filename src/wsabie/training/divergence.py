"""Limits beyond which training ends with an error."""

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import DivergenceError
from wsabie.embedding.protocols import TrainableTables
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.settings import TrainingSettings

LARGEST_COORDINATE = 1e6


def check_divergence(space: TrainableTables, stats: EpochStats, settings: TrainingSettings) -> None:
    """Raise DivergenceError where the loss or a coordinate is not finite, or beyond `LARGEST_COORDINATE`."""
    coordinates = [table for name, table in space.arrays().items() if name != "norm2"]
    peak = float(np.max([*map(_find_peak, coordinates), abs(stats.loss)]))
    if not np.isfinite(peak) or peak > LARGEST_COORDINATE:
        limit = "set max_norm (1 to 3) or " if settings.max_norm is None else ""
        raise DivergenceError(
            f"training diverged in epoch {stats.epoch + 1} (loss {stats.loss:.3g}, largest coordinate {peak:.3g}); "
            f"{limit}lower the learning rate (now {settings.learning_rate:g}), and look at the scale of the features"
        )


def _find_peak(table: Float32) -> float:
    """Return the largest absolute value; NaN if a value is not finite."""
    return float(max(table.max(initial=0), -table.min(initial=0))) if np.isfinite(table).all() else float("nan")
