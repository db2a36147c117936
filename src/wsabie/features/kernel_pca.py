"""Kernel principal components of histograms: long sparse rows become short dense ones.

Schoelkopf, Smola and Mueller (1998) with the histogram intersection kernel, as [P] section 6.1 makes the input of
WSABIE: about 500,000 sparse dimensions to 1,024. Exact while every row is a landmark, else by Nystroem's method.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from wsabie.base.arrays import Csr, Float32, Float64, Int64, Matrix, under_one_type
from wsabie.base.errors import InputError, ModelFolderError
from wsabie.base.machine import available_cores
from wsabie.base.progress import SILENT, Progress
from wsabie.base.threads import for_each
from wsabie.base.validation import check_features, require, whole_number
from wsabie.features.nystroem import (
    Choice,
    Loss,
    Report,
    as_csr,
    choose,
    exact_kernel,
    factor,
    intersection,
    leading,
    loss_of,
    moments,
    points,
)
from wsabie.sources.align import MAPPED
from wsabie.sources.records import Rows
from wsabie.storage.folder import Parts, load_folder, save_folder
from wsabie.storage.schema import PositiveCount, check_parameters, read_config

KIND = "kernel_pca"
_EXACT = 4096  # rows that are all landmarks with "auto"
_LEARNT_FROM = 16_384  # rows whose mean and covariance are taken, or 4 for each landmark
_JUDGED = 512  # rows on whose pairs the error is measured
_FEWEST = 16  # of them, or it says nothing
_ROWS = 256


@dataclass(frozen=True)
class KernelPcaConfig:
    """The config of a folder of a map."""

    parameters: dict[str, Any]
    n_features: PositiveCount
    report: tuple[float, float, float, float, int, bool]
    feature_names: list[str] | None
    dictionary: str | None


class KernelPca:
    """The first principal components in the space of the histogram intersection kernel K(x, z) = sum_j min(x_j, z_j).

    Parameters
    ----------
    n_components : int, default 1024
        Width of the rows that come out; fewer where the rows span fewer dimensions.
    n_landmarks : int or "auto"
        Rows by which all others are seen. "auto": all rows, which is exact, up to 4,096; of more rows 4 for each
        component, at least 1,024.
    kernel : {"intersection"}
    choice : {"k-means++", "uniform"}
        How landmarks are drawn: far from each other, or all alike.
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
    report_ : Report
        Error on pairs of rows, and explained share of the variance.
    n_features_in_, n_components_, n_landmarks_ : int
        Landmarks that others explain are dropped, so that there may be fewer than asked for.

    Examples
    --------
    >>> X = np.array([[2.0, 0, 1], [0, 3, 0], [1, 1, 1], [0, 0, 4]])
    >>> pca = KernelPca(n_components=3).fit(X)
    >>> points = pca.transform(X)
    >>> points.shape, round(float(pca.report_.whole.error), 5)
    ((4, 3), 0.0)
    >>> round(float(((points[0] - points[1]) ** 2).sum()), 4)  # |x|_1 + |z|_1 - 2 K(x, z)
    6.0
    """

    def __init__(
        self,
        n_components: int = 1024,
        n_landmarks: int | Literal["auto"] = "auto",
        kernel: Literal["intersection"] = "intersection",
        *,
        choice: Choice = "k-means++",
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.choice = choice
        self.seed = seed
        self.feature_names: list[str] | None = None
        self.dictionary: str | None = None

    @property
    def n_components_(self) -> int:
        """Components that the rows have."""
        return len(self.components_)

    @property
    def n_landmarks_(self) -> int:
        """Landmarks that were kept."""
        return int(self.components_.shape[1])

    @property
    def n_bytes(self) -> int:
        """Bytes of every array that `transform` needs."""
        return int(sum(array.nbytes for array in (*self.landmarks_, self.components_, self.bias_)))

    def landmarks_for(self, n_rows: int, things: str = "rows") -> int:
        """How many of so many rows become landmarks; `things` is what an error calls the rows.

        Raises
        ------
        InputError
            A parameter that cannot be used, or more components than landmarks or rows.

        Examples
        --------
        >>> [KernelPca(256).landmarks_for(n) for n in (3000, 100_000)]
        [3000, 1024]
        """
        self._check()
        if self.n_landmarks != "auto":
            wanted = self.n_landmarks
        else:
            wanted = n_rows if n_rows <= _EXACT else max(1024, 4 * self.n_components)
        most, what = min(wanted, n_rows), things if n_rows <= wanted else "landmarks"
        require(
            self.n_components <= most,
            f"{self.n_components:,} components are asked for, but {most:,} {what} have no more than {most:,}; ask for "
            f"at most {most:,} components, or give more {what}",
        )
        return most

    def rows_for(self, n_rows: int) -> int:
        """How many of so many rows `fit` looks at: those that it learns from and those that it judges by.

        Examples
        --------
        >>> [KernelPca(256).rows_for(n) for n in (3000, 100_000)]
        [3000, 16896]
        """
        return min(n_rows, max(_LEARNT_FROM, 4 * self.landmarks_for(n_rows)) + _JUDGED)

    def bytes_to_fit(self, n_rows: int) -> int:
        """About how much memory `fit` takes beside the rows: three matrices of landmarks by landmarks."""
        m = self.landmarks_for(n_rows)
        return 8 * (3 * m * m + m * self.n_components)

    def fit(self, X: Any, *, threads: int | None = None, progress: Progress = SILENT) -> Self:
        """Choose landmarks and find the components.

        The result depends on the rows and the seed alone, on a given number of BLAS threads.

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
            Negative values, more components than rows or landmarks, or rows that are all alike.
        """
        rows = self._rows(X, None)
        m, rng = self.landmarks_for(rows.shape[0]), np.random.default_rng(self.seed)
        judged, pool, held_out = _parted(rows.shape[0], m, rng)
        threads = threads or available_cores()
        learnt_from = rows[pool]
        Z = learnt_from[choose(learnt_from, m, self.choice, rng, progress)]
        L, pivots = factor(exact_kernel(Z, Z, threads))
        require(len(L) > 0, "all rows are empty; give rows with values above 0")
        Z = Z[pivots]
        mean, covariance = moments(points(learnt_from, Z, L, threads), len(pool), len(L), progress)
        variances, axes = leading(covariance, mean, self.n_components)
        require(len(variances) > 0, "all rows are alike, so that nothing tells them apart; give rows that differ")
        self.n_features_in_ = int(rows.shape[1])
        self.landmarks_ = as_csr(Z.T)
        self._set_components(L, mean, axes)
        self.variances_: Float32 = variances.astype(np.float32)
        self.report_ = self._judged(rows[judged], Z, L, held_out, threads)
        return self

    def fit_rows(self, rows: Rows, *, threads: int | None = None, progress: Progress = SILENT) -> Self:
        """`fit` to a collection; what its columns mean is kept, so that others can be matched by name."""
        self.fit(rows.X, threads=threads, progress=progress)
        self.feature_names, self.dictionary = rows.feature_names, rows.dictionary
        return self

    def transform(self, X: Any, *, threads: int | None = None) -> Float32:
        """Components of rows, (n, n_components_) float32.

        What a row gets depends on no other row, no number of threads and no BLAS.

        Raises
        ------
        InputError
            Not fitted, negative values, or another width than in `fit`.
        """
        self._check_fitted()
        return self.transform_rows(as_csr(self._rows(X, self.n_features_in_)), threads=threads)

    def transform_rows(self, inputs: Csr | Float32, *, threads: int | None = None) -> Float32:
        """`transform` of rows that were checked (`check_features`) and hold nothing negative."""
        from scipy.sparse import csr_matrix

        from wsabie.kernels.ranks import new_scratch, score_rows
        from wsabie.kernels.similarity import Dot

        self._check_fitted()
        rows = inputs if isinstance(inputs, Csr) else as_csr(csr_matrix(inputs))
        components = Dot(under_one_type(self.components_), under_one_type(self.bias_))
        out = np.empty((rows.n_rows, self.n_components_), np.float32)

        def work(lo: int) -> None:
            hi = min(lo + _ROWS, len(out))
            start, stop = rows.indptr[lo], rows.indptr[hi]
            part = Csr(rows.indptr[lo : hi + 1] - start, rows.indices[start:stop], rows.data[start:stop])
            K = intersection(part, self.landmarks_, self.n_landmarks_)
            score_rows(components, K, out[lo:hi], 0, hi - lo, new_scratch(hi - lo, self.n_landmarks_))

        for_each(work, range(0, len(out), _ROWS), threads or available_cores())
        return out

    def to_parts(self) -> Parts:
        """JSON-able parameters and named arrays."""
        self._check_fitted()
        config = {
            "parameters": self._parameters(),
            "n_features": self.n_features_in_,
            "report": [*self.report_.whole, *self.report_.landmarks, self.report_.rows, self.report_.held_out],
            "feature_names": self.feature_names,
            "dictionary": self.dictionary,
        }
        tensors = {f"landmarks/{name}": np.asarray(part) for name, part in self.landmarks_._asdict().items()}
        return Parts(
            KIND,
            config,
            {**tensors, "components": self.components_, "bias": self.bias_, "variances": self.variances_},
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The map that `to_parts` described; its arrays are used in place.

        Raises
        ------
        ModelFolderError
            Something else, or arrays that do not belong together.
        """
        if parts.kind != KIND:
            raise ModelFolderError(
                f"this is a {parts.kind!r} and no map of kernel components; give the folder that `wsabie features "
                "kpca` saved beside its file"
            )
        try:
            fields, t = read_config(KernelPcaConfig, parts.config), parts.tensors
            check_parameters(cls, fields.parameters)
            pca = cls(**fields.parameters)
            pca.feature_names, pca.dictionary = fields.feature_names, fields.dictionary
            pca.landmarks_ = Csr(*(t[f"landmarks/{name}"] for name in Csr._fields))
            pca.components_, pca.bias_, pca.variances_ = t["components"], t["bias"], t["variances"]
            pca.n_features_in_ = fields.n_features
            error, explained, of_landmarks, theirs, n_judged, held_out = fields.report
            pca.report_ = Report(Loss(error, explained), Loss(of_landmarks, theirs), n_judged, held_out)
            whole = _belong_together(pca)
        except (LookupError, TypeError, ValueError, AttributeError):
            whole = False
        if not whole:
            raise ModelFolderError("this map of kernel components is damaged; restore it from a copy or learn it anew")
        return pca

    def save(self, path: str | Path) -> None:
        """Write the folder of the map, atomically."""
        save_folder(path, self.to_parts())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a saved map; its arrays are mapped into memory.

        Raises
        ------
        ModelFolderError
            Missing, damaged, something else, or of another version.
        """
        return cls.from_parts(load_folder(path))

    def fingerprint(self) -> str:
        """A name that changes with anything that changes a row; `Rows.dictionary` of rows that were mapped."""
        parts = self.to_parts()
        digest = hashlib.sha256(json.dumps([KIND, parts.config["n_features"], parts.config["dictionary"]]).encode())
        for name in sorted(parts.tensors):
            digest.update(np.ascontiguousarray(parts.tensors[name]).data)
        return MAPPED + digest.hexdigest()[:32]

    def refuse_other(self, wanted: dict[str, Any], where: object, remedy: str) -> None:
        """Raise InputError when this map, at `where`, was made with other parameters than `wanted`."""
        made = self._parameters()
        differ = [f"{name} {made[name]} and not {value}" for name, value in wanted.items() if made[name] != value]
        if differ:
            raise InputError(f"the map {where} was made with {', '.join(differ)}; {remedy}")

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_components", "n_landmarks", "kernel", "choice", "seed")}

    def _check(self) -> None:
        whole_number(self.n_components, "n_components")
        if self.n_landmarks != "auto":
            whole_number(self.n_landmarks, "n_landmarks")
        require(self.kernel == "intersection", f'kernel is {self.kernel!r}; choose "intersection"')
        require(self.choice in ("k-means++", "uniform"), f'choice is {self.choice!r}; choose "k-means++" or "uniform"')
        seed = self.seed
        require(
            isinstance(seed, int | np.integer) and 0 <= seed < 2**63,
            f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}",
        )

    def _check_fitted(self) -> None:
        require(hasattr(self, "components_"), "this KernelPca is not fitted yet; call fit(X) first")

    def _rows(self, X: Any, n_features: int | None) -> Matrix:
        """Checked rows as a scipy matrix."""
        from scipy.sparse import csr_matrix

        inputs = check_features(X, n_features=n_features, who="this map")
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
        """From axes among the points phi(x) = L^-1 k(x) to weights of the landmarks."""
        from scipy.linalg import solve_triangular

        signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        axes = axes * signs  # which of the two directions a solver finds must not matter
        weights = solve_triangular(L, axes, lower=True, trans="T", check_finite=False)
        self.components_: Float32 = np.ascontiguousarray(weights.T, np.float32)
        self.bias_: Float32 = (-(mean @ axes)).astype(np.float32)

    def _judged(self, rows: Matrix, Z: Matrix, L: Float64, held_out: bool, threads: int) -> Report:
        K = exact_kernel(rows, rows, threads)
        mapped = self.transform_rows(as_csr(rows), threads=threads)
        everything = np.vstack(list(points(rows, Z, L, threads)))
        return Report(loss_of(K, mapped), loss_of(K, everything), len(K), held_out)


def _parted(n: int, m: int, rng: np.random.Generator) -> tuple[Int64, Int64, bool]:
    """Rows to judge by, rows to learn from, and whether they are different rows."""
    order = rng.permutation(n)
    spare = min(_JUDGED, (n - m) // 4)  # landmarks are chosen among more rows than they need
    held_out = spare >= _FEWEST
    pool = order[spare:] if held_out else order
    return np.sort(order[: spare if held_out else _JUDGED]), np.sort(pool[: max(_LEARNT_FROM, 4 * m)]), held_out


def _belong_together(pca: KernelPca) -> bool:
    """Whether loaded arrays have the shapes and types of one map, and lead no kernel out of bounds."""
    indptr, indices, data = pca.landmarks_
    k, m = pca.components_.shape
    types = [array.dtype.name for array in (indptr, indices, data, pca.components_, pca.bias_)]
    return bool(
        types == ["int64", "int32", "float32", "float32", "float32"]
        and indptr.shape == (pca.n_features_in_ + 1,)
        and indices.shape == data.shape == (indptr[-1],)
        and indptr[0] == 0
        and (np.diff(indptr) >= 0).all()
        and (not len(indices) or (indices.min() >= 0 and indices.max() < m))
        and pca.bias_.shape == pca.variances_.shape == (k,)
    )
