"""One linear classifier per label: the baseline of the papers, and a common first choice.

Weston et al. 2010, section 6.3, train their one-versus-rest baseline by the Passive-Aggressive algorithm (PA-I of
Crammer et al. 2006); Bengio 2012 uses the "hinge loss". The default is logistic regression, which is stronger and well
known.
"""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from wsabie.core.arrays import Array, Float32, Float64, Int64, Matrix, count_rows
from wsabie.core.errors import UnsuitableModelError
from wsabie.core.execution import Progress, Stage
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import count_label_rows
from wsabie.core.machine import LARGE_MEMORY_BYTES
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix
from wsabie.models.base.row_scaling import Scaling
from wsabie.models.base.score_ranker import ScaledRanker
from wsabie.storage.schema_validation import Count, check_array, read_config
from wsabie.training.logistic_heads import fit_logistic_heads

LearnerName = Literal["logistic", "passive-aggressive", "hinge", "svm"]
SHARED_PASS_SHARE = 0.06
"""Duration of "logistic" on dense rows, whose labels share the passes, as a share of that label by label."""
SECONDS_PER_LABEL = 3e-3
VALUES_PER_FEATURE = 20
"""See `LabelLearner`. The estimate is for refusing jobs of hours; a fit may take half or twice as long."""
log = logging.getLogger("wsabie")
LOGGED_SECONDS = 60
"""Shortest estimated training time that the log states."""


class LabelLearner(NamedTuple):
    """A linear learner of one label.

    Attributes
    ----------
    dtype : type
        Type of rows that it reads without a copy.
    seconds_per_value : float
        Duration of a fit on one core of 2.5 GHz per value of its rows. A feature costs as much as
        `VALUES_PER_FEATURE` values, and each label costs `SECONDS_PER_LABEL` more.
    odds : bool
        Scores are log-odds, which a sample of the negatives shifts by a known amount.
    """

    dtype: type
    seconds_per_value: float
    odds: bool = False


LEARNERS: dict[LearnerName, LabelLearner] = {
    "logistic": LabelLearner(np.float64, 200e-9, odds=True),
    "passive-aggressive": LabelLearner(np.float32, 40e-9),
    "hinge": LabelLearner(np.float32, 40e-9),
    "svm": LabelLearner(np.float64, 300e-9),
}


def build_learner(name: LearnerName, C: float, n: int, max_iter: int, seed: int) -> Any:
    """Build the unfitted scikit-learn estimator of a label with n rows.

    Learners by SGD have no intercept, f = w.x as in the paper; one lowered the MAP on Corel5k.
    """
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.svm import LinearSVC

    if name == "logistic":  # liblinear's primal solver draws no random numbers and works outside the interpreter lock
        return LogisticRegression(C=C, solver="liblinear", max_iter=max_iter)
    if name == "svm":  # the dual solver would share one random state among all threads
        return LinearSVC(C=C, dual=False, max_iter=max_iter)
    pa1 = {"penalty": None, "learning_rate": "pa1", "eta0": C}
    options = pa1 if name == "passive-aggressive" else {"alpha": 1 / (C * n)}
    return SGDClassifier("hinge", fit_intercept=False, max_iter=max_iter, random_state=seed, **options)


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


def compute_log_odds(counts: Array, n: int) -> Float32:
    """Return the log-odds of labels from their counts alone, with half a row added to each side."""
    share: Float64 = (counts + 0.5) / (n + 1)
    return np.log(share / (1 - share)).astype(np.float32)


class ModelTooLargeError(UnsuitableModelError):
    """Error for a model that would take more memory or time than allowed."""


class TrainingCost(NamedTuple):
    """Estimated memory and time of a training.

    Attributes
    ----------
    n_bytes : int
        Memory of the fitted model: n_labels x (n_features + 1) float32.
    seconds : float
        Estimate from constants, so that every machine refuses the same data.
    """

    n_bytes: int
    seconds: float

    @property
    def is_large(self) -> bool:
        """True from .1 GB or a minute on: then the log states it before training."""
        return self.n_bytes >= LARGE_MEMORY_BYTES or self.seconds >= LOGGED_SECONDS

    def __str__(self) -> str:
        """Return size and time in words.

        Examples
        --------
        >>> str(TrainingCost(3_000_000_000, 7200.0)), str(TrainingCost(3_000_000, 7.0))
        ('3.0 GB and about 2.0 hours', '3.0 MB and about 0.1 minutes')
        """
        hours = self.seconds / 3600
        time = f"{hours:.1f} hours" if hours >= 1 else f"{max(self.seconds / 60, 0.1):.1f} minutes"
        size = f"{self.n_bytes / 1e9:.1f} GB" if self.n_bytes >= LARGE_MEMORY_BYTES else f"{self.n_bytes / 1e6:.1f} MB"
        return f"{size} and about {time}"


