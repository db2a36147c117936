"""Everything that decides a training run, besides the data."""

from dataclasses import dataclass, field
from typing import Literal

from wsabie.training.losses import LossName, RankWeight, Surrogate
from wsabie.training.samplers import Sampler

Schedule = Literal["linear", "constant"]


@dataclass(frozen=True)
class Settings:
    """Resolved hyperparameters (no "auto" left).

    Attributes
    ----------
    learning_rate : float
        Step of the labels' points at the first epoch.
    feature_rate : float
        Step of the feature table at the first epoch.
    weight_rate : float
        Step of the labels' weights at the first epoch, where they have any.
    schedule : {"linear", "constant"}
        "linear" falls to zero after the last epoch.
    max_norm : float or None
        Rows of both tables are projected to this norm; None leaves them free.
    max_norm_weights : float or None
        The same for the weights of a label.
    l2_rows, l2_labels, l2_weights : float
        Every step takes this times the learning rate from what it moves.
    rank_sample : int
        What estimates the rank: 0 the draws, m > 0 a uniform sample of m labels, -1 all labels.
    places : tuple of float
        Chances of the k-th highest of so many drawn positives, summed up to k; (1,) is the pair's own.
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
    sampler: Sampler = field(default_factory=Sampler)
    surrogate: Surrogate = "hinge"
    rank_sample: int = 0
    places: tuple[float, ...] = (1.0,)
    weight_rate: float = 0.0
    max_norm_weights: float | None = None
    l2_rows: float = 0.0
    l2_labels: float = 0.0
    l2_weights: float = 0.0
