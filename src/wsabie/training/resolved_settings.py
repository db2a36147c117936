"""Settings of a training run after every "auto" is replaced, besides the data."""

from dataclasses import dataclass, field
from typing import Literal

from wsabie.training.rank_losses import LossName, RankWeight, Surrogate
from wsabie.training.samplers import SamplerConfig

Schedule = Literal["linear", "constant"]


@dataclass(frozen=True)
class TrainingSettings:
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
        Maximum norm of rows of both tables, enforced by projection; None: no limit.
    max_norm_weights : float or None
        The same for the weights of a label.
    l2_rows, l2_labels, l2_weights : float
        Weight decay: every step subtracts this times the learning rate of the rows that it moves.
    rank_sample : int
        Source of the rank estimate: 0 the draws, m > 0 a uniform sample of m labels, -1 all labels.
    order_statistic_cdf : tuple of float
        Cumulative chances of the k-th highest of several drawn positives; (1,): the positive of the pair.
    patience : int or None
        Epochs without a better validation figure before training stops, in the second half of the schedule; None: no
        early stopping.
    """

    loss: LossName
    rank_weight: RankWeight
    margin: float
    max_sampled: int
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
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    surrogate: Surrogate = "hinge"
    rank_sample: int = 0
    order_statistic_cdf: tuple[float, ...] = (1.0,)
    weight_rate: float = 0.0
    max_norm_weights: float | None = None
    l2_rows: float = 0.0
    l2_labels: float = 0.0
    l2_weights: float = 0.0

    def get_rate(self, epoch: float) -> float:
        """Return the learning rate of labels at a point of the schedule, in epochs."""
        share = 1 - epoch / self.epochs if self.schedule == "linear" else 1.0
        return self.learning_rate * share

    def get_rate_share(self, epoch: float) -> float:
        """Return the share of the first epoch's learning rates at a point of the schedule."""
        return self.get_rate(epoch) / self.learning_rate if self.learning_rate else 0.0
