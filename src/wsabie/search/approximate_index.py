"""Top k by an approximate index: compressed codes choose candidates, and the table gives their scores.

So scores are those of an exact search to the last bit, and ties go by label id. Only the set of candidates is
approximate; the share of the true top ten that it holds is measured when an index is built. All labels are scored
where a filter leaves few of them, where many are hidden, or where k is so large that codes save nothing.

The codes are cells of quantised vectors, or a graph, of faiss, which no other file imports.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from wsabie.core.arrays import Array, Float32, Int64, UInt8, iterate_slices
from wsabie.core.errors import require
from wsabie.core.optional_packages import import_optional
from wsabie.embedding.joint_space import SimilarityName
from wsabie.search import index_tuning, label_index
from wsabie.search.exact_index import ExactIndex
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array

CodesKind = Literal["ivf", "hnsw"]

_TRAINED_ON = 256  # vectors per cell, where there are as many: with fewer, more cells have to be looked into
_ROUNDS = 8
_SAMPLE = 1 << 16
_LINKS, _BUILT_WITH = 16, 80
NARROW_GRAPH = 0.3
"""Share of candidates below which all are scored, for a graph, whose paths lead through labels that are left out."""
_FEW_CHANGED = 0.02
"""Largest share of changed labels that are scored one by one, beside an index of the others."""
_SHORTLISTS = (10, 20, 40, 80)  # labels scored from the table, as a multiple of k
_ROWS = 1 << 14


def require_faiss() -> Any:
    """Return the package faiss; raise InputError with the command that installs it."""
    return import_optional("faiss", "an approximate index needs faiss", "ann")


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
        label_index.require_enough_vectors(n)  # first: who has so few needs no faiss
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
        require(ids.max(initial=-1) < self._index.ntotal, "the index names vectors that do not exist; build it again")
        return ids

    def to_bytes(self) -> UInt8:
        """Return the bytes that faiss writes, uint8."""
        return np.asarray(require_faiss().serialize_index(self._index))

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


class NearestLift(NamedTuple):
    """Map of labels and queries into a space in which the nearest label has the highest score.

    For inner products [w, bias] gets one more coordinate that makes all labels equally long. Then the nearest label has
    the highest score, and cells serve scores as well as distances. A graph takes products as they are.
    """

    similarity: SimilarityName
    biased: bool
    length: float  # of all lifted labels; 0: not lifted

    def lift_labels(self, rows: Array, bias: Float32 | None) -> Float32:
        """Lift labels from (n, dim) to (n, lifted dim)."""
        rows = rows.astype(np.float32)
        if self.similarity == "cosine":
            rows /= _compute_lengths(rows)
        columns = [rows] if bias is None else [rows, bias[:, None]]
        if self.length:
            squares = sum(np.einsum("ij,ij->i", column, column) for column in columns)
            columns.append(np.sqrt(np.maximum(self.length**2 - squares, 0))[:, None])
        width = sum(column.shape[1] for column in columns)
        if width % 2:  # codes are made of pairs
            columns.append(np.zeros((len(rows), 1), np.float32))
        return np.ascontiguousarray(np.hstack(columns), np.float32)

    def lift_queries(self, queries: Float32) -> Float32:
        n, dim = queries.shape
        lifted = np.zeros((n, self.compute_dim(dim)), np.float32)
        lifted[:, :dim] = queries
        if self.similarity == "cosine":
            lifted /= _compute_lengths(lifted)
        if self.biased:
            lifted[:, dim] = 1
        if self.length:
            lifted *= self.length / _compute_lengths(lifted)
        return lifted

    def compute_dim(self, dim: int) -> int:
        width = dim + self.biased + bool(self.length)
        return width + width % 2


class ApproximateIndex(label_index.LabelSearchIndex):
    """Label vectors searched by compressed codes; `build` makes one.

    Attributes
    ----------
    exact, effort, recall, curve, exact_milliseconds, queries, n_bytes
        See `LabelSearchIndex`; the effort counts searched cells, or vectors in the search list of the graph.
    kind : {"ivf", "hnsw"}
    shortlist : int
        Labels scored from the table, as a multiple of k.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> index = ApproximateIndex.build(ExactIndex(table), recall=0.9)
    >>> ids, scores = index.top_k(table[:3], 2)
    >>> ids.shape, index.recall > 0.8
    ((3, 2), True)
    """

    folder_kind = "approximate index"
    noun = "index"

    def __init__(self, exact: ExactIndex, codes: FaissCodes, lift: NearestLift) -> None:
        super().__init__(exact, codes.efforts[-1])
        self.kind: CodesKind = codes.kind
        self._codes, self._lift = codes, lift
        self._rows: Int64 | None = None  # table rows of the codes, -1: removed; None: the same
        self._uncoded_labels: Int64 = np.empty(0, np.int64)  # labels newer than the codes
        self.shortlist = _SHORTLISTS[0]

    @classmethod
    def build(
        cls,
        exact: ExactIndex,
        *,
        kind: CodesKind = "ivf",
        recall: float = label_index.DEFAULT_RECALL,
        queries: Array | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Self:
        """Encode the labels and find the least effort that reaches `recall`.

        Parameters
        ----------
        exact : ExactIndex
        kind : {"ivf", "hnsw"}
            "ivf": cells, a quarter of a byte a coordinate and 8 bytes a label, made in seconds; "hnsw": a graph, a byte
            a coordinate and some 140 bytes a label, made in minutes.
        recall : float
            Share of the exact top 10 that the index should find.
        queries : (n, dim) float32 or None
            Points of rows, of which at most 400 are taken: half choose the effort, half measure what it brings. None:
            labels of the table.
        seed : int
        threads : int or None
            A graph is the same bits with one thread only.

        Raises
        ------
        InputError
            faiss is not there, or a distance has a bias, or there are too few labels or queries.
        """
        require(kind in ("ivf", "hnsw"), f'there is no index of kind {kind!r}; choose "ivf" or "hnsw"')
        label_index.refuse_biased_distances(exact)
        table, bias = exact.table, exact.bias
        rng, lift, label_ids = np.random.default_rng(seed), _build_lift(exact, kind), exact.list_remaining()
        test_queries, description = index_tuning.sample_queries(exact, queries, rng, recall)
        codes = FaissCodes.train(
            lambda numbers: lift.lift_labels(
                table[label_ids[numbers]], None if bias is None else bias[label_ids[numbers]]
            ),
            len(label_ids),
            lift.compute_dim(table.shape[1]),
            kind=kind,
            products=_uses_products(exact, kind),
            seed=seed,
            threads=threads,
        )
        index = cls(exact, codes, lift)
        index._rows = label_ids if len(exact.removed) else None
        index.queries = description
        index.n_bytes = codes.to_bytes().nbytes
        efforts = codes.efforts
        settings = [{"shortlist": shortlist, "effort": effort} for shortlist in _SHORTLISTS for effort in efforts]
        index_tuning.tune_effort(index, rng.permutation(test_queries), recall, settings, efforts, threads)
        return index

    def _is_exact_quicker(self, request: label_index.SearchRequest) -> bool:
        n, n_codes = len(self.exact.table), self.shortlist * request.k + request.n_hidden
        narrow = NARROW_GRAPH if self.kind == "hnsw" else label_index.NARROW
        is_narrow = request.n_candidates < narrow * n or n_codes > label_index.NARROW * request.n_candidates
        return is_narrow or len(self._uncoded_labels) > label_index.NARROW * n

    def _search(self, request: label_index.SearchRequest) -> tuple[Int64, Float32]:
        k, threads, uncoded = request.k, request.threads, self._uncoded_labels
        effort = -(-self.effort * len(self.exact.table) // request.n_candidates)
        lifted, codes = self._lift.lift_queries(request.points), self._map_to_codes(request.candidate_ids)
        ids = self._codes.search(lifted, self.shortlist * k + request.n_hidden, effort, codes, threads)
        if self._rows is not None:
            ids = np.where(ids >= 0, self._rows[ids], -1)
        if request.candidate_ids is not None and len(uncoded):
            uncoded = np.intersect1d(uncoded, request.candidate_ids, assume_unique=True)
        if len(uncoded):
            n_uncoded = min(len(uncoded), k + request.n_hidden)
            uncoded_ids, _ = self.exact.top_k(request.queries, n_uncoded, candidates=uncoded, threads=threads)
            ids = np.hstack([ids, uncoded_ids])
        label_index.mask_hidden(ids, request.hidden)
        return self.exact.rescore(request.queries, ids, k)

    def rebase(self, exact: ExactIndex, places: Int64) -> Self:
        """Return an index with the same codes for a changed table, whose new labels are scored one by one.

        Parameters
        ----------
        exact : ExactIndex
            Exact index of the current table.
        places : (n,) int64
            Row of each coded vector in the new table; -1: removed or changed.
        """
        index = copy(self)
        index.exact, index._rows = exact, places
        is_coded = np.zeros(len(exact.table), bool)
        is_coded[exact.removed] = is_coded[places[places >= 0]] = True
        index._uncoded_labels = np.flatnonzero(~is_coded)
        return index

    def follow_changes(self, exact: ExactIndex, changed: Int64) -> Self | None:
        """Return the index for changed labels, which are scored one by one; None above a fiftieth of all."""
        n, places = len(exact.table), self._rows
        places = np.arange(n) if places is None else places.copy()
        places[np.isin(places, changed)] = -1
        same_space = self.exact.centre is None is exact.centre and (self.exact.bias is None) == (exact.bias is None)
        return self.rebase(exact, places) if same_space and (places < 0).sum() <= _FEW_CHANGED * n else None

    def to_state(self) -> ModelState:
        """Return the state to save: the codes, the fingerprint of their table, and the rows that have one."""
        config = self.to_config() | {"length": self._lift.length, "shortlist": self.shortlist}
        places = {} if self._rows is None else {"places": self._rows}
        return ModelState(self.folder_kind, config, {"codes": self._codes.to_bytes(), **places})

    @classmethod
    def from_state(cls, state: ModelState, exact: ExactIndex, places: Int64 | None = None) -> Self | None:
        """Return the saved index, or None when it belongs to another table; with `places`, rebase it.

        Raises
        ------
        ValueError, KeyError, TypeError
            The state hold something else.
        """
        if places is None:
            return super().from_state(state, exact)
        return cls._restore(state, exact, len(places)).rebase(exact, places)

    @classmethod
    def _restore(cls, state: ModelState, exact: ExactIndex, n: int | None = None) -> Self:
        config, places = state.config, None if n is not None else state.tensors.get("places")
        if state.kind != cls.folder_kind or config["kind"] not in ("ivf", "hnsw"):
            raise ValueError(f"it holds {state.kind!r} and no {cls.noun}")
        if places is not None:
            places, valid_ids = np.asarray(places), np.append(exact.list_remaining(), -1)
            if places.dtype != np.int64 or places.ndim != 1 or not np.isin(places, valid_ids).all():
                raise ValueError("it names labels that do not exist")
        lift = NearestLift(exact.similarity, exact.bias is not None, float(config["length"]))
        content = check_array(state.tensors, "codes", "uint8", (None,))
        n = n or len(exact.table if places is None else places)
        codes = FaissCodes.from_bytes(content, config["kind"], n, lift.compute_dim(exact.table.shape[1]))
        index = cls(exact, codes, lift)
        index.restore_config(config)
        index.shortlist, index.n_bytes = int(config["shortlist"]), content.nbytes
        return index if places is None else index.rebase(exact, places)

    def _map_to_codes(self, candidate_ids: Int64 | None) -> Int64 | None:
        """Return the candidates as the codes number them."""
        if candidate_ids is None or self._rows is None:
            return candidate_ids
        is_candidate = np.zeros(len(self.exact.table) + 1, bool)
        is_candidate[candidate_ids] = True
        return np.flatnonzero(is_candidate[self._rows])  # -1 is the last, which is not a candidate


def _uses_products(exact: ExactIndex, kind: CodesKind) -> bool:
    return kind == "hnsw" and exact.similarity != "euclidean"


def _build_lift(exact: ExactIndex, kind: CodesKind) -> NearestLift:
    plain = NearestLift(exact.similarity, exact.bias is not None, 0.0)
    if exact.similarity == "euclidean" or _uses_products(exact, kind):
        return plain
    longest = 0.0
    for part in iterate_slices(len(exact.table), _ROWS):
        lifted = plain.lift_labels(exact.table[part], None if exact.bias is None else exact.bias[part])
        longest = max(longest, float(np.einsum("ij,ij->i", lifted, lifted).max(initial=0)))
    return plain._replace(length=float(np.sqrt(longest)) or 1.0)


def _compute_lengths(rows: Float32) -> Float32:
    """Return the lengths of rows, (n, 1), above 0."""
    return np.asarray(np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32(1e-30))[:, None])
