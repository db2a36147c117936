"""Ridge regression of the labels on the rows, for thousands of labels and features."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix, diags_array
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from wsabie.core.arrays import Array, Csr, Float32, Matrix, count_rows
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.models.base import feature_matrix
from wsabie.models.base.feature_matrix import FeatureMatrix, convert_to_matrix
from wsabie.models.base.row_scaling import Scaling, square_lengths
from wsabie.models.base.score_ranker import ScaledRanker
from wsabie.storage.schema_validation import check_array

MAX_EXACT_FEATURES = 2048
"""Most features of sparse rows whose weights are exact."""
_POWER_STEPS = 2
_LEAST_LENGTH = np.float32(1e-6)
_ROUNDING = 1e-5  # of the eigenvalues of a kernel in float32, which is added to them


class RidgeSolution(NamedTuple):
    """Weights of labels: `weights` - `corrections` @ `directions`'; see `Ridge`.

    Attributes
    ----------
    weights : csr_matrix or ndarray (n_labels, n_features), float32
    directions : (n_features, r) float32
    corrections : (n_labels, r) float32
    """

    weights: Matrix
    directions: Float32
    corrections: Float32

    def expand(self, lo: int, hi: int) -> Float32:
        """Return the weights of the labels lo..hi - 1 as one table."""
        return _to_array(self.weights[lo:hi]) - self.corrections[lo:hi] @ self.directions.T

    @property
    def lengths(self) -> Float32:
        """Lengths of the labels' weights, (n_labels,)."""
        weights, corrections = self.weights, self.corrections
        squares = weights.power(2) if hasattr(weights, "tocsr") else weights**2
        products = (weights @ self.directions - corrections / 2) * corrections  # the directions are orthonormal
        lengths: Float32 = np.sqrt(np.maximum(np.asarray(squares.sum(axis=1)).ravel() - 2 * products.sum(axis=1), 0))
        return lengths


def solve_ridge(rows: Matrix, targets: Matrix, penalty: float, n_directions: int, seed: int) -> RidgeSolution:
    """Solve for the weights of all labels, exactly for dense rows and sparse ones of up to 2,048 features.

    Parameters
    ----------
    rows : (n, n_features), sparse or dense, float32
    targets : csr_matrix (n, n_labels) float32
    penalty : float
    n_directions : int
    seed : int
        Seed of the randomised singular value decomposition.
    """
    with threadpool_limits(1):  # the same bits with any number of threads
        if not hasattr(rows, "tocsr") or rows.shape[1] <= MAX_EXACT_FEATURES:
            return _solve_exactly(rows, targets, penalty)
        return _solve_in_directions(rows, targets, penalty, n_directions, seed)


def _solve_exactly(rows: Matrix, targets: Matrix, penalty: float) -> RidgeSolution:
    """Solve in the space of the features, or of the rows where there are fewer."""
    n, width = rows.shape
    gram = _to_array(rows @ rows.T if n < width else rows.T @ rows)
    gram[np.diag_indices_from(gram)] += np.float32(penalty)
    factor = cho_factor(gram, overwrite_a=True)
    if n < width:
        weights = cho_solve(factor, _to_array(rows)).T @ targets
    else:
        weights = cho_solve(factor, _to_array(rows.T @ targets))
    no_directions = np.zeros((width, 0), np.float32), np.zeros((targets.shape[1], 0), np.float32)
    return RidgeSolution(np.ascontiguousarray(weights.T, np.float32), *no_directions)


def _to_array(matrix: Matrix) -> Float32:
    return np.asarray(matrix.toarray() if hasattr(matrix, "tocsr") else matrix)


def _solve_in_directions(rows: Matrix, targets: Matrix, penalty: float, n_directions: int, seed: int) -> RidgeSolution:
    """Solve in the leading directions; in all others the squared singular values count as 0."""
    scaled_targets = targets * np.float32(1 / penalty)
    P, S, V = randomized_svd(rows, min(n_directions, *rows.shape), n_iter=_POWER_STEPS, random_state=seed)
    corrections = (scaled_targets.T @ P) * (S * S * S / (S * S + np.float32(penalty)))
    directions, corrections = (np.ascontiguousarray(array, np.float32) for array in (V.T, corrections))
    return RidgeSolution(csr_matrix(scaled_targets.T @ rows), directions, corrections)


