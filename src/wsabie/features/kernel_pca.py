"""Kernel principal components of histograms: long sparse rows become short dense ones.

Schoelkopf, Smola and Mueller (1998) with the histogram intersection kernel, which Mesnil et al. 2014, section 6.1, use
for the input of WSABIE: about 500,000 sparse dimensions to 1,024. Exact while every row is a landmark, else
by Nystroem's method. We keep ours because scikit-learn 1.9.1 has no intersection kernel: `KernelPCA` and `Nystroem`
call a Python function for each pair of dense rows, which takes 4 to 7 times as long.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, Self

import numpy as np

from wsabie.core.arrays import Csr, Float32, Float64, Int64, Matrix, view_as_writable
from wsabie.core.errors import InputError, ModelFolderError, require
from wsabie.core.execution import SILENT, Progress, run_in_ranges
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import resolve_threads
from wsabie.core.validation import check_features, check_positive_integer
from wsabie.features import nystroem
from wsabie.features.base.feature_extractor import raise_damaged_state
from wsabie.features.base.sampling import check_seed
from wsabie.io.alignment import KPCA_FINGERPRINT_PREFIX
from wsabie.io.records import FeatureTable
from wsabie.storage.model_folder import ModelState, SavedObject
from wsabie.storage.schema_validation import (
    PositiveCount,
    check_array,
    check_parameters,
    check_sparse_indices,
    read_config,
)

KIND = "kernel_pca"
_MAX_EXACT_ROWS = 4096  # rows that are all landmarks with "auto"
_TRAINING_ROWS = 16_384  # rows whose mean and covariance are taken, or 4 for each landmark
_TEST_ROWS = 512  # rows on whose pairs the error is measured
_MIN_TEST_ROWS = 16  # with fewer the error means nothing
_ROWS_PER_TASK = 256


@dataclass(frozen=True)
class KernelPcaConfig:
    """Config of the folder of a map."""

    parameters: JsonObject
    n_features: PositiveCount
    report: tuple[float, float, float, float, int, bool]
    feature_names: list[str] | None
    extractor_fingerprint: str | None


@dataclass(eq=False, repr=False)
class KernelPca(SavedObject):
    """Principal components in the space of the intersection kernel K(x, z) = sum_j min(x_j, z_j).

    Parameters
    ----------
    n_components : int, default 1024
        Width of the resulting rows; fewer where the rows span fewer dimensions.
    n_landmarks : int or "auto"
        Rows that represent all others. "auto": all rows, which is exact, up to 4,096; of more rows 4 for each
        component, at least 1,024.
    kernel : {"intersection"}
    choice : {"k-means++", "uniform"}
        Choice of landmarks: far from each other, or uniform.
    seed : int

    Attributes
    ----------
    landmarks_ : Csr
        The landmarks transposed: row j holds those that have feature j.
    components_ : (n_components_, n_landmarks_) float32
        A row is a component's weight of each landmark; `transform` is k(x) @ components_.T + bias_.
    bias_ : (n_components_,) float32
        Centres the rows in the kernel's space.
    variances_ : (n_components_,) float32, descending
    report_ : ApproximationReport
        Error on pairs of rows, and explained share of the variance.
    n_features_in_, n_components_, n_landmarks_ : int
        Redundant landmarks are dropped, so that there may be fewer than requested.

    Examples
    --------
    >>> X = np.array([[2.0, 0, 1], [0, 3, 0], [1, 1, 1], [0, 0, 4]])
    >>> pca = KernelPca(n_components=3).fit(X)
    >>> points = pca.transform(X)
    >>> points.shape, round(float(pca.report_.components.error), 5)
    ((4, 3), 0.0)
    >>> round(float(((points[0] - points[1]) ** 2).sum()), 4)  # |x|_1 + |z|_1 - 2 K(x, z)
    6.0
    """

    n_components: int = 1024
    n_landmarks: int | Literal["auto"] = "auto"
    kernel: Literal["intersection"] = "intersection"
    _: KW_ONLY
    choice: nystroem.Choice = "k-means++"
    seed: int = 0
    feature_names: list[str] | None = field(default=None, init=False)
    extractor_fingerprint: str | None = field(default=None, init=False)

    @property
    def n_components_(self) -> int:
        """Number of components of the rows."""
        return len(self.components_)

    @property
    def n_landmarks_(self) -> int:
        """Number of landmarks."""
        return int(self.components_.shape[1])

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that `transform` needs."""
        return int(sum(array.nbytes for array in (*self.landmarks_, self.components_, self.bias_)))

    def count_landmarks(self, n_rows: int, modality: str = "rows") -> int:
        """Return the number of landmarks for so many rows.

        Parameters
        ----------
        n_rows : int
        modality : str
            Name of the rows in errors.

        Returns
        -------
        int

        Raises
        ------
        InputError
            A parameter that cannot be used, or more components than landmarks or rows.

        Examples
        --------
        >>> [KernelPca(256).count_landmarks(n) for n in (3000, 100_000)]
        [3000, 1024]
        """
        self._check()
        if self.n_landmarks != "auto":
            target = self.n_landmarks
        else:
            target = n_rows if n_rows <= _MAX_EXACT_ROWS else max(1024, 4 * self.n_components)
        n_landmarks, items = min(target, n_rows), modality if n_rows <= target else "landmarks"
        problem = f"{self.n_components:,} components are asked for, but {n_landmarks:,} {items} have no more than"
        remedy = f"ask for at most {n_landmarks:,} components, or give more {items}"
        require(self.n_components <= n_landmarks, f"{problem} {n_landmarks:,}; {remedy}")
        return n_landmarks

    def count_fit_rows(self, n_rows: int) -> int:
        """Return the number of rows that `fit` uses: for training, and to measure the error.

        Parameters
        ----------
        n_rows : int
            Rows that there are.

        Returns
        -------
        int

        Examples
        --------
        >>> [KernelPca(256).count_fit_rows(n) for n in (3000, 100_000)]
        [3000, 16896]
        """
        return min(n_rows, max(_TRAINING_ROWS, 4 * self.count_landmarks(n_rows)) + _TEST_ROWS)

    def estimate_fit_bytes(self, n_rows: int) -> int:
        """Estimate the memory of `fit` beside the rows: three matrices of landmarks by landmarks.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        int
        """
        m = self.count_landmarks(n_rows)
        return 8 * (3 * m * m + m * self.n_components)

    def fit(self, X: Matrix, *, threads: int | None = None, progress: Progress = SILENT) -> Self:
        """Choose landmarks and find the components.

        For a fixed number of BLAS threads the result depends on the rows and the seed alone.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
            Values of 0 or more. Mean and covariance come from at most 16,384 of the rows (or 4 for each landmark).
        threads : int or None
            None: all cores.
        progress : Progress

        Raises
        ------
        InputError
            Negative values, more components than rows or landmarks, or equal rows.
        """
        rows = self._convert_rows(X, None)
        m, rng = self.count_landmarks(rows.shape[0]), np.random.default_rng(self.seed)
        test_rows, pool, has_holdout = _split_rows(rows.shape[0], m, rng)
        threads = resolve_threads(threads)
        training_rows = rows[pool]
        Z = training_rows[nystroem.choose_landmarks(training_rows, m, self.choice, rng, progress)]
        L, pivots = nystroem.factor_kernel(nystroem.compute_exact_kernel(Z, Z, threads))
        require(len(L) > 0, "all rows are empty; give rows with values above 0")
        Z = Z[pivots]
        mean, covariance = nystroem.compute_moments(
            nystroem.map_to_landmarks(training_rows, Z, L, threads), len(pool), len(L), progress
        )
        variances, axes = nystroem.compute_leading_components(covariance, mean, self.n_components)
        require(len(variances) > 0, "all rows are alike, so that nothing tells them apart; give rows that differ")
        self.n_features_in_ = int(rows.shape[1])
        self.landmarks_ = nystroem.prepare_csr(Z.T)
        self._set_components(L, mean, axes)
        self.variances_: Float32 = variances.astype(np.float32)
        self.report_ = self._report_loss(rows[test_rows], Z, L, has_holdout, threads)
        return self

    def fit_rows(self, rows: FeatureTable, *, threads: int | None = None, progress: Progress = SILENT) -> Self:
        """Fit to a feature table and keep its feature names, so that other rows can be matched by name.

        Parameters
        ----------
        rows : FeatureTable
        threads, progress
            See `fit`.

        Raises
        ------
        InputError
            As `fit`.
        """
        self.fit(rows.X, threads=threads, progress=progress)
        self.feature_names, self.extractor_fingerprint = rows.feature_names, rows.extractor_fingerprint
        return self

    def transform(self, X: Matrix, *, threads: int | None = None) -> Float32:
        """Return the components of rows.

        The result of a row depends on no other row, number of threads or BLAS.

        Parameters
        ----------
        X : sparse matrix or array, (n, n_features)
            Values of 0 or more.
        threads : int or None
            None: all cores.

        Returns
        -------
        (n, n_components_) float32

        Raises
        ------
        InputError
            Not fitted, negative values, or another width than in `fit`.
        """
        self._check_fitted()
        return self.transform_rows(nystroem.prepare_csr(self._convert_rows(X, self.n_features_in_)), threads=threads)

    def transform_rows(self, rows: Csr, *, threads: int | None = None) -> Float32:
        """Transform checked rows (`check_features`) without negative values.

        Parameters
        ----------
        rows : Csr
        threads : int or None
            None: all cores.

        Returns
        -------
        (n, n_components_) float32
        """
        from wsabie.kernels.embedding.similarity import Dot
        from wsabie.kernels.ranking.label_ranks import allocate_scratch, score_rows

        self._check_fitted()
        components = Dot(view_as_writable(self.components_), view_as_writable(self.bias_))
        out = np.empty((rows.n_rows, self.n_components_), np.float32)

        def transform_range(lo: int, hi: int) -> None:
            start, stop = rows.indptr[lo], rows.indptr[hi]
            part = Csr(rows.indptr[lo : hi + 1] - start, rows.indices[start:stop], rows.data[start:stop])
            K = nystroem.compute_intersection_kernel(part, self.landmarks_, self.n_landmarks_)
            score_rows(components, K, out[lo:hi], 0, hi - lo, allocate_scratch(hi - lo, self.n_landmarks_))

        run_in_ranges(transform_range, len(out), _ROWS_PER_TASK, resolve_threads(threads))
        return out

    def to_state(self) -> ModelState:
        self._check_fitted()
        config = {
            "parameters": self._list_parameters(),
            "n_features": self.n_features_in_,
            "report": [*self.report_.components, *self.report_.landmarks, self.report_.rows, self.report_.has_holdout],
            "feature_names": self.feature_names,
            "extractor_fingerprint": self.extractor_fingerprint,
        }
        tensors = {f"landmarks/{name}": np.asarray(part) for name, part in self.landmarks_._asdict().items()}
        tensors |= {"components": self.components_, "bias": self.bias_, "variances": self.variances_}
        return ModelState(KIND, config, tensors)

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        """Return the map of a saved state; its arrays are used in place.

        Parameters
        ----------
        state : ModelState

        Raises
        ------
        ModelFolderError
            Something else, or arrays that do not belong together.
        """
        if state.kind != KIND:
            problem = f"this is a {state.kind!r} and no map of kernel components"
            raise ModelFolderError(f"{problem}; give the folder that `features.kpca()` saved beside its file")
        with raise_damaged_state("this map of kernel components"):
            fields, tensors = read_config(KernelPcaConfig, state.config), state.tensors
            check_parameters(cls, fields.parameters)
            pca = cls(**fields.parameters)
            pca.feature_names, pca.extractor_fingerprint = fields.feature_names, fields.extractor_fingerprint
            pca.n_features_in_ = fields.n_features
            pca.components_ = check_array(tensors, "components", "float32", (None, None))
            k, m = pca.components_.shape
            indptr, indices = check_sparse_indices(tensors, "landmarks", ("int64", "int32"), (fields.n_features, m))
            pca.landmarks_ = Csr(indptr, indices, check_array(tensors, "landmarks/data", "float32", indices.shape))
            pca.bias_, pca.variances_ = (check_array(tensors, name, "float32", (k,)) for name in ("bias", "variances"))
            losses, (n_test_rows, has_holdout) = fields.report[:4], fields.report[4:]
            components, landmarks = nystroem.ApproximationLoss(*losses[:2]), nystroem.ApproximationLoss(*losses[2:])
            pca.report_ = nystroem.ApproximationReport(components, landmarks, n_test_rows, has_holdout)
            return pca

    def fingerprint(self) -> str:
        """Return a name that changes with anything that changes a row (`FeatureTable.extractor_fingerprint`).

        Returns
        -------
        str
        """
        state = self.to_state()
        return KPCA_FINGERPRINT_PREFIX + state.compute_fingerprint(
            [KIND, state.config["n_features"], state.config["extractor_fingerprint"]]
        )

    def refuse_other_options(self, options: JsonObject, where: object, remedy: str) -> None:
        """Raise InputError if this map has other parameters than these options.

        Parameters
        ----------
        options : dict
            Values by the name of the parameter.
        where : object
            Place of this map, for the message.
        remedy : str
            Last clause of the message: what to do.
        """
        parameters = self._list_parameters()
        differences = [
            f"{name} {parameters[name]} and not {value}" for name, value in options.items() if parameters[name] != value
        ]
        require(not differences, f"the map {where} was made with {', '.join(differences)}; {remedy}")

    def _list_parameters(self) -> JsonObject:
        return {name: getattr(self, name) for name in ("n_components", "n_landmarks", "kernel", "choice", "seed")}

    def _check(self) -> None:
        check_positive_integer(self.n_components, "n_components")
        if self.n_landmarks != "auto":
            check_positive_integer(self.n_landmarks, "n_landmarks")
        require(self.kernel == "intersection", f'kernel is {self.kernel!r}; choose "intersection"')
        require(self.choice in ("k-means++", "uniform"), f'choice is {self.choice!r}; choose "k-means++" or "uniform"')
        check_seed(self.seed)

    def _check_fitted(self) -> None:
        require(hasattr(self, "components_"), "this KernelPca is not fitted yet; call fit(X) first")

    def _convert_rows(self, X: Matrix, n_features: int | None) -> Matrix:
        """Return checked rows without negative values as a CSR matrix."""
        from scipy.sparse import csr_matrix

        inputs = check_features(X, n_features=n_features, model_name="this map")
        if not isinstance(inputs, Csr):
            rows = csr_matrix(inputs)
        else:
            rows = csr_matrix((inputs.data, inputs.indices, inputs.indptr), shape=X.shape)
        low = int(np.argmin(rows.data)) if rows.nnz else 0
        if rows.nnz and rows.data[low] < 0:
            row = int(np.searchsorted(rows.indptr, low, side="right")) - 1
            raise InputError(
                f"row {row} holds {rows.data[low]:g} in column {rows.indices[low]}, and the intersection kernel "
                "compares histograms, whose values are 0 or more; correct the row, or give features that are counts"
            )
        return rows

    def _set_components(self, L: Float64, mean: Float64, axes: Float64) -> None:
        """Turn axes among the points phi(x) = L^-1 k(x) into weights of the landmarks."""
        from scipy.linalg import solve_triangular

        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        axes = axes * signs  # the sign that a solver finds must not matter
        weights = solve_triangular(L, axes, lower=True, trans="T", check_finite=False)
        self.components_: Float32 = np.ascontiguousarray(weights.T, np.float32)
        self.bias_: Float32 = (-(mean @ axes)).astype(np.float32)

    def _report_loss(
        self, rows: Matrix, Z: Matrix, L: Float64, has_holdout: bool, threads: int
    ) -> nystroem.ApproximationReport:
        K = nystroem.compute_exact_kernel(rows, rows, threads)
        mapped = self.transform_rows(nystroem.prepare_csr(rows), threads=threads)
        all_components = np.vstack(list(nystroem.map_to_landmarks(rows, Z, L, threads)))
        return nystroem.ApproximationReport(
            nystroem.measure_loss(K, mapped), nystroem.measure_loss(K, all_components), len(K), has_holdout
        )


def _split_rows(n: int, m: int, rng: np.random.Generator) -> tuple[Int64, Int64, bool]:
    """Return test rows, training rows, and True if they are disjoint."""
    order = rng.permutation(n)
    n_test_rows = min(_TEST_ROWS, (n - m) // 4)  # landmarks are chosen among more rows than they need
    has_holdout = n_test_rows >= _MIN_TEST_ROWS
    pool = order[n_test_rows:] if has_holdout else order
    test_rows = order[: n_test_rows if has_holdout else _TEST_ROWS]
    return np.sort(test_rows), np.sort(pool[: max(_TRAINING_ROWS, 4 * m)]), has_holdout
