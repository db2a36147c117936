"""Probability thresholds at which a model's suggestions reach a precision, from held-out items.

A suggestion for a held-out item counts as wrong unless it was accepted, even if nobody has reviewed it, so the
estimated precision is cautious.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.models.annotators import Annotator, ThresholdFunction
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

PRECISIONS = (0.8, 0.9, 0.95)
"""Precisions for which thresholds are reported."""
FEWEST_OF_LABEL = 30
"""Minimum number of held-out suggestions for a label's own threshold."""

_KIND = "judged suggestions"


class HoldoutSuggestions(NamedTuple):
    """Suggestions for held-out items: labels, probabilities, and whether each is right."""

    labels: Int64  # (n,)
    probabilities: Float64  # (n,)
    right: Int64  # (n,) 0 or 1


class Threshold(NamedTuple):
    """Lowest probabilities whose suggestions reach a precision.

    Attributes
    ----------
    precision : float
        Required precision.
    common : float or None
        Threshold of labels without their own; None if no probability is high enough.
    by_label : dict of int to (float or None)
        Thresholds by label id.
    """

    precision: float
    common: float | None
    by_label: dict[int, float | None]

    def of(self, label: int) -> float:
        """Return the threshold of a label; above 1 if no probability is high enough."""
        probability = self.by_label.get(label, self.common)
        return 2.0 if probability is None else probability

    def by_column(self, labels: Int64) -> ThresholdFunction:
        """Return the function from columns of a model, with these label ids, to thresholds."""

        def get_thresholds(columns: Int64) -> Float64:
            distinct, inverse = np.unique(labels[columns], return_inverse=True)
            return np.array([self.of(int(label)) for label in distinct])[inverse].reshape(columns.shape)

        return get_thresholds


class PrecisionCurve:
    """Precision of suggestions as a function of their probability, the inverse of `compute_threshold`.

    Parameters
    ----------
    suggestions : HoldoutSuggestions
    """

    def __init__(self, suggestions: HoldoutSuggestions) -> None:
        self._common = _compute_steps(suggestions.probabilities, suggestions.right)
        self._by_label_id = {label: _compute_steps(p, right) for label, p, right in _group_by_label(suggestions)}

    def of(self, labels: Int64, probabilities: Float64) -> Float64:
        """Return the highest precision whose threshold each suggestion reaches; 0 if there is none.

        Parameters
        ----------
        labels : (n,) int64
        probabilities : (n,) float64
        """
        precisions = _read_precision(self._common, probabilities)
        order = np.argsort(labels, kind="stable")
        distinct, starts = np.unique(labels[order], return_index=True)
        for label, places in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
            if label in self._by_label_id:
                precisions[places] = _read_precision(self._by_label_id[label], probabilities[places])
        return precisions


def compute_threshold(suggestions: HoldoutSuggestions, precision: float) -> Threshold:
    """Return the lowest probabilities whose suggestions reach a precision.

    Raises
    ------
    InputError
        The precision is no share.
    """
    if not 0 < precision <= 1:
        raise InputError(f"a precision of {precision:g} cannot be; give a share above 0 and up to 1, such as 0.9")
    by_label = {label: find_lowest_probability(p, right, precision) for label, p, right in _group_by_label(suggestions)}
    common = find_lowest_probability(suggestions.probabilities, suggestions.right, precision)
    return Threshold(precision, common, by_label)


def find_lowest_probability(probabilities: Float64, right: Int64, precision: float) -> float | None:
    """Return the lowest probability whose suggestions reach `precision`; None if there is none.

    One wrong suggestion is added to the observed ones, so that a few lucky hits are not enough.

    Examples
    --------
    >>> p, right = np.linspace(1, 0.01, 100), (np.arange(100) < 50).astype(int)
    >>> find_lowest_probability(p, right, 0.9).__round__(2)  # 50 of 54, and one more wrong
    0.47
    >>> find_lowest_probability(p[:5], right[:5], 0.9) is None
    True
    """
    p, highest = _compute_steps(probabilities, right)
    first = int(np.searchsorted(highest[:-1], precision))
    return float(p[first]) if first < len(p) else None


def _group_by_label(suggestions: HoldoutSuggestions) -> Iterator[tuple[int, Float64, Int64]]:
    """Yield the suggestions of each label that has enough."""
    order = np.argsort(suggestions.labels, kind="stable")
    p, right = suggestions.probabilities[order], suggestions.right[order]
    labels, starts, counts = np.unique(suggestions.labels[order], return_index=True, return_counts=True)
    for i in np.flatnonzero(counts >= FEWEST_OF_LABEL):
        rows = slice(starts[i], starts[i] + counts[i])
        yield int(labels[i]), p[rows], right[rows]


def _compute_steps(probabilities: Float64, right: Int64) -> tuple[Float64, Float64]:
    """Return probabilities in ascending order and the highest precision reached from each on."""
    order = np.argsort(-probabilities, kind="stable")
    p, hits = probabilities[order], np.cumsum(right[order])
    share = hits / (np.arange(1, len(p) + 1) + 1)
    ends = np.append(p[1:] < p[:-1], True) if len(p) else np.zeros(0, bool)  # ties stay together
    return p[ends][::-1], np.append(np.maximum.accumulate(share[ends][::-1]), 0.0)


def _read_precision(steps: tuple[Float64, Float64], probabilities: Float64) -> Float64:
    precisions: Float64 = steps[1][np.searchsorted(steps[0], probabilities, side="right") - 1]
    return precisions


def read_thresholds(model: Path, annotator: Annotator, precision: float) -> ThresholdFunction:
    """Return the lowest probabilities whose labels reach a precision, for the model of a folder.

    Raises
    ------
    InputError
        The model has no evaluation on held-out items of a collection, the evaluation is damaged, or the precision is no
        share.
    """
    numbers = annotator.facts.get("label_ids")
    is_calibrated = getattr(annotator.model, "calibration_", None) is not None and numbers is not None
    if not is_calibrated or len(numbers or ()) != len(annotator.model.vocabulary_) or not (model / "judged").is_dir():
        raise InputError(
            f"nobody knows how often the labels of {model} are right: models are judged by the held-out items of a "
            "collection; make one (wsabie collection init DIR), let it learn (wsabie collection train DIR), and give "
            "the folder of its model, in DIR/.wsabie/models"
        )
    return compute_threshold(load_holdout_suggestions(model), precision).by_column(np.array(numbers, np.int64))


def save_holdout_suggestions(model: Path, suggestions: HoldoutSuggestions) -> None:
    """Save held-out suggestions beside the model."""
    save_model_folder(model / "judged", ModelState(_KIND, {}, suggestions._asdict()))


def load_holdout_suggestions(model: Path) -> HoldoutSuggestions:
    """Return the saved held-out suggestions.

    Raises
    ------
    InputError
        They are missing or damaged.
    """
    try:
        tensors = open_model_folder(model / "judged").tensors
        return HoldoutSuggestions(tensors["labels"], tensors["probabilities"], tensors["right"])
    except (ModelFolderError, KeyError) as error:
        raise InputError(f"what {model} was judged by is damaged ({error}); train again") from error