@dataclass(eq=False, repr=False)
class OneVsRest(ScaledRanker):
    """A linear classifier of each label against all other rows.

    A label's score is its log-odds ("logistic") or its signed margin (other learners). Labels of no row or of all rows
    are not fitted: their score is the log-odds of their share of the rows.

    All other labels are negatives of a row. With "logistic" and dense rows labels share the passes over the rows; else
    each label is fitted by itself. Both run on threads. From .1 GB or a minute on, the log
    (`logging.getLogger("wsabie")`) states memory and time before the start. Both grow with the number of labels, and a
    job above the limits is refused (`ModelTooLargeError`).

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the L2 penalty; for "passive-aggressive" the longest step, where .01 is a better value.
    learner : {"logistic", "passive-aggressive", "hinge", "svm"}, default "logistic"
        "passive-aggressive": PA-I. "hinge": SGD on the hinge loss. "svm": liblinear's squared hinge loss. All are
        scikit-learn's; the second and third have no intercept, f(x) = w.x as in the paper.
    max_negatives : int or None, default None
        Random rows without the label in the training of each label; None: all of them. With a limit the time does not
        grow with labels x rows. "logistic" corrects its intercept for it, other learners do not.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows, see `Wsabie`; dense rows get no constant feature, because there is an intercept.
    max_gigabytes : float, default 2.0
        Largest model that is trained (10^9 bytes).
    max_minutes : float, default 10.0
        Longest training that is started, by the estimate of `work`.
    max_iter : int, default 100
        Newton steps per label, or passes over its rows ("passive-aggressive", "hinge").
    seed : int, default 0
        Seed of the order of rows and of random negatives; the result of a label does not depend on other labels or
        threads.
    threads : int or None
        None uses every core that this process may use.

    Attributes
    ----------
    scaling_ : RowScaling
    coef_ : (n_labels, n_features) float32
        Transpose of the array in memory, in which a row's non-zeros read whole lines of all labels' weights.
    intercept_ : (n_labels,) float32
    n_unconverged_ : int
        Labels that did not converge within `max_iter` steps.

    Examples
    --------
    >>> X = np.repeat(np.eye(2), 10, axis=0)
    >>> model = OneVsRest(threads=1).fit(X, ["ship"] * 10 + ["horse"] * 10)
    >>> model.annotate([[0.0, 1.0]], k=1)[0][0][0]
    'horse'
    """

    kind = "one-vs-rest"

    C: float = 1.0
    _: KW_ONLY
    learner: LearnerName = "logistic"
    max_negatives: int | None = None
    scaling: Scaling = "tfidf"
    max_gigabytes: float = 2.0
    max_minutes: float = 10.0
    max_iter: int = 100
    seed: int = 0
    threads: int | None = None

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        width = self.n_features_in_
        work = self.work(_count_values(inputs), width, count_label_rows(targets), count_rows(inputs))
        self._check_limits(work, targets.shape[1])
        dtype = np.float32 if self._shares_passes(inputs) else self._learner.dtype
        self._fit_labels(_convert_rows(inputs, width, dtype), targets, progress)

    def _shares_passes(self, rows: object) -> bool:
        return self.learner == "logistic" and self.max_negatives is None and isinstance(rows, np.ndarray)

    def work(self, n_values: int, n_features: int, counts: Array, rows: int) -> TrainingCost:
        """Estimate memory and time of a fit.

        Parameters
        ----------
        n_values : int
            Stored values of X; rows * n_features: the rows are dense.
        n_features : int
        counts : (n_labels,) int
            Rows of each label; labels with none or all of the `rows` take no time.
        rows : int

        Returns
        -------
        TrainingCost
            Bytes of the fitted model, and seconds on this many threads.
        """
        counts = np.asarray(counts)
        fitted = counts[(counts > 0) & (counts < rows)]
        n_negatives = rows - fitted
        n_shown = fitted + (n_negatives if self.max_negatives is None else np.minimum(n_negatives, self.max_negatives))
        values = float(n_shown.sum()) * n_values / max(rows, 1) + VALUES_PER_FEATURE * n_features * len(fitted)
        seconds = SECONDS_PER_LABEL * len(fitted) + self._learner.seconds_per_value * values
        if self.learner == "logistic" and self.max_negatives is None and n_values == rows * n_features:
            seconds *= SHARED_PASS_SHARE
        return TrainingCost(4 * len(counts) * (n_features + 1), seconds / self._n_threads)

    @property
    def _learner(self) -> LabelLearner:
        return LEARNERS[self.learner]

    @property
    def label_vectors(self) -> Float32:
        """Weights of the labels, (n_labels, n_features) float32; a view."""
        return self.coef_

    def _dump_config(self) -> JsonObject:
        return {**super()._dump_config(), "n_unconverged": self.n_unconverged_}

    def _dump_tensors(self) -> dict[str, Array]:
        return {**super()._dump_tensors(), "weights": self.coef_.T, "intercept": self.intercept_}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_labels = len(self.vocabulary_)
        self.coef_ = check_array(tensors, "weights", "float32", (self.n_features_in_, n_labels)).T
        self.intercept_ = check_array(tensors, "intercept", "float32", (n_labels,))
        self.n_unconverged_ = read_config(Count, config["n_unconverged"])

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        rows = convert_to_matrix(self.scaling_(inputs), self.n_features_in_)
        scores = np.asarray(rows @ self.coef_.T, np.float32)
        scores += self.intercept_
        return scores

    def _check_limits(self, work: TrainingCost, n_labels: int) -> None:
        sentence = f"one-versus-rest with {n_labels:,} labels and {self.n_features_in_:,} features needs {work}"
        if work.n_bytes > 1e9 * self.max_gigabytes or work.seconds > 60 * self.max_minutes:
            raise ModelTooLargeError(
                f"{sentence}, and the limits are {self.max_gigabytes:g} GB and {self.max_minutes:g} minutes; "
                "use fewer labels, set max_negatives, or raise max_gigabytes and max_minutes"
            )
        if work.is_large:
            log.info(sentence)

    def _fit_labels(self, rows: Matrix, targets: Matrix, progress: Progress) -> None:
        n_labels, counts = targets.shape[1], count_label_rows(targets)
        self.coef_ = np.zeros((self.n_features_in_, n_labels), np.float32).T
        self.intercept_ = compute_log_odds(counts, rows.shape[0])
        self.n_unconverged_ = 0
        label_ids = np.flatnonzero((counts > 0) & (counts < rows.shape[0]))
        by_label, fit = (targets > 0).tocsc(), self._fit_together if self._shares_passes(rows) else self._fit_apart
        with progress.stage("one-versus-rest", len(label_ids), "labels") as stage:
            fit(rows, by_label, label_ids, stage)

    def _fit_together(self, rows: Float32, by_label: Matrix, label_ids: Int64, stage: Stage) -> None:
        if not len(label_ids):
            return
        options = self.C, self.max_iter, self._n_threads, stage.advance
        weights, intercept, has_converged = fit_logistic_heads(rows, by_label[:, label_ids], *options)
        self.coef_[label_ids], self.intercept_[label_ids] = weights, intercept
        self.n_unconverged_ = int((~has_converged).sum())

    def _fit_apart(self, rows: Matrix, by_label: Matrix, label_ids: Int64, stage: Stage) -> None:
        with warnings.catch_warnings(), ThreadPoolExecutor(self._n_threads) as pool:
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            for has_converged in pool.map(lambda y: self._fit_label(rows, by_label, y), label_ids):
                self.n_unconverged_ += int(not has_converged)
                stage.advance()

    def _fit_label(self, rows: Matrix, by_label: Matrix, y: int) -> bool:
        """Fit the label's weights; return True if they have converged."""
        positives = np.sort(by_label.indices[by_label.indptr[y] : by_label.indptr[y + 1]])
        row_ids, share = select_training_rows(positives, rows.shape[0], self.max_negatives, [self.seed, int(y)])
        training_rows = rows if len(row_ids) == rows.shape[0] else rows[row_ids]
        seed = (self.seed + int(y)) % 2**32
        learner = build_learner(self.learner, self.C, training_rows.shape[0], self.max_iter, seed)
        learner.fit(training_rows, np.isin(row_ids, positives).astype(np.int32))
        self.coef_[y] = learner.coef_[0]
        intercept = float(np.ravel(learner.intercept_)[0])
        self.intercept_[y] = intercept + (np.log(share) if self._learner.odds else 0)
        return int(np.max(learner.n_iter_)) < self.max_iter


def _convert_rows(inputs: FeatureMatrix, n_features: int, dtype: type) -> Matrix:
    """Return rows in the layout that the learner reads without a copy."""
    rows = convert_to_matrix(inputs, n_features)
    if not hasattr(rows, "tocsr"):
        return np.ascontiguousarray(rows, dtype)
    indptr = rows.indptr.astype(np.int32)
    return csr_matrix((rows.data.astype(dtype, copy=False), rows.indices, indptr), shape=rows.shape)


def _count_values(inputs: FeatureMatrix) -> int:
    return int(inputs.size if isinstance(inputs, np.ndarray) else len(inputs.data))
