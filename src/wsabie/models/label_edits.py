"""Labels of a trained model renamed, merged and removed: numbers stay, and nobody else gets them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64
from wsabie.base.errors import InputError
from wsabie.base.validation import require
from wsabie.labels.names import Vocabulary

if TYPE_CHECKING:
    from wsabie.models.replay import Memory
    from wsabie.search.exact import ExactIndex
    from wsabie.search.measured import MeasuredIndex

RETIRED = np.float32(-1e5)
"""The bias of a label that is none any more: no violator in training, and the last in every list of scores."""


class LabelEdits:
    """What `Wsabie` can do with its labels after training; each leaves the model as it was when it is refused."""

    kind: ClassVar[str]
    space_: Any
    calibration_: Any
    memory_: "Memory | None"
    vocabulary_: Vocabulary
    exact_index: Callable[[], "ExactIndex"]
    use_index: Callable[["MeasuredIndex"], None]
    _index: Callable[[], "MeasuredIndex | None"]

    def rename_label(self, old: str, new: str) -> Self:
        """Give a label another name; its number and its point stay, and the old name still leads to it.

        Raises
        ------
        InputError
            There is no such label, or another one is called so (`merge_labels` puts two together).

        Examples
        --------
        >>> from wsabie.models.wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["rde", "green", "blue"]).rename_label("rde", "red")
        >>> list(model.vocabulary_), model.vocabulary_.ids(["rde"]).tolist()
        (['red', 'green', 'blue'], [0])
        """
        edited = self._edited()
        edited.rename(old, new)
        self.vocabulary_ = edited
        return self

    def merge_labels(self, into: str, others: Sequence[str]) -> Self:
        """Put labels together: the point of `into` becomes their mean, and the others are names of it from now on.

        The mean is weighted by the rows of each where the model keeps a buffer (`replay`), and even otherwise; where
        length is no part of the similarity's meaning it gets the mean length. The numbers of the others stay, and are
        no candidates any more.

        Parameters
        ----------
        into : str
        others : list of str

        Raises
        ------
        InputError
            There is no such label, or one would be merged into itself.

        Examples
        --------
        >>> from wsabie.models.wsabie import Wsabie
        >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "rouge"]).merge_labels("red", ["rouge"])
        >>> sorted(name for name, score in model.annotate(np.eye(3)[2:], k=3)[0])
        ['green', 'red']
        """
        require(not isinstance(others, str), f"the labels to merge are the text {others!r}; give a list of names")
        edited = self._edited()
        gone = edited.merge(into, others)
        self._settle(edited, gone, int(edited.ids([into])[0]))
        return self

    def remove_labels(self, names: Sequence[str]) -> Self:
        """Forget labels: they are never ranked again, and their names are free for new ones with new numbers.

        Raises
        ------
        InputError
            There is no such label, or none would be left.
        """
        require(not isinstance(names, str), f"the labels to remove are the text {names!r}; give a list of names")
        edited = self._edited()
        self._settle(edited, edited.remove(names), None)
        return self

    def _edited(self) -> Vocabulary:
        """A copy of the vocabulary to be changed."""
        self._check_fitted()  # type: ignore[attr-defined]
        if self.kind != "wsabie":
            raise InputError(
                f"labels of a model of kind {self.kind} cannot be changed; train it again with other names"
            )
        require(
            not self.vocabulary_.numbered,
            "the labels are nothing but numbers, which stay; train with names of labels to change them",
        )
        return self.vocabulary_.copy()

    def _settle(self, edited: Vocabulary, gone: Int64, into: int | None) -> None:
        """Take over a vocabulary in which labels went into another one, or into nothing."""
        require(len(edited.retired()) < len(edited), "no label would be left; keep one")
        space, wanted, index = self.space_.copy(), self.space_.labels.dtype, self._index()
        memory, calibration = self.memory_, self.calibration_
        if into is not None:
            all_of = np.append(into, gone)
            seen = np.ones(len(edited))
            if memory is not None:
                seen[: len(memory.seen)] = memory.seen
            shares = _shares(seen[all_of])
            space.labels[into] = _mean(space.labels[all_of], shares, scaled=space.similarity != "euclidean")
            space.bias[into] = shares @ space.bias[all_of]
            if calibration is not None and calibration.label_offsets is not None:
                offsets = calibration.label_offsets.copy()
                offsets[into] = shares @ offsets[all_of]
                calibration = replace(calibration, label_offsets=offsets)
        space.labels[gone], space.bias[gone] = 0, RETIRED
        space = replace(space, labels=space.labels.astype(wanted, copy=False))  # those of a halved model stay halves
        self.memory_ = memory if memory is None else memory.following(edited.now())
        self.space_, self.calibration_, self.vocabulary_ = space, calibration, edited
        changed = gone if into is None else np.append(gone, into)
        if index is not None and (followed := index.following(self.exact_index(), changed)) is not None:
            self.use_index(followed)


def _shares(counts: Any) -> Float64:
    """Weights that add up to 1; even ones where nothing was counted."""
    shares: Float64 = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))
    return shares


def _mean(points: Float32, shares: Float64, *, scaled: bool) -> Float64:
    """The mean point; `scaled` brings it to the mean length, unless the points cancel out."""
    mean: Float64 = shares @ points
    length, wanted = float(np.linalg.norm(mean)), float(shares @ np.linalg.norm(points, axis=1))
    return mean * (wanted / length) if scaled and length > 1e-6 * wanted else mean
