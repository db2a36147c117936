"""Exact best pairs of labels, and ranks of single pairs, among all or listed pairs.

No array has the size of all pairs. `wsabie.kernels.ranking.top_pairs` explains how few pairs a search scores.
"""

from collections.abc import Callable

import numpy as np

from wsabie.core.arrays import Array, Bool, Float32, Float64, Int64, view_as_writable
from wsabie.core.errors import InputError, require
from wsabie.core.execution import run_in_ranges
from wsabie.core.machine import resolve_threads
from wsabie.core.validation import check_positive_integer
from wsabie.kernels.ranking import top_pairs as kernels
from wsabie.kernels.ranking.topk import TopKHeap, allocate_heap, sort_topk
from wsabie.search.search_arrays import flatten_table, prepare_float32_rows

_CELLS = 2**18
"""Scores of the queries that are sorted together, 1 MiB a copy."""

_QUERIES_AT_ONCE = 1024
"""Queries that share the edges of a block while they are counted."""

_MAX_MAGNITUDE = float(np.finfo(np.float32).max) / 8


class LabelPairIndex:
    """Label vectors prepared for searches over all pairs of labels.

    The pair (i, j) scores a[i] + b[j] + weight * W_i . W_j, in this order and in float32: an object and its part
    (Mesnil et al. 2014, section 3), or any two items whose labels are related.

    Parameters
    ----------
    W : (n_labels, dim) float32
        Label vectors. Not copied when its rows are contiguous.
    weight : float
        Weight of the edge between two labels, any sign; 0 leaves it out.
    related_pairs : (m, 2) int array or None
        Pairs of related labels.
    offset : float
        Added last to the score of a related pair; weight 0 and offset 100 give the "IO" models of Mesnil et al. 2014,
        section 6.4.
    same : bool, default True
        A label may be paired with itself.

    Attributes
    ----------
    n_scored_ : (n,) int64
        Scores that the last `top` computed for each query; related pairs and labels paired with themselves may count
        twice.

    Raises
    ------
    InputError
        A value is not finite, or shapes do not fit.

    Examples
    --------
    A car and a wheel; the second best pair takes both pictures for wheels.

    >>> pairs = LabelPairIndex(np.array([[1, 0], [0.8, 0.6], [0, -1]], np.float32), weight=0.5)
    >>> a, b = np.array([[1, 0.75, 0]], np.float32), np.array([[0, 1, 0.75]], np.float32)
    >>> pairs.top(a, b, 2)
    (array([[0, 1]]), array([[1, 1]]), array([[2.4 , 2.25]], dtype=float32))
    >>> pairs.counts(a, b, [0], [2]).ranks
    array([3])
    """

    n_scored_: Int64

    def __init__(
        self, W: Array, weight: float, related_pairs: Array | None = None, offset: float = 0.0, *, same: bool = True
    ) -> None:
        table = prepare_float32_rows(W, "the label table")
        self.n_labels, self.dim = table.shape
        require(self.n_labels > 0, "the label table has no rows; give a vector per label")
        if not (abs(weight) < _MAX_MAGNITUDE and abs(offset) < _MAX_MAGNITUDE):
            raise InputError(f"the weight is {weight} and the offset {offset}; choose finite numbers")
        norm2: Float64 = np.einsum("ij,ij->i", table, table, dtype=np.float64) * abs(np.float64(np.float32(weight)))
        if not (norm2 < _MAX_MAGNITUDE).all():
            raise InputError("label vectors are not finite, or too long for float32; the model has diverged")
        self._labels = kernels.LabelVectors(*flatten_table(table), self.n_labels, self.dim, np.float32(weight))
        self._half: Float32 = (norm2 / 2).astype(np.float32)
        self._largest = float(norm2.max())
        self._numbers = np.arange(self.n_labels)
        self._related_codes = (
            np.empty(0, np.int64) if related_pairs is None else self._encode_pairs(related_pairs, "the related pairs")
        )
        self._offset, self._same = np.float32(offset), same
        # A label paired with itself has the longest edge: scored first, it raises the bound early.
        diagonal = self._numbers * (self.n_labels + 1)
        self._pair_list = self._build_pair_list(np.union1d(diagonal, self._related_codes))

    @property
    def n_pairs(self) -> int:
        """Number of pairs where no couples are listed."""
        return int(self.n_labels * (self.n_labels - (not self._same)))

    def top(
        self, a: Array, b: Array, k: int, *, couples: Array | None = None, threads: int | None = None
    ) -> tuple[Int64, Int64, Float32]:
        """Return the k best pairs of each query, exactly.

        Parameters
        ----------
        a, b : (n, n_labels) float32
            Scores of the two items of each query against all labels.
        k : int
        couples : (m, 2) int array or None
            Only these pairs; repetitions do not count.
        threads : int or None
            None = the cores this process may use. The result does not depend on it.

        Returns
        -------
        objects, parts : (n, k) int64
            Best first; equal scores by the lower object, then by the lower part. -1 where there are no more pairs.
        scores : (n, k) float32
            -inf where the labels are -1.

        Raises
        ------
        InputError
            When shapes do not fit, a couple does not exist, or a score is not finite.
        """
        k, (queries, size) = check_positive_integer(k, "k"), self._prepare_queries(a, b)
        n, candidates = len(queries.a), self._list_couples(couples)
        heap = allocate_heap(n, min(k, self.n_labels**2 if candidates is None else len(candidates.codes)))
        n_scored = np.full(n, 0 if candidates is None else len(candidates.codes))

        def search(lo: int, hi: int) -> None:
            chunk_heap = TopKHeap(heap.scores[lo:hi], heap.labels[lo:hi])
            chunk = kernels.PairQueries(queries.a[lo:hi], queries.b[lo:hi])
            if candidates is None:
                order, tile = self._order_labels(chunk, size[lo:hi]), kernels.allocate_tile(self.dim)
                kernels.collect_top_pairs(
                    self._labels, chunk, order, self._pair_list, tile, chunk_heap, n_scored[lo:hi]
                )
            else:
                kernels.collect_top_listed_pairs(chunk, candidates, chunk_heap)
            sort_topk(chunk_heap, 0, hi - lo)

        _run_in_chunks(search, n, max(1, _CELLS // self.n_labels), threads)
        self.n_scored_ = n_scored
        codes, scores = np.full((n, k), -1), np.full((n, k), -np.inf, np.float32)
        width = heap.labels.shape[1]
        codes[:, :width], scores[:, :width] = heap.labels, heap.scores
        objects, parts = np.divmod(codes, self.n_labels)
        parts[codes < 0] = -1
        return objects, parts, scores

    def counts(
        self,
        a: Array,
        b: Array,
        objects: Array,
        parts: Array,
        *,
        couples: Array | None = None,
        threads: int | None = None,
    ) -> kernels.PairCounts:
        """Count the pairs that score more than one pair of each query, and the others that score the same.

        Parameters
        ----------
        a, b, couples, threads
            As for `top`.
        objects, parts : (n,) int
            The pair of each query; with couples it must be one of them.

        Returns
        -------
        PairCounts
            `n_above`, `n_tied` and the `ranks` that follow from them, (n,) int64.

        Raises
        ------
        InputError
            As for `top`, and when a given pair is not a candidate.
        """
        queries, size = self._prepare_queries(a, b)
        n, candidates = len(queries.a), self._list_couples(couples)
        codes = self._encode_query_pairs(objects, parts, n)
        pair_scores = self._score_pairs(queries, codes)
        self._check_candidates(pair_scores, codes, candidates)
        counts = kernels.PairCounts(np.zeros(n, np.int64), np.full(n, -1))

        def count(lo: int, hi: int) -> None:
            chunk = kernels.PairQueries(queries.a[lo:hi], queries.b[lo:hi])
            chunk_counts = kernels.PairCounts(counts.n_above[lo:hi], counts.n_tied[lo:hi])
            if candidates is None:
                bounds = self._compute_bounds(chunk, size[lo:hi])
                edges = np.zeros((kernels.BLOCK, kernels.TILE), np.float32)
                scratch = self._numbers, kernels.allocate_tile(self.dim), edges
                kernels.count_pairs(self._labels, chunk, bounds, pair_scores[lo:hi], *scratch, chunk_counts)
            kernels.count_listed_pairs(
                chunk, candidates or self._pair_list, pair_scores[lo:hi], candidates is None, chunk_counts
            )

        _run_in_chunks(count, n, _QUERIES_AT_ONCE, threads)
        return counts

    # ---- checks of the input

    def _prepare_queries(self, a: Array, b: Array) -> tuple[kernels.PairQueries, Float64]:
        """Return the scores as kernels take them, and a bound on the sums of each query."""
        sides = [prepare_float32_rows(scores, f"the scores {name}") for name, scores in (("a", a), ("b", b))]
        sides = list(map(np.ascontiguousarray, sides))
        if sides[0].shape != sides[1].shape or sides[0].shape[1] != self.n_labels:
            raise InputError(
                f"the scores a and b have shapes {sides[0].shape} and {sides[1].shape}, but there are {self.n_labels} "
                "labels; give a row for each query, with a score for each label"
            )
        size = np.full(len(sides[0]), self._largest)
        for scores in sides:
            size += np.abs(scores).max(axis=1, initial=0)
        if not (size < _MAX_MAGNITUDE).all():
            row = int((size < _MAX_MAGNITUDE).argmin())
            raise InputError(f"row {row} of the scores holds NaN, or what is too large for float32; drop the row")
        return kernels.PairQueries(*map(view_as_writable, sides)), size

    def _list_couples(self, couples: Array | None) -> kernels.PairList | None:
        return None if couples is None else self._build_pair_list(self._encode_pairs(couples, "the couples"))

    def _encode_pairs(self, pairs: Array, subject: str) -> Int64:
        """Return the codes of the pairs, ascending, each once."""
        rows = np.asarray(pairs)
        if not rows.size:
            return np.empty(0, np.int64)
        if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise InputError(f"{subject} have shape {rows.shape} and type {rows.dtype}; give two label numbers a row")
        return np.unique(self._encode_columns(rows[:, 0], rows[:, 1], subject))

    def _encode_columns(self, objects: Array, parts: Array, subject: str) -> Int64:
        for labels in (objects, parts):
            bad = (labels < 0) | (labels >= self.n_labels)
            if bad.any():
                fact = f"label {labels[bad.argmax()]} of {subject} does not exist"
                raise InputError(f"{fact}; labels are numbered 0 to {self.n_labels - 1}")
        return np.asarray(objects.astype(np.int64) * self.n_labels + parts.astype(np.int64))

    def _encode_query_pairs(self, objects: Array, parts: Array, n: int) -> Int64:
        """Return the codes of one pair per query."""
        sides = np.asarray(objects), np.asarray(parts)
        if any(side.shape != (n,) or not np.issubdtype(side.dtype, np.integer) for side in sides):
            raise InputError(f"objects and parts do not fit {n} queries; give one label number each per query")
        return self._encode_columns(*sides, "the given pairs")

    def _check_candidates(self, pair_scores: Float32, codes: Int64, candidates: kernels.PairList | None) -> None:
        bad: Bool = ~np.isfinite(pair_scores)
        if candidates is not None:
            bad |= ~np.isin(codes, candidates.codes)
        if bad.any():
            row = int(bad.argmax())
            object_, part = divmod(int(codes[row]), self.n_labels)
            raise InputError(f"pair ({object_}, {part}) of row {row} is not a candidate; drop the row or add the pair")

    # ---- input of the kernels

    def _compute_edges(self, objects: Int64, parts: Int64) -> Float32:
        out = np.empty(len(objects), np.float32)
        kernels.compute_edges(self._labels, objects, parts, kernels.allocate_tile(self.dim), out)
        return out

    def _build_pair_list(self, codes: Int64) -> kernels.PairList:
        objects, parts = np.divmod(codes, self.n_labels)
        extra = np.where(np.isin(codes, self._related_codes), self._offset, np.float32(0))
        if not self._same:
            extra[objects == parts] = -np.inf
        return kernels.PairList(codes, objects, parts, self._compute_edges(objects, parts), extra)

    def _score_pairs(self, queries: kernels.PairQueries, codes: Int64) -> Float32:
        """Score one pair of each query, summed in the order of the kernels."""
        listed, rows = self._build_pair_list(codes), np.arange(len(codes))
        plain: Float32 = (queries.a[rows, listed.objects] + queries.b[rows, listed.parts]) + listed.edges
        return plain + listed.extra

    def _compute_slack(self, size: Float64) -> Float32:
        """Return twice the rounding error of a sum of `dim` products and a few scores of total size `size`."""
        return np.asarray((self.dim + 16) * (2.0**-23 * size + 2.0**-126), np.float32)

    def _order_labels(self, queries: kernels.PairQueries, size: Float64) -> kernels.LabelOrder:
        ups = [queries.a + self._half, queries.b + self._half]
        objects, parts = (np.argsort(-up, axis=1) for up in ups)
        up_a, up_b = (np.take_along_axis(up, o, axis=1) for up, o in zip(ups, (objects, parts), strict=True))
        return kernels.LabelOrder(objects, parts, up_a, up_b, self._compute_slack(size))

    def _compute_bounds(self, queries: kernels.PairQueries, size: Float64) -> kernels.PairBounds:
        up_b = np.maximum.reduceat(queries.b + self._half, np.arange(0, self.n_labels, kernels.TILE), axis=1)
        return kernels.PairBounds(queries.a + self._half, up_b, self._compute_slack(size))


def _run_in_chunks(work: Callable[[int, int], None], n: int, rows: int, threads: int | None) -> None:
    """Call work(lo, hi) for all rows, at most `rows` at once, on several threads where there are enough."""
    threads = resolve_threads(None if threads is None else check_positive_integer(threads, "threads"))
    run_in_ranges(work, n, max(1, min(rows, -(-n // threads))), threads)
