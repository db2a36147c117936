"""Exact top k: blocks of queries against tiles of the label table, and a heap per query.

One BLAS product makes a tile of scores (a kernel does so for few queries), and a scan reads it while it is in cache. So
memory is bounded by the tile, by k and by the number of ties, for any number of labels. The order of sums in a product
depends on the place in the table, the number of rows and the number of threads. So these quick scores only choose
candidates, a few more than k, and a kernel scores those again one by one in a fixed order. Where rounding could have
dropped a label, every label within reach of the k-th is scored again. So equal vectors have equal scores, ties go by
label id, and the result of a row depends on no other row.

faiss, usearch and scikit-learn take longer for many queries and leave open the order of equal scores
(`docs/decisions/exact-search.md`).
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Array, Bool, Float32, Float64, Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.core.execution import run_in_ranges, run_in_threads
from wsabie.core.label_lists import LabelLists
from wsabie.core.machine import limit_blas_threads, resolve_threads
from wsabie.core.validation import check_positive_integer
from wsabie.embedding.joint_space import SIMILARITIES, SimilarityName
from wsabie.kernels.embedding.similarity import SHORTEST
from wsabie.kernels.ranking import topk
from wsabie.search import search_arrays

BLOCK_ROWS = 1024
"""Queries per product, enough that packing the table costs little."""

_CELLS = 2**19
"""Scores in the tiles of all threads together, or of each thread that scans a part of the table for few queries.

2 MiB: large enough for few products, small enough to be scanned in cache."""

_MAX_FLOAT = float(np.finfo(np.float32).max)

_MAX_KERNEL_QUERIES = 16
"""Queries, but for a single one, up to which a kernel beats a matrix product."""

_MIN_PARALLEL_BYTES = 64 << 20
"""Bytes of a table times queries from which on several threads scan it; starting them takes about .3 ms."""

_ROWS_PER_THREAD = 32
"""Queries at least for each thread; starting one for fewer costs more than the search."""

_GATHER_COST = 8
"""Queries whose products with a label take as long as copying its vector from a table in cache.

