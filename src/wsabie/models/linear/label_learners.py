"""Learners of single labels for one-versus-rest: scikit-learn's linear models and their rows."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Bool, Float32, Float64, Int64, Matrix

LearnerName = Literal["logistic", "passive-aggressive", "hinge", "svm"]


class LabelLearner(NamedTuple):
    """A linear learner of one label.

    Attributes
    ----------
    title : str
    build : callable
        Returns the unfitted scikit-learn estimator from (C, number of rows, max_iter, seed).
    dtype : type
        Type of rows that it reads without a copy.
    seconds_per_value : float
        Duration of a fit on one core of 2.5 GHz per value of its rows. A feature costs as much as
        `VALUES_PER_FEATURE` values, and each label costs `SECONDS_PER_LABEL` more.
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
"""See `LabelLearner`. The estimate is for refusing jobs of hours; a fit may take half or twice as long."""


class LabelFit(NamedTuple):
    """Weights of one label."""

    coef: Any  # (n_features,) float32 or float64
    intercept: float
    has_converged: bool


def _build_logistic(C: float, n: int, max_iter: int, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    # liblinear's primal solver draws no random numbers and works outside the interpreter lock
    return LogisticRegression(C=C, solver="liblinear", max_iter=max_iter)


def _build_svm(C: float, n: int, max_iter: int, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    # the dual solver would share one random state among all threads
    return LinearSVC(C=C, dual=False, max_iter=max_iter)


def _build_passive_aggressive(C: float, n: int, max_iter: int, seed: int) -> Any:
    return _build_sgd(max_iter, seed, penalty=None, learning_rate="pa1", eta0=C)


def _build_hinge(C: float, n: int, max_iter: int, seed: int) -> Any:
    return _build_sgd(max_iter, seed, alpha=1 / (C * n))


def _build_sgd(max_iter: int, seed: int, **parameters: Any) -> Any:
    """Build a learner by SGD without intercept, f = w.x as in the paper; one lowered the MAP on Corel5k."""
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier("hinge", fit_intercept=False, max_iter=max_iter, random_state=seed, **parameters)


LEARNERS: dict[str, LabelLearner] = {
    "logistic": LabelLearner("logistic regression", _build_logistic, np.float64, 200e-9, odds=True),
    "passive-aggressive": LabelLearner("Passive-Aggressive", _build_passive_aggressive, np.float32, 40e-9),
    "hinge": LabelLearner("hinge loss by SGD", _build_hinge, np.float32, 40e-9),
    "svm": LabelLearner("linear SVM", _build_svm, np.float64, 300e-9),
}
"""All learners by the name that `OneVsRest` takes."""


def fit_label(learner: LabelLearner, rows: Matrix, positive: Bool, C: float, max_iter: int, seed: int) -> LabelFit:
    """Learn one label from rows of the learner's dtype.

    Examples
    --------
    >>> found = fit_label(LEARNERS["svm"], np.array([[0.0], [1.0], [3.0]]), np.array([False, False, True]), 9, 99, 0)
    >>> bool(found.coef[0] * 3 + found.intercept > 0 > found.coef[0] + found.intercept)
    True
    """
    model = learner.build(C, rows.shape[0], max_iter, seed).fit(rows, positive.astype(np.int32))
    return LabelFit(model.coef_[0], float(np.ravel(model.intercept_)[0]), int(np.max(model.n_iter_)) < max_iter)


def select_training_rows(positives: Int64, n: int, max_negatives: int | None, seed: list[int]) -> tuple[Int64, float]:
    """Return the training rows of a label: all positives, and some random negatives.

    Parameters
    ----------
    positives : (p,) int
        Ascending, fewer than n.
    n : int
    max_negatives : int or None
        None: all negatives.
    seed : list of int

    Returns
    -------
    rows : (m,) int64, ascending
    share : float
        Share of the negatives among all negatives.

    Examples
    --------
    >>> select_training_rows(np.array([1, 2]), 4, None, [0])
    (array([0, 1, 2, 3]), 1.0)
    """
    n_negatives = n - len(positives)
    if max_negatives is None or max_negatives >= n_negatives:
        return np.arange(n), 1.0
    negatives = np.random.default_rng(seed).choice(n_negatives, max_negatives, replace=False, shuffle=False)
    negatives += np.searchsorted(positives - np.arange(len(positives)), negatives, side="right")  # skip the positives
    return np.sort(np.concatenate([positives, negatives])), max_negatives / n_negatives


def compute_log_odds(counts: Any, n: int) -> Float32:
    """Return the log-odds of labels from their counts alone, with half a row added to each side."""
    share: Float64 = (counts + 0.5) / (n + 1)
    return np.log(share / (1 - share)).astype(np.float32)
