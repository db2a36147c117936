"""From which probability on suggestions of a model are right as often as is wanted, as far as held-out items tell.

What is suggested for a held-out item and was not accepted there counts as wrong, also where nobody has looked yet: the
precision that is found is a cautious one.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from wsabie.base.arrays import Float64, Int64
from wsabie.base.errors import InputError, ModelFolderError
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


def threshold_of(judged: Judged, precision: float) -> Threshold:
    """The probabilities from which on suggestions such as these are right that often.

    Raises
    ------
    InputError
        The precision is no share.
    """
    if not 0 < precision <= 1:
        raise InputError(f"a precision of {precision:g} cannot be; give a share above 0 and up to 1, such as 0.9")
    order = np.argsort(judged.labels, kind="stable")
    p, right = judged.probabilities[order], judged.right[order]
    labels, begins, counts = np.unique(judged.labels[order], return_index=True, return_counts=True)
    own: dict[int, float | None] = {}
    for at in np.flatnonzero(counts >= FEWEST_OF_LABEL):
        chosen = slice(begins[at], begins[at] + counts[at])
        own[int(labels[at])] = lowest(p[chosen], right[chosen], precision)
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
    order = np.argsort(-probabilities, kind="stable")
    p, hits = probabilities[order], np.cumsum(right[order])
    share = hits / (np.arange(1, len(p) + 1) + 1)
    ends = np.append(p[1:] < p[:-1], True) if len(p) else np.zeros(0, bool)  # ties stay together
    good = np.flatnonzero((share >= precision) & ends)
    return float(p[good[-1]]) if len(good) else None


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
