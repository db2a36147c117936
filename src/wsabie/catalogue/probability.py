"""From which probability on suggestions of a model are right as often as is wanted, as far as held-out items tell.

What is suggested for a held-out item and was not accepted there counts as wrong, also where nobody has looked yet: the
precision that is found is a cautious one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float64, Int64
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.models.annotator import Annotator
from wsabie.models.sure import Least
from wsabie.storage.folder import Parts, load_folder, save_folder

PRECISIONS = (0.8, 0.9, 0.95)
"""How often suggestions are to be right, for the thresholds that are told."""
FEWEST_OF_LABEL = 30
"""Held-out suggestions of a label with which it gets a threshold of its own."""

_KIND = "judged suggestions"


class Judged(NamedTuple):
    """Suggestions for held-out items: their labels, probabilities, and whether they are right."""

    labels: Int64  # (n,)
    probabilities: Float64  # (n,)
    right: Int64  # (n,) 0 or 1


class Threshold(NamedTuple):
    """Probabilities from which on suggestions are right as often as is wanted.

    Attributes
    ----------
    precision : float
        What is wanted.
    common : float or None
        Of labels without their own; None: no probability is high enough.
    own : dict of int to (float or None)
        By number of label.
    """

    precision: float
    common: float | None
    own: dict[int, float | None]

    def of(self, label: int) -> float:
        """For one label; above 1 where no probability is high enough."""
        found = self.own.get(label, self.common)
        return 2.0 if found is None else found

    def by_column(self, labels: Int64) -> Least:
        """The same for columns of a model, whose labels have these numbers."""

        def least(columns: Int64) -> Float64:
            known, at = np.unique(labels[columns], return_inverse=True)
            return np.array([self.of(int(label)) for label in known])[at].reshape(columns.shape)

        return least


class Sureness:
    """How often suggestions such as these are right, from their probability on: `threshold_of` the other way round.

    Parameters
    ----------
    judged : Judged
    """

    def __init__(self, judged: Judged) -> None:
        self._common = _steps(judged.probabilities, judged.right)
        self._own = {label: _steps(p, right) for label, p, right in _by_label(judged)}

    def of(self, labels: Int64, probabilities: Float64) -> Float64:
        """The highest precision of which each reaches the threshold; 0 where there is none.

        Parameters
        ----------
        labels : (n,) int64
        probabilities : (n,) float64
        """
        found = _reached(self._common, probabilities)
        order = np.argsort(labels, kind="stable")
        distinct, begins = np.unique(labels[order], return_index=True)
        for label, places in zip(distinct.tolist(), np.split(order, begins[1:]), strict=True):
            if label in self._own:
                found[places] = _reached(self._own[label], probabilities[places])
        return found


def threshold_of(judged: Judged, precision: float) -> Threshold:
    """The probabilities from which on suggestions such as these are right that often.

    Raises
    ------
    InputError
        The precision is no share.
    """
    if not 0 < precision <= 1:
        raise InputError(f"a precision of {precision:g} cannot be; give a share above 0 and up to 1, such as 0.9")
    own = {label: lowest(p, right, precision) for label, p, right in _by_label(judged)}
    return Threshold(precision, lowest(judged.probabilities, judged.right, precision), own)


def lowest(probabilities: Float64, right: Int64, precision: float) -> float | None:
    """The lowest probability of which all from it on are right often enough; None where there is none.

    One wrong suggestion is counted beside those that were seen, so that a few that happen to be right are not enough.

    Examples
    --------
    >>> p, right = np.linspace(1, 0.01, 100), (np.arange(100) < 50).astype(int)
    >>> lowest(p, right, 0.9).__round__(2)  # 50 of 54, and one more wrong
    0.47
    >>> lowest(p[:5], right[:5], 0.9) is None
    True
    """
    p, share = _shares(probabilities, right)
    good = np.flatnonzero(share >= precision)
    return float(p[good[-1]]) if len(good) else None


def _by_label(judged: Judged) -> Iterator[tuple[int, Float64, Int64]]:
    """The suggestions of each label that has enough."""
    order = np.argsort(judged.labels, kind="stable")
    p, right = judged.probabilities[order], judged.right[order]
    labels, begins, counts = np.unique(judged.labels[order], return_index=True, return_counts=True)
    for at in np.flatnonzero(counts >= FEWEST_OF_LABEL):
        chosen = slice(begins[at], begins[at] + counts[at])
        yield int(labels[at]), p[chosen], right[chosen]


def _shares(probabilities: Float64, right: Int64) -> tuple[Float64, Float64]:
    """Probabilities, highest first, and how many of all from each on are right."""
    order = np.argsort(-probabilities, kind="stable")
    p, hits = probabilities[order], np.cumsum(right[order])
    share = hits / (np.arange(1, len(p) + 1) + 1)
    ends = np.append(p[1:] < p[:-1], True) if len(p) else np.zeros(0, bool)  # ties stay together
    return p[ends], share[ends]


def _steps(probabilities: Float64, right: Int64) -> tuple[Float64, Float64]:
    """Probabilities, ascending, and the highest precision that is reached from each on."""
    p, share = _shares(probabilities, right)
    return p[::-1], np.append(np.maximum.accumulate(share[::-1]), 0.0)


def _reached(steps: tuple[Float64, Float64], probabilities: Float64) -> Float64:
    found: Float64 = steps[1][np.searchsorted(steps[0], probabilities, side="right") - 1]
    return found


def least_of(model: Path, annotator: Annotator, precision: float) -> Least:
    """From which probabilities on labels of a model that lies in this folder are right that often.

    Raises
    ------
    InputError
        It was not judged by the held-out items of a collection, what it was judged by is damaged, or the precision is
        no share.
    """
    numbers = annotator.facts.get("label_ids")
    fitted = getattr(annotator.model, "calibration_", None) is not None and numbers is not None
    if not fitted or len(numbers or ()) != len(annotator.model.vocabulary_) or not (model / "judged").is_dir():
        raise InputError(
            f"nobody knows how often the labels of {model} are right: models are judged by the held-out items of a "
            "collection; make one (wsabie collection init DIR), let it learn (wsabie collection train DIR), and give "
            "the folder of its model, in DIR/.wsabie/models"
        )
    return threshold_of(load_judged(model), precision).by_column(np.array(numbers, np.int64))


def save_judged(model: Path, judged: Judged) -> None:
    """Keep them beside the model."""
    save_folder(model / "judged", Parts(_KIND, {}, judged._asdict()))


def load_judged(model: Path) -> Judged:
    """What was kept.

    Raises
    ------
    InputError
        It is gone or damaged.
    """
    try:
        tensors = load_folder(model / "judged").tensors
        return Judged(tensors["labels"], tensors["probabilities"], tensors["right"])
    except (ModelFolderError, KeyError) as error:
        raise InputError(f"what {model} was judged by is damaged ({error}); train again") from error
