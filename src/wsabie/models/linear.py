"""Linear ranking: a weight per label and feature, f_y(x) = w_y . x, trained by the ranking losses ([W] section 6.3).

With loss="warp" this is the paper's linear WARP model, with loss="auc" PAMIR for annotation (Grangier and Bengio 2008).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from wsabie.base.arrays import Float32
from wsabie.base.machine import TOLD
from wsabie.models import defaults
from wsabie.models.inputs import Inputs
from wsabie.models.parameters import resolve
from wsabie.models.scaling import Rows
from wsabie.models.scored import ScoreRanker
from wsabie.models.trained import TrainedModel
from wsabie.space.linear import LinearSpace
from wsabie.storage.folder import Parts
from wsabie.storage.schema import check_array
from wsabie.training.losses import LossName, RankWeight, Surrogate
from wsabie.training.settings import Schedule, Settings
from wsabie.training.targets import Positives

log = logging.getLogger("wsabie")


class LinearRanker(TrainedModel, ScoreRanker):
    """Ranks labels by an inner product of the row and a weight vector per label.

    The weights take 4 bytes for every label and feature, once: a step reads and writes those of a row's non-zeros
    alone, and the best epoch is kept in a file without a name (in `TMPDIR`). The log (`logging.getLogger("wsabie")`)
    says how much that is before anything is done.

    Parameters
    ----------
    loss : {"warp", "auc", "owpc", "k-os"}, default "warp"
        As for `Wsabie`; "auc" is PAMIR's.
    rows : {"auto", "tfidf", None}, default "auto"
        As for `Wsabie`.
    max_norm : float or None, default None
        Weight vectors are projected to this norm.
    epochs : int or "auto"
        "auto": as for `Wsabie`, at most 10.
    learning_rate : float or "auto"
        Step of the first epoch; "auto" is .1 for rows with one label, and 1 for loss="auc".
    max_trials : int, "auto" or None
        As for `Wsabie`, but "auto" is at most 100: a draw reads as many places of memory as the row has features.
    schedule : {"linear", "constant"}, default "linear"
    margin : float, default 1.0
    rank_weight, sampler, rank_from, surrogate, order_statistic, positives, label_bias
        As for `Wsabie`; the sampler "adaptive" needs points and is none for weights.
    l2 : float, default 0
        Every step takes l2 * learning rate of the weight vectors that it moves.
    patience, threads, deterministic, seed
        As for `Wsabie`.

    Attributes
    ----------
    space_ : LinearSpace
    vocabulary_, scaling_, calibration_, history_, settings_, n_features_in_
        As for `Wsabie`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = LinearRanker(epochs=5, rows=None, threads=1).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10, 20]], k=1)]
    ['red', 'green', 'blue']
    """

    kind = "linear"
    reads_shards = True

    def __init__(
        self,
        *,
        loss: LossName = "warp",
        rows: Rows = "auto",
        max_norm: float | None = None,
        epochs: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        schedule: Schedule = "linear",
        margin: float = 1.0,
        rank_weight: RankWeight = "precision",
        max_trials: int | Literal["auto"] | None = "auto",
        sampler: str | Mapping[str, Any] = "uniform",
        rank_from: Literal["auto", "draws", "exact"] | int = "auto",
        surrogate: Surrogate = "hinge",
        order_statistic: Sequence[int] | Sequence[float] | None = None,
        l2: float = 0.0,
        positives: Positives = "mean",
        label_bias: bool = False,
        patience: int | None = None,
        threads: int | None = None,
        deterministic: bool = True,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.rows = rows
        self.max_norm = max_norm
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.margin = margin
        self.rank_weight = rank_weight
        self.max_trials = max_trials
        self.sampler = sampler
        self.rank_from = rank_from
        self.surrogate = surrogate
        self.order_statistic = order_statistic
        self.l2 = l2
        self.positives = positives
        self.label_bias = label_bias
        self.patience = patience
        self.threads = threads
        self.deterministic = deterministic
        self.seed = seed

    def _resolved(self, shape: defaults.Shape) -> Settings:
        settings = resolve({**self.get_params(), "learning_rate": 1.0}, shape)
        auto = defaults.weight_rate(shape, self.positives, self.loss)
        rate = auto if self.learning_rate == "auto" else float(self.learning_rate)
        return replace(
            settings,
            epochs=defaults.weight_epochs(shape) if self.epochs == "auto" else settings.epochs,
            max_trials=min(settings.max_trials, defaults.WEIGHT_TRIALS)
            if self.max_trials == "auto"
            else settings.max_trials,
            learning_rate=rate,
            feature_rate=0.0,
            weight_rate=rate,
            bias_rate=rate if self.label_bias else 0.0,
            max_norm=None,
            max_norm_weights=self.max_norm,
            l2_rows=0.0,
            l2_labels=0.0,
            l2_weights=float(self.l2),
        )

    def _new_space(self, n_features: int) -> LinearSpace:
        return weights_for(n_features, len(self.vocabulary_))

    @property
    def coef_(self) -> Float32:
        """Weights of scaled rows, (n_labels, n_features + `scaling_.n_added`) float32; a view."""
        weights: Float32 = self.space_.weights
        return weights

    @property
    def label_vectors(self) -> Float32:
        """The weights of each label, by which `neighbours` compares: `coef_`."""
        return self.coef_

    def _scores(self, inputs: Inputs) -> Float32:
        return self._scores_of_checked(inputs)

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config, tensors = self._trained_config()
        own = {"weights": self.space_.weights, "bias": self.space_.bias}
        return Parts(self.kind, self._described() | config, own | tensors)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; its weights stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        model._restore_trained(config, t)
        n_labels, width = len(model.vocabulary_), model.n_features_in_ + model.scaling_.n_added
        weights = check_array(t, "weights", "float32", (n_labels, width))
        model.space_ = LinearSpace(weights, check_array(t, "bias", "float32", (n_labels,)))
        return model


def weights_for(n_features: int, n_labels: int) -> LinearSpace:
    """A space before training; the log says how large it is, from .1 GB on.

    Raises
    ------
    InputError
        It is larger than the machine's memory.
    """
    n_bytes = 4 * n_labels * n_features
    if n_bytes >= TOLD:
        log.info(f"{n_labels:,} labels with a weight for each of {n_features:,} features take {n_bytes / 1e9:.2f} GB")
    return LinearSpace.zeros(n_features, n_labels)