@dataclass(eq=False, repr=False)
class Ridge(ScaledRanker):
    """Linear regression of 0 and 1 for each label, with a penalty on the squares of the weights.

    Weights of dense rows, and of sparse rows with at most 2,048 features, are exact. Weights of thousands of labels for
    more sparse features would not fit into memory. There the scores have two parts:

        Y' Z x / penalty  -  W V x / penalty,       V = Q_r',   W = Y' P_r S_r^3 / (S_r^2 + penalty)

    for rows Z = P S Q' and the r largest singular values S_r. The first part is the sum of each label's rows, which is
    as sparse as they are. The second part corrects it in the r directions in which rows vary most. It is exact with all
    directions, and near enough where the squares of the other singular values are below the penalty.

    Parameters
    ----------
    penalty : float, default 3.0
        Added to the squared singular values of the scaled rows, which have a length of about 1.
    directions : int, default 300
        Directions of the correction (r above), which takes 4 * r * (features + labels) bytes.
    tau : float or None, default None
        Power of the length of a label's weights by which its scores are divided (Kang et al. 2020, section 4.2), so
        that labels of few rows, whose weights are short, rank higher; None: scores are estimates of 0 and 1.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows, see `Wsabie`; dense rows get no constant feature.
    seed : int, default 0
        Seed of the randomised singular value decomposition (Halko et al. 2011).

    Attributes
    ----------
    scaling_ : RowScaling
    sums_ : csr_matrix (n_features, n_labels) or ndarray (n_labels, n_features), float32
        The first part, or the exact weights.
    directions_ : (n_features, r) float32
        V'; no directions if the weights are exact.
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
    tau: float | None = None
    scaling: Scaling = "tfidf"
    seed: int = 0

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        rows, positives = convert_to_matrix(inputs, self.n_features_in_), (targets > 0).astype(np.float32)
        with progress.stage("ridge", None, ""):
            solution = solve_ridge(rows, positives, self.penalty, self.directions, self.seed)
        share = np.zeros(positives.shape[1]) if isinstance(inputs, Csr) else np.asarray(positives.mean(axis=0)).ravel()
        if self.tau is not None:
            factors = diags_array(np.maximum(solution.lengths, _LEAST_LENGTH) ** np.float32(-self.tau))
            solution = solution._replace(weights=factors @ solution.weights, corrections=factors @ solution.corrections)
            share = factors @ share
        self.sums_ = feature_matrix.index_by_feature(solution.weights)
        self.directions_, self.corrections_ = solution.directions, solution.corrections
        self.intercept_ = share.astype(np.float32)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        scaled = self.scaling_(inputs)
        scores = feature_matrix.multiply_rows(scaled, self.sums_, len(self.vocabulary_))
        scores -= (convert_to_matrix(scaled, self.n_features_in_) @ self.directions_) @ self.corrections_.T
        scores += self.intercept_
        return scores

    def _dump_tensors(self) -> dict[str, Array]:
        corrections = {"directions": self.directions_, "corrections": self.corrections_, "intercept": self.intercept_}
        return {**super()._dump_tensors(), **feature_matrix.dump_matrix("sums", self.sums_), **corrections}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        n_labels, width = len(self.vocabulary_), self.n_features_in_
        self.sums_ = feature_matrix.restore_table("sums", tensors, (n_labels, width))
        self.directions_ = check_array(tensors, "directions", "float32", (width, None))
        self.corrections_ = check_array(tensors, "corrections", "float32", (n_labels, self.directions_.shape[1]))
        self.intercept_ = check_array(tensors, "intercept", "float32", (n_labels,))


@dataclass(eq=False, repr=False)
class KernelRidge(ScaledRanker):
    """Regression of 0 and 1 for each label on the Gaussian kernel K = exp(-gamma d^2) of a distance d.

    The scores of a row x are K(x, Z) @ coef_' for m landmarks Z among the training rows X:

        coef_' = (K(Z, X) K(X, Z) + penalty K(Z, Z))^-1 K(Z, X) Y

    With all rows as landmarks this is exact (`sklearn.kernel_ridge.KernelRidge`); with fewer it is the best function of
    their kernels ("subset of regressors", Rasmussen and Williams 2006, section 8.3.1). Training holds
    8 m (m + 2 labels) bytes beside the rows, and a prediction 4 m (labels + non-zero features of a row).

    Parameters
    ----------
    penalty : float, default 1.0
        Added to the eigenvalues of the kernel of all rows.
    gamma : float, default 1.0
        Scale of the squared distances of scaled rows, which have a length of about 1.
    n_landmarks : int, default 4096
        Training rows, drawn at random, whose kernels are combined; all rows if there are fewer.
    scaling : {"tfidf", "auto", None}, default "tfidf"
        Scaling of rows, see `Wsabie`; dense rows get no constant feature.
    seed : int, default 0
        Seed of the landmarks.

    Attributes
    ----------
    scaling_ : RowScaling
    landmarks_ : csr_matrix (n_features, m) or ndarray (m, n_features), float32
    squares_ : (m,) float32
        Squared lengths of the landmarks.
    coef_ : (n_labels, m) float32

    Examples
    --------
    >>> X = np.repeat(np.eye(3), 10, axis=0)
    >>> model = KernelRidge(penalty=0.1).fit(X, ["red"] * 10 + ["green"] * 10 + ["blue"] * 10)
    >>> model.annotate(X[[0]], k=1)[0][0][0]
    'red'
    """

    kind = "kernel-ridge"

    penalty: float = 1.0
    gamma: float = 1.0
    _: KW_ONLY
    n_landmarks: int = 4096
    scaling: Scaling = "tfidf"
    seed: int = 0

    def _learn(self, inputs: FeatureMatrix, targets: Matrix, progress: Progress) -> None:
        positives = (targets > 0).astype(np.float64)
        sample = np.random.default_rng(self.seed).permutation(targets.shape[0])[: self.n_landmarks]
        landmarks = feature_matrix.take_rows(inputs, np.sort(sample))
        self.landmarks_ = feature_matrix.index_by_feature(convert_to_matrix(landmarks, self.n_features_in_))
        self.squares_ = square_lengths(landmarks)
        with progress.stage("kernel ridge", None, ""), threadpool_limits(1):
            gram = np.concatenate([kernel for _, kernel in self._iterate_kernels(landmarks)]).astype(np.float64)
            gram[np.diag_indices_from(gram)] += _ROUNDING * (1 + self.gamma * self.squares_.max())
            gram *= self.penalty
            moments = np.zeros((targets.shape[1], len(gram)))
            for part, float32_kernel in self._iterate_kernels(inputs):
                kernel = float32_kernel.astype(np.float64)
                gram += kernel.T @ kernel
                moments += positives[part].T @ kernel
            self.coef_ = cho_solve(cho_factor(gram, overwrite_a=True), moments.T).T.astype(np.float32, order="C")

    def _iterate_kernels(self, rows: FeatureMatrix) -> Iterator[tuple[slice, Float32]]:
        """Yield the kernel (n, m) of a part of scaled rows and the landmarks, and the part."""
        m = len(self.squares_)
        for lo, hi in feature_matrix.iterate_row_ranges(count_rows(rows), m):
            part = feature_matrix.slice_rows(rows, lo, hi)
            products = feature_matrix.multiply_rows(part, self.landmarks_, m)
            distances = np.maximum(square_lengths(part)[:, None] + self.squares_ - 2 * products, 0)
            yield slice(lo, hi), np.exp(-np.float32(self.gamma) * distances)

    def _compute_scores(self, inputs: FeatureMatrix) -> Float32:
        return np.concatenate([kernel @ self.coef_.T for _, kernel in self._iterate_kernels(self.scaling_(inputs))])

    def _dump_tensors(self) -> dict[str, Array]:
        landmarks = feature_matrix.dump_matrix("landmarks", self.landmarks_)
        return {**super()._dump_tensors(), **landmarks, "squares": self.squares_, "coef": self.coef_}

    def _restore_tensors(self, config: JsonObject, tensors: dict[str, Array]) -> None:
        super()._restore_tensors(config, tensors)
        self.coef_ = check_array(tensors, "coef", "float32", (len(self.vocabulary_), None))
        self.squares_ = check_array(tensors, "squares", "float32", (self.coef_.shape[1],))
        self.landmarks_ = feature_matrix.restore_table("landmarks", tensors, (len(self.squares_), self.n_features_in_))
