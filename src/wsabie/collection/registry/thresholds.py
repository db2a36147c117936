"""Probability thresholds, from held-out items, at which suggestions keep a promised precision.

The promise: in 9 of 10 draws of the held-out items, at least a share `precision` of all suggestions from the common
threshold on is right, and so is that of each label from its own threshold on. It holds for finite samples, by Learn
then Test (Angelopoulos et al. 2021): an exact binomial test has to show it for each threshold.

- Tests run from the most probable suggestions downwards in a fixed order and end at the first failure (fixed-sequence
  testing). They begin at several sizes, which share the error. The order depends on no outcome.
- The suggestions of a burst are right or wrong together at worst, so m of them on bursts with m_i count as
  m^2 / sum(m_i^2) independent ones.
- All labels share the common threshold, rare ones too. Labels with many held-out suggestions are tested by themselves
  as well, and get a threshold of their own where it is lower.

A suggestion for a held-out item counts as wrong unless it was accepted, even if nobody has reviewed it, so the
estimated precision is cautious.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Float64, Int64
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.models.annotators import Annotator, ThresholdFunction
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

PRECISIONS = (0.8, 0.9, 0.95)
"""Precisions for which thresholds are reported."""
ERROR = 0.1
"""Probability that a promise fails, over draws of the held-out items."""
MIN_LABEL_SUGGESTIONS = 100
"""Minimum number of held-out suggestions for a label's own threshold."""

_LABEL_SHARE = 0.2  # of the error, for labels by themselves
_FIRST, _GROWTH = 25, 5  # tests begin at 25, 125, 625 ... independent suggestions
_STEP = 1.1  # the next test has so many times the suggestions
_KIND = "holdout suggestions"


class HoldoutSuggestions(NamedTuple):
    """Suggestions for held-out items: labels, probabilities, whether right, and bursts (None: all differ)."""

    labels: Int64  # (n,)
    probabilities: Float64  # (n,)
    right: Int64  # (n,) 0 or 1
    items: Int64 | None = None  # (n,)

    def select(self, label: int) -> "HoldoutSuggestions":
        """Return the suggestions of a label."""
        rows = self.labels == label
        items = None if self.items is None else self.items[rows]
        return HoldoutSuggestions(self.labels[rows], self.probabilities[rows], self.right[rows], items)


class Threshold(NamedTuple):
    """Lowest probabilities whose suggestions keep a promised precision.

    Attributes
    ----------
    precision : float
        Promised precision.
    common : float or None
        Threshold of labels without their own; None if no probability is high enough.
    by_label : dict of int to float
        Lower thresholds by label id.
    """

    precision: float
    common: float | None
    by_label: dict[int, float]

    def get_probability(self, label: int) -> float:
        """Return the threshold of a label; above 1 if no probability is high enough."""
        probability = self.by_label.get(label, self.common)
        return 2.0 if probability is None else probability

    def by_column(self, labels: Int64) -> ThresholdFunction:
        """Return the function from columns of a model, with these label ids, to thresholds."""

        def get_thresholds(columns: Int64) -> Float64:
            distinct, inverse = np.unique(labels[columns], return_inverse=True)
            return np.array([self.get_probability(int(label)) for label in distinct])[inverse].reshape(columns.shape)

        return get_thresholds


class PrecisionSteps:
    """Highest precision that the tests allow for suggestions from each probability on, but for an `error`.

    Examples
    --------
    >>> labels, p, right = np.zeros(100, int), np.linspace(1, 0.01, 100), (np.arange(100) < 50).astype(int)
    >>> steps = PrecisionSteps(HoldoutSuggestions(labels, p, right), 0.1)
    >>> round(steps.find_probability(0.8), 2)  # 50 of 54 show .857; the next test, 50 of 60, shows .755
    0.47
    >>> steps.read_precision(np.array([0.47])).round(3)
    array([0.857])
    """

    def __init__(self, suggestions: HoldoutSuggestions, error: float) -> None:
        _, probabilities, right, items = suggestions
        order = np.argsort(-probabilities, kind="stable")
        p, hits, n = probabilities[order], np.cumsum(right[order]), np.arange(1, len(order) + 1)
        size = n.astype(np.float64) if items is None else count_independent(items[order])
        ends = np.append(p[1:] < p[:-1], True) if len(p) else np.zeros(0, bool)  # ties stay together
        p, share, n, size = p[ends], hits[ends] / n[ends], n[ends], size[ends]
        precisions = np.zeros(len(p))
        starts = _find_starts(size)
        for start in starts:
            sizes = n[start] * _STEP ** np.arange(np.log(n[-1] / n[start]) / np.log(_STEP))
            steps = np.unique(np.searchsorted(n, np.append(sizes, n[-1])))
            bounds = compute_lower_bound(share[steps] * size[steps], size[steps], error / len(starts))
            precisions[steps] = np.maximum(precisions[steps], np.minimum.accumulate(bounds))
        self._probabilities = p[::-1]  # ascending
        self._precisions = np.append(np.maximum.accumulate(precisions[::-1]), 0.0)  # one more for lower ones

    def read_precision(self, probabilities: Float64) -> Float64:
        """Return the precision promised from each probability on."""
        return np.asarray(self._precisions[np.searchsorted(self._probabilities, probabilities, side="right") - 1])

    def find_probability(self, precision: float) -> float | None:
        """Return the lowest probability whose suggestions have a precision; None if there is none."""
        first = int(np.searchsorted(self._precisions[:-1], precision))
        return float(self._probabilities[first]) if first < len(self._probabilities) else None


