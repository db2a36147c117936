"""What a model makes of new rows before it learns from them: figures of each arrival, and a test for drift.

Test first, then train ("prequential": Gama, Sebastiao and Rodrigues, "On evaluating stream learning algorithms",
Machine Learning 2013), so that every row is judged by a model that has not seen it. The loss of a row is 1 - average
precision over the labels that the model knows.

The test is ADWIN (Bifet and Gavalda, "Learning from Time-Changing Data with Adaptive Windowing", SDM 2007), cut between
arrivals: two parts of the window, of n0 and n1 rows, differ where their mean losses are more than

    eps = sqrt(2 v / m * ln(2 / d)) + 2 / (3 m) * ln(2 / d),    1 / m = 1 / n0 + 1 / n1,    d = FALSE_ALARMS / cuts

apart, v the variance of the window: among rows of one law a look finds that with a chance of at most FALSE_ALARMS.
Where the later part is worse, that is drift. Either way the window begins anew with the later part, cut where the gap
is clearest.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wsabie.base.arrays import Csr, Matrix
from wsabie.evaluation.metrics import average_precision, precision_at
from wsabie.evaluation.ranking import ranks_of_points
from wsabie.evaluation.reliability import reliability
from wsabie.models.inputs import Inputs, n_rows, take_rows

FALSE_ALARMS = 0.01
"""The most that a look at rows of one law finds drift with."""
MOST_JUDGED = 2000
"""Rows of an arrival that are judged, evenly spread."""
MOST_KEPT = 1000
"""Arrivals that a model remembers."""
BADLY_CALIBRATED = 0.1
"""Expected calibration error from which on probabilities should be fitted anew."""
_TOP = 10


@dataclass(frozen=True)
class Arrival:
    """New rows as the model saw them before it learnt from them.

    Attributes
    ----------
    rows, judged : int
        All, and those with a label that the model knew, at most 2,000, by which it was judged.
    map, p_at_1 : float or None
        Of the judged rows, over the labels that the model knew; None where there were none.
    loss_variance : float
        Of 1 - average precision.
    ece, brier : float or None
        Expected calibration error of the best label, in 10 bins (Guo et al., "On Calibration of Modern Neural
        Networks", ICML 2017), and the mean squared error of the ten best labels' probabilities; None of a model without
        probabilities.
    unseen_labels, unseen_features : float
        Share of (row, label) pairs with a label, and of values with a feature, that the model had never met.
    moved : float
        How far the points of old labels went when the rows were learnt, on average, in lengths of a point.
    drift : {"", "worse", "better"}
        What the test found.
    window : int
        Arrivals before this one that the test compares later ones with.
    """

    rows: int
    judged: int
    map: float | None
    p_at_1: float | None
    loss_variance: float
    ece: float | None
    brier: float | None
    unseen_labels: float
    unseen_features: float
    moved: float = 0.0
    drift: str = ""
    window: int = 0

    def advice(self) -> str:
        """What to do, in a sentence; empty where all is well."""
        told = []
        if self.drift == "worse":
            told.append("the rows are of another kind than before: train a model on all rows again (wsabie train)")
        if self.ece is not None and self.ece > BADLY_CALIBRATED:
            told.append(
                f"probabilities were off by {self.ece:.2f}: train anew, or from Python call `calibrate` with more rows "
                "that are not learnt"
            )
        return "; ".join(told)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON, with the advice."""
        return {**asdict(self), "advice": self.advice()}


def arrival(model: Any, inputs: Inputs, targets: Matrix, before: Sequence[Arrival]) -> Arrival:
    """Judge scaled rows by a model that has not learnt from them.

    Parameters
    ----------
    model : Wsabie
    inputs : scaled rows
    targets : csr_matrix (n, n_labels)
        Columns beyond the model's labels are labels that it lacks.
    before : sequence of Arrival
    """
    n_known = len(model.vocabulary_)
    pairs = int((targets.data > 0).sum())
    known = targets[:, :n_known]
    labelled = np.flatnonzero(np.diff((known > 0).tocsr().indptr))
    n = min(MOST_JUDGED, len(labelled))
    chosen = labelled[np.linspace(0, len(labelled) - 1, n).astype(int)] if n else labelled
    some, truth = take_rows(inputs, chosen), known[chosen]
    own: dict[str, Any] = {"map": None, "p_at_1": None, "loss_variance": 0.0, "ece": None, "brier": None}
    if n:
        labels, points = model.space_.label_arrays(), model.space_.points(some)
        ranks = ranks_of_points(labels, np.ascontiguousarray(points[:, : labels.table.shape[1]]), truth)
        precision = average_precision(ranks)
        own |= {"map": float(precision.mean()), "p_at_1": float(precision_at(ranks, 1).mean())}
        own["loss_variance"] = float(precision.var())
        if model.calibration_ is not None:
            own |= _calibration(model, points, truth)
    met = None if model.memory_ is None else model.memory_.met
    values = inputs.indices if isinstance(inputs, Csr) else ()
    found = Arrival(
        n_rows(inputs),
        n,
        **own,
        unseen_labels=1 - int((known.data > 0).sum()) / max(pairs, 1),
        unseen_features=float((met[values] == 0).mean()) if met is not None and len(values) else 0.0,
    )
    drift, window = drift_at([*before, found])
    return Arrival(**{**asdict(found), "drift": drift, "window": window})


def drift_at(arrivals: Sequence[Arrival]) -> tuple[str, int]:
    """What the test finds at the last arrival, and how many arrivals before it stay in the window."""
    there = arrivals[-1 - (arrivals[-2].window + 1 if len(arrivals) > 1 else 0) :]
    n = np.array([one.judged for one in there], np.float64)
    mean = np.array([0.0 if one.map is None else 1 - one.map for one in there])
    variance = np.array([one.loss_variance for one in there])
    if not n[-1]:
        return "", len(there) - 1
    whole = float(n @ mean / n.sum())
    spread = float(n @ (variance + (mean - whole) ** 2) / n.sum())
    cuts = [cut for cut in range(1, len(there)) if n[:cut].sum() and n[cut:].sum()]
    most, found = 1.0, ("", len(there) - 1)
    for cut in cuts:
        n0, n1 = n[:cut].sum(), n[cut:].sum()
        m, log = 1 / (1 / n0 + 1 / n1), np.log(2 * len(cuts) / FALSE_ALARMS)
        gap = n[cut:] @ mean[cut:] / n1 - n[:cut] @ mean[:cut] / n0
        beyond = abs(gap) / (np.sqrt(2 * spread / m * log) + 2 / (3 * m) * log)
        if beyond > most:
            most, found = beyond, ("worse" if gap > 0 else "better", len(there) - 1 - cut)
    return found


def _calibration(model: Any, points: Any, truth: Matrix) -> dict[str, float]:
    k = min(_TOP, len(model.vocabulary_) - len(model.vocabulary_.retired()))
    ids, scores = model.exact_index().top_k(np.ascontiguousarray(points[:, : model.space_.dim]), k, threads=1)
    p = model.calibration_.predict_proba(scores, ids)
    right = np.asarray((truth > 0)[np.arange(len(ids))[:, None], ids].todense())
    return {"ece": reliability(p[:, 0], right[:, 0])[1], "brier": float(((p - right) ** 2).mean())}


def moved(before: Any, after: Any) -> float:
    """Mean distance of points that are in both tables, in mean lengths of the first."""
    old = np.asarray(before, np.float32)
    way = np.linalg.norm(after[: len(old), : old.shape[1]] - old, axis=1).mean()
    return float(way / max(float(np.linalg.norm(old, axis=1).mean()), 1e-12))
