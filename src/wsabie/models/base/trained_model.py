"""Base of models trained by the ranking loops: fit, early stopping, checkpoints, probabilities."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Array, Float32, Float64, Matrix, count_rows
from wsabie.core.errors import NotCalibratedError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.core.validation import check_sample_weights
from wsabie.embedding.protocols import TrainableTables
from wsabie.evaluation.calibration import Calibration, ScoredPairs, fit_calibration, sample_pairs
from wsabie.io.shards.sharded_table import ShardedFeatureTable
from wsabie.models.base import hyperparameters, parameter_defaults
from wsabie.models.base.feature_matrix import FeatureMatrix
from wsabie.models.base.label_matrix import Labels
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.row_scaling import Method, RowScaling
from wsabie.models.base.training_rows import ShardedRows, TrainingRows
from wsabie.models.base.validation_monitor import MAX_ROWS, ValidationMonitor, compute_scores
from wsabie.storage.schema_validation import check_array, read_config
from wsabie.training.checkpoints import CheckpointFolder, identify_run
from wsabie.training.epoch_stats import EpochStats, find_best_epoch
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import Trainer
from wsabie.training.training_data import TrainingData
from wsabie.vocabulary.label_names import Vocabulary


@dataclass(frozen=True)
class ResumeSettings:
    """Settings that further training continues with."""

    learning_rate: float
    feature_rate: float
    max_norm: float | None


@dataclass(frozen=True)
class TrainedModelConfig:
    """The part of a folder's config that every trained model has beside `LabelModelConfig`."""

    settings: ResumeSettings
    scaling: Method
    history: list[EpochStats]
    calibration: tuple[float, float] | None
    competition: float = 0.0


class FitOptions(TypedDict, total=False):
    """Options of `TrainedModel.fit` that models made of several ones pass on to each."""

    resume: bool
    fingerprint: str
    progress: Progress
    on_epoch: Callable[[EpochStats], None] | None


