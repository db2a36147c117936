"""Renaming, merging and removing labels of a trained model; their numbers stay and are not used again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Float32, Float64, Int64
from wsabie.core.errors import InputError
from wsabie.core.validation import require
from wsabie.models.wsabie.continued_training import ContinuedTraining, LabelSearch
from wsabie.vocabulary.label_names import Vocabulary

RETIRED = np.float32(-1e5)
"""Bias of a retired label: it violates no margin in training and comes last in every list of scores."""


class LabelEdits(ContinuedTraining, LabelSearch):
    """Base of `Wsabie` that edits the labels of a trained model; a refused edit leaves the model unchanged."""

    def rename_label(self, old: str, new: str) -> Self:
        """Rename a label; its number and its point stay, and the old name still finds it.

        Raises
        ------
        InputError
            There is no such label, or another label has the new name (see `merge_labels`).

        Examples
        --------
        >>> from wsabie.models.wsabie.estimator import Wsabie
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
        same. For dot and cosine it gets the mean length. The numbers of the source labels stay, but are no candidates.

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
        >>> from wsabie.models.wsabie.estimator import Wsabie
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
            raise InputError(
                f"labels of a model of kind {self.kind} cannot be changed; train it again with other names"
            )
        require(
            not self.vocabulary_.is_numbered,
            "the labels are nothing but numbers, which stay; train with names of labels to change them",
        )
        return self.vocabulary_.copy()

    def _apply_edits(self, edited: Vocabulary, retired_ids: Int64, into: int | None) -> None:
        """Apply a vocabulary in which labels were merged into another one, or removed."""
        require(len(edited.retired_ids()) < len(edited), "no label would be left; keep one")
        space, dtype, index = self.space_.copy(), self.space_.labels.dtype, self._index()
        memory, calibration = self.memory_, self.calibration_
        if into is not None:
            all_of = np.append(into, retired_ids)
            row_counts = np.ones(len(edited))
            if memory is not None:
                row_counts[: len(memory.label_counts)] = memory.label_counts
            shares = _compute_shares(row_counts[all_of])
            space.labels[into] = _average_points(space.labels[all_of], shares, scaled=space.similarity != "euclidean")
            space.bias[into] = shares @ space.bias[all_of]
            if calibration is not None and calibration.label_offsets is not None:
                offsets = calibration.label_offsets.copy()
                offsets[into] = shares @ offsets[all_of]
                calibration = replace(calibration, label_offsets=offsets)
        space.labels[retired_ids], space.bias[retired_ids] = 0, RETIRED
        space = replace(space, labels=space.labels.astype(dtype, copy=False))  # a float16 model stays float16
        self.memory_ = memory if memory is None else memory.renumber_labels(edited.current_ids())
        self.space_, self.calibration_, self.vocabulary_ = space, calibration, edited
        changed = retired_ids if into is None else np.append(retired_ids, into)
        if index is not None and (followed := index.follow_changes(self.exact_index(), changed)) is not None:
            self.use_index(followed)


def _compute_shares(counts: Any) -> Float64:
    """Return weights that add up to 1; equal ones if all counts are 0."""
    shares: Float64 = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))
    return shares


def _average_points(points: Float32, shares: Float64, *, scaled: bool) -> Float64:
    """Return the mean point; `scaled` gives it the mean length, unless the points cancel out."""
    mean: Float64 = shares @ points
    length, target_length = float(np.linalg.norm(mean)), float(shares @ np.linalg.norm(points, axis=1))
    return mean * (target_length / length) if scaled and length > 1e-6 * target_length else mean
