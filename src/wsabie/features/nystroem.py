"""Nystroem's method: a kernel approximated by landmark rows, their choice, and the loss.

With landmarks z_1 .. z_m and K_zz = L L', the point phi(x) = L^-1 k_z(x) lies in R^m, and phi(x).phi(y) is the kernel
of the projections of x and y onto the span of the landmarks (Williams and Seeger 2001). It is exact for the landmarks
themselves, and so for everything when all rows are landmarks.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wsabie.core.arrays import Array, Csr, Float64, Int64, Matrix, view_as_writable
from wsabie.core.execution import SILENT, Progress, run_in_ranges

Choice = Literal["k-means++", "uniform"]
_ROWS_PER_TASK = 256
_BLOCK = 1024  # of one product
_NEGLIGIBLE = 1e-10  # variance, as a share of the largest, that is rounding
_TOLERANCE = 1e-7  # a landmark with a residual below this share of the largest K(z, z) is redundant


def prepare_csr(X: Matrix) -> Csr:
    """Return a scipy matrix as kernels take it."""
    X = X.tocsr()
    X.sort_indices()
    return Csr(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32))


def compute_intersection_kernel(
    rows: Csr, features: Csr, n_landmarks: int, *, dtype: npt.DTypeLike = np.float32, threads: int = 1
) -> Array:
    """Compute the intersection kernel sum_j min(x_j, z_j) of rows and landmarks, (n, n_landmarks).

    Parameters
    ----------
    rows : Csr
        Values of 0 or more.
    features : Csr
        The landmarks, transposed: row j holds those that have feature j.
    n_landmarks : int
    dtype : float32 or float64
    threads : int

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> Z = csr_matrix([[1, 4, 9], [2, 0, 0]])
    >>> compute_intersection_kernel(prepare_csr(csr_matrix([[2, 0, 5]])), prepare_csr(Z.T), 2)
    array([[6., 2.]], dtype=float32)
    """
    from wsabie.kernels.features.sparse_rows import intersect_rows

    rows, features = Csr(*map(view_as_writable, rows)), Csr(*map(view_as_writable, features))
    out = np.empty((rows.n_rows, n_landmarks), dtype)
    run_in_ranges(lambda lo, hi: intersect_rows(rows, features, out, lo, hi), len(out), _ROWS_PER_TASK, threads)
    return out


def choose_landmarks(X: Matrix, m: int, choice: Choice, rng: np.random.Generator, progress: Progress = SILENT) -> Int64:
    """Choose m rows as landmarks and return their numbers, ascending; fewer where fewer rows differ.

    "uniform" draws without replacement. "k-means++" draws each in proportion to its squared distance, in the kernel's
    space, from the nearest one before (Arthur and Vassilvitskii 2007; Oglic and Gaertner 2017 for landmarks), so that
    dense regions do not take them all.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X = csr_matrix([[1, 0]] * 9 + [[0, 5]])
    >>> rows = choose_landmarks(X, 3, "k-means++", np.random.default_rng(0))
    >>> len(rows), int(rows[-1])
    (2, 9)
    """
    n = X.shape[0]
    if m >= n or choice == "uniform":
        return np.sort(rng.choice(n, min(m, n), replace=False))
    features, norms = prepare_csr(X.T), np.asarray(X.sum(axis=1), np.float64).ravel()  # K(x, x) = ||x||_1
    nearest, landmarks = norms.copy(), list[int]()
    with progress.stage("choosing landmarks", m, "rows") as stage:
        while len(landmarks) < m and nearest.max() > _TOLERANCE * norms.max():
            row = int(rng.choice(n, p=nearest / nearest.sum()))
            landmarks.append(row)
            common = compute_intersection_kernel(prepare_csr(X[row]), features, n, dtype=np.float64)[0]
            gap = np.maximum(norms + norms[row] - 2 * common, 0)
            nearest = gap if len(landmarks) == 1 else np.minimum(nearest, gap)
            nearest[row] = 0
            stage.advance()
    return np.sort(np.array(landmarks, np.int64))


def factor_kernel(K: Float64) -> tuple[Float64, Int64]:
    """Return the pivoted Cholesky factor (L, pivots) of K, with K[pivots][:, pivots] = L L'.

    K is overwritten. Redundant pivots are left out, so that L (r, r) is regular.

    Examples
    --------
    >>> L, pivots = factor_kernel(np.array([[1.0, 1.0], [1.0, 1.0]]))
    >>> L.tolist(), pivots.tolist()
    ([[1.0]], [0])
    """
    from scipy.linalg.lapack import dpstrf

    smallest = _TOLERANCE * max(float(K.diagonal().max(initial=0)), 1e-30)
    # Symmetric, so that its transpose is the same in the order of LAPACK: nothing is copied.
    L, pivots, rank, _ = dpstrf(K.T, tol=smallest, lower=1, overwrite_a=1)
    return np.tril(L[:rank, :rank]), pivots[:rank].astype(np.int64) - 1


def compute_exact_kernel(X: Matrix, Z: Matrix, threads: int) -> Float64:
    return compute_intersection_kernel(prepare_csr(X), prepare_csr(Z.T), Z.shape[0], dtype=np.float64, threads=threads)


def map_to_landmarks(X: Matrix, Z: Matrix, L: Float64, threads: int) -> Iterator[Float64]:
    """Yield blocks (b, r) of phi(x) = L^-1 k(x) of rows."""
    from scipy.linalg import solve_triangular

    features = prepare_csr(Z.T)
    for lo in range(0, X.shape[0], _BLOCK):
        K = compute_intersection_kernel(
            prepare_csr(X[lo : lo + _BLOCK]), features, Z.shape[0], dtype=np.float64, threads=threads
        )
        yield solve_triangular(L, K.T, lower=True, overwrite_b=True, check_finite=False).T


def compute_moments(points: Iterator[Float64], n: int, width: int, progress: Progress) -> tuple[Float64, Float64]:
    """Return the mean (width,) and covariance (width, width) of n points."""
    total, squares = np.zeros(width), np.zeros((width, width))
    with progress.stage("learning components", n, "rows") as stage:
        for block in points:
            total += block.sum(axis=0)
            squares += block.T @ block
            stage.advance(len(block))
    mean = total / n
    squares /= n
    squares -= np.outer(mean, mean)
    return mean, squares


def compute_leading_components(covariance: Float64, mean: Float64, k: int) -> tuple[Float64, Float64]:
    """Return the k largest variances above rounding, descending, and their axes (r, k).

    For equal points the difference of squares and mean leaves the rounding of the squares.
    """
    from scipy.linalg import eigh

    r = len(covariance)
    rounding = 64 * np.finfo(np.float64).eps * (np.trace(covariance) + mean @ mean)
    variances, axes = eigh(covariance, subset_by_index=[max(0, r - k), r - 1], overwrite_a=True, check_finite=False)
    order = np.flatnonzero(variances > max(_NEGLIGIBLE * variances[-1], rounding))[::-1]
    return variances[order], axes[:, order]


class ApproximationLoss(NamedTuple):
    """Loss of an approximation of a centred kernel, on pairs of rows."""

    error: float
    """||K - F F'|| / ||K|| over all pairs of two different rows."""
    explained: float
    """Share of the rows' variance (the trace of K) that F F' has."""