class PrecisionCurve:
    """Promised precision of suggestions as a function of their probability, and its inverse.

    Parameters
    ----------
    suggestions : HoldoutSuggestions
    """

    def __init__(self, suggestions: HoldoutSuggestions) -> None:
        labels, counts = np.unique(suggestions.labels, return_counts=True)
        frequent = labels[counts >= MIN_LABEL_SUGGESTIONS].tolist()
        error = _LABEL_SHARE * ERROR / max(len(frequent), 1)
        self._common = PrecisionSteps(suggestions, (1 - _LABEL_SHARE) * ERROR)
        self._by_label_id = {label: PrecisionSteps(suggestions.select(label), error) for label in frequent}

    def read_precision(self, labels: Int64, probabilities: Float64) -> Float64:
        """Return the highest precision whose threshold each suggestion reaches; 0 if there is none.

        Parameters
        ----------
        labels : (n,) int64
        probabilities : (n,) float64
        """
        precisions = self._common.read_precision(probabilities)
        for label, steps in self._by_label_id.items():
            is_of_label = labels == label
            label_precisions = steps.read_precision(probabilities[is_of_label])
            precisions[is_of_label] = np.maximum(precisions[is_of_label], label_precisions)
        return precisions

    def find_threshold(self, precision: float) -> Threshold:
        """Return the lowest probabilities whose suggestions keep a promised precision.

        Raises
        ------
        InputError
            The precision is not a share.
        """
        if not 0 < precision <= 1:
            raise InputError(f"a precision of {precision:g} cannot be; give a share above 0 and up to 1, such as 0.9")
        common = self._common.find_probability(precision)
        candidates = {label: steps.find_probability(precision) for label, steps in self._by_label_id.items()}
        by_label = {label: p for label, p in candidates.items() if p is not None and (common is None or p < common)}
        return Threshold(precision, common, by_label)


def compute_lower_bound(hits: npt.ArrayLike, n: npt.ArrayLike, error: float) -> Float64:
    """Compute the lower confidence bound of a share (Clopper and Pearson 1934).

    Examples
    --------
    >>> compute_lower_bound([0, 10, 45], [10, 10, 45], 0.1).round(4)  # 0, .1^(1/10), .1^(1/45)
    array([0.    , 0.7943, 0.9501])
    """
    from scipy.special import betaincinv

    x, size = np.asarray(hits, np.float64), np.asarray(n, np.float64)
    return np.where(x > 0, betaincinv(np.maximum(x, 1e-9), size - x + 1, error), 0.0)


def count_independent(items: Int64) -> Float64:
    """Return the number of independent suggestions among the first 1, 2, ... n: an item's go together.

    Examples
    --------
    >>> count_independent(np.array([4, 7, 7, 7])).round(2)  # 1, 2, 9 / 5, 16 / 10
    array([1. , 2. , 1.8, 1.6])
    """
    order = np.argsort(items, kind="stable")
    _, starts, counts = np.unique(items[order], return_index=True, return_counts=True)
    earlier = np.empty(len(items), np.int64)  # suggestions of the same item before each
    earlier[order] = np.arange(len(items)) - np.repeat(starts, counts)
    return np.arange(1, len(items) + 1) ** 2 / np.cumsum(2 * earlier + 1)


def _find_starts(size: Float64) -> list[int]:
    """Return the first positions with 25, 125, 625 ... independent suggestions, or with half of fewer."""
    starts, most = set[int](), size.max(initial=0)
    least = min(_FIRST, most / 2)
    while 0 < least <= most:
        starts.add(int(np.argmax(size >= least)))
        least *= _GROWTH
    return sorted(starts)


def read_thresholds(model: Path, annotator: Annotator, precision: float) -> ThresholdFunction:
    """Return the lowest probabilities whose labels keep a promised precision, for the model of a folder.

    Raises
    ------
    InputError
        The model has no evaluation on held-out items of a collection, the evaluation is damaged, or the precision is no
        share.
    """
    label_ids = annotator.facts.get("label_ids")
    is_calibrated = getattr(annotator.model, "calibration_", None) is not None and label_ids is not None
    if (
        not is_calibrated
        or len(label_ids or ()) != len(annotator.model.vocabulary_)
        or not (model / "holdout").is_dir()
    ):
        raise InputError(
            f"it is unknown how often the labels of {model} are right: models are judged by the held-out items of a "
            "collection; make one: `collection.init(DIR)`, let it learn: `collection.train(DIR)`, and give the folder "
            "of its model, in DIR/.wsabie/models"
        )
    curve = PrecisionCurve(load_holdout_suggestions(model))
    return curve.find_threshold(precision).by_column(np.array(label_ids, np.int64))


def save_holdout_suggestions(model: Path, suggestions: HoldoutSuggestions) -> None:
    """Save held-out suggestions beside the model."""
    tensors = {name: column for name, column in suggestions._asdict().items() if column is not None}
    save_model_folder(model / "holdout", ModelState(_KIND, {}, tensors))


def load_holdout_suggestions(model: Path) -> HoldoutSuggestions:
    """Return the saved held-out suggestions.

    Raises
    ------
    InputError
        They are missing or damaged.
    """
    try:
        tensors = open_model_folder(model / "holdout").tensors
        return HoldoutSuggestions(tensors["labels"], tensors["probabilities"], tensors["right"], tensors.get("items"))
    except (ModelFolderError, KeyError) as error:
        raise InputError(f"what {model} was judged by is damaged ({error}); train again") from error