Copying from a table outside the cache takes three times as long."""

_EXTRA_CANDIDATES = 2
"""Candidates beyond k, so that rounding seldom leaves labels that may belong to the best k."""


class _QueryBlock(NamedTuple):
    """Block of queries with their candidates."""

    queries: Float32  # (b, dim)
    points: Float32  # (b, dim), the queries about the centre
    norm2: Float64  # (b,), squared lengths of `points`
    candidates: Int64 | None  # the only candidates, ascending
    is_excluded: Bool | None  # by label, True for no candidate; instead of `candidates` where most labels are
    hidden: LabelLists  # excluded, by place among the candidates
    cells: int  # of a tile
    threads: int

    def part(self, lo: int, hi: int) -> "_QueryBlock":
        """Return the block of the queries lo..hi - 1."""
        queries, points, norm2 = self.queries[lo:hi], self.points[lo:hi], self.norm2[lo:hi]
        return self._replace(queries=queries, points=points, norm2=norm2, hidden=self.hidden.part(lo, hi))


class ExactIndex:
    """Label vectors prepared for searches.

    Parameters
    ----------
    table : (n_labels, dim) float32 or float16
        Not copied when its rows are contiguous (columns of a padded table are), unless the similarity is Euclidean
        and the table lies far from the origin. float16 is read as such and computed as float32.
    bias : (n_labels,) float32 or None
        Added to the similarity.
    similarity : {"dot", "euclidean", "cosine"}
        "euclidean" is the negative distance.
    removed : (m,) int64 or None
        Merged or removed labels, ascending, which no query gets. They cost nothing; listing all others as candidates
        would copy their vectors.

    Examples
    --------
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> ids, scores = index.top_k(np.array([[0.5, 2.0, 1.0]], np.float32), 2)
    >>> ids, scores
    (array([[1, 2]]), array([[2., 1.]], dtype=float32))
    """

    def __init__(
        self,
        table: Array,
        *,
        bias: Array | None = None,
        similarity: SimilarityName = "dot",
        removed: Int64 | None = None,
    ) -> None:
        if similarity not in SIMILARITIES:
            raise InputError(f'similarity {similarity!r} is unknown; choose "dot", "euclidean" or "cosine"')
        self.table = search_arrays.prepare_table_rows(table, "the label table")
        self._flat = self._quick_flat = search_arrays.flatten_table(self.table)
        self.centre = search_arrays.find_far_centre(self.table) if similarity == "euclidean" else None
        if self.centre is not None:
            self.table = self.table - self.centre
            self._quick_flat = search_arrays.flatten_table(self.table)
        self.similarity = similarity
        self.bias = None if bias is None else np.ascontiguousarray(search_arrays.convert_to_float32(bias, "the bias"))
        if self.bias is not None and self.bias.shape != (len(self.table),):
            raise InputError(f"there are {self.bias.size} biases for {len(self.table)} labels; give one per label")
        self.removed: Int64 = np.empty(0, np.int64) if removed is None else removed
        self._norm2 = search_arrays.compute_squared_norms(self.table)
        self._scale = 1 / np.maximum(np.sqrt(self._norm2), SHORTEST) if similarity == "cosine" else None
        self._by_distance = similarity == "euclidean" and self.bias is None
        if not np.isfinite(self._norm2).all():
            raise InputError("label vectors are not finite, or too long for float32; the model has diverged")
        self._longest = search_arrays.compute_max_norm(self.table, self._norm2)
        self._largest_bias = 0.0 if self.bias is None else float(np.abs(self.bias).max(initial=0))

    def top_k(
        self,
        queries: ArrayLike,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: ArrayLike | None = None,
        block_rows: int = BLOCK_ROWS,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """Return the k best labels of each query; see `find_top_k`."""
        k, block_rows = check_positive_integer(k, "k"), check_positive_integer(block_rows, "block_rows")
        threads = None if threads is None else check_positive_integer(threads, "threads")
        raw_queries, queries, norm2 = self.check_queries(queries)
        candidate_ids = self.resolve_candidates(candidates)
        candidate_ids, is_excluded = self._split_candidates(candidate_ids, min(len(queries), block_rows))
        hidden = search_arrays.list_hidden_labels(exclude, len(queries), len(self.table), candidate_ids)
        ids, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf, np.float32)
        n_threads = resolve_threads(threads)
        n_parts = min(n_threads, max(1, len(queries) // _ROWS_PER_THREAD))
        rows = max(1, min(block_rows, -(-len(queries) // n_parts)))
        sizes = _CELLS // n_parts, n_threads // n_parts
        block = _QueryBlock(raw_queries, queries, norm2, candidate_ids, is_excluded, hidden, *sizes)

        def search(lo: int, hi: int) -> None:
            best_ids, best_scores = self._search_block(block.part(lo, hi), k)
            ids[lo:hi, : best_ids.shape[1]], scores[lo:hi, : best_ids.shape[1]] = best_ids, best_scores

        # Each thread makes products and scans of its own, so that none waits for another.
        with limit_blas_threads() if n_parts > 1 else nullcontext():
            run_in_ranges(search, len(queries), rows, n_parts)
        return ids, scores

    def list_remaining(self) -> Int64:
        """Return the numbers of the labels that are not removed, ascending."""
        return np.delete(np.arange(len(self.table)), self.removed)

    def resolve_candidates(self, candidates: ArrayLike | None) -> Int64 | None:
        """Return the numbers of the candidates, ascending; None: all labels but removed ones."""
        if candidates is None:
            return None
        ids = search_arrays.prepare_candidates(candidates, len(self.table))
        return np.setdiff1d(ids, self.removed, assume_unique=True) if len(self.removed) else ids

    def _split_candidates(self, candidate_ids: Int64 | None, n_queries: int) -> tuple[Int64 | None, Bool | None]:
        """Return candidates whose vectors are worth copying, or else a mask of the labels to leave out."""
        n = len(self.table)
        if candidate_ids is None or len(candidate_ids) * (n_queries + _GATHER_COST) < n * (n_queries + 1):
            return candidate_ids, None
        is_excluded = np.ones(n, bool)
        is_excluded[candidate_ids] = False
        return None, is_excluded

    def rescore(self, queries: Float32, ids: Int64, k: int) -> tuple[Int64, Float32]:
        """Return the k best of the labels listed for each query, by exact score and then by id.

        Parameters
        ----------
        queries : (n, dim) float32
            From `check_queries`.
        ids : (n, m) int64
            Each label once, -1 for none; m is at least k. Sorted in place.
        k : int
        """
        heap = topk.TopKHeap(self._compute_scores(queries, ids), ids)
        topk.sort_topk(heap, 0, len(ids))
        return heap.labels[:, :k], heap.scores[:, :k]

    def check_queries(self, queries: ArrayLike) -> tuple[Float32, Float32, Float64]:
        """Return the queries, the queries about the centre, and the squared lengths of the latter."""
        rows = search_arrays.prepare_float32_rows(queries, "the queries")
        if rows.shape[1] != self.table.shape[1]:
            fact = f"the queries have {rows.shape[1]} dimensions but the labels {self.table.shape[1]}"
            raise InputError(f"{fact}; use points of the same space")
        points = rows if self.centre is None else rows - self.centre
        norm2: Float64 = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        is_finite = norm2 <= _MAX_FLOAT
        if not is_finite.all():
            fact = f"query {is_finite.argmin()} holds a value that is not finite, or is too long for float32"
            raise InputError(f"{fact}; drop it")
        return rows, points, norm2

    def product_rows(self, labels: slice) -> Float32:
        """Return label vectors, (n, dim) float32, for inner products with `product_queries`.

        With `offsets` added these order labels as their scores do, but for distances with a bias.
        """
        rows: Float32 = self.table[labels].astype(np.float32)
        if self._scale is not None:
            rows *= self._scale[labels, None]
        return rows

    def product_queries(self, points: Float32) -> Float32:
        """Return points about the centre, from `check_queries`, for products with `product_rows`."""
        if self.similarity != "cosine":
            return points
        return np.asarray(points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), SHORTEST))

    def offsets(self) -> Float32:
        """Return the offsets (n_labels,) of the inner products; -inf for removed labels."""
        if self._by_distance:
            values: Float32 = np.multiply(self._norm2, -0.5, dtype=np.float32)
        else:
            values = np.zeros(len(self.table), np.float32) if self.bias is None else self.bias.copy()
        values[self.removed] = -np.inf
        return values

    def _search_block(self, block: _QueryBlock, k: int) -> tuple[Int64, Float32]:
        """Return ids and scores of the k best of each query, or of all candidates where there are fewer."""
        n_candidates = len(self.table) if block.candidates is None else len(block.candidates)
        edges = np.linspace(0, n_candidates, self._count_spans(block, n_candidates) + 1).astype(int).tolist()
        heaps = [topk.allocate_heap(len(block.points), min(k + _EXTRA_CANDIDATES, n_candidates)) for _ in edges[1:]]

        def scan(span: int) -> None:
            for first, tile in self._iterate_tiles(block, edges[span], edges[span + 1]):
                if topk.scan_topk(tile, first, heaps[span], 0, len(tile)):
                    raise InputError("a score is NaN; the model has diverged, so train it again")

        run_in_threads(scan, range(len(heaps)), len(heaps))
        ids = np.concatenate([heap.labels for heap in heaps], axis=1)
        ids, scores = self.rescore(block.queries, _map_to_labels(block.candidates, ids), k)
        if heaps[0].scores.shape[1] < n_candidates:
            worst = np.max([heap.scores[:, 0] for heap in heaps], axis=0)  # of a heap that is not full, -inf
            reach = self._compute_reach(block.norm2, scores[:, -1])
            is_incomplete = (worst > reach) & np.isfinite(worst)
            for i in np.flatnonzero(is_incomplete).tolist() if is_incomplete.any() else ():
                within = self._find_above(block.part(i, i + 1), reach[i])
                ids[i], scores[i] = (result[0] for result in self.rescore(block.queries[i : i + 1], within, k))
        return ids, scores

    def _count_spans(self, block: _QueryBlock, n_candidates: int) -> int:
        """Count the parts of the table to scan in threads; BLAS has threads of its own."""
        n_bytes = len(block.points) * n_candidates * self.table.shape[1] * self.table.itemsize
        return block.threads if n_bytes >= _MIN_PARALLEL_BYTES and not self._uses_blas(len(block.points)) else 1

    def _iterate_tiles(self, block: _QueryBlock, lo: int, hi: int) -> Iterator[tuple[int, Float32]]:
        """Yield tiles of quick scores from left to right; each overwrites the last."""
        queries, candidate_ids = self.product_queries(block.points), block.candidates
        # Candidates are gathered, so that their vectors take memory too.
        width = max(1, min(hi - lo, block.cells // (len(queries) if candidate_ids is None else max(queries.shape))))
        cells = np.empty(len(queries) * width, np.float32)
        for first in range(lo, hi, width):
            stop = min(first + width, hi)
            tile = cells[: len(queries) * (stop - first)].reshape(len(queries), -1)
            self._compute_quick_scores(
                queries, slice(first, stop) if candidate_ids is None else candidate_ids[first:stop], tile
            )
            if candidate_ids is None and len(self.removed):
                within = self.removed[slice(*np.searchsorted(self.removed, (first, stop)))]
                tile[:, within - first] = -np.inf
            if block.is_excluded is not None:
                np.copyto(tile, -np.inf, where=block.is_excluded[first:stop])
            if len(block.hidden.labels):
                topk.hide_labels(tile, first, block.hidden)
            yield first, tile

    def _uses_blas(self, n_queries: int) -> bool:
        return n_queries > _MAX_KERNEL_QUERIES or (n_queries == 1 and self.table.dtype == np.float32)

    def _compute_quick_scores(self, queries: Float32, labels: slice | Int64, out: Float32) -> None:
        """Write the quick scores of `labels`, a slice or ids; distances without bias are only ordered."""
        if self._uses_blas(len(queries)):
            np.matmul(queries, self.table[labels].astype(np.float32, copy=False).T, out=out)
        else:
            flat = self._quick_flat if isinstance(labels, slice) else search_arrays.flatten_table(self.table[labels])
            first = labels.start if isinstance(labels, slice) else 0
            topk.score_few_queries(*flat, first, np.ascontiguousarray(queries), out)
        if self._scale is not None:
            out *= self._scale[labels]
        elif self._by_distance:
            out -= self._norm2[labels] / 2
        elif self.similarity == "euclidean":
            _to_distances(out, np.einsum("ij,ij->i", queries, queries), self._norm2[labels])
        if self.bias is not None:
            out += self.bias[labels]

    def _compute_scores(self, queries: Float32, ids: Int64) -> Float32:
        """Return the exact scores of the labels listed for each query, -inf for -1."""
        scores = np.empty(ids.shape, np.float32)
        distances = self.similarity == "euclidean"
        topk.score_pairs(*self._flat, np.ascontiguousarray(queries), ids, distances, scores, 0, len(queries))
        if distances:
            scores = 0 - np.sqrt(scores)
        elif self._scale is not None:
            scores *= self._scale[ids] / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), SHORTEST)
        return scores if self.bias is None else scores + self.bias[ids]

    def _compute_reach(self, norm2: Float64, last: Float32) -> Float64:
        """Return the quick score above which a label may rank before one with the exact score `last`."""
        bottom = last.astype(np.float64)
        if self._by_distance:  # the quick score is (|q|^2 - distance^2) / 2
            bottom = (norm2 - bottom * bottom) / 2
        return bottom - self.slack(norm2)

    def slack(self, norm2: Float64) -> Float64:
        """Bound the difference between quick and exact scores for queries of these squared lengths.

        Both are sums of dim products whose rounding differs by at most twice dim units of the sum of their sizes (and
        of the smallest float). The quick score of a distance with a bias is the root of a difference, which halves its
        digits: there most rows are searched twice.
        """
        steps = 4 * (self.table.shape[1] + 8)
        unit, least = steps * 2.0**-24, steps * 2.0**-149
        length = np.sqrt(norm2)
        shift = unit * self._largest_bias + least
        slack: Float64
        if self._scale is not None:
            slack = unit * length / np.maximum(length, SHORTEST) + shift
        elif self.similarity == "dot":
            slack = unit * length * self._longest + shift
        else:
            slack = unit * (length + self._longest) ** 2 + least
            if not self._by_distance:
                slack = np.sqrt(slack) + shift
        return slack

    def _find_above(self, block: _QueryBlock, reach: float) -> Int64:
        """Return all labels, (1, n), whose quick score for a single query lies above `reach`."""
        n_candidates = len(self.table) if block.candidates is None else len(block.candidates)
        parts = [first + np.flatnonzero(tile[0] > reach) for first, tile in self._iterate_tiles(block, 0, n_candidates)]
        return _map_to_labels(block.candidates, np.concatenate(parts))[None, :]


def find_top_k(
    queries: ArrayLike,
    table: Array,
    k: int,
    *,
    bias: Array | None = None,
    similarity: SimilarityName = "dot",
    exclude: Matrix | None = None,
    candidates: ArrayLike | None = None,
    block_rows: int = BLOCK_ROWS,
    threads: int | None = None,
) -> tuple[Int64, Float32]:
    """Return the k best labels of each query, exactly.

    Parameters
    ----------
    queries : (n, dim) float32
    table : (n_labels, dim) float32 or float16
    k : int
    bias, similarity
        See `ExactIndex`, which saves work when many calls share a table.
    exclude : csr_matrix (n, n_labels) or None
        Non-zeros are not candidates of their query.
    candidates : int array or None
        Only these labels; repetitions do not count.
    block_rows : int
        Queries per product; a tile of scores holds at most 2 MiB or one label.
    threads : int or None
        None = the cores this process may use. With 1, or few queries, the products use BLAS's own threads; where no
        products are made, for a handful of queries, threads share out a large table.

    Returns
    -------
    ids : (n, k) int64
        Best first, equal scores by label id; -1 where there are fewer than k candidates.
    scores : (n, k) float32
        -inf where ids is -1.

    Raises
    ------
    InputError
        When shapes do not fit, a candidate does not exist, or a score is NaN.

    Examples
    --------
    >>> table = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    >>> find_top_k(np.array([[1, 0]], np.float32), table, 2)[0]
    array([[0, 2]])
    >>> find_top_k(np.array([[1, 0]], np.float32), table, 2, candidates=[1, 2], similarity="euclidean")
    (array([[2, 1]]), array([[-1.       , -1.4142135]], dtype=float32))
    """
    index = ExactIndex(table, bias=bias, similarity=similarity)
    return index.top_k(queries, k, exclude=exclude, candidates=candidates, block_rows=block_rows, threads=threads)


def _map_to_labels(candidate_ids: Int64 | None, places: Int64) -> Int64:
    """Return the label ids of places among the candidates; -1 stays."""
    return places if candidate_ids is None else np.where(places < 0, -1, candidate_ids[places])


def _to_distances(products: Float32, query_norm2: Float32, label_norm2: Float32) -> None:
    """Turn inner products into negative distances, in place."""
    products *= 2
    products -= query_norm2[:, None]
    products -= label_norm2
    np.minimum(products, 0, out=products)  # rounding may lift |q - w|^2 = 0 above it
    np.negative(products, out=products)
    np.sqrt(products, out=products)
    np.negative(products, out=products)