class ApproximationReport(NamedTuple):
    """Loss of a map on held-out rows, or on its own rows where all are landmarks.

    `components` is the loss of `transform`, `landmarks` that of all components of the landmarks; the difference is the
    gain of more components.
    """

    components: ApproximationLoss
    landmarks: ApproximationLoss
    rows: int
    has_holdout: bool

    def format_summary(self) -> str:
        """Return the report as one sentence.

        Examples
        --------
        >>> ApproximationReport(ApproximationLoss(0.2, 0.4), ApproximationLoss(0.1, 0.9), 512, True).format_summary()
        'on 512 rows held out: 40.0% of the variance explained, relative error of the kernel 0.200 (of the landmarks...'
        """
        origin = "held out" if self.has_holdout else "of the map's own"
        return (
            f"on {self.rows:,} {'row' if self.rows == 1 else 'rows'} {origin}: {self.components.explained:.1%} of the "
            f"variance explained, relative error of the kernel {self.components.error:.3f} (of the landmarks alone "
            f"{self.landmarks.error:.3f})"
        )


def measure_loss(K: Float64, F: Array) -> ApproximationLoss:
    """Compare a kernel matrix (q, q) with the products of rows F (q, k), both centred over these rows.

    Examples
    --------
    >>> F = np.array([[2.0, 0.0], [-2.0, 4.0], [0.0, -4.0]])
    >>> measure_loss(F @ F.T, F)
    ApproximationLoss(error=0.0, explained=1.0)
    >>> round(measure_loss(F @ F.T, F[:, :1]).explained, 6)
    0.2
    """
    F = np.asarray(F, np.float64)
    F = F - F.mean(axis=0)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    residual = centred - F @ F.T
    trace, pairs = np.trace(centred), ~np.eye(len(K), dtype=bool)
    size = np.linalg.norm(centred[pairs])
    if not (trace > 0 and size > 0):  # equal rows: there is nothing to lose
        return ApproximationLoss(0.0, 1.0)
    return ApproximationLoss(float(np.linalg.norm(residual[pairs]) / size), float(1 - np.trace(residual) / trace))
