"""Linear ranking: a weight per label and feature, f_y(x) = w_y . x, trained by the ranking losses.

With loss="warp" this is the linear WARP model of Weston et al. 2010, section 6.3; with loss="auc" it is PAMIR for
annotation (Grangier and Bengio 2008).
"""

import logging
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Array, Float32
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import LARGE_MEMORY_BYTES
from wsabie.embedding.joint_space import SimilarityName
from wsabie.embedding.linear_space import LinearSpace
from wsabie.models.base import hyperparameters, parameter_defaults
from wsabie.models.base.feature_matrix import convert_to_matrix, iterate_row_ranges
from wsabie.models.base.ridge_start import MAX_ROWS, compute_margin_scale, take_few_rows
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.models.base.trained_model import TrainedModel
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.ridge import solve_ridge
from wsabie.storage.schema_validation import check_array
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import Trainer

log = logging.getLogger("wsabie")
RIDGE_PENALTY, RIDGE_DIRECTIONS = 6.0, 300
"""Parameters of `Ridge` for the start."""


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRanker(TrainedModel, ScoreRanker):
    """Linear model that ranks labels by the inner product of the row and a weight vector per label.

    The weights take 4 bytes for every label and feature. A step reads and writes only the weights of a row's non-zeros.
    The best epoch is kept in an unnamed file (in `TMPDIR`). The log (`logging.getLogger("wsabie")`) states the size
    before training.

    Parameters
    ----------
    loss : {"warp", "auc", "owpc", "k-os"}, default "warp"
        See `Wsabie`; "auc" is PAMIR's.
    scaling : {"auto", "tfidf", None}, default "auto"
        See `Wsabie`.
    max_norm : float or None, default None
        Weight vectors are projected to this norm.
    epochs : int or "auto"
        See `Wsabie`; "auto" is at most 10.
    learning_rate : float or "auto"
        Learning rate of the first epoch; "auto" is .1 for rows with one label, 1 for loss="auc", and .01 after a ridge
        start.
    max_sampled : int, "auto" or None
        See `Wsabie`, but "auto" is at most 100, because each draw reads memory for every feature of the row.
    schedule : {"linear", "constant"}, default "linear"
    margin : float, default 1.0
    rank_weight, sampler, rank_estimator, surrogate, order_statistic, pair_weighting, label_bias
        See `Wsabie`; the sampler "adaptive" needs points and does not work with weights.
    init : {"auto", "random", "ridge"}, default "auto"
        Weights before training. "ridge": those of `Ridge` on at most 16,384 rows, at such a length that the own labels
        of a row score one margin above the mean of all, in the median. "random": 0, so that the first draws decide.
        "auto" is "ridge" for loss="warp" with hinges and learning_rate="auto".
    l2 : float, default 0
        Every step shrinks the weight vectors that it moves by l2 * learning rate.
    patience, threads, deterministic, seed
        See `Wsabie`.

    Attributes
    ----------
    space_ : LinearSpace
    vocabulary_, scaling_, calibration_, history_, settings_, n_features_in_
        See `Wsabie`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = LinearRanker(epochs=5, scaling=None, threads=1).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> [top[0][0] for top in model.annotate(X[[0, 10, 20]], k=1)]
    ['red', 'green', 'blue']
    """

    kind = "linear"
    reads_shards = True

    max_norm: float | None = None
    init: Literal["auto", "random", "ridge"] = "auto"
    similarity: SimilarityName = field(init=False, default="dot")
    init_scale: None = field(init=False, default=None)

    def _resolve_settings(self, shape: parameter_defaults.TrainingShape) -> TrainingSettings:
        rate = self.learning_rate
        if rate == "auto":
            rate = parameter_defaults.default_linear_rate(self._list_parameters(), shape)
        settings = hyperparameters.resolve_settings({**self._list_parameters(), "learning_rate": rate}, shape)
        most = parameter_defaults.WEIGHT_TRIALS if self.max_sampled == "auto" else settings.max_sampled
        return replace(
            settings,
            epochs=parameter_defaults.default_linear_epochs(shape) if self.epochs == "auto" else settings.epochs,
            max_sampled=min(settings.max_sampled, most),
            feature_rate=0.0,
            weight_rate=settings.learning_rate,
            bias_rate=settings.learning_rate if self.label_bias else 0.0,
            max_norm=None,
            max_norm_weights=settings.max_norm,
            l2_rows=0.0,
            l2_labels=0.0,
            l2_weights=settings.l2_labels,
        )

    def _train(self, trainer: Trainer, rows: TrainingRows) -> list[EpochStats]:
        if parameter_defaults.has_ridge_start(self._list_parameters()):
            self._place_at_ridge(rows, trainer.settings)
        return super()._train(trainer, rows)

    def _place_at_ridge(self, rows: TrainingRows, settings: TrainingSettings) -> None:
        """Set the weights of the start; see `init`."""
        weights, rng = self.space_.weights, np.random.default_rng([settings.seed, 3])
        inputs, targets, row_weights = rows.sample(self.scaling_, MAX_ROWS, rng)
        matrix, positives = convert_to_matrix(inputs, self.space_.n_features), (targets > 0).astype(np.float32)
        if row_weights is not None:
            roots = diags_array(np.sqrt(row_weights))
            matrix, positives = roots @ matrix, csr_matrix(roots @ positives)
        solution = solve_ridge(matrix, positives, RIDGE_PENALTY, RIDGE_DIRECTIONS, settings.seed)
        with threadpool_limits(1):  # the same bits with any number of threads
            for lo, hi in iterate_row_ranges(*weights.shape):
                weights[lo:hi] = solution.expand(lo, hi)
            few_inputs, few_targets = take_few_rows(inputs, targets)
            scores = convert_to_matrix(few_inputs, self.space_.n_features) @ weights.T
        weights *= np.float32(compute_margin_scale(scores, few_targets, settings.margin))

    def _build_space(self, n_features: int) -> LinearSpace:
        return allocate_weights(n_features, len(self.vocabulary_))

    @property
    def coef_(self) -> Float32:
        """Weights of scaled rows, (n_labels, n_features + `scaling_.n_added`) float32; a view."""
        weights: Float32 = self.space_.weights
        return weights

    @property
    def label_vectors(self) -> Float32:
        """Weights of the labels, `coef_`, which `neighbours` compares."""
        return self.coef_

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), "weights": self.space_.weights, "bias": self.space_.bias}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_labels, width = len(self.vocabulary_), self.n_features_in_ + self.scaling_.n_added
        weights = check_array(tensors, "weights", "float32", (n_labels, width))
        self.space_ = LinearSpace(weights, check_array(tensors, "bias", "float32", (n_labels,)))


def allocate_weights(n_features: int, n_labels: int) -> LinearSpace:
    """Allocate the weights before training; the log states their size from .1 GB on.

    Raises
    ------
    InputError
        The weights need more memory than the machine has.
    """
    n_bytes = 4 * n_labels * n_features
    if n_bytes >= LARGE_MEMORY_BYTES:
        log.info(f"{n_labels:,} labels with a weight for each of {n_features:,} features take {n_bytes / 1e9:.2f} GB")
    return LinearSpace.zeros(n_features, n_labels)
