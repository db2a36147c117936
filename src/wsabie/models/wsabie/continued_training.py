"""Further training of a fitted model: new rows and labels, with replay of old rows."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from wsabie.core.arrays import Float32, Int64
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.trained_model import TrainedModel

if TYPE_CHECKING:
    from wsabie.search.exact_index import ExactIndex
    from wsabie.search.label_index import LabelSearchIndex

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from wsabie.core.validation import check_sample_weights, require
from wsabie.models.base.feature_matrix import count_rows
from wsabie.models.base.hyperparameters import check_parameters, resolve_continued_settings
from wsabie.models.base.label_matrix import align_columns, build_signed_label_matrix
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.wsabie.drift import MAX_REPORTS, BatchReport, measure_movement, report_batch
from wsabie.models.wsabie.replay import ReplayBuffer, Size, check_buffer_size, update_buffer
from wsabie.models.wsabie.warm_start import copy_for_training
from wsabie.training.trainer import Trainer


class ContinuedTraining(TrainedModel):
    """Base of `Wsabie` that continues training with more rows."""

    replay: Size = None
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
        check_parameters({**self._list_parameters(), "epochs": epochs})
        check_buffer_size(self.replay)
        if not hasattr(self, "space_"):
            fit_epochs = self.get_params()["epochs"]
            try:
                self.set_params(epochs=epochs).fit(X, Y, sample_weight=sample_weight, label_names=label_names)
            finally:
                self.set_params(epochs=fit_epochs)
            return self
        inputs = self._check_rows(X)
        fitted, n_past_epochs = copy(self), len(self.history_)
        fitted.vocabulary_ = self.vocabulary_.copy()
        has_names = label_names is not None or not self.vocabulary_.is_numbered
        if label_names is not None:
            Y = align_columns(fitted.vocabulary_, Y, label_names)
        targets = build_signed_label_matrix(Y, count_rows(inputs), fitted.vocabulary_, grow=True, has_names=has_names)
        weights = None if sample_weight is None else check_sample_weights(sample_weight, targets.shape[0])
        rows = TrainingRows(self.scaling_(inputs), targets, weights, is_update=True)
        report = None if self.replay is None else report_batch(self, rows.inputs, targets, self.stream_)
        buffer = self._select_buffer(rows)
        unseen = None if buffer is None else np.flatnonzero(buffer.label_counts == 0)
        n_labels, parts = len(fitted.vocabulary_), rows.iterate_parts(self.scaling_)
        fitted.space_ = copy_for_training(self.space_, n_labels, parts, self.seed, unseen)
        settings = resolve_continued_settings(
            self._list_parameters(), self.settings_, rows.shape, epochs, self.seed + n_past_epochs, buffer is not None
        )
        history = fitted._train(Trainer(settings), rows)
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
        inputs = self._check_rows(X)
        targets = self._build_truth(Y, count_rows(inputs))
        n, weights = self.space_.n_features, None
        if sample_weight is not None:
            weights = check_sample_weights(sample_weight, count_rows(inputs))
        memory = update_buffer(None, self.scaling_(inputs), n, targets, weights, self.replay, self.seed)
        self.memory_ = self._count_earlier_rows(memory)
        return self

    def _count_earlier_rows(self, memory: ReplayBuffer) -> ReplayBuffer:
        """Return a first buffer for a model with earlier rows, which labels without rows in it must have had."""
        counts = np.maximum(memory.label_counts, 1)
        counts[self.vocabulary_.retired_ids()] = 0
        return replace(memory, label_counts=counts)

    def _select_buffer(self, rows: TrainingRows) -> ReplayBuffer | None:
        """Return the buffer that training on these rows replays."""
        return self.memory_ if rows.is_update and self.replay is not None else None


class LabelSearch(TrainedModel):
    """Base of `Wsabie` that ranks labels by their points."""

    space_: JointSpace
    _caches: tuple[str, ...] = ("_searched", "_approximate")

    @abstractmethod
    def transform(self, X: Any) -> Float32:
        """Return the points of rows."""

    def rank(
        self, X: Any, k: int = 10, *, exclude: Any = None, candidates: Any = None, exact: bool = False
    ) -> tuple[Int64, Float32]:
        """Return the k best labels of each row; an index of the labels may miss some, but scores are exact.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are no candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.
        exact : bool
            Ignore an index (`wsabie.models.index_files.index_labels`); without one every search is exact.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by label number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is no label.

        Examples
        --------
        >>> import numpy as np
        >>> from wsabie.models.wsabie.estimator import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> ids, scores = model.rank(np.eye(3), k=2, candidates=[0, 1])
        >>> ids.shape, scores.dtype
        ((3, 2), dtype('float32'))
        """
        points = self.transform(X)
        candidate_ids = None if candidates is None else self._find_label_ids(candidates)
        index = (None if exact else self._index()) or self.exact_index()
        return index.top_k(points, k, exclude=exclude, candidates=candidate_ids, threads=self.threads)

    def use_index(self, index: "LabelSearchIndex") -> None:
        """Search the labels by an index of them (`wsabie.models.index_files`), until they change."""
        self._approximate = index

    def _index(self) -> "LabelSearchIndex | None":
        """Return the index of the current labels, if there is one."""
        index: LabelSearchIndex | None = self.__dict__.get("_approximate")
        return index if index is not None and index.exact is self.exact_index() else None

    def exact_index(self) -> "ExactIndex":
        """Return the exact search index of the labels, built once for a fitted space."""
        from wsabie.search.exact_index import ExactIndex

        searched: tuple[JointSpace, ExactIndex] | None = self.__dict__.get("_searched")
        if searched is None or searched[0] is not self.space_:
            label_bias, retired_ids = self.space_.bias.copy(), self.vocabulary_.retired_ids()
            label_bias[retired_ids] = 0  # large values would widen the bounds of rounding errors
            bias, similarity = label_bias if label_bias.any() else None, self.space_.similarity
            searched = (
                self.space_,
                ExactIndex(self.label_vectors, bias=bias, similarity=similarity, removed=retired_ids),
            )
            self._searched = searched
        return searched[1]
