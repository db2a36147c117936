"""One linear classifier per label: the models that a newcomer would try first, and the papers' own baseline.

The papers train their one-versus-rest baseline by the Passive-Aggressive algorithm ([W] section 6.3, PA-I of Crammer et
al. 2006) or "hinge loss" ([S]). The default is logistic regression, stronger and known to everybody.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.errors import UnsuitableError
from wsabie.base.machine import TOLD, available_cores
from wsabie.base.progress import SILENT, Progress
from wsabie.base.validation import require, whole_number
from wsabie.models.inputs import Inputs, as_matrix, n_rows
from wsabie.models.learners import (
    LEARNERS,
    SECONDS_PER_LABEL,
    VALUES_PER_FEATURE,
    Learner,
    LearnerName,
    fit_label,
    log_odds,
    shown_rows,
)
from wsabie.models.parameters import check_run, is_number
from wsabie.models.scaling import Rows, RowScaling
from wsabie.models.scored import ScoreRanker
from wsabie.storage.folder import Parts
from wsabie.storage.schema import Count, check_array, read_config

log = logging.getLogger("wsabie")
_TOLD_SECONDS = 60
"""Time that is told before training."""


class TooLargeError(UnsuitableError):
    """A model that would take more memory or time than was allowed."""


class Work(NamedTuple):
    """What training would take.

    Attributes
    ----------
    n_bytes : int
        Memory of the finished model: n_labels x (n_features + 1) float32.
    seconds : float
        An estimate from constants, so that the same data are refused on every machine.
    """

    n_bytes: int
    seconds: float

    def __str__(self) -> str:
        """Words for a sentence.

        Examples
        --------
        >>> str(Work(3_000_000_000, 7200.0)), str(Work(3_000_000, 7.0))
        ('3.0 GB and about 2.0 hours', '3.0 MB and about 0.1 minutes')
        """
        hours = self.seconds / 3600
        time = f"{hours:.1f} hours" if hours >= 1 else f"{max(self.seconds / 60, 0.1):.1f} minutes"
        size = f"{self.n_bytes / 1e9:.1f} GB" if self.n_bytes >= TOLD else f"{self.n_bytes / 1e6:.1f} MB"
        return f"{size} and about {time}"


class OneVsRest(ScoreRanker):
    """A linear classifier of each label against all other rows.

    A label's score is its log-odds ("logistic") or its signed margin (the others). Labels of no row, or of every row,
    are not fitted: their score is the log-odds of their share of the rows.

    Labels are fitted side by side on threads. Memory and time, from .1 GB or a minute on, are stated in the log
    (`logging.getLogger("wsabie")`) before the start; both grow with the number of labels, and a job above the
    limits is refused.

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the L2 penalty; for "passive-aggressive" the longest step, for which .01 is a better start.
    learner : {"logistic", "passive-aggressive", "hinge", "svm"}, default "logistic"
        "passive-aggressive": PA-I. "hinge": SGD on the hinge loss. "svm": liblinear's squared hinge loss. All are
        scikit-learn's; the second and third have no intercept, f(x) = w.x as in the paper.
    max_negatives : int or None, default None
        Random rows without the label that each label is shown; None: all of them. With it the time no longer grows
        with labels x rows. "logistic" corrects its intercept for it; the margins of the others are not corrected.
    rows : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows, as in `Wsabie`; dense rows get no constant feature, which the intercept is.
    max_gigabytes : float, default 2.0
        Largest model that is begun (10^9 bytes).
    max_minutes : float, default 10.0
        Longest training that is begun, by the estimate of `work`.
    max_iter : int, default 100
        Newton steps per label, or passes over its rows ("passive-aggressive", "hinge").
    seed : int, default 0
        Of the order of rows and of the random negatives; a label's numbers do not depend on other labels or threads.
    threads : int or None
        None uses every core that this process may use.

    Attributes
    ----------
    scaling_ : RowScaling
    coef_ : (n_labels, n_features) float32
        The transpose of what is kept in memory: a row's non-zeros then read whole lines of all labels' weights.
    intercept_ : (n_labels,) float32
    n_unconverged_ : int
        Labels that had not settled after `max_iter` steps.

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
            Everything that is not a label of a row is a negative of it.
        label_names : list of str or None
            Names of label numbers 0, 1, ...; by default the numbers themselves.
        progress : Progress

        Raises
        ------
        TooLargeError
            The model would need more memory or time than `max_gigabytes` and `max_minutes` allow.
        InputError
            Data or parameters that cannot be used; the sentence says where.
        """
        self.check_parameters()
        fitted = copy(self)  # a fit that fails leaves this model as it was
        inputs, targets = fitted._opened(X, Y, label_names)
        width = fitted.n_features_in_
        fitted._refuse(self.work(_stored(inputs), width, _counts(targets), n_rows(inputs)), targets.shape[1])
        fitted.scaling_ = RowScaling.learned(inputs, width, self.rows)
        fitted._fit_labels(_as_read(fitted.scaling_(inputs), width, self._learner.dtype), targets, progress)
        self.__dict__.update(fitted.__dict__)
        return self

    def work(self, n_values: int, n_features: int, counts: Any, rows: int) -> Work:
        """Memory and time of a fit.

        Parameters
        ----------
        n_values : int
            Stored values of X.
        n_features : int
        counts : (n_labels,) int
            Rows of each label; those with none or all of the `rows` take no time.
        rows : int
        """
        counts = np.asarray(counts)
        fitted = counts[(counts > 0) & (counts < rows)]
        others = rows - fitted
        shown = fitted + (others if self.max_negatives is None else np.minimum(others, self.max_negatives))
        values = float(shown.sum()) * n_values / max(rows, 1) + VALUES_PER_FEATURE * n_features * len(fitted)
        seconds = SECONDS_PER_LABEL * len(fitted) + self._learner.seconds_per_value * values
        return Work(4 * len(counts) * (n_features + 1), seconds / (self.threads or available_cores()))

    @property
    def _learner(self) -> Learner:
        return LEARNERS[self.learner]

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        arrays = (self.coef_, self.intercept_, self.scaling_.weight, self.scaling_.shift)
        return int(sum(array.nbytes for array in arrays))

    @property
    def label_vectors(self) -> Float32:
        """The weights of each label, (n_labels, n_features) float32; a view."""
        weights: Float32 = self.coef_
        return weights

    def to_parts(self) -> Parts:
        """What the model is made of: JSON-able config and named arrays."""
        config = {**self._described(), "scaling": self.scaling_.method, "n_unconverged": self.n_unconverged_}
        return Parts(
            self.kind, config, {"weights": self.coef_.T, "intercept": self.intercept_, **self.scaling_.tensors()}
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that `to_parts` described; its coefficients stay memory-mapped."""
        config, t = parts.config, parts.tensors
        model = cls._restored(config)
        model.scaling_ = RowScaling.restored(config["scaling"], t, model.n_features_in_)
        n_labels = len(model.vocabulary_)
        model.coef_ = check_array(t, "weights", "float32", (model.n_features_in_, n_labels)).T
        model.intercept_ = check_array(t, "intercept", "float32", (n_labels,))
        model.n_unconverged_ = read_config(Count, config["n_unconverged"])
        return model

    def _scores(self, inputs: Inputs) -> Float32:
        rows = as_matrix(self.scaling_(inputs), self.n_features_in_)
        scores = np.asarray(rows @ self.coef_.T, np.float32)
        scores += self.intercept_
        return scores

    def _refuse(self, work: Work, n_labels: int) -> None:
        sentence = f"one-versus-rest with {n_labels:,} labels and {self.n_features_in_:,} features needs {work}"
        if work.n_bytes > 1e9 * self.max_gigabytes or work.seconds > 60 * self.max_minutes:
            raise TooLargeError(
                f"{sentence}, and the limits are {self.max_gigabytes:g} GB and {self.max_minutes:g} minutes; "
                "use fewer labels, set max_negatives, or raise max_gigabytes and max_minutes"
            )
        if work.n_bytes >= TOLD or work.seconds >= _TOLD_SECONDS:
            log.info(sentence)

    def _fit_labels(self, rows: Matrix, targets: Matrix, progress: Progress) -> None:
        import warnings

        from sklearn.exceptions import ConvergenceWarning

        n_labels, counts = targets.shape[1], _counts(targets)
        self.coef_ = np.zeros((self.n_features_in_, n_labels), np.float32).T
        self.intercept_ = log_odds(counts, rows.shape[0])
        self.n_unconverged_ = 0
        by_label = (targets > 0).tocsc()
        wanted = np.flatnonzero((counts > 0) & (counts < rows.shape[0]))
        with (
            warnings.catch_warnings(),
            ThreadPoolExecutor(self.threads or available_cores()) as pool,
            progress.stage("one-versus-rest", len(wanted), "labels") as stage,
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            for settled in pool.map(lambda y: self._fit_label(rows, by_label, y), wanted):
                self.n_unconverged_ += int(not settled)
                stage.advance()

    def _fit_label(self, rows: Matrix, by_label: Matrix, y: int) -> bool:
        """Set the label's weights; whether they have settled."""
        positives = np.sort(by_label.indices[by_label.indptr[y] : by_label.indptr[y + 1]])
        shown, share = shown_rows(positives, rows.shape[0], self.max_negatives, [self.seed, int(y)])
        some = rows if len(shown) == rows.shape[0] else rows[shown]
        learner, seed = self._learner, (self.seed + int(y)) % 2**32
        fit = fit_label(learner, some, np.isin(shown, positives), self.C, self.max_iter, seed)
        self.coef_[y] = fit.coef
        self.intercept_[y] = fit.intercept + (np.log(share) if learner.odds else 0)
        return fit.settled

    def check_parameters(self) -> None:
        """Refuse values that no training can use, by name; InputError."""
        require(
            self.learner in LEARNERS,
            f"learner is {self.learner!r}; choose one of {', '.join(LEARNERS)}",
        )
        require(
            self.max_negatives is None or (_whole(self.max_negatives) and self.max_negatives > 0),
            f"max_negatives is {self.max_negatives!r}; choose None or a whole number above 0",
        )
        check_run(self.threads, self.seed)
        whole_number(self.max_iter, "max_iter")
        for name in ("C", "max_gigabytes", "max_minutes"):
            value = getattr(self, name)
            require(is_number(value) and value > 0, f"{name} is {value!r}; choose a number above 0")


def _as_read(inputs: Inputs, n_features: int, dtype: type) -> Matrix:
    """Rows in the layout that the learner reads without a copy."""
    from scipy.sparse import csr_matrix

    rows = as_matrix(inputs, n_features)
    if not hasattr(rows, "tocsr"):
        return np.ascontiguousarray(rows, dtype)
    indptr = rows.indptr.astype(np.int32)
    return csr_matrix((rows.data.astype(dtype, copy=False), rows.indices, indptr), shape=rows.shape)


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _counts(targets: Matrix) -> Any:
    return np.bincount(targets.indices[targets.data > 0], minlength=targets.shape[1])


def _stored(inputs: Inputs) -> int:
    return int(inputs.size if isinstance(inputs, np.ndarray) else len(inputs.data))
