"""Multinomial logistic regression: the baseline of DeViSE and the classifier of ConSE."""

import logging
import warnings
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from wsabie.core.arrays import Array, Float32, Float64, Matrix
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix
from wsabie.models.base.row_scaling import Scaling
from wsabie.models.base.score_ranker import ScaledRanker
from wsabie.models.one_vs_rest import TrainingCost
from wsabie.storage.schema_validation import check_array

log = logging.getLogger("wsabie")
SECONDS_PER_PRODUCT = 2e-9
"""Duration of a step on a core of 2.5 GHz, per label and value of the rows; a fit may take half or twice as long."""


@dataclass(eq=False, repr=False)
class Softmax(ScaledRanker):
    """Softmax classifier for rows with one label each, fitted by scikit-learn's L-BFGS.

    A row with several labels counts once for each, with weight 1 / labels. The score of a label is the logarithm of its
    probability; labels without a training row are never predicted. From .1 GB or a minute on, the log
    (`logging.getLogger("wsabie")`) states memory and time of all `max_iter` steps before the start.

    Parameters
    ----------
    C : float, default 10
        Inverse of the L2 regularisation.
    max_iter : int, default 200
        Most steps; a warning is logged if they are not enough.
    scaling : {"auto", "tfidf", None}, default "auto"
        Scaling of rows, see `Wsabie`.

    Attributes
    ----------
    scaling_ : RowScaling
    trained_label_ids_ : (n_seen,) int64
        Labels that have a training row.
    weights_ : (n_seen, n_features) float32
    bias_ : (n_seen,) float32

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = Softmax(scaling=None).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> model.probabilities(X[[0, 10]]).argmax(axis=1)
    array([0, 1])
    """

    kind = "softmax"

    C: float = 10.0
    _: KW_ONLY
    max_iter: int = 200
    scaling: Scaling = "auto"

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        rows, pairs = convert_to_matrix(inputs, self.n_features_in_), (targets > 0).tocoo()
        with progress.stage("softmax", None, ""):
            self._fit_weights(rows, pairs)

    def _fit_weights(self, rows: Matrix, pairs: Matrix) -> None:
        from sklearn.linear_model import LogisticRegression

        self.trained_label_ids_ = np.unique(pairs.col).astype(np.int64)
        if len(self.trained_label_ids_) == 1:
            self.weights_, self.bias_ = np.zeros((1, rows.shape[1]), np.float32), np.zeros(1, np.float32)
            return
        self._log_cost(rows, pairs)
        weight = 1 / np.bincount(pairs.row, minlength=rows.shape[0])[pairs.row]
        learner = LogisticRegression(C=self.C, max_iter=self.max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the log has a clearer message
            learner.fit(rows[pairs.row], pairs.col, weight)
        if np.max(learner.n_iter_) >= self.max_iter:
            log.warning(
                "softmax had not settled at max_iter = %d steps, which regularises too; a higher one lets it settle",
                self.max_iter,
            )
        weights, bias = learner.coef_, learner.intercept_
        if len(self.trained_label_ids_) == 2:  # scikit-learn keeps the difference of two
            weights, bias = np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias])
        # contiguous, so that products with a loaded table have the same bits
        self.weights_ = np.ascontiguousarray(weights, np.float32)
        self.bias_ = bias.astype(np.float32)

    def _log_cost(self, rows: Matrix, pairs: Matrix) -> None:
        """Log the estimate of memory and time, if they are large."""
        n_labels, (n_rows, n_features) = len(self.trained_label_ids_), rows.shape
        n_values = (rows.nnz if hasattr(rows, "tocsr") else rows.size) * pairs.nnz / n_rows
        cost = TrainingCost(4 * n_labels * (n_features + 1), SECONDS_PER_PRODUCT * n_values * n_labels * self.max_iter)
        if cost.is_large:
            log.info(f"softmax with {n_labels:,} labels and {n_features:,} features needs {cost}")

    def probabilities(self, X: Matrix) -> Float64:
        """Return the probability of each label; 0 for labels without a training row.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)

        Returns
        -------
        (n, n_labels) float64

        Raises
        ------
        InputError
            See `scores`.
        """
        return np.exp(self.scores(X).astype(np.float64))

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that a prediction needs."""
        return super().n_bytes - int(self.trained_label_ids_.nbytes)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        rows = convert_to_matrix(self.scaling_(inputs), self.n_features_in_)
        scores = np.asarray(rows @ self.weights_.T) + self.bias_
        scores -= scores.max(axis=1, keepdims=True)
        out = np.full((len(scores), len(self.vocabulary_)), -np.inf, np.float32)
        out[:, self.trained_label_ids_] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return out

    def _dump_tensors(self) -> dict[str, Array]:
        arrays = {"weights": self.weights_, "bias": self.bias_, "trained_label_ids": self.trained_label_ids_}
        return {**super()._dump_tensors(), **arrays}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_labels = len(self.vocabulary_)
        self.trained_label_ids_ = check_array(tensors, "trained_label_ids", "int64", (None,), upper_bound=n_labels)
        n_trained = len(self.trained_label_ids_)
        self.weights_ = check_array(tensors, "weights", "float32", (n_trained, self.n_features_in_))
        self.bias_ = check_array(tensors, "bias", "float32", (n_trained,))
