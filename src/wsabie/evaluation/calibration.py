"""From scores to probabilities: a sigmoid fitted on held-out rows, with an offset per label shrunk to a
common one.

    P(label y fits | score s) = 1 / (1 + exp(-(slope s + offset + label_offset_y))),   slope >= 0

Platt ("Probabilistic Outputs for Support Vector Machines", 1999) fits slope and offset by maximum likelihood
with softened targets, (N+ + 1) / (N+ + 2) for positives and 1 / (N- + 2) for negatives; Lin, Lin & Weng ("A
Note on Platt's Probabilistic Outputs", 2007) by Newton's method with backtracking. The label offsets are
penalised by shrinkage / 2 * offset^2: a normal prior with standard deviation 1 / sqrt(shrinkage) in log-odds.
A slope of 0 or more keeps the order of the scores of a label.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.evaluation.targets import positive_lists

_MAX_STEPS = 100
_TOLERANCE = 1e-9


class Pairs(NamedTuple):
    """Scored (row, label) pairs with known outcome; `weights` is how many pairs each stands for."""

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
    """

    slope: float
    offset: float
    label_offsets: Float32 | None = None

    def for_labels(self, n: int) -> "Calibration":
        """The same for n labels, of which further ones have the common offset.

        Examples
        --------
        >>> Calibration(2.0, 0.0, np.array([0.5], np.float32)).for_labels(3).label_offsets
        array([0.5, 0. , 0. ], dtype=float32)
        """
        offsets = self.label_offsets
        if offsets is None:
            return self
        return replace(self, label_offsets=np.append(offsets, np.zeros(n - len(offsets), np.float32)))

    def predict_proba(self, scores: Any, labels: Any = None) -> Float64:
        """Probabilities of scores.

        Parameters
        ----------
        scores : array of any shape
        labels : int array that broadcasts to it, or None
            Which label each score belongs to; -1 (no label) gets the common offset. None = the common offset,
            or, for scores (n, n_labels) with label offsets, one label per column.

        Examples
        --------
        >>> Calibration(2.0, 0.0).predict_proba(np.array([0.0, 1.0])).round(3)
        array([0.5  , 0.881])
        """
        logits = self.slope * np.asarray(scores, np.float64) + self.offset
        if self.label_offsets is not None:
            offsets = np.append(self.label_offsets, 0.0)  # the last one serves label -1
            if labels is not None:
                logits = logits + offsets[np.asarray(labels)]
            elif logits.ndim == 2 and logits.shape[1] == len(self.label_offsets):
                logits = logits + self.label_offsets
        return _sigmoid(logits)


def fit_calibration(pairs: Pairs, *, n_labels: int | None = None, shrinkage: float = 1.0) -> Calibration:
    """Fit the sigmoid by Newton's method in float64.

    Parameters
    ----------
    pairs : Pairs
        From rows that were not trained on.
    n_labels : int or None
        Fit an offset per label too; None = one offset for all.
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
    >>> found = fit_calibration(Pairs(scores, np.zeros(80, int), outcomes, np.ones(80)))
    >>> found.predict_proba(np.array([1.0])).round(2)  # 30 of 40, softened
    array([0.74])
    """
    _check_pairs(pairs)
    if shrinkage <= 0:
        raise InputError(f"shrinkage = {shrinkage} but it is above 0; a large number means no label offsets")
    center = float(np.average(pairs.scores, weights=pairs.weights))
    scale = float(np.sqrt(np.average((pairs.scores - center) ** 2, weights=pairs.weights))) or 1.0
    problem = _Problem(
        (pairs.scores - center) / scale,
        np.zeros_like(pairs.labels) if n_labels is None else pairs.labels,
        _softened(pairs),
        pairs.weights,
        1 if n_labels is None else n_labels,
        np.inf if n_labels is None else shrinkage,
    )
    common, own = _newton(problem)
    if common[0] < 0:  # the scores tell nothing, or the opposite: keep the base rate only
        common, own = _newton(problem._replace(scores=np.zeros_like(problem.scores)))
    slope = float(common[0]) / scale
    offsets = None if n_labels is None else own.astype(np.float32)
    return Calibration(slope, float(common[1]) - slope * center, offsets)


def sample_pairs(
    score_blocks: Iterable[tuple[int, Any]], Y: Matrix, *, top: int = 20, drawn: int = 50, seed: int = 0
) -> Pairs:
    """Pairs that stand for all (row, label) pairs: every positive, the `top` best negatives, and a weighted
    draw of the rest.

    Parameters
    ----------
    score_blocks : iterable of (lo, scores (b, n_labels))
    Y : csr_matrix (n, n_labels) or int array (n,)
    top, drawn : int
        Negatives per row that are taken with weight 1, and drawn (without replacement) from the rest, where
        each stands for rest / drawn of them.
    seed : int
    """
    rng = np.random.default_rng(seed)
    parts: list[Pairs] = []
    positives = None
    for lo, scores in score_blocks:
        positives = positives or positive_lists(Y, scores.shape[1])
        for i in range(len(scores)):
            right = positives.labels[positives.indptr[lo + i] : positives.indptr[lo + i + 1]]
            parts.append(_pairs_of_row(np.asarray(scores[i]), right, top, drawn, rng))
        del scores  # or the next block is made while this one is held
    if not parts:
        raise InputError("there are no scores to calibrate on; give at least one block of rows")
    return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class _Problem(NamedTuple):
    scores: Float64
    labels: Int64
    targets: Float64
    weights: Float64
    n_labels: int
    shrinkage: float  # infinite: no label offsets


