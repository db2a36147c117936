"""What every model trained by the ranking loops shares: fit, early stopping, checkpoints, calibrated probabilities."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from wsabie.base.arrays import Float32, Float64, Matrix
from wsabie.base.errors import UncalibratedError
from wsabie.base.machine import available_cores
from wsabie.base.plain import plain
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require, sample_weights
from wsabie.evaluation.calibration import Calibration, Pairs, fit_calibration, sample_pairs
from wsabie.labels.names import Vocabulary
from wsabie.models import defaults
from wsabie.models.base import LabelModel
from wsabie.models.inputs import Inputs, n_rows
from wsabie.models.monitor import MAX_ROWS, ValidationMap, scores_of
from wsabie.models.parameters import check_parameters, checksum
from wsabie.models.scaling import Method, RowScaling
from wsabie.models.streamed import ReadBlocks, checksum_of, scaling_of
from wsabie.sources.sharded import ShardedRows, Truth
from wsabie.space.protocol import Space
from wsabie.storage.schema import check_array, read_config
from wsabie.training.checkpoints import Checkpoints
from wsabie.training.settings import Settings
from wsabie.training.stats import EpochStats, kept_epoch
from wsabie.training.targets import row_blocks
from wsabie.training.threads import Threads
from wsabie.training.trainer import Blocks, Trainer


@dataclass(frozen=True)
class UsedSettings:
    """The settings that training goes on from."""

    learning_rate: float
    feature_rate: float
    max_norm: float | None


@dataclass(frozen=True)
class TrainedConfig:
    """The part of a folder's config that every trained model has beside `FittedConfig`."""

    settings: UsedSettings
    scaling: Method
    history: list[EpochStats]
    calibration: tuple[float, float] | None


