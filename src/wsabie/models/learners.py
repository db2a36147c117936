"""How one label of one-versus-rest is learnt: scikit-learn's linear learners, and the rows that a label is shown."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float32, Float64, Int64, Matrix

LearnerName = Literal["logistic", "passive-aggressive", "hinge", "svm"]


class Learner(NamedTuple):
    """A linear learner of one label.

    Attributes
    ----------
    title : str
    build : callable
        The unfitted scikit-learn estimator from (C, number of rows, max_iter, seed).
    dtype : type
        Of the rows that it reads without a copy.
    seconds_per_value : float
        What a fit costs on one core of 2.5 GHz per value that it is shown; a feature costs as much as
        `VALUES_PER_FEATURE` of them, and a label `SECONDS_PER_LABEL` besides.
    odds : bool
        Scores are log-odds, which a sample of the negatives shifts by a known amount.
    """

    title: str
    build: Callable[[float, int, int, int], Any]
    dtype: type
    seconds_per_value: float
    odds: bool = False


SECONDS_PER_LABEL = 3e-3
VALUES_PER_FEATURE = 20
"""See `Learner`. Made for refusing what would take hours: a fit may take half or twice as long."""


class Fit(NamedTuple):
    """A label that was learnt."""

    coef: Any  # (n_features,) float32 or float64
    intercept: float
    settled: bool


def _logistic(C: float, n: int, max_iter: int, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    # liblinear's primal solver draws no random numbers and works outside the interpreter lock
    return LogisticRegression(C=C, solver="liblinear", max_iter=max_iter)


def _svm(C: float, n: int, max_iter: int, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    # the dual solver would share one random state among all threads
    return LinearSVC(C=C, dual=False, max_iter=max_iter)


def _passive_aggressive(C: float, n: int, max_iter: int, seed: int) -> Any:
    return _by_steps(max_iter, seed, penalty=None, learning_rate="pa1", eta0=C)


def _hinge(C: float, n: int, max_iter: int, seed: int) -> Any:
    return _by_steps(max_iter, seed, alpha=1 / (C * n))


def _by_steps(max_iter: int, seed: int, **parameters: Any) -> Any:
    """One row at a time; f = w.x as in the paper. (On Corel5k an intercept lowered the MAP of both.)"""
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier("hinge", fit_intercept=False, max_iter=max_iter, random_state=seed, **parameters)


LEARNERS: dict[str, Learner] = {
    "logistic": Learner("logistic regression", _logistic, np.float64, 200e-9, odds=True),
    "passive-aggressive": Learner("Passive-Aggressive", _passive_aggressive, np.float32, 40e-9),
    "hinge": Learner("hinge loss by SGD", _hinge, np.float32, 40e-9),
    "svm": Learner("linear SVM", _svm, np.float64, 300e-9),
}
"""By the name that `OneVsRest` takes."""


def fit_label(learner: Learner, rows: Matrix, positive: Bool, C: float, max_iter: int, seed: int) -> Fit:
    """Learn one label from rows of the learner's dtype.

    Examples
    --------
    >>> found = fit_label(LEARNERS["svm"], np.array([[0.0], [1.0], [3.0]]), np.array([False, False, True]), 9, 99, 0)
    >>> bool(found.coef[0] * 3 + found.intercept > 0 > found.coef[0] + found.intercept)
    True
    """
    model = learner.build(C, rows.shape[0], max_iter, seed).fit(rows, positive.astype(np.int32))
    return Fit(model.coef_[0], float(np.ravel(model.intercept_)[0]), int(np.max(model.n_iter_)) < max_iter)


def shown_rows(positives: Int64, n: int, max_negatives: int | None, seed: list[int]) -> tuple[Int64, float]:
    """The rows that a label is learnt from: its own and some random others.

    Parameters
    ----------
    positives : (p,) int
        Ascending, fewer than n.
    n : int
    max_negatives : int or None
        None: all.
    seed : list of int

    Returns
    -------
    rows : (m,) int64, ascending
    share : float
        Of the negatives that are among them.

    Examples
    --------
    >>> shown_rows(np.array([1, 2]), 4, None, [0])
    (array([0, 1, 2, 3]), 1.0)
    """
    others = n - len(positives)
    if max_negatives is None or max_negatives >= others:
        return np.arange(n), 1.0
    drawn = np.random.default_rng(seed).choice(others, max_negatives, replace=False, shuffle=False)
    drawn += np.searchsorted(positives - np.arange(len(positives)), drawn, side="right")  # past the positives below
    return np.sort(np.concatenate([positives, drawn])), max_negatives / others


def log_odds(counts: Any, n: int) -> Float32:
    """Log-odds of a label without looking at the row (half a row added to each side)."""
    share: Float64 = (counts + 0.5) / (n + 1)
    return np.log(share / (1 - share)).astype(np.float32)