def _check_pairs(pairs: Pairs) -> None:
    if not np.isfinite(pairs.scores).all():
        raise InputError("a score to calibrate on is not finite; the model has diverged or a row is not finite")
    positive = np.sum(pairs.weights * pairs.outcomes)
    if not 0 < positive < np.sum(pairs.weights):
        raise InputError("calibration needs both right and wrong labels among its rows; give more rows")


def _softened(pairs: Pairs) -> Float64:
    right = np.sum(pairs.weights * pairs.outcomes)
    wrong = np.sum(pairs.weights) - right
    softened: Float64 = np.where(pairs.outcomes > 0, (right + 1) / (right + 2), 1 / (wrong + 2))
    return softened


def _pairs_of_row(scores: Any, right: Any, top: int, drawn: int, rng: np.random.Generator) -> Pairs:
    wrong = np.delete(np.arange(len(scores)), right)
    hard = min(top, len(wrong))
    order = np.argpartition(-scores[wrong], hard - 1) if 0 < hard < len(wrong) else np.arange(len(wrong))
    best, rest = wrong[order[:hard]], wrong[order[hard:]]
    chosen = rng.choice(rest, min(drawn, len(rest)), replace=False) if len(rest) else rest
    labels = np.concatenate([right, best, chosen]).astype(np.int64)
    weights = np.ones(len(labels))
    weights[len(right) + len(best) :] = len(rest) / max(len(chosen), 1)
    outcomes = (np.arange(len(labels)) < len(right)).astype(np.float64)
    return Pairs(scores[labels].astype(np.float64), labels, outcomes, weights)


def _sigmoid(logits: Float64) -> Float64:
    result: Float64 = np.exp(-np.logaddexp(0.0, -logits))
    return result


def _logits(problem: _Problem, common: Float64, own: Float64) -> Float64:
    logits: Float64 = common[0] * problem.scores + common[1] + own[problem.labels]
    return logits


def _loss(problem: _Problem, common: Float64, own: Float64) -> float:
    logits = _logits(problem, common, own)
    loss = np.sum(problem.weights * (np.logaddexp(0.0, logits) - problem.targets * logits))
    penalty = 0.0 if np.isinf(problem.shrinkage) else problem.shrinkage / 2 * np.sum(own**2)
    return float(loss + penalty)


def _newton(problem: _Problem) -> tuple[Float64, Float64]:
    """Minimise the penalised loss; returns (slope, offset) and the label offsets."""
    rate = np.average(problem.targets, weights=problem.weights)
    common, own = np.array([0.0, np.log(rate / (1 - rate))]), np.zeros(problem.n_labels)
    loss = _loss(problem, common, own)
    for _ in range(_MAX_STEPS):
        step, own_step = _direction(problem, common, own)
        length = 1.0
        while length > 1e-10:
            tried = _loss(problem, common - length * step, own - length * own_step)
            if tried <= loss:
                break
            length /= 2
        common, own, gain = common - length * step, own - length * own_step, loss - tried
        loss = tried
        if gain <= _TOLERANCE * (1 + abs(loss)):
            break
    return common, own


def _direction(problem: _Problem, common: Float64, own: Float64) -> tuple[Float64, Float64]:
    """Newton's direction. The Hessian is a 2 x 2 block bordered by a diagonal, solved by its Schur
    complement.
    """
    p = _sigmoid(_logits(problem, common, own))
    slopes = problem.weights * (p - problem.targets)
    curves = problem.weights * p * (1 - p)
    design = np.stack([problem.scores, np.ones(len(p))], axis=1)
    gradient, hessian = design.T @ slopes, (design.T * curves) @ design + 1e-12 * np.eye(2)
    if np.isinf(problem.shrinkage):
        return np.linalg.solve(hessian, gradient).astype(np.float64), np.zeros_like(own)

    def per_label(values: Float64) -> Float64:
        return np.bincount(problem.labels, values, minlength=problem.n_labels).astype(np.float64)

    diagonal = per_label(curves) + problem.shrinkage
    border = np.stack([per_label(curves * problem.scores), per_label(curves)], axis=1)
    own_gradient = per_label(slopes) + problem.shrinkage * own
    schur = hessian - border.T @ (border / diagonal[:, None])
    step = np.linalg.solve(schur, gradient - border.T @ (own_gradient / diagonal)).astype(np.float64)
    return step, (own_gradient - border @ step) / diagonal