class TrainedModel(LabelModel):
    """Base of models that the loops of `wsabie.training` train.

    A subclass has the parameters of training that `Wsabie` documents, and says how they become settings (`_resolved`)
    and what the space is before training (`_new_space`).

    Attributes
    ----------
    space_ : JointSpace, LinearSpace or FullSpace
    scaling_ : RowScaling
    calibration_ : Calibration or None
    history_ : list of EpochStats
    settings_ : dict
        What training used, every "auto" resolved.
    """

    space_: Any
    scaling_: RowScaling
    calibration_: Calibration | None
    history_: list[EpochStats]
    settings_: dict[str, Any]
    reads_shards: ClassVar[bool] = False
    """Whether `fit` takes rows that are in shards."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """Validation figures that may choose the epoch beside MAP and p@k."""
    _made_ready: tuple[str, ...] = ("_searched",)
    """What is kept of a fitted state for searches, and neither saved nor copied."""

    @abstractmethod
    def _resolved(self, shape: defaults.Shape) -> Settings:
        """The settings of a run on data of this shape."""

    @abstractmethod
    def _new_space(self, n_features: int) -> Space:
        """The space before training, for scaled rows of that width; the vocabulary is there."""

    def fit(
        self,
        X: Any,
        Y: Any = None,
        *,
        validation: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        fingerprint: str = "",
        metric: str = "MAP",
        progress: Progress = SILENT,
        on_epoch: Callable[[EpochStats], None] | None = None,
        trainer: Callable[..., Trainer] = Trainer,
    ) -> Self:
        """Train from nothing (or, with `resume`, from the checkpoint).

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features), or ShardedRows
            Rows in shards (`wsabie.open_shards`) are read a block at a time, and bring their labels along.
        Y : (n,) integers or names; (n, n_labels) sparse of 1 (true) and -1 (explicit negative); or lists of names
        validation : (X, Y) or None
            Rows that choose the epoch; without them the last epoch is kept.
        sample_weight : (n,) or None
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        checkpoint : path or None
            Folder for the state of training, saved after epochs.
        resume : bool
            Go on from `checkpoint` if it is there.
        fingerprint : str
            Identifies the data in the checkpoint.
        metric : str
            The validation figure that chooses the epoch and ends training early: "MAP", or "p@k".
        progress : Progress
            Told how training goes on (`wsabie.base.progress`).
        on_epoch : callable or None
            Is told the figures of every epoch. What it raises ends the fit, and leaves this model as it was.
        trainer : callable
            Makes what trains, from what `Trainer` takes: `Trainer` in this process.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the sentence says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._given(X, Y, label_names, sample_weight)
        n_features = fitted.n_features_in_
        settings = self._resolved(shape_of(targets))
        fitted.settings_ = plain(asdict(settings))
        fitted.scaling_ = scaling_of(inputs, n_features, self.rows)
        fitted.space_ = fitted._new_space(n_features + fitted.scaling_.n_added)
        monitor = None
        if validation is not None:
            require(isinstance(validation, (tuple, list)) and len(validation) == 2, "validation must be a pair (X, Y)")
            monitor = fitted._monitor(*validation, settings.threads, MAX_ROWS, metric=metric)
        checkpoints = None
        if checkpoint is not None:
            judged = None if monitor is None else checksum(monitor.inputs, monitor.Y, None)
            data = [fingerprint, checksum_of(inputs, targets, sample_weight), judged]
            data += [] if metric == "MAP" else [metric]
            checkpoints = Checkpoints(checkpoint, fitted._identity(settings, data), resume=resume)
        inputs = inputs if isinstance(inputs, ShardedRows) else fitted.scaling_(inputs)
        run = trainer(settings, monitor=monitor, on_epoch=on_epoch, checkpoints=checkpoints, progress=progress)
        fitted.history_ = fitted._train(run, inputs, targets, sample_weight)
        fitted.calibration_ = None if monitor is None else fitted._calibrated(monitor)
        self._take(fitted)
        return self

    def _given(self, X: Any, Y: Any, label_names: Sequence[str] | None, sample_weight: Any) -> tuple[Any, Any]:
        """What `fit` begins with: checked rows and their label matrix, or shards and what their labels are like.

        Sets the vocabulary and the width.
        """
        if not isinstance(X, ShardedRows):
            return self._opened(X, Y, label_names)
        require(self.reads_shards, f"a model of kind {self.kind} does not read shards; give it rows.whole().X and .Y")
        alone = Y is None and sample_weight is None and label_names is None
        require(alone, "rows in shards bring their labels along; leave Y, label_names and sample_weight out")
        truth = X.truth()
        require(truth.pairs > 0, "no row has a label; give at least one (row, label) pair")
        self.vocabulary_, self.n_features_in_ = Vocabulary(X.label_names), X.n_features
        return X, truth

    def _take(self, fitted: Self) -> None:
        """Become a fitted copy; what was made ready for searches is of another state."""
        for name in self._made_ready:
            fitted.__dict__.pop(name, None)
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted.__dict__)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._made_ready}

    def _identity(self, settings: Settings, data: list[Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be gone on from; threads change nothing and may differ."""
        named = ("dim", "similarity", "rows", "positives", "init_scale")
        parameters = {name: getattr(self, name) for name in named if hasattr(self, name)}
        shape = [self.space_.n_features, len(self.vocabulary_)]
        identity = {**asdict(settings), **parameters, "shape": shape, "data": data}
        del identity["threads"]
        same: dict[str, Any] = plain(identity)
        return same

    def _train(
        self, trainer: Trainer, inputs: Any, targets: Any, sample_weight: Any, *, more: bool = False
    ) -> list[EpochStats]:
        """`more` goes on from a trained model."""
        weights = None if sample_weight is None else sample_weights(sample_weight, targets.shape[0])
        blocks, n_pairs = self._visited(inputs, targets, weights, more)
        return trainer.train(self._moved(more), blocks, n_pairs)

    def _visited(self, inputs: Any, targets: Any, weights: Float32 | None, more: bool) -> tuple[Blocks, int]:
        """What an epoch goes over, and its pairs."""
        if isinstance(inputs, ShardedRows):
            return ReadBlocks(inputs, self.scaling_, self.positives, self.seed, targets), targets.pairs
        (block,) = row_blocks(inputs, targets, weights, self.positives)
        return lambda epoch: [block], len(block.targets.labels)

    def _moved(self, more: bool) -> Any:
        """What training moves."""
        return self.space_

    def _monitor(
        self, X: Any, Y: Any, threads: int, max_rows: int | None, what: str = "validation X", metric: str = "MAP"
    ) -> ValidationMap:
        inputs = self._checked(X, what)
        inputs = self.scaling_(inputs)
        return ValidationMap(inputs, self._truth(Y, n_rows(inputs)), threads, max_rows, metric)

    def calibrate(self, X: Any, Y: Any) -> Self:
        """Fit the probabilities anew on rows that were not trained on, after `partial_fit` for instance.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
            Labels that the model lacks do not count.

        Raises
        ------
        InputError
            No row has a label that the model knows, or data that cannot be used.
        """
        monitor = self._monitor(X, Y, self.threads or available_cores(), MAX_ROWS, "X")
        self.calibration_ = self._calibrated(monitor)
        return self

    def _calibrated(self, monitor: ValidationMap) -> Calibration | None:
        """A sigmoid per label from the validation rows; None when they hold no right label, or no wrong one."""
        pairs = sample_pairs(monitor.blocks_of_scores(self.space_), monitor.Y, seed=self.seed)
        if len(gone := self.vocabulary_.retired()):
            kept = ~np.isin(pairs.labels, gone)
            pairs = Pairs(pairs.scores[kept], pairs.labels[kept], pairs.outcomes[kept], pairs.weights[kept])
        if not 0 < pairs.outcomes.sum() < len(pairs.outcomes):
            return None
        return fit_calibration(pairs, n_labels=len(self.vocabulary_))

    def _threads(self, rows: int) -> Threads:
        """Threads for work on so many rows; few are done before another thread would have started."""
        return Threads(1 if rows < 256 else self.threads or available_cores())

    def scores(self, X: Any) -> Float32:
        """All scores f_y(x), (n, n_labels) float32: meant for blocks of rows.

        Raises
        ------
        InputError
            Another width than the model's, or values that are not finite.
        """
        return self._scores_of_checked(self._checked(X))

    def _scores_of_checked(self, inputs: Inputs) -> Float32:
        """All scores of rows as `check_features` made them."""
        with Threads(self.threads or available_cores()) as threads:
            return scores_of(self.space_, self.scaling_(inputs), threads)

    @property
    def predict_proba(self) -> Callable[[Any], Float64]:
        """predict_proba(X): probability that each label is right, (n, n_labels): meant for blocks of rows.

        A sigmoid of the score with an offset per label, fitted on the validation rows of `fit` (Platt scaling).

        Raises
        ------
        UncalibratedError
            The model was fitted without validation rows.
        """
        self._check_fitted()
        if self.calibration_ is None:
            raise UncalibratedError("probabilities need validation rows; fit with validation=(X, Y)")
        return self._probabilities

    def _probabilities(self, X: Any) -> Float64:
        fitted: Calibration = self.calibration_  # type: ignore[assignment]  # checked by the property
        return fitted.predict_proba(self.scores(X))

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.space_.nbytes + sum(array.nbytes for array in self.scaling_.tensors().values()))

    def score(self, X: Any, Y: Any) -> float:
        """Mean average precision on rows with labels (rows without labels do not count), between 0 and 1."""
        self._check_fitted()
        return self._monitor(X, Y, self.threads or available_cores(), None, "X")(self.space_)

    def facts(self) -> dict[str, Any]:
        """Sizes and figures that tell what the model is, JSON-able; "validation_map" is that of "kept_epoch" (the first
        is 1), both None of a model that was trained on since, or whose labels were merged or removed."""
        edited = len(self.vocabulary_.retired()) > 0  # other labels than those that were judged
        kept = None if edited else kept_epoch(self.history_)
        figure = None if kept is None else kept.validation_metrics.get("MAP", kept.validation)
        chosen = {"kept_epoch": None if kept is None else kept.epoch + 1, "validation_map": figure}
        return {**super().facts(), "epochs": len(self.history_), **chosen}

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        check_parameters(self._parameters())

    def _parameters(self) -> dict[str, Any]:
        """Everything that decides training, what the estimator leaves no choice of included."""
        parameters: dict[str, Any] = self.get_params()
        return parameters

    def _trained_config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The config and the arrays that every trained model is saved with, but for its space."""
        config: dict[str, Any] = {
            "settings": self.settings_,
            "scaling": self.scaling_.method,
            "calibration": None,
            "history": [stats.as_dict() for stats in self.history_],
        }
        tensors: dict[str, Any] = dict(self.scaling_.tensors())
        if self.calibration_ is not None and self.calibration_.label_offsets is not None:
            config["calibration"] = [self.calibration_.slope, self.calibration_.offset]
            tensors["calibration/offsets"] = self.calibration_.label_offsets
        return config, tensors

    def _restore_trained(self, config: dict[str, Any], tensors: dict[str, Any]) -> None:
        """What `_trained_config` described; the vocabulary and the width are there."""
        fields = read_config(TrainedConfig, config)
        self.scaling_ = RowScaling.restored(fields.scaling, tensors, self.n_features_in_)
        self.history_, self.settings_, self.calibration_ = fields.history, config["settings"], None
        if fields.calibration is not None:
            offsets = check_array(tensors, "calibration/offsets", "float32", (len(self.vocabulary_),))
            self.calibration_ = Calibration(*fields.calibration, offsets)


def shape_of(targets: Matrix | Truth) -> defaults.Shape:
    """What "auto" is a function of; explicit negatives are no pairs."""
    if isinstance(targets, Truth):
        return defaults.Shape(targets.rows, targets.pairs, len(targets.of_label))
    rows, n_labels = targets.shape
    return defaults.Shape(rows, int((targets.data > 0).sum()), n_labels)
