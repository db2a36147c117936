"""Everything that decides a training run, besides the data."""

from dataclasses import dataclass
from typing import Literal

from wsabie.training.losses import LossName, RankWeight

Schedule = Literal["linear", "constant"]


@dataclass(frozen=True)
class Settings:
    """Resolved hyperparameters (no "auto" left).

    Attributes
    ----------
    learning_rate : float
        Step of the label table at the first epoch.
    feature_rate : float
        Step of the feature table at the first epoch.
    schedule : {"linear", "constant"}
        "linear" falls to zero after the last epoch.
    max_norm : float or None
        Rows of both tables are projected to this norm; None leaves them free.
    patience : int or None
        Epochs without a better validation figure before training stops, in the second half of the schedule; None never
        stops early.
    """

    loss: LossName
    rank_weight: RankWeight
    margin: float
    max_trials: int
    learning_rate: float
    feature_rate: float
    bias_rate: float
    schedule: Schedule
    max_norm: float | None
    epochs: int
    patience: int | None
    threads: int
    deterministic: bool
    seed: int