class TrainedModel(hyperparameters.TrainingParameters, LabelModel):
    """Base of models that the loops of `wsabie.training` train.

    A subclass implements `_build_space`, and overrides what differs: how parameters become settings
    (`_resolve_settings`), the space and the data of a run (`_prepare_run`), the run itself (`_train`), validation
    (`_build_monitor`), probabilities (`_fit_calibration`), and what a checkpoint depends on (`_list_initial_state`).

    Attributes
    ----------
    space_ : JointSpace, LinearSpace or JointLinearSpace
    scaling_ : RowScaling
    calibration_ : Calibration or None
    history_ : list of EpochStats
    settings_ : dict
        Settings of training, every "auto" resolved.
    """

    space_: Any
    scaling_: RowScaling
    calibration_: Calibration | None
    history_: list[EpochStats]
    settings_: JsonObject
    reads_shards: ClassVar[bool] = False
    """`fit` accepts rows in shards."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """Further validation figures beside MAP and p@k that may choose the epoch."""

    @abstractmethod
    def _build_space(self, n_features: int) -> TrainableTables:
        """Build the space before training, for scaled rows of that width; the vocabulary is set."""

    def _resolve_settings(self, shape: parameter_defaults.TrainingShape) -> TrainingSettings:
        """Return the settings of a run on data of this shape."""
        return hyperparameters.resolve_settings(self._list_parameters(), shape)

    def _fit_scaling(self, rows: TrainingRows) -> RowScaling:
        """Fit the scaling of rows; the width is set."""
        scaling = parameter_defaults.default_scaling(self._list_parameters(), rows.shape)
        return rows.fit_scaling(self.n_features_in_, scaling)

    def _prepare_run(self, rows: TrainingRows) -> tuple[TrainableTables, TrainingData]:
        """Return the space that training updates, and its data."""
        return self.space_, rows.build_data(self.scaling_, self.pair_weighting, self.seed)

    def _train(self, trainer: Trainer, rows: TrainingRows) -> list[EpochStats]:
        """Train the space on scaled rows."""
        return trainer.train(*self._prepare_run(rows))

    def _build_monitor(
        self, X: Matrix, Y: Labels, max_rows: int | None = MAX_ROWS, input_name: str = "X", metric: str = "MAP"
    ) -> ValidationMonitor:
        """Build the monitor of rows with labels; `max_rows` None takes all of them."""
        inputs = self.scaling_(self._check_rows(X, input_name))
        return ValidationMonitor(inputs, self._build_truth(Y, count_rows(inputs)), self._n_threads, max_rows, metric)

    def _fit_calibration(self, monitor: ValidationMonitor) -> Calibration | None:
        """Fit a sigmoid per label to the validation rows; None if all their labels are right, or all wrong."""
        pairs = sample_pairs(monitor.iterate_score_blocks(self.space_), monitor.Y, seed=self.seed)
        if len(retired_ids := self.vocabulary_.retired_ids()):
            is_active = ~np.isin(pairs.labels, retired_ids)
            pairs = ScoredPairs._make(column[is_active] for column in pairs)
        if not 0 < pairs.outcomes.sum() < len(pairs.outcomes):
            return None
        return fit_calibration(pairs, n_labels=len(self.vocabulary_))

    def _list_initial_state(self) -> list[object]:
        """Return what training starts from beside the parameters and the rows, JSON-able, for checkpoints."""
        return []

    def fit(
        self,
        X: Matrix,
        Y: Labels = None,
        *,
        validation: tuple[Matrix, Labels] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        fingerprint: str = "",
        metric: str = "MAP",
        progress: Progress = SILENT,
        on_epoch: Callable[[EpochStats], None] | None = None,
        trainer: Callable[..., Trainer] = Trainer,
    ) -> Self:
        """Train a new model, or with `resume` continue from the checkpoint.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features), or ShardedFeatureTable
            Rows in shards (`wsabie.open_shards`) are read a block at a time and contain their labels.
        Y : (n,) integers or names; (n, n_labels) sparse of 1 (true) and -1 (explicit negative); or lists of names
        validation : (X, Y) or None
            Rows that choose the best epoch; without them the last epoch is kept.
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
            Shows how far training is.
        on_epoch : callable or None
            Gets the figures of every epoch. An exception of it ends the fit and leaves this model unchanged.
        trainer : callable
            Builds the trainer from the arguments of `Trainer`, which trains in this process.

        Raises
        ------
        InputError
            Data or parameters that cannot be used; the message says where.
        DivergenceError
            Training produced numbers that are not finite.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        rows = fitted._open_training_rows(X, Y, label_names, sample_weight)
        n_features = fitted.n_features_in_
        settings = self._resolve_settings(rows.shape._replace(n_features=n_features))
        fitted.settings_ = to_json_value(asdict(settings))
        fitted.scaling_ = fitted._fit_scaling(rows)
        fitted.space_ = fitted._build_space(n_features + fitted.scaling_.n_added)
        monitor = None
        if validation is not None:
            require(isinstance(validation, (tuple, list)) and len(validation) == 2, "validation must be a pair (X, Y)")
            monitor = fitted._build_monitor(*validation, input_name="validation X", metric=metric)
        checkpoints = None
        if checkpoint is not None:
            data = [fingerprint, rows.compute_checksum()]
            data += [None if monitor is None else hyperparameters.compute_checksum(monitor.inputs, monitor.Y, None)]
            data += [] if metric == "MAP" else [metric]
            checkpoints = CheckpointFolder(checkpoint, fitted._identify_training(settings, data), resume=resume)
        rows = rows.scale(fitted.scaling_)
        run = trainer(settings, monitor=monitor, on_epoch=on_epoch, checkpoints=checkpoints, progress=progress)
        fitted.history_ = fitted._train(run, rows)
        fitted.calibration_ = None if monitor is None else fitted._fit_calibration(monitor)
        self._replace_state(fitted)
        return self

    def _identify_training(self, settings: TrainingSettings, data: Sequence[object]) -> JsonObject:
        """Return the identity of a run; checkpoints of another run are not continued."""
        names = ("dim", "similarity", "scaling", "pair_weighting", "init", "init_scale")
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        parameters["shape"] = [self.space_.n_features, len(self.vocabulary_)]
        return identify_run(settings, parameters, [*data, *self._list_initial_state()])

    def _open_training_rows(
        self, X: Matrix, Y: Labels, label_names: Sequence[str] | None, sample_weight: npt.ArrayLike | None
    ) -> TrainingRows:
        """Check the rows of `fit`; set the vocabulary and the width."""
        if not isinstance(X, ShardedFeatureTable):
            inputs, targets = self._open_rows(X, Y, label_names)
            weights = None if sample_weight is None else check_sample_weights(sample_weight, targets.shape[0])
            return TrainingRows(inputs, targets, weights)
        require(self.reads_shards, f"a model of kind {self.kind} does not read shards; give it rows.whole().X and .Y")
        labels_are_stored = Y is None and sample_weight is None and label_names is None
        require(labels_are_stored, "rows in shards bring their labels; leave Y, label_names and sample_weight out")
        truth = X.compute_label_statistics()
        require(truth.pairs > 0, "no row has a label; give at least one (row, label) pair")
        self.vocabulary_, self.n_features_in_ = Vocabulary(X.label_names), X.n_features
        return ShardedRows(X, truth)

    def calibrate(self, X: Matrix, Y: Labels) -> Self:
        """Fit the probabilities again on rows that were not trained on, after `partial_fit` for instance.

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
        self.calibration_ = self._fit_calibration(self._build_monitor(X, Y))
        return self

    def _start_threads(self, rows: int) -> KernelThreads:
        """Return threads for work on so many rows; for few rows another thread would start too late."""
        return KernelThreads(1 if rows < 256 else self._n_threads)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        """Return all scores of checked rows."""
        with KernelThreads(self._n_threads) as threads:
            return compute_scores(self.space_, self.scaling_(inputs), threads)

    @property
    def predict_proba(self) -> Callable[[Matrix], Float64]:
        """predict_proba(X): probability that each label is right, (n, n_labels); meant for blocks of rows.

        A sigmoid of the score with an offset per label, fitted on the validation rows of `fit` (Platt scaling). In
        models of a collection the labels of a row compete.

        Raises
        ------
        NotCalibratedError
            The model was fitted without validation rows.
        """
        self._check_fitted()
        calibration = self.calibration_
        if calibration is None:
            raise NotCalibratedError("probabilities need validation rows; fit with validation=(X, Y)")
        return lambda X: calibration.predict_proba(self.scores(X))

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return int(self.space_.nbytes + sum(array.nbytes for array in self.scaling_.tensors().values()))

    def score(self, X: Matrix, Y: Labels) -> float:
        """Return the mean average precision on rows with labels, 0 to 1; rows without labels do not count.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
            Labels that the model lacks do not count.

        Returns
        -------
        float

        Raises
        ------
        InputError
            Another width than the model's, or values that are not finite.
        """
        self._check_fitted()
        return self._build_monitor(X, Y, None)(self.space_)

    def facts(self) -> JsonObject:
        """Return sizes and figures of the model, JSON-able.

        "validation_map" is that of "best_epoch" (the first is 1). Both are None after further training, or after labels
        were merged or removed.

        Returns
        -------
        dict
        """
        is_edited = len(self.vocabulary_.retired_ids()) > 0  # these labels were not evaluated
        best_epoch = None if is_edited else find_best_epoch(self.history_)
        figure = None if best_epoch is None else best_epoch.validation_metrics.get("MAP", best_epoch.validation)
        epoch_facts = {"best_epoch": None if best_epoch is None else best_epoch.epoch + 1, "validation_map": figure}
        return {**super().facts(), "epochs": len(self.history_), **epoch_facts}

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        super().check_parameters()
        hyperparameters.check_training(self._list_parameters())

    def _dump_config(self) -> JsonObject:
        fitted, calibration, competition = self.calibration_, None, {}
        if fitted is not None and fitted.label_offsets is not None:
            calibration = [fitted.slope, fitted.offset]
            competition = {"competition": fitted.competition} if fitted.competition else {}
        return {
            **super()._dump_config(),
            "settings": self.settings_,
            "scaling": self.scaling_.method,
            "calibration": calibration,
            **competition,
            "history": [stats.as_dict() for stats in self.history_],
        }

    def _dump_tensors(self) -> dict[str, Array]:
        offsets = None if self.calibration_ is None else self.calibration_.label_offsets
        tensors = {} if offsets is None else {"calibration/offsets": offsets}
        return {**super()._dump_tensors(), **self.scaling_.tensors(), **tensors}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        fields = read_config(TrainedModelConfig, config)
        self.scaling_ = RowScaling.from_tensors(fields.scaling, tensors, self.n_features_in_)
        self.history_, self.settings_, self.calibration_ = fields.history, config["settings"], None
        if fields.calibration is not None:
            offsets = check_array(tensors, "calibration/offsets", "float32", (len(self.vocabulary_),))
            self.calibration_ = Calibration(*fields.calibration, offsets, fields.competition)
