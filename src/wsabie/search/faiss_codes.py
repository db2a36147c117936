"""Compressed vectors that faiss searches, approximately: cells of quantised vectors, or a graph.

The only file that imports faiss. It finds candidates, which `wsabie.search.approximate_index` scores from the table.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64, UInt8
from wsabie.core.errors import InputError
from wsabie.core.validation import require

CodesKind = Literal["ivf", "hnsw"]

FEWEST = 1000
"""Vectors below which codes are no gain."""

_TRAINED_ON = 256  # vectors per cell, where there are as many: with fewer, more cells have to be looked into
_ROUNDS = 8
_SAMPLE = 1 << 16
_LINKS, _BUILT_WITH = 16, 80


def require_enough_vectors(n: int, noun: str = "vectors") -> None:
    """Raise InputError where n vectors are too few for an index to be a gain."""
    require(n >= FEWEST, f"an index is no gain for {n:,} {noun}, but from {FEWEST:,} on; search them exactly")


def require_faiss() -> Any:
    """Return the package faiss; raise InputError with the command that installs it."""
    try:
        import faiss
    except ImportError as error:
        raise InputError(
            "an approximate index needs faiss, which is not installed; run: pip install 'wsabie[ann]'"
        ) from error
    return faiss


class FaissCodes:
    """Codes of n vectors, numbered as they were added.

    Parameters
    ----------
    index : object of faiss
    kind : {"ivf", "hnsw"}
        "ivf": about 2 sqrt(n) cells, in each of them 4 bits for two coordinates of a vector; "hnsw": a graph of 32
        links a vector on one byte a coordinate.
    memory : array or None
        Memory that the index is a view of.

    Examples
    --------
    >>> vectors = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> codes = FaissCodes.train(lambda which: vectors[which], 2000, 8, kind="ivf")
    >>> codes.search(vectors[:2], 20, codes.efforts[-1])[:, 0]
    array([0, 1])
    """

    def __init__(self, index: Any, kind: CodesKind, memory: Array | None = None) -> None:
        self._index, self.kind, self._memory = index, kind, memory

    @classmethod
    def train(
        cls,
        vectors: Callable[[Int64], Float32],
        n: int,
        dim: int,
        *,
        kind: CodesKind = "ivf",
        products: bool = False,
        seed: int = 0,
        threads: int | None = None,
    ) -> "FaissCodes":
        """Train codes of vectors(numbers), (len(numbers), dim) float32, for the numbers 0 to n - 1.

        With `products` searches take the inner product instead of the distance.
        """
        require_enough_vectors(n)  # first: who has so few needs no faiss
        faiss = require_faiss()
        size = max(_SAMPLE, _n_cells(n) * _TRAINED_ON) if kind == "ivf" else _SAMPLE
        sample = vectors(np.sort(np.random.default_rng(seed).permutation(n)[:size]))
        metric = faiss.METRIC_INNER_PRODUCT if products else faiss.METRIC_L2
        with _limit_threads(faiss, threads):
            if kind == "ivf":
                index = _train_cells(faiss, sample, dim, _n_cells(n), metric, seed)
            else:
                index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, _LINKS, metric)
                index.hnsw.efConstruction = _BUILT_WITH
            index.train(sample[:: -(-len(sample) // _SAMPLE)])
            for lo in range(0, n, _SAMPLE):
                index.add(vectors(np.arange(lo, min(lo + _SAMPLE, n))))
        return cls(index, kind)

    @property
    def efforts(self) -> tuple[int, ...]:
        """Possible efforts of a search, ascending: cells, or vectors in the search list of the graph."""
        last, start = (self._index.nlist, 1) if self.kind == "ivf" else (1024, 16)
        steps = sorted({start << i for i in range(32)} | {3 * start << i for i in range(32)})  # by about a half each
        return (*(step for step in steps if step < last), last)

    def search(
        self, queries: Float32, k: int, effort: int, candidate_ids: Int64 | None = None, threads: int | None = None
    ) -> Int64:
        """Return about the k nearest of each query, (n, k), among `candidate_ids`; -1 where it finds too few."""
        faiss = require_faiss()
        options: dict[str, Any] = {}
        if candidate_ids is not None:
            bits = np.zeros(self._index.ntotal, bool)
            bits[candidate_ids] = True
            packed = np.packbits(bits, bitorder="little")
            options["sel"] = faiss.IDSelectorBitmap(packed.size, faiss.swig_ptr(packed))
        if self.kind == "ivf":
            params = faiss.SearchParametersIVF(nprobe=min(effort, self._index.nlist), **options)
        else:
            params = faiss.SearchParametersHNSW(efSearch=max(effort, k), **options)
        with _limit_threads(faiss, threads):
            ids: Int64 = self._index.search(queries, k, params=params)[1]
        require(ids.max(initial=-1) < self._index.ntotal, "the index names vectors that do not exist; build it anew")
        return ids

    def to_bytes(self) -> UInt8:
        """Return the bytes that faiss writes, uint8."""
        content: UInt8 = require_faiss().serialize_index(self._index)
        return content

    @classmethod
    def from_bytes(cls, content: UInt8, kind: CodesKind, n: int, dim: int) -> "FaissCodes":
        """Return the codes of n vectors from bytes whose hash was checked; a graph stays a view of them.

        Raises
        ------
        ValueError
            They are something else.
        """
        faiss = require_faiss()
        try:
            index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(content), content.size))
        except RuntimeError as error:
            raise ValueError("faiss cannot read it") from error
        expected = faiss.IndexIVFPQFastScan if kind == "ivf" else faiss.IndexHNSWSQ
        if type(index) is not expected or (index.ntotal, index.d) != (n, dim):
            raise ValueError(f"it holds something else than {kind} codes of {n} vectors of {dim} dimensions")
        return cls(index, kind, content)


def _n_cells(n: int) -> int:
    """Return the power of two next to 2 sqrt(n)."""
    return int(2 ** round(np.log2(2 * np.sqrt(n))))


def _train_cells(faiss: Any, sample: Float32, dim: int, n_cells: int, metric: int, seed: int) -> Any:
    kmeans = faiss.Kmeans(
        dim, n_cells, niter=_ROUNDS, seed=seed + 1, max_points_per_centroid=_TRAINED_ON, min_points_per_centroid=1
    )
    kmeans.train(sample)
    centres = faiss.IndexFlat(dim, metric)
    centres.add(kmeans.centroids)
    index = faiss.IndexIVFPQFastScan(centres, dim, n_cells, dim // 2, 4, metric)
    index.pq.cp.seed = seed + 1
    index.by_residual = False  # so that a query has one table of distances, and not one for each cell
    return index


@contextmanager
def _limit_threads(faiss: Any, threads: int | None) -> Iterator[None]:
    """Limit the threads of faiss within the context."""
    if threads is None:
        yield
        return
    last_count = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(last_count)
