"""One linear classifier per label: the baseline of the papers, and a common first choice.

Weston et al. 2010, section 6.3, train their one-versus-rest baseline by the Passive-Aggressive algorithm (PA-I of
Crammer et al. 2006); Bengio 2012 uses the "hinge loss". The default is logistic regression, which is stronger and well
known.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from wsabie.core.arrays import Float32, Matrix
from wsabie.core.errors import UnsuitableModelError
from wsabie.core.machine import TOLD, count_available_cores
from wsabie.core.progress import SILENT, Progress
from wsabie.core.validation import check_positive_integer, require
from wsabie.models.base.feature_matrix import Inputs, convert_to_matrix, count_rows
from wsabie.models.base.hyperparameters import check_run, is_finite_number
from wsabie.models.base.row_scaling import Rows, RowScaling
from wsabie.models.base.score_ranker import ScoreRanker
from wsabie.models.linear.label_learners import (
    LEARNERS,
    SECONDS_PER_LABEL,
    VALUES_PER_FEATURE,
    LabelLearner,
    LearnerName,
    compute_log_odds,
    fit_label,
    select_training_rows,
)
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import Count, check_array, read_config

log = logging.getLogger("wsabie")
_LOGGED_SECONDS = 60
"""Shortest estimated training time that the log states."""


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

    def __str__(self) -> str:
        """Return size and time in words.

        Examples
        --------
        >>> str(TrainingCost(3_000_000_000, 7200.0)), str(TrainingCost(3_000_000, 7.0))
        ('3.0 GB and about 2.0 hours', '3.0 MB and about 0.1 minutes')
        """
        hours = self.seconds / 3600
        time = f"{hours:.1f} hours" if hours >= 1 else f"{max(self.seconds / 60, 0.1):.1f} minutes"
        size = f"{self.n_bytes / 1e9:.1f} GB" if self.n_bytes >= TOLD else f"{self.n_bytes / 1e6:.1f} MB"
        return f"{size} and about {time}"


class OneVsRest(ScoreRanker):
    """A linear classifier of each label against all other rows.

    A label's score is its log-odds ("logistic") or its signed margin (other learners). Labels of no row or of all rows
    are not fitted: their score is the log-odds of their share of the rows.

    Labels are fitted in parallel on threads. From .1 GB or a minute on, the log (`logging.getLogger("wsabie")`) states
    memory and time before the start. Both grow with the number of labels, and a job above the limits is refused.

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
    rows : {"tfidf", "auto", None}, default "tfidf"
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

    def __init__(
        self,
        C: float = 1.0,
        *,
        learner: LearnerName = "logistic",
        max_negatives: int | None = None,
        rows: Rows = "tfidf",
        max_gigabytes: float = 2.0,
        max_minutes: float = 10.0,
        max_iter: int = 100,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.C = C
        self.learner = learner
        self.max_negatives = max_negatives
        self.rows = rows
        self.max_gigabytes = max_gigabytes
        self.max_minutes = max_minutes
        self.max_iter = max_iter
        self.seed = seed
        self.threads = threads

    def fit(self, X: Any, Y: Any, *, label_names: Sequence[str] | None = None, progress: Progress = SILENT) -> Self:
        """Fit every label.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
        Y : (n,) integers or names; (n, n_labels) sparse matrix of 1 and -1; or lists of names
            All other labels are negatives of a row.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress

        Raises
        ------
        ModelTooLargeError
            The model would need more memory or time than `max_gigabytes` and `max_minutes` allow.
        InputError
            Data or parameters that cannot be used; the message says where.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._opened(X, Y, label_names)
        width = fitted.n_features_in_
        fitted._check_limits(
            self.work(_count_values(inputs), width, _count_positives(targets), count_rows(inputs)), targets.shape[1]
        )
        fitted.scaling_ = RowScaling.learned(inputs, width, self.rows)
        fitted._fit_labels(_convert_rows(fitted.scaling_(inputs), width, self._learner.dtype), targets, progress)
        self.__dict__.update(fitted.__dict__)
        return self

    def work(self, n_values: int, n_features: int, counts: Any, rows: int) -> TrainingCost:
        """Estimate memory and time of a fit.

        Parameters
        ----------
        n_values : int
            Stored values of X.
        n_features : int
        counts : (n_labels,) int
            Rows of each label; labels with none or all of the `rows` take no time.
        rows : int
        """
        counts = np.asarray(counts)
        fitted = counts[(counts > 0) & (counts < rows)]
        n_negatives = rows - fitted
        n_shown = fitted + (n_negatives if self.max_negatives is None else np.minimum(n_negatives, self.max_negatives))
        values = float(n_shown.sum()) * n_values / max(rows, 1) + VALUES_PER_FEATURE * n_features * len(fitted)
        seconds = SECONDS_PER_LABEL * len(fitted) + self._learner.seconds_per_value * values
        return TrainingCost(4 * len(counts) * (n_features + 1), seconds / (self.threads or count_available_cores()))

    @property
    def _learner(self) -> LabelLearner:
        return LEARNERS[self.learner]

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        arrays = (self.coef_, self.intercept_, self.scaling_.weight, self.scaling_.shift)
        return int(sum(array.nbytes for array in arrays))

    @property
    def label_vectors(self) -> Float32:
        """Weights of the labels, (n_labels, n_features) float32; a view."""
        weights: Float32 = self.coef_
        return weights

    def to_parts(self) -> ModelState:
        """Return the model as JSON-able config and named arrays."""
        config = {**self._dump_config(), "scaling": self.scaling_.method, "n_unconverged": self.n_unconverged_}
        return ModelState(
            self.kind, config, {"weights": self.coef_.T, "intercept": self.intercept_, **self.scaling_.tensors()}
        )

    @classmethod
    def from_parts(cls, parts: ModelState) -> Self:
        """Restore the model from its parts; its coefficients stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restore(config)
        model.scaling_ = RowScaling.restored(config["scaling"], t, model.n_features_in_)
        n_labels = len(model.vocabulary_)
        model.coef_ = check_array(t, "weights", "float32", (model.n_features_in_, n_labels)).T
        model.intercept_ = check_array(t, "intercept", "float32", (n_labels,))
        model.n_unconverged_ = read_config(Count, config["n_unconverged"])
        return model

    def _scores(self, inputs: Inputs) -> Float32:
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
        if work.n_bytes >= TOLD or work.seconds >= _LOGGED_SECONDS:
            log.info(sentence)

    def _fit_labels(self, rows: Matrix, targets: Matrix, progress: Progress) -> None:
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        n_labels, counts = targets.shape[1], _count_positives(targets)
        self.coef_ = np.zeros((self.n_features_in_, n_labels), np.float32).T
        self.intercept_ = compute_log_odds(counts, rows.shape[0])
        self.n_unconverged_ = 0
        by_label = (targets > 0).tocsc()
        label_ids = np.flatnonzero((counts > 0) & (counts < rows.shape[0]))
        with (
            warnings.catch_warnings(),
            ThreadPoolExecutor(self.threads or count_available_cores()) as pool,
            progress.stage("one-versus-rest", len(label_ids), "labels") as stage,
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            for has_converged in pool.map(lambda y: self._fit_label(rows, by_label, y), label_ids):
                self.n_unconverged_ += int(not has_converged)
                stage.advance()

    def _fit_label(self, rows: Matrix, by_label: Matrix, y: int) -> bool:
        """Fit the label's weights; return True if they have converged."""
        positives = np.sort(by_label.indices[by_label.indptr[y] : by_label.indptr[y + 1]])
        row_ids, share = select_training_rows(positives, rows.shape[0], self.max_negatives, [self.seed, int(y)])
        training_rows = rows if len(row_ids) == rows.shape[0] else rows[row_ids]
        learner, seed = self._learner, (self.seed + int(y)) % 2**32
        fit = fit_label(learner, training_rows, np.isin(row_ids, positives), self.C, self.max_iter, seed)
        self.coef_[y] = fit.coef
        self.intercept_[y] = fit.intercept + (np.log(share) if learner.odds else 0)
        return fit.has_converged

    def check_parameters(self) -> None:
        """Raise InputError for parameters that no training can use."""
        require(
            self.learner in LEARNERS,
            f"learner is {self.learner!r}; choose one of {', '.join(LEARNERS)}",
        )
        require(
            self.max_negatives is None or (_is_whole(self.max_negatives) and self.max_negatives > 0),
            f"max_negatives is {self.max_negatives!r}; choose None or a whole number above 0",
        )
        check_run(self.threads, self.seed)
        check_positive_integer(self.max_iter, "max_iter")
        for name in ("C", "max_gigabytes", "max_minutes"):
            value = getattr(self, name)
            require(is_finite_number(value) and value > 0, f"{name} is {value!r}; choose a number above 0")


def _convert_rows(inputs: Inputs, n_features: int, dtype: type) -> Matrix:
    """Return rows in the layout that the learner reads without a copy."""
    from scipy.sparse import csr_matrix

    rows = convert_to_matrix(inputs, n_features)
    if not hasattr(rows, "tocsr"):
        return np.ascontiguousarray(rows, dtype)
    indptr = rows.indptr.astype(np.int32)
    return csr_matrix((rows.data.astype(dtype, copy=False), rows.indices, indptr), shape=rows.shape)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _count_positives(targets: Matrix) -> Any:
    return np.bincount(targets.indices[targets.data > 0], minlength=targets.shape[1])


def _count_values(inputs: Inputs) -> int:
    return int(inputs.size if isinstance(inputs, np.ndarray) else len(inputs.data))
