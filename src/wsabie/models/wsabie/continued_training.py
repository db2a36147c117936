"""Further training of a fitted model: new rows and labels, with replay of old rows."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from wsabie.core.validation import check_sample_weights, require
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.feature_matrix import count_rows
from wsabie.models.base.hyperparameters import check_parameters, resolve_continued_settings
from wsabie.models.base.label_matrix import align_columns, build_signed_label_matrix
from wsabie.models.base.trained_model import TrainedModel, measure_training_shape
from wsabie.models.wsabie.drift import MAX_REPORTS, BatchReport, measure_movement, report_batch
from wsabie.models.wsabie.label_growth import copy_for_training
from wsabie.models.wsabie.replay import ReplayBuffer, Size, check_buffer_size, update_buffer
from wsabie.training.trainer import Trainer


class ContinuedTraining(TrainedModel):
    """Base of `Wsabie` that continues training with more rows."""

    replay: Size
    seed: int
    space_: JointSpace
    memory_: ReplayBuffer | None = None
    stream_: Sequence[BatchReport] = ()

    def partial_fit(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: Any = None,
        label_names: Sequence[str] | None = None,
        epochs: int = 5,
    ) -> Self:
        """Continue training with more rows; new labels are added and get the next numbers.

        A new label starts at the mean of its rows' points. The learning rate is a quarter of `fit`'s and constant.
        With a buffer (`replay`) every epoch has old rows among the new ones, and the rate begins as `fit`'s and falls
        to 0. In the end old points are averaged with their previous positions, and new labels are fitted again
        (`wsabie.models.wsabie.replay`). On an unfitted model this is `fit` with `epochs` epochs. Probabilities need
        `calibrate` afterwards.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
        sample_weight : (n,) float or None
        label_names : list of str or None
            Names of the columns of Y, in any order, if it is a matrix; new names are added.
        epochs : int

        Raises
        ------
        InputError
            See `fit`; or labels are words although the model's labels are numbers.
        DivergenceError
            Training diverged; the model is unchanged.

        Examples
        --------
        >>> from wsabie.models.wsabie.estimator import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> list(model.partial_fit(np.eye(3)[:1], ["crimson"]).vocabulary_)
        ['red', 'green', 'blue', 'crimson']
        """
        check_parameters({**self._parameters(), "epochs": epochs})
        check_buffer_size(self.replay)
        if not hasattr(self, "space_"):
            fit_epochs = self.get_params()["epochs"]
            try:
                self.set_params(epochs=epochs).fit(X, Y, sample_weight=sample_weight, label_names=label_names)
            finally:
                self.set_params(epochs=fit_epochs)
            return self
        inputs = self._checked(X)
        fitted, n_past_epochs = copy(self), len(self.history_)
        fitted.vocabulary_ = self.vocabulary_.copy()
        has_names = label_names is not None or not self.vocabulary_.numbered
        if label_names is not None:
            Y = align_columns(fitted.vocabulary_, Y, label_names)
        targets = build_signed_label_matrix(Y, count_rows(inputs), fitted.vocabulary_, grow=True, has_names=has_names)
        inputs = self.scaling_(inputs)
        report = None if self.replay is None else report_batch(self, inputs, targets, self.stream_)
        buffer = self._replay_buffer(True)
        unseen = None if buffer is None else np.flatnonzero(buffer.label_counts == 0)
        fitted.space_ = copy_for_training(self.space_, len(fitted.vocabulary_), [(inputs, targets)], self.seed, unseen)
        shape = measure_training_shape(targets)
        settings = resolve_continued_settings(
            self._parameters(), self.settings_, shape, epochs, self.seed + n_past_epochs, buffer is not None
        )
        trainer = Trainer(settings)
        history = fitted._train(trainer, inputs, targets, sample_weight, more=True)
        fitted.history_ = [*self.history_, *(replace(s, epoch=n_past_epochs + s.epoch) for s in history)]
        fitted.calibration_ = None
        if report is not None:
            movement = measure_movement(self.label_vectors, fitted.label_vectors)
            fitted.stream_ = [*self.stream_, replace(report, moved=movement)][-MAX_REPORTS:]
        self._replace_state(fitted)
        return self

    def remember(self, X: Any, Y: Any, *, sample_weight: Any = None) -> Self:
        """Fill the buffer with at most `replay` rows that the model was trained on before it had one.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : as for `fit`
            Labels that the model lacks are ignored.
        sample_weight : (n,) float or None

        Raises
        ------
        InputError
            `replay` is None, or the data cannot be used.

        Examples
        --------
        >>> from wsabie.models.wsabie.estimator import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).set_params(replay=2)
        >>> len(model.remember(np.eye(3), ["red", "green", "blue"]).memory_)
        2
        """
        check_buffer_size(self.replay)
        require(self.replay is not None, "the model keeps no rows; set replay to how many it should keep")
        inputs = self._checked(X)
        targets = self._truth(Y, count_rows(inputs))
        n, weights = self.space_.n_features, None
        if sample_weight is not None:
            weights = check_sample_weights(sample_weight, count_rows(inputs))
        memory = update_buffer(None, self.scaling_(inputs), n, targets, weights, self.replay, self.seed)
        self.memory_ = self._count_earlier_rows(memory)
        return self

    def _count_earlier_rows(self, memory: ReplayBuffer) -> ReplayBuffer:
        """Return a first buffer for a model with earlier rows, which labels without rows in it must have had."""
        counts = np.maximum(memory.label_counts, 1)
        counts[self.vocabulary_.retired()] = 0
        return replace(memory, label_counts=counts)

    def _replay_buffer(self, more: bool) -> ReplayBuffer | None:
        """Return the buffer that training replays."""
        return self.memory_ if more and self.replay is not None else None
