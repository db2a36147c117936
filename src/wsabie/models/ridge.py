"""Ridge regression of the labels on the rows, for thousands of labels and features."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Array, Csr, Float32, Matrix
from wsabie.core.json_conversion import JsonObject
from wsabie.core.progress import Progress
from wsabie.models.base.feature_matrix import Inputs, convert_to_matrix, dump_matrix, restore_matrix
from wsabie.models.base.row_products import index_by_feature, multiply_rows
from wsabie.models.base.row_scaling import Scaling
from wsabie.models.base.score_ranker import ScaledRanker
from wsabie.storage.schema_validation import check_array

_POWER_STEPS = 2


@dataclass(eq=False, repr=False)
class Ridge(ScaledRanker):
    """Linear regression of 0 and 1 for each label, with a penalty on the squares of the weights.

    For dense rows the weights are exact. Weights of thousands of labels for thousands of sparse features would not fit
    into memory. There the scores have two parts:

        Y' Z x / penalty  -  W V x / penalty,       V = Q_r',   W = Y' P_r S_r^3 / (S_r^2 + penalty)

    for rows Z = P S Q' and the r largest singular values S_r. The first part is the sum of each label's rows, which is
    as sparse as they are. The second part corrects it in the r directions in which rows vary most. It is exact with all
    directions, and near enough where the squares of the other singular values are below the penalty.

    Parameters
    ----------
    penalty : float, default 3.0
        Added to the squared singular values of the scaled rows, which have a length of about 1.
    directions : int, default 300
        Directions of the correction for sparse rows (r above), which takes 4 * r * (features + labels) bytes.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows, see `Wsabie`; dense rows get no constant feature.
    seed : int, default 0
        Seed of the randomised singular value decomposition (Halko et al. 2011).

    Attributes
    ----------
    scaling_ : RowScaling
    sums_ : csr_matrix (n_features, n_labels) or ndarray (n_labels, n_features), float32
        The first part (sparse rows), or the weights (dense rows).
    directions_ : (n_features, r) float32
        V'; no directions for dense rows.
    corrections_ : (n_labels, r) float32
        W / penalty.
    intercept_ : (n_labels,) float32
        Mean of the targets for dense rows, which are centred; 0 for sparse ones.

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = Ridge(penalty=0.1).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> [(name, round(score, 2)) for name, score in model.annotate(X[[0]], k=1)[0]]
    [('red', 1.0)]
    """

    kind = "ridge"

    penalty: float = 3.0
    _: KW_ONLY
    directions: int = 300
    scaling: Scaling = "tfidf"
    seed: int = 0

    def _learn(self, inputs: Inputs, targets: Matrix, progress: Progress) -> None:
        positives = (targets > 0).astype(np.float32)
        with threadpool_limits(1), progress.stage("ridge", None, ""):  # one thread: the same bits everywhere
            if isinstance(inputs, Csr):
                self._fit_parts(inputs, positives)
            else:
                self._fit_weights(inputs, positives)

    def _fit_weights(self, rows: Float32, positives: Matrix) -> None:
        """Solve for the weights in the space of the features, or of the rows where there are fewer."""
        n, width = rows.shape
        gram = rows @ rows.T if n < width else rows.T @ rows
        gram[np.diag_indices_from(gram)] += np.float32(self.penalty)
        factor = cho_factor(gram, overwrite_a=True)
        weights = cho_solve(factor, rows).T @ positives if n < width else cho_solve(factor, rows.T @ positives)
        self.sums_ = np.ascontiguousarray(weights.T, np.float32)
        self.directions_ = np.zeros((width, 0), np.float32)
        self.corrections_ = np.zeros((positives.shape[1], 0), np.float32)
        self.intercept_ = np.asarray(positives.mean(axis=0), np.float32).ravel()

    def _fit_parts(self, inputs: Csr, positives: Matrix) -> None:
        rows = convert_to_matrix(inputs, self.n_features_in_)
        scaled_positives = positives * np.float32(1 / self.penalty)
        self.sums_ = index_by_feature(csr_matrix(scaled_positives.T @ rows))
        P, S, V = randomized_svd(rows, min(self.directions, *rows.shape), n_iter=_POWER_STEPS, random_state=self.seed)
        shrinkage = S * S * S / (S * S + np.float32(self.penalty))
        self.directions_ = np.ascontiguousarray(V.T, np.float32)
        self.corrections_ = np.ascontiguousarray((scaled_positives.T @ P) * shrinkage, np.float32)
        self.intercept_ = np.zeros(positives.shape[1], np.float32)

    def _scores(self, inputs: Inputs) -> Float32:
        scaled = self.scaling_(inputs)
        scores = multiply_rows(scaled, self.sums_, len(self.vocabulary_))
        scores -= (convert_to_matrix(scaled, self.n_features_in_) @ self.directions_) @ self.corrections_.T
        scores += self.intercept_
        return scores

    def _dump_tensors(self) -> dict[str, Array]:
        corrections = {"directions": self.directions_, "corrections": self.corrections_, "intercept": self.intercept_}
        return {**super()._dump_tensors(), **dump_matrix("sums", self.sums_), **corrections}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_labels, width = len(self.vocabulary_), self.n_features_in_
        self.sums_ = restore_matrix("sums", tensors, (n_labels, width) if "sums" in tensors else (width, n_labels))
        self.directions_ = check_array(tensors, "directions", "float32", (width, None))
        self.corrections_ = check_array(tensors, "corrections", "float32", (n_labels, self.directions_.shape[1]))
        self.intercept_ = check_array(tensors, "intercept", "float32", (n_labels,))
