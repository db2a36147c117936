"""Calibrate scores to probabilities: a sigmoid fitted on held-out rows.

Each label may have an offset, shrunk to a common one.

    P(label y fits | score s) = 1 / (1 + exp(-(slope s + offset + label_offset_y))),   slope >= 0

Platt ("Probabilistic Outputs for Support Vector Machines", 1999) fits slope and offset by maximum likelihood
with softened targets, (N+ + 1) / (N+ + 2) for positives and 1 / (N- + 2) for negatives. Lin, Lin & Weng ("A
Note on Platt's Probabilistic Outputs", 2007) use Newton's method with backtracking. The label offsets are
penalised by shrinkage / 2 * offset^2: a normal prior with standard deviation 1 / sqrt(shrinkage) in log-odds.
A slope of 0 or more keeps the order of the scores of a label.

Suggestions of a row compete if `fit_competition` says so: the logit of its best other label, times a weight, is
subtracted. Weight 0 leaves the labels independent; 1 is near a softmax, where one label of a row fits.

scikit-learn fits each label alone, and so none without a positive (`docs/decisions/metrics-and-calibration.md`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError, require
from wsabie.core.label_lists import list_positives

_MAX_STEPS = 100
_TOLERANCE = 1e-9


class ScoredPairs(NamedTuple):
    """Scored (row, label) pairs and their outcomes; `weights` is the number of pairs that each represents."""

    scores: Float64
    labels: Int64
    outcomes: Float64  # 1 = the label is right
    weights: Float64


@dataclass(frozen=True)
class Calibration:
    """A fitted sigmoid.

    Attributes
    ----------
    slope, offset : float
    label_offsets : (n_labels,) float32, or None when all labels share the offset
    competition : float, default 0
        Weight of the best other label of a row, 0 or more.
    """

    slope: float
    offset: float
    label_offsets: Float32 | None = None
    competition: float = 0.0

    def extend_labels(self, n: int) -> "Calibration":
        """Extend the calibration to n labels; new ones get the common offset.

        Examples
        --------
        >>> Calibration(2.0, 0.0, np.array([0.5], np.float32)).extend_labels(3).label_offsets
        array([0.5, 0. , 0. ], dtype=float32)
        """
        offsets = self.label_offsets
        if offsets is None:
            return self
        return replace(self, label_offsets=np.append(offsets, np.zeros(n - len(offsets), np.float32)))

    def predict_proba(
        self, scores: Array, labels: npt.ArrayLike | None = None, best: tuple[Array, Int64] | None = None
    ) -> Float64:
        """Convert scores to probabilities.

        Parameters
        ----------
        scores : array of any shape; (n, k), a row's labels side by side, with competition
        labels : int array that broadcasts to it, or None
            Label of each score; -1 (no label) gets the common offset. None: the common offset, or, for scores
            (n, n_labels) with label offsets, one label per column.
        best : (scores (n, m), labels (n, m)) or None
            Best labels of each row, if `scores` may lack them, for the competition.

        Examples
        --------
        >>> Calibration(2.0, 0.0).predict_proba(np.array([0.0, 1.0])).round(3)
        array([0.5  , 0.881])
        >>> Calibration(2.0, 0.0, competition=1.0).predict_proba(np.array([[0.0, 1.0]])).round(3)
        array([[0.119, 0.881]])
        """
        logits = self._compute_logits(scores, labels)
        if self.competition:
            numbers = np.arange(np.shape(scores)[1]) if labels is None else np.asarray(labels)
            rivals = self.find_rivals(numbers, *(best or (scores, numbers)))
            logits = logits - self.competition * (rivals - self.offset)
        return _sigmoid(logits)

    def find_rivals(self, labels: Int64, best_scores: Array, best_labels: Int64) -> Float64:
        """Return the logits without competition of each row's best label other than each label.

        Parameters
        ----------
        labels : (n, k) or (k,) int64
        best_scores, best_labels : (n, m) arrays, or labels (m,)
            Best labels of each row, in any order; -1 is no label.

        Returns
        -------
        (n, k) float64
            The common offset where a row has no other label.
        """
        numbers = np.broadcast_to(best_labels, best_scores.shape)
        logits = np.where(numbers < 0, -np.inf, self._compute_logits(best_scores, numbers))
        logits = np.pad(logits, ((0, 0), (0, 1)), constant_values=-np.inf)
        order = np.argpartition(-logits, (0, 1), axis=1)[:, :2]
        first, second = np.take_along_axis(logits, order, axis=1).T[..., None]
        best = np.take_along_axis(np.pad(numbers, ((0, 0), (0, 1)), constant_values=-1), order[:, :1], axis=1)
        rivals = np.where(labels == best, second, first)
        return np.where(np.isfinite(rivals), rivals, self.offset)

    def _compute_logits(self, scores: Array, labels: npt.ArrayLike | None) -> Float64:
        """Return the logits without competition."""
        logits: Float64 = self.slope * np.asarray(scores, np.float64) + self.offset
        if self.label_offsets is not None:
            offsets = np.append(self.label_offsets, 0.0)  # the last one serves label -1
            if labels is not None:
                logits = logits + offsets[np.asarray(labels)]
            elif logits.ndim == 2 and logits.shape[1] == len(self.label_offsets):
                logits = logits + self.label_offsets
        return logits


def fit_calibration(pairs: ScoredPairs, *, n_labels: int | None = None, shrinkage: float = 1.0) -> Calibration:
    """Fit the sigmoid by Newton's method in float64.

    Parameters
    ----------
    pairs : ScoredPairs
        Pairs of rows outside the training data.
    n_labels : int or None
        Fit an offset per label too; None: one offset for all.
    shrinkage : float
        Strength of the pull of label offsets to 0; above 0.

    Raises
    ------
    InputError
        Without a positive or a negative pair, or with scores that are not finite.

    Examples
    --------
    >>> outcomes = np.repeat([1.0, 0.0, 1.0, 0.0], [30, 10, 10, 30])
    >>> scores = np.repeat([1.0, -1.0], 40)
    >>> calibration = fit_calibration(ScoredPairs(scores, np.zeros(80, int), outcomes, np.ones(80)))
    >>> calibration.predict_proba(np.array([1.0])).round(2)  # 30 of 40, softened
    array([0.74])
    """
    if not np.isfinite(pairs.scores).all():
        raise InputError("a score to calibrate on is not finite; the model has diverged or a row is not finite")
    n_right = np.sum(pairs.weights * pairs.outcomes)
    n_wrong = np.sum(pairs.weights) - n_right
    if not (n_right > 0 and n_wrong > 0):
        raise InputError("calibration needs both right and wrong labels among its rows; give more rows")
    require(shrinkage > 0, f"shrinkage = {shrinkage} but it is above 0; a large number means no label offsets")
    center = float(np.average(pairs.scores, weights=pairs.weights))
    scale = float(np.sqrt(np.average((pairs.scores - center) ** 2, weights=pairs.weights))) or 1.0
    labels = np.zeros_like(pairs.labels) if n_labels is None else pairs.labels
    softened = np.where(pairs.outcomes > 0, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    problem = ScoredPairs((pairs.scores - center) / scale, labels, softened, pairs.weights)
    size, strength = (1, np.inf) if n_labels is None else (n_labels, shrinkage)
    common, label_offsets = _minimise_loss(problem, size, strength)
    if common[0] < 0:  # uninformative or inverted scores: keep the base rate only
        flat = problem._replace(scores=np.zeros_like(problem.scores))
        common, label_offsets = _minimise_loss(flat, size, strength)
    slope = float(common[0]) / scale
    offsets = None if n_labels is None else label_offsets.astype(np.float32)
    return Calibration(slope, float(common[1]) - slope * center, offsets)


def fit_competition(
    calibration: Calibration, scores: Float32, labels: Int64, outcomes: Array, n_suggestions: int = 10
) -> Calibration:
    """Fit the weight of a row's best other label, and slope and offset with it, to suggestions.

    Only the most probable labels of each row count, as they are suggested. Weight and slope are 0 or more, so that the
    order of a row's labels stays. Outcomes are softened as those of `fit_calibration` are.

    Parameters
    ----------
    calibration : Calibration
    scores, labels, outcomes : (n, k) float32, int64, and 0 or 1
        Best labels of rows outside the training data; label -1 pads rows.
    n_suggestions : int, default 10
        Number of labels of a row that count.

    Returns
    -------
    Calibration
        The same as before if all suggestions are right, or all wrong, or if the scores do not tell them apart.

    Examples
    --------
    >>> scores, labels = np.tile([2.0, 1.0], (100, 1)), np.tile([0, 1], (100, 1))
    >>> outcomes = np.tile([[1, 0], [1, 0], [1, 0], [0, 1]], (25, 1))  # one of two labels fits
    >>> calibration = fit_competition(Calibration(1.0, 0.0), scores, labels, outcomes)
    >>> calibration.predict_proba(scores[:1], labels[:1]).round(2)
    array([[0.75, 0.25]])
    """
    from scipy.optimize import minimize

    independent = replace(calibration, competition=0.0)
    rivals = independent.find_rivals(labels, scores, labels)
    logits = np.where(labels < 0, -np.inf, independent._compute_logits(scores, labels))
    order = np.argsort(-logits, axis=1, kind="stable")[:, :n_suggestions]
    logits, rivals, outcomes = (np.take_along_axis(table, order, axis=1) for table in (logits, rivals, outcomes))
    is_label = np.isfinite(logits)
    design = np.stack([logits[is_label], -rivals[is_label], np.ones(is_label.sum())], axis=1)
    right = outcomes[is_label] > 0
    n_right, n_wrong = right.sum(), (~right).sum()
    if not (n_right and n_wrong):
        return calibration
    softened = np.where(right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))

    def compute_loss(weights: Float64) -> tuple[float, Float64]:
        z = design @ weights
        loss = np.mean(np.logaddexp(0.0, z) - softened * z)
        return float(loss), (_sigmoid(z) - softened) @ design / len(z)

    bounds = [(0.0, None), (0.0, None), (None, None)]
    slope, weight, constant = minimize(compute_loss, [1.0, 0.0, 0.0], jac=True, bounds=bounds, method="L-BFGS-B").x
    if slope <= 0:
        return calibration
    offsets = calibration.label_offsets
    return Calibration(
        float(slope * calibration.slope),
        float((slope - weight) * calibration.offset + constant),
        None if offsets is None else (slope * offsets).astype(np.float32),
        float(weight / slope),
    )


def sample_pairs(
    score_blocks: Iterable[tuple[int, Array]], Y: Matrix, *, top: int = 20, n_drawn: int = 50, seed: int = 0
) -> ScoredPairs:
    """Sample pairs that represent all (row, label) pairs.

    These are every positive, the `top` best negatives, and a weighted draw of the other negatives.

    Parameters
    ----------
    score_blocks : iterable of (lo, scores (b, n_labels))
    Y : csr_matrix (n, n_labels) or int array (n,)
    top, n_drawn : int
        Negatives per row: the best ones, with weight 1, and a draw without replacement from the others, weighted so
        that they represent all others.
    seed : int
    """
    rng = np.random.default_rng(seed)
    parts: list[ScoredPairs] = []
    positives = None
    for lo, scores in score_blocks:
        positives = positives or list_positives(Y, scores.shape[1])
        for i in range(len(scores)):
            true_labels = positives.labels[positives.indptr[lo + i] : positives.indptr[lo + i + 1]]
            parts.append(_sample_row_pairs(np.asarray(scores[i]), true_labels, top, n_drawn, rng))
        del scores  # free this block before the next one is made
    require(len(parts) > 0, "there are no scores to calibrate on; give at least one block of rows")
    return ScoredPairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _sample_row_pairs(
    scores: Array, true_labels: Array, top: int, n_drawn: int, rng: np.random.Generator
) -> ScoredPairs:
    negatives = np.delete(np.arange(len(scores)), true_labels)
    n = len(negatives)
    n_hard = min(top, n)
    order = np.argpartition(-scores[negatives], n_hard - 1) if 0 < n_hard < n else np.arange(n)
    best, remainder = negatives[order[:n_hard]], negatives[order[n_hard:]]
    sampled = rng.choice(remainder, min(n_drawn, len(remainder)), replace=False) if len(remainder) else remainder
    labels = np.concatenate([true_labels, best, sampled]).astype(np.int64)
    weights = np.ones(len(labels))
    weights[len(true_labels) + len(best) :] = len(remainder) / max(len(sampled), 1)
    outcomes = (np.arange(len(labels)) < len(true_labels)).astype(np.float64)
    return ScoredPairs(scores[labels].astype(np.float64), labels, outcomes, weights)


def _sigmoid(logits: Float64) -> Float64:
    return np.exp(-np.logaddexp(0.0, -logits))


def _compute_logits(problem: ScoredPairs, common: Float64, label_offsets: Float64) -> Float64:
    logits: Float64 = common[0] * problem.scores + common[1] + label_offsets[problem.labels]
    return logits


def _compute_loss(problem: ScoredPairs, shrinkage: float, common: Float64, label_offsets: Float64) -> float:
    logits = _compute_logits(problem, common, label_offsets)
    loss = np.sum(problem.weights * (np.logaddexp(0.0, logits) - problem.outcomes * logits))
    penalty = 0.0 if np.isinf(shrinkage) else shrinkage / 2 * np.sum(label_offsets**2)
    return float(loss + penalty)


def _minimise_loss(problem: ScoredPairs, n_labels: int, shrinkage: float) -> tuple[Float64, Float64]:
    """Minimise the penalised loss; return (slope, offset) and label offsets: 0 for infinite `shrinkage`."""
    rate = np.average(problem.outcomes, weights=problem.weights)
    common, label_offsets = np.array([0.0, np.log(rate / (1 - rate))]), np.zeros(n_labels)
    loss = _compute_loss(problem, shrinkage, common, label_offsets)
    for _ in range(_MAX_STEPS):
        step, label_step = _compute_direction(problem, shrinkage, common, label_offsets)
        length = 1.0
        while length > 1e-10:
            new_loss = _compute_loss(problem, shrinkage, common - length * step, label_offsets - length * label_step)
            if new_loss <= loss:
                break
            length /= 2
        common, label_offsets, gain = common - length * step, label_offsets - length * label_step, loss - new_loss
        loss = new_loss
        if gain <= _TOLERANCE * (1 + abs(loss)):
            break
    return common, label_offsets


def _compute_direction(
    problem: ScoredPairs, shrinkage: float, common: Float64, label_offsets: Float64
) -> tuple[Float64, Float64]:
    """Compute Newton's direction; the Schur complement solves the Hessian, a 2 x 2 block with a diagonal."""
    p = _sigmoid(_compute_logits(problem, common, label_offsets))
    slopes = problem.weights * (p - problem.outcomes)
    curves = problem.weights * p * (1 - p)
    design = np.stack([problem.scores, np.ones(len(p))], axis=1)
    gradient, hessian = design.T @ slopes, (design.T * curves) @ design + 1e-12 * np.eye(2)
    if np.isinf(shrinkage):
        return np.linalg.solve(hessian, gradient).astype(np.float64), np.zeros_like(label_offsets)

    def sum_by_label(values: Float64) -> Float64:
        return np.bincount(problem.labels, values, minlength=len(label_offsets)).astype(np.float64)

    diagonal = sum_by_label(curves) + shrinkage
    border = np.stack([sum_by_label(curves * problem.scores), sum_by_label(curves)], axis=1)
    label_gradient = sum_by_label(slopes) + shrinkage * label_offsets
    schur = hessian - border.T @ (border / diagonal[:, None])
    step = np.linalg.solve(schur, gradient - border.T @ (label_gradient / diagonal)).astype(np.float64)
    return step, (label_gradient - border @ step) / diagonal


def compute_calibration_error(probabilities: npt.ArrayLike, outcomes: npt.ArrayLike, bins: int = 10) -> float:
    """Compute the expected calibration error: the mean of |mean prediction - fraction right| of bins.

    Parameters
    ----------
    probabilities, outcomes : (n,) float
    bins : int
        Number of bins of equal width; a bin counts by its pairs.

    Examples
    --------
    >>> round(compute_calibration_error([0.2, 0.2, 0.9], [0, 1, 1], bins=2), 3)
    0.233
    """
    p, hit = np.asarray(probabilities, np.float64), np.asarray(outcomes, np.float64)
    bin_of_pair = np.minimum((p * bins).astype(np.int64), bins - 1)
    return float(np.abs(np.bincount(bin_of_pair, p - hit)).sum() / len(p))
