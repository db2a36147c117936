"""Evaluation of new rows before the model learns from them, and a test for drift.

Each batch is tested first and then used for training ("prequential": Gama, Sebastiao and Rodrigues, "On evaluating
stream learning algorithms", Machine Learning 2013), so every row is evaluated by a model that has not seen it. The loss
of a row is 1 - average precision over the labels that the model knows.

The test is ADWIN (Bifet and Gavalda, "Learning from Time-Changing Data with Adaptive Windowing", SDM 2007), cut between
batches: two parts of the window, of n0 and n1 rows, differ if their mean losses are more than

    eps = sqrt(2 v / m * ln(2 / d)) + 2 / (3 m) * ln(2 / d),    1 / m = 1 / n0 + 1 / n1,    d = FALSE_ALARMS / cuts

apart, where v is the variance of the window. Among rows of one distribution a test finds that with a probability of at
most FALSE_ALARMS. If the later part is worse, that is drift. Either way a new window begins with the later part, cut
where the gap is clearest.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Csr, Float32, Matrix, count_rows
from wsabie.core.json_conversion import JsonObject
from wsabie.evaluation.calibration import compute_calibration_error
from wsabie.evaluation.metrics import average_precision, precision_at
from wsabie.evaluation.positive_ranks import rank_embeddings
from wsabie.models.base.feature_matrix import FeatureMatrix, take_rows
from wsabie.models.base.validation_monitor import sample_labelled_rows

FALSE_ALARMS = 0.01
"""Highest probability that a test finds drift among rows of one distribution."""
MAX_EVALUATED_ROWS = 2000
"""Most rows of a batch that are evaluated, evenly spread."""
MAX_REPORTS = 1000
"""Most reports that a model keeps."""
BADLY_CALIBRATED = 0.1
"""Expected calibration error above which probabilities should be fitted again."""
_TOP = 10


@dataclass(frozen=True)
class BatchReport:
    """Figures of a batch of new rows before the model learned from them.

    Attributes
    ----------
    rows, evaluated : int
        All rows, and the evaluated ones: at most 2,000 with a label that the model knew.
    map, p_at_1 : float or None
        Figures of the evaluated rows, over labels that the model knew; None if there were none.
    loss_variance : float
        Variance of 1 - average precision.
    ece, brier : float or None
        Expected calibration error of the best label, in 10 bins (Guo et al., "On Calibration of Modern Neural
        Networks", ICML 2017), and the mean squared error of the ten best labels' probabilities; None for a model
        without probabilities.
    unseen_labels, unseen_features : float
        Share of (row, label) pairs with a new label, and of values with a new feature.
    movement : float
        Mean distance that training on the rows moved the points of old labels, in lengths of a point.
    drift : {"", "worse", "better"}
        Result of the test.
    window : int
        Batches before this one that the test compares later ones with.
    """

    rows: int
    evaluated: int
    map: float | None
    p_at_1: float | None
    loss_variance: float
    ece: float | None
    brier: float | None
    unseen_labels: float
    unseen_features: float
    movement: float = 0.0
    drift: str = ""
    window: int = 0

    def advice(self) -> str:
        """Return advice in a sentence; empty if none is needed."""
        sentences = []
        if self.drift == "worse":
            sentences.append("the rows are of another kind than before: train a model on all rows again")
        if self.ece is not None and self.ece > BADLY_CALIBRATED:
            sentences.append(
                f"probabilities were off by {self.ece:.2f}: train again, or call `Wsabie.calibrate` in Python "
                "with more rows that the model has not learned"
            )
        return "; ".join(sentences)

    def as_dict(self) -> JsonObject:
        """Return the figures for JSON, with the advice."""
        return {**asdict(self), "advice": self.advice()}


def report_batch(model: Any, inputs: FeatureMatrix, targets: Matrix, reports: Sequence[BatchReport]) -> BatchReport:
    """Evaluate scaled rows by a model that has not learned from them.

    Parameters
    ----------
    model : Wsabie
    inputs : scaled rows
    targets : csr_matrix (n, n_labels)
        Columns beyond the model's labels are labels that it lacks.
    reports : sequence of BatchReport
        Reports of earlier batches.
    """
    n_known = len(model.vocabulary_)
    pairs = int((targets.data > 0).sum())
    known_targets = targets[:, :n_known]
    row_ids = sample_labelled_rows(known_targets, MAX_EVALUATED_ROWS)
    sample, truth = take_rows(inputs, row_ids), known_targets[row_ids]
    figures: JsonObject = {"map": None, "p_at_1": None, "loss_variance": 0.0, "ece": None, "brier": None}
    if len(row_ids):
        labels, points = model.space_.label_arrays(), model.space_.compute_points(sample)
        ranks = rank_embeddings(labels, np.ascontiguousarray(points[:, : labels.table.shape[1]]), truth)
        precision = average_precision(ranks)
        figures |= {"map": float(precision.mean()), "p_at_1": float(precision_at(ranks, 1).mean())}
        figures["loss_variance"] = float(precision.var())
        if model.calibration_ is not None:
            figures |= _measure_calibration(model, points, truth)
    met = None if model.replay_buffer_ is None else model.replay_buffer_.feature_counts
    values = inputs.indices if isinstance(inputs, Csr) else ()
    report = BatchReport(
        count_rows(inputs),
        len(row_ids),
        **figures,
        unseen_labels=1 - int((known_targets.data > 0).sum()) / max(pairs, 1),
        unseen_features=float((met[values] == 0).mean()) if met is not None and len(values) else 0.0,
    )
    drift, window = detect_drift([*reports, report])
    return BatchReport(**{**asdict(report), "drift": drift, "window": window})


def detect_drift(reports: Sequence[BatchReport]) -> tuple[str, int]:
    """Test the last batch for drift; return the result, and the number of earlier batches in the window."""
    window = reports[-1 - (reports[-2].window + 1 if len(reports) > 1 else 0) :]
    n = np.array([report.evaluated for report in window], np.float64)
    mean = np.array([0.0 if report.map is None else 1 - report.map for report in window])
    variance = np.array([report.loss_variance for report in window])
    if not n[-1]:
        return "", len(window) - 1
    overall_mean = float(n @ mean / n.sum())
    spread = float(n @ (variance + (mean - overall_mean) ** 2) / n.sum())
    cuts = [cut for cut in range(1, len(window)) if n[:cut].sum() and n[cut:].sum()]
    strongest, result = 1.0, ("", len(window) - 1)
    for cut in cuts:
        n0, n1 = n[:cut].sum(), n[cut:].sum()
        m, log = 1 / (1 / n0 + 1 / n1), np.log(2 * len(cuts) / FALSE_ALARMS)
        gap = n[cut:] @ mean[cut:] / n1 - n[:cut] @ mean[:cut] / n0
        beyond = abs(gap) / (np.sqrt(2 * spread / m * log) + 2 / (3 * m) * log)
        if beyond > strongest:
            strongest, result = beyond, ("worse" if gap > 0 else "better", len(window) - 1 - cut)
    return result


def _measure_calibration(model: Any, points: Float32, truth: Matrix) -> dict[str, float]:
    k = min(_TOP, len(model.vocabulary_) - len(model.vocabulary_.retired_ids()))
    ids, scores = model.exact_index().top_k(np.ascontiguousarray(points[:, : model.space_.dim]), k, threads=1)
    p = model.calibration_.predict_proba(scores, ids)
    is_right = np.asarray((truth > 0)[np.arange(len(ids))[:, None], ids].todense())
    return {"ece": compute_calibration_error(p[:, 0], is_right[:, 0]), "brier": float(((p - is_right) ** 2).mean())}


def measure_movement(old_vectors: Array, new_vectors: Array) -> float:
    """Return the mean distance of points that are in both tables, in mean lengths of the old ones."""
    reference = np.asarray(old_vectors, np.float32)
    distance = np.linalg.norm(new_vectors[: len(reference), : reference.shape[1]] - reference, axis=1).mean()
    return float(distance / max(float(np.linalg.norm(reference, axis=1).mean()), 1e-12))
