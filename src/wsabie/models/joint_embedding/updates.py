"""Updates of a fitted model: training with replay of old rows, and edits of its labels, numbers kept."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Float32, Float64, Int64, Matrix, count_rows
from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_sample_weights
from wsabie.embedding.joint_space import JointSpace
from wsabie.models.base.hyperparameters import check_training, check_types, resolve_continued_settings
from wsabie.models.base.label_matrix import Labels, align_columns, build_signed_label_matrix
from wsabie.models.base.label_model import Candidates, Exclusion, Ranking
from wsabie.models.base.trained_model import TrainedModel
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.drift import MAX_REPORTS, BatchReport, measure_movement, report_batch
from wsabie.models.joint_embedding.replay import ReplayBuffer, Size, check_size
from wsabie.models.joint_embedding.warm_start import copy_for_training, place_new_features
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_index import LabelSearchIndex
from wsabie.training.trainer import Trainer
from wsabie.vocabulary.label_names import Vocabulary

RETIRED = np.float32(-1e5)
"""Bias of a retired label: it violates no margin in training and comes last in every list of scores."""


class UpdatableModel(TrainedModel):
    """Base of `Wsabie`: search of labels by their points, further training, and edits of labels.

    A refused edit leaves the model unchanged.
    """

    _caches: tuple[str, ...] = ("_searched", "_approximate")
    replay: Size = None
    space_: JointSpace
    replay_buffer_: ReplayBuffer | None = None
    batch_reports_: Sequence[BatchReport] = ()

    def partial_fit(
        self,
        X: Matrix,
        Y: Labels,
        *,
        sample_weight: npt.ArrayLike | None = None,
        label_names: Sequence[str] | None = None,
        epochs: int = 5,
    ) -> Self:
        """Continue training with more rows; new labels are added and get the next numbers.

        A new label starts at the mean of its rows' points. The learning rate is a quarter of `fit`'s and constant.
        With a buffer (`replay`) every epoch has old rows among the new ones, and the rate begins as `fit`'s and falls
        to 0. In the end old points are averaged with their previous positions, and new labels are fitted again. On an
        unfitted model this is `fit` with `epochs` epochs. Probabilities need `calibrate` afterwards.

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
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
        >>> list(model.partial_fit(np.eye(3)[:1], ["crimson"]).vocabulary_)
        ['red', 'green', 'blue', 'crimson']
        """
        check_types(type(self), {**self.get_params(deep=False), "epochs": epochs})
        check_training(self._list_parameters())
        check_size(self.replay)
        if not hasattr(self, "space_"):
            return self._fit_first(epochs, X, Y, sample_weight=sample_weight, label_names=label_names)
        inputs = self._check_rows(X)
        fitted, n_past_epochs = copy(self), len(self.history_)
        fitted.vocabulary_ = self.vocabulary_.copy()
        has_names = label_names is not None or not self.vocabulary_.is_numbered
        if label_names is not None:
            Y = align_columns(fitted.vocabulary_, Y, label_names)
        targets = build_signed_label_matrix(Y, count_rows(inputs), fitted.vocabulary_, has_names=has_names)
        weights = None if sample_weight is None else check_sample_weights(sample_weight, targets.shape[0])
        rows = TrainingRows(self.scaling_(inputs), targets, weights, is_update=True)
        report = None if self.replay is None else report_batch(self, rows.inputs, targets, self.batch_reports_)
        buffer = self._select_buffer(rows)
        unseen = None if buffer is None else np.flatnonzero(buffer.label_counts == 0)
        n_labels, parts = len(fitted.vocabulary_), rows.iterate_parts(self.scaling_)
        start = place_new_features(self.space_, rows.inputs, self.seed + n_past_epochs)
        fitted.space_ = copy_for_training(start, n_labels, parts, self.seed, unseen)
        settings = resolve_continued_settings(
            self._list_parameters(), self.settings_, rows.shape, epochs, self.seed + n_past_epochs, buffer is not None
        )
        history = fitted._train(Trainer(settings), rows)
        fitted.history_ = [*self.history_, *(replace(s, epoch=n_past_epochs + s.epoch) for s in history)]
        fitted.calibration_ = None
        if report is not None:
            movement = measure_movement(self.label_vectors, fitted.label_vectors)
            fitted.batch_reports_ = [*self.batch_reports_, replace(report, movement=movement)][-MAX_REPORTS:]
        self._replace_state(fitted)
        return self

    def fill_replay_buffer(self, X: Matrix, Y: Labels, *, sample_weight: npt.ArrayLike | None = None) -> Self:
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
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"]).set_params(replay=2)
        >>> len(model.fill_replay_buffer(np.eye(3), ["red", "green", "blue"]).replay_buffer_)
        2
        """
        check_size(self.replay)
        require(self.replay is not None, "the model keeps no rows; set replay to how many it should keep")
        inputs = self.scaling_(self._check_rows(X))
        targets = self._build_truth(Y, count_rows(inputs))
        weights = None if sample_weight is None else check_sample_weights(sample_weight, count_rows(inputs))
        memory = ReplayBuffer.empty(inputs, self.space_.n_features, targets)
        buffer = memory.add_rows(inputs, targets, weights, self.replay, self.seed)
        self.replay_buffer_ = self._count_earlier_rows(buffer)
        return self

    def _count_earlier_rows(self, memory: ReplayBuffer) -> ReplayBuffer:
        """Return a first buffer for a model with earlier rows, which labels without rows in it must have had."""
        counts = np.maximum(memory.label_counts, 1)
        counts[self.vocabulary_.retired_ids()] = 0
        return replace(memory, label_counts=counts)

    def _select_buffer(self, rows: TrainingRows) -> ReplayBuffer | None:
        """Return the buffer that training on these rows replays."""
        return self.replay_buffer_ if rows.is_update and self.replay is not None else None

    @abstractmethod
    def transform(self, X: Matrix) -> Float32:
        """Return the points of rows."""

    def rank(
        self, X: Matrix, k: int = 10, *, exclude: Exclusion = None, candidates: Candidates = None, exact: bool = False
    ) -> Ranking:
        """Return the k best labels of each row; an index of the labels may miss some, but scores are exact.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        k : int
        exclude : sparse matrix (n, n_labels) or None
            Labels that are not candidates for a row (non-zero entries), for instance those it already has.
        candidates : list of label names or numbers, or None
            Only these labels.
        exact : bool
            Ignore an index (`index_labels`); without one every search is exact.

        Returns
        -------
        ids : (n, k) int64, best first, equal scores by label number; -1 where there are fewer than k candidates
        scores : (n, k) float32, -inf where ids is -1

        Raises
        ------
        InputError
            Another width than the model's, values that are not finite, k below 1, or a candidate that is not a label.

        Examples
        --------
        >>> import numpy as np
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), [0, 1, 2])
        >>> ids, scores = model.rank(np.eye(3), k=2, candidates=[0, 1])
        >>> ids.shape, scores.dtype
        ((3, 2), dtype('float32'))
        """
        points = self.transform(X)
        candidate_ids = None if candidates is None else self._find_label_ids(candidates)
        index = (None if exact else self._index()) or self.exact_index()
        return index.top_k(points, k, exclude=exclude, candidates=candidate_ids, threads=self.threads)

    def use_index(self, index: LabelSearchIndex) -> None:
        """Search the labels by an index of them (`index_labels`), until they change.

        Parameters
        ----------
        index : ApproximateIndex, ScreeningIndex or LabelTree
            Of the labels of this model.
        """
        self._approximate = index

    def _index(self) -> LabelSearchIndex | None:
        """Return the index of the current labels, if there is one."""
        index: LabelSearchIndex | None = self.__dict__.get("_approximate")
        return index if index is not None and index.exact is self.exact_index() else None

    def exact_index(self) -> ExactIndex:
        """Return the exact search index of the labels, built once for a fitted space.

        Returns
        -------
        ExactIndex
        """

        def build() -> ExactIndex:
            label_bias, retired_ids = self.space_.bias.copy(), self.vocabulary_.retired_ids()
            label_bias[retired_ids] = 0  # large values would widen the bounds of rounding errors
            bias, similarity = label_bias if label_bias.any() else None, self.space_.similarity
            return ExactIndex(self.label_vectors, bias=bias, similarity=similarity, removed=retired_ids)

        return self._build_once("_searched", self.space_, build)

    def rename_label(self, old: str, new: str) -> Self:
        """Rename a label; its number and its point stay, and the old name still finds it.

        Parameters
        ----------
        old, new : str

        Raises
        ------
        InputError
            There is no such label, or another label has the new name (see `merge_labels`).

        Examples
        --------
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["rde", "green", "blue"]).rename_label("rde", "red")
        >>> list(model.vocabulary_), model.vocabulary_.ids(["rde"]).tolist()
        (['red', 'green', 'blue'], [0])
        """
        edited = self._copy_vocabulary()
        edited.rename(old, new)
        self.vocabulary_ = edited
        return self

    def merge_labels(self, into: str, sources: Sequence[str]) -> Self:
        """Merge labels: the point of `into` becomes the mean of all, and the source names find it from now on.

        The mean is weighted by the rows of each label if the model has a buffer (`replay`), else all labels count the
        same. For dot and cosine it gets the mean length. The numbers of the source labels stay, but are not candidates.

        Parameters
        ----------
        into : str
            Name of the label that stays.
        sources : list of str
            Names of the labels that are merged into it.

        Raises
        ------
        InputError
            There is no such label, or one would be merged into itself.

        Examples
        --------
        >>> from wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "rouge"]).merge_labels("red", ["rouge"])
        >>> sorted(name for name, score in model.annotate(np.eye(3)[2:], k=3)[0])
        ['green', 'red']
        """
        require(not isinstance(sources, str), f"the labels to merge are the text {sources!r}; give a list of names")
        edited = self._copy_vocabulary()
        retired_ids = edited.merge(into, sources)
        self._apply_edits(edited, retired_ids, int(edited.ids([into])[0]))
        return self

    def remove_labels(self, names: Sequence[str]) -> Self:
        """Remove labels: they are never ranked again, and new labels may get their names with new numbers.

        Parameters
        ----------
        names : sequence of str

        Raises
        ------
        InputError
            There is no such label, or no label would be left.
        """
        require(not isinstance(names, str), f"the labels to remove are the text {names!r}; give a list of names")
        edited = self._copy_vocabulary()
        self._apply_edits(edited, edited.remove(names), None)
        return self

    def _copy_vocabulary(self) -> Vocabulary:
        """Return a copy of the vocabulary for an edit."""
        self._check_fitted()
        if self.kind != "wsabie":
            fact = f"labels of a model of kind {self.kind} cannot be changed"
            raise InputError(f"{fact}; train it again with other names")
        problem = "the labels are nothing but numbers, which stay; train with names of labels to change them"
        require(not self.vocabulary_.is_numbered, problem)
        return self.vocabulary_.copy()

    def _apply_edits(self, edited: Vocabulary, retired_ids: Int64, into: int | None) -> None:
        """Apply a vocabulary in which labels were merged into another one, or removed."""
        require(len(edited.retired_ids()) < len(edited), "no label would be left; keep one")
        space, dtype, index = self.space_.copy(), self.space_.labels.dtype, self._index()
        memory, calibration = self.replay_buffer_, self.calibration_
        if into is not None:
            all_of = np.append(into, retired_ids)
            row_counts = np.ones(len(edited))
            if memory is not None:
                row_counts[: len(memory.label_counts)] = memory.label_counts
            counts = row_counts[all_of]
            shares = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))
            space.labels[into] = _average_points(space.labels[all_of], shares, scaled=space.similarity != "euclidean")
            space.bias[into] = shares @ space.bias[all_of]
            if calibration is not None and calibration.label_offsets is not None:
                offsets = calibration.label_offsets.copy()
                offsets[into] = shares @ offsets[all_of]
                calibration = replace(calibration, label_offsets=offsets)
        space.labels[retired_ids], space.bias[retired_ids] = 0, RETIRED
        space = replace(space, labels=space.labels.astype(dtype, copy=False))  # a float16 model stays float16
        self.replay_buffer_ = memory if memory is None else memory.renumber_labels(edited.current_ids())
        self.space_, self.calibration_, self.vocabulary_ = space, calibration, edited
        changed = retired_ids if into is None else np.append(retired_ids, into)
        if index is not None and (followed := index.follow_changes(self.exact_index(), changed)) is not None:
            self.use_index(followed)


def _average_points(points: Float32, shares: Float64, *, scaled: bool) -> Float64:
    """Return the mean point; `scaled` gives it the mean length, unless the points cancel out."""
    mean: Float64 = shares @ points
    length, target_length = float(np.linalg.norm(mean)), float(shares @ np.linalg.norm(points, axis=1))
    return mean * (target_length / length) if scaled and length > 1e-6 * target_length else mean
