"""Exact top k: blocks of queries against tiles of the label table, and a heap per query.

A tile of scores is made by one BLAS product (of few queries by a kernel) and scanned while it is still in cache, so
memory is bounded by the tile and by k (and by the number of labels that tie), whatever the number of labels. Products
add up in another order at the edge of a table than inside it, with another number of rows, another number of threads;
so these scores only choose who comes into question, a few more than k, and those are scored again one by one, in an
order of their own. Where rounding could have left somebody out, everybody within reach of the k-th is scored again. So
equal vectors have equal scores, ties go by label id, and what a row gets depends on no other row.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Bool, Float32, Float64, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists
from wsabie.base.machine import available_cores, one_blas_thread
from wsabie.base.threads import for_each
from wsabie.base.validation import whole_number
from wsabie.kernels.similarity import SHORTEST
from wsabie.kernels.topk import Heap, hide_labels, new_heap, scan_topk, score_few, score_pairs, sort_topk
from wsabie.search.ready import (
    candidates_of,
    far_centre,
    flat,
    float32_rows,
    hidden_labels,
    longest,
    numbers,
    squares,
    table_rows,
)
from wsabie.space.joint import SIMILARITIES, SimilarityName

BLOCK_ROWS = 1024
"""Queries per product: enough that packing the table costs little."""

_CELLS = 2**19
"""Scores in the tiles of all threads that share out queries, and of each that scans a part of a table for few, 2 MiB:
large for few products, small enough to be scanned in cache."""

_LARGEST = float(np.finfo(np.float32).max)

_FEW = 16
"""So many queries, but for a single one, take less time without a matrix product."""

_LARGE = 64 << 20
"""Bytes of a table times queries from which on several threads scan it: starting them takes about .3 ms."""

_GATHERED = 8
"""Products of a label with so many queries take as long as copying its vector from a table that the cache holds, and a
third of that where it does not."""

_SPARE = 2
"""Labels beyond k that a product brings, so that its rounding seldom leaves a doubt."""


class _Asked(NamedTuple):
    """A block of queries and what they may get."""

    given: Float32  # (b, dim), the queries
    queries: Float32  # (b, dim), the same where products are made: about the centre
    norm2: Float64  # (b,), squared lengths of these
    chosen: Int64 | None  # the only candidates, ascending
    out: Bool | None  # by label, True where it is none; instead of `chosen`, where most are
    hidden: Lists | None  # excluded, by place among the candidates
    cells: int  # of a tile
    threads: int

    def row(self, i: int) -> "_Asked":
        hidden = None if self.hidden is None else self.hidden.part(i, i + 1)
        one = slice(i, i + 1)
        return _Asked(
            self.given[one], self.queries[one], self.norm2[one], self.chosen, self.out, hidden, self.cells, self.threads
        )


class ExactIndex:
    """Label vectors made ready for searches.

    Parameters
    ----------
    table : (n_labels, dim) float32 or float16
        Not copied when its rows are contiguous (columns cut from a padded table are fine), unless distances are asked
        for and it lies far from the origin. float16 is read as such, and calculated with as float32.
    bias : (n_labels,) float32 or None
        Added to the similarity.
    similarity : {"dot", "euclidean", "cosine"}
        "euclidean" is the negative distance.
    gone : (m,) int64 or None
        Labels that no query gets, ascending: those that were merged or removed. They cost nothing, where candidates,
        which are all others, would be gathered from the table.

    Examples
    --------
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> ids, scores = index.top_k(np.array([[0.5, 2.0, 1.0]], np.float32), 2)
    >>> ids, scores
    (array([[1, 2]]), array([[2., 1.]], dtype=float32))
    """

    def __init__(
        self, table: Any, *, bias: Any = None, similarity: SimilarityName = "dot", gone: Int64 | None = None
    ) -> None:
        if similarity not in SIMILARITIES:
            raise InputError(f'similarity {similarity!r} is unknown; choose "dot", "euclidean" or "cosine"')
        self.table = table_rows(table, "the label table")
        self._flat = self._quick_flat = flat(self.table)
        self.centre = far_centre(self.table) if similarity == "euclidean" else None
        if self.centre is not None:
            self.table = self.table - self.centre
            self._quick_flat = flat(self.table)
        self.similarity = similarity
        self.bias: Float32 | None = None if bias is None else np.ascontiguousarray(numbers(bias, "the bias"))
        if self.bias is not None and self.bias.shape != (len(self.table),):
            raise InputError(f"there are {self.bias.size} biases for {len(self.table)} labels; give one per label")
        self.gone: Int64 = np.empty(0, np.int64) if gone is None else gone
        self._norm2 = squares(self.table)
        self._scale = 1 / np.maximum(np.sqrt(self._norm2), SHORTEST) if similarity == "cosine" else None
        self._by_distance = similarity == "euclidean" and self.bias is None
        if not np.isfinite(self._norm2).all():
            raise InputError("label vectors are not finite, or too long for float32; the model has diverged")
        self._longest = longest(self.table, self._norm2)
        self._largest_bias = 0.0 if self.bias is None else float(np.abs(self.bias).max(initial=0))

    def top_k(
        self,
        queries: Any,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: Any = None,
        block_rows: int = BLOCK_ROWS,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """The k best labels of each query; see `top_k`."""
        k, block_rows = whole_number(k, "k"), whole_number(block_rows, "block_rows")
        threads = None if threads is None else whole_number(threads, "threads")
        given, queries, norm2 = self.checked(queries)
        chosen, out = self._gathered_or_passed_by(self.among(candidates), min(len(queries), block_rows))
        hidden = hidden_labels(exclude, len(queries), len(self.table), chosen)
        ids, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        most = threads or available_cores()
        n = _useful_threads(most, len(queries))
        rows = max(1, min(block_rows, -(-len(queries) // n)))

        def search(lo: int) -> None:
            hi = min(lo + rows, len(queries))
            part = None if hidden is None else hidden.part(lo, hi)
            asked = _Asked(given[lo:hi], queries[lo:hi], norm2[lo:hi], chosen, out, part, _CELLS // n, most // n)
            found, theirs = self._best(asked, k)
            ids[lo:hi, : found.shape[1]], scores[lo:hi, : found.shape[1]] = found, theirs
            if found.shape[1] < k:
                ids[lo:hi, found.shape[1] :], scores[lo:hi, found.shape[1] :] = -1, -np.inf

        # Each thread makes products and scans of its own, so that none waits for another.
        with one_blas_thread() if n > 1 else nullcontext():
            for_each(search, range(0, len(queries), rows), n)
        return ids, scores

    def there(self) -> Int64:
        """Numbers of the labels that are not gone, ascending."""
        return np.delete(np.arange(len(self.table)), self.gone)

    def among(self, candidates: Any) -> Int64 | None:
        """Numbers of the only labels that come into question, ascending; None: all but those that are gone."""
        if candidates is None:
            return None
        chosen = candidates_of(candidates, len(self.table))
        return np.setdiff1d(chosen, self.gone, assume_unique=True) if len(self.gone) else chosen

    def _gathered_or_passed_by(self, chosen: Int64 | None, n_queries: int) -> tuple[Int64 | None, Bool | None]:
        """Candidates whose vectors are worth copying, or else, where all are scored, which labels are none."""
        n = len(self.table)
        if chosen is None or len(chosen) * (n_queries + _GATHERED) < n * (n_queries + 1):
            return chosen, None
        out = np.ones(n, bool)
        out[chosen] = False
        return None, out

    def rescored(self, queries: Float32, ids: Int64, k: int) -> tuple[Int64, Float32]:
        """The k best of the labels listed for each query, with their scores, as `top_k` would have them.

        Parameters
        ----------
        queries : (n, dim) float32
            As `checked` gives them.
        ids : (n, m) int64
            Each label once, -1 for none; m is at least k. Sorted in place.
        k : int
        """
        return self._in_order(queries, ids, k)

    def checked(self, queries: Any) -> tuple[Float32, Float32, Float64]:
        """Queries as given and about the centre, and squared lengths of these."""
        given = float32_rows(queries, "the queries")
        if given.shape[1] != self.table.shape[1]:
            raise InputError(
                f"the queries have {given.shape[1]} dimensions but the labels {self.table.shape[1]}; "
                "use points of the same space"
            )
        points = given if self.centre is None else given - self.centre
        norm2: Float64 = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        fit = norm2 <= _LARGEST
        if not fit.all():
            raise InputError(
                f"query {fit.argmin()} holds a value that is not finite, or is too long for float32; drop it"
            )
        return given, points, norm2

    def product_rows(self, which: slice) -> Float32:
        """Label vectors, (n, dim) float32, whose inner products with `product_queries`, and `offsets`, order labels as
        their scores do; not of distances with a bias."""
        rows: Float32 = self.table[which].astype(np.float32)
        if self._scale is not None:
            rows *= self._scale[which, None]
        return rows

    def product_queries(self, points: Float32) -> Float32:
        """Points as `checked` gives them about the centre, for products with `product_rows`."""
        if self.similarity != "cosine":
            return points
        scaled: Float32 = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), SHORTEST)
        return scaled

    def offsets(self) -> Float32:
        """(n_labels,), added to the inner products; -inf for what is gone."""
        if self._by_distance:
            found: Float32 = np.multiply(self._norm2, -0.5, dtype=np.float32)
        else:
            found = np.zeros(len(self.table), np.float32) if self.bias is None else self.bias.copy()
        found[self.gone] = -np.inf
        return found

    def _best(self, asked: _Asked, k: int) -> tuple[Int64, Float32]:
        """Ids and scores of the k best of each query, or of all candidates where there are fewer."""
        n_candidates = len(self.table) if asked.chosen is None else len(asked.chosen)
        edges = np.linspace(0, n_candidates, self._spans(asked, n_candidates) + 1).astype(int).tolist()
        heaps = [new_heap(len(asked.queries), min(k + _SPARE, n_candidates)) for _ in edges[1:]]

        def scan(span: int) -> None:
            for first, tile in self._tiles(asked, edges[span], edges[span + 1]):
                if scan_topk(tile, first, heaps[span], 0, len(tile)):
                    raise InputError("a score is NaN; the model has diverged, so train it anew")

        for_each(scan, range(len(heaps)), len(heaps))
        ids = np.concatenate([heap.labels for heap in heaps], axis=1)
        ids, scores = self._in_order(asked.given, _of(asked.chosen, ids), k)
        if heaps[0].scores.shape[1] < n_candidates:
            worst = np.max([heap.scores[:, 0] for heap in heaps], axis=0)  # of a heap that is not full, -inf
            reach = self._reach(asked.norm2, scores[:, -1])
            in_doubt = (worst > reach) & np.isfinite(worst)
            for i in np.flatnonzero(in_doubt) if in_doubt.any() else ():
                within = self._within(asked.row(int(i)), reach[i])
                ids[i], scores[i] = (found[0] for found in self._in_order(asked.given[i : i + 1], within, k))
        return ids, scores

    def _spans(self, asked: _Asked, n_candidates: int) -> int:
        """Parts of the table that a thread each scans: of a large one, for few queries; BLAS has threads of its own."""
        read = len(asked.queries) * n_candidates * self.table.shape[1] * self.table.itemsize
        return asked.threads if read >= _LARGE and not self._by_blas(len(asked.queries)) else 1

    def _tiles(self, asked: _Asked, lo: int, hi: int) -> Iterator[tuple[int, Float32]]:
        """Tiles of quick scores from left to right, in the same memory: the next one overwrites the last."""
        queries, chosen = self.product_queries(asked.queries), asked.chosen
        # Candidates are gathered, so that their vectors take memory too.
        width = max(1, min(hi - lo, asked.cells // (len(queries) if chosen is None else max(queries.shape))))
        cells = np.empty(len(queries) * width, np.float32)
        for first in range(lo, hi, width):
            stop = min(first + width, hi)
            tile = cells[: len(queries) * (stop - first)].reshape(len(queries), -1)
            self._quick(queries, slice(first, stop) if chosen is None else chosen[first:stop], tile)
            if chosen is None and len(self.gone):
                within = self.gone[slice(*np.searchsorted(self.gone, (first, stop)))]
                tile[:, within - first] = -np.inf
            if asked.out is not None:
                np.copyto(tile, -np.inf, where=asked.out[first:stop])
            if asked.hidden is not None:
                hide_labels(tile, first, asked.hidden)
            yield first, tile

    def _by_blas(self, n_queries: int) -> bool:
        return n_queries > _FEW or (n_queries == 1 and self.table.dtype == np.float32)

    def _quick(self, queries: Float32, which: Any, out: Float32) -> None:
        """Scores of the labels `which`, a slice or ids; of distances without a bias, what orders them."""
        if self._by_blas(len(queries)):
            np.matmul(queries, self.table[which].astype(np.float32, copy=False).T, out=out)
        elif isinstance(which, slice):
            score_few(*self._quick_flat, which.start, np.ascontiguousarray(queries), out)
        else:
            score_few(*flat(self.table[which]), 0, np.ascontiguousarray(queries), out)
        if self._scale is not None:
            out *= self._scale[which]
        elif self._by_distance:
            out -= self._norm2[which] / 2
        elif self.similarity == "euclidean":
            _to_distances(out, np.einsum("ij,ij->i", queries, queries), self._norm2[which])
        if self.bias is not None:
            out += self.bias[which]

    def _in_order(self, queries: Float32, ids: Int64, k: int) -> tuple[Int64, Float32]:
        """The first k of the listed labels (-1 = none, sorted in place), by their scores proper and then by id."""
        found = Heap(self._scores(queries, ids), ids)
        sort_topk(found, 0, len(ids))
        return found.labels[:, :k], found.scores[:, :k]

    def _scores(self, queries: Float32, ids: Int64) -> Float32:
        """Scores proper of the labels listed for each query, -inf for -1."""
        scores = np.empty(ids.shape, np.float32)
        distances = self.similarity == "euclidean"
        score_pairs(*self._flat, np.ascontiguousarray(queries), ids, distances, scores, 0, len(queries))
        if distances:
            scores = 0 - np.sqrt(scores)
        elif self._scale is not None:
            scores *= self._scale[ids] / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), SHORTEST)
        return scores if self.bias is None else scores + self.bias[ids]

    def _reach(self, norm2: Float64, last: Float32) -> Float64:
        """The quick score above which a label may come before the one whose score proper is `last`."""
        bottom = last.astype(np.float64)
        if self._by_distance:  # the quick score is (|q|^2 - distance^2) / 2
            bottom = (norm2 - bottom * bottom) / 2
        reach: Float64 = bottom - self.slack(norm2)
        return reach

    def slack(self, norm2: Float64) -> Float64:
        """By how much rounding may part quick scores from scores proper, for queries of these squared lengths.

        Both are sums of dim products whose rounding differs by at most twice dim units of the sum of their sizes (and
        of the smallest number there is). Of a distance with a bias the quick score is the root of a difference, which
        halves its digits: there most rows are looked at twice.
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

    def _within(self, asked: _Asked, reach: float) -> Int64:
        """All labels, (1, n), whose quick score for a single query lies above `reach`."""
        n_candidates = len(self.table) if asked.chosen is None else len(asked.chosen)
        parts = [first + np.flatnonzero(tile[0] > reach) for first, tile in self._tiles(asked, 0, n_candidates)]
        return _of(asked.chosen, np.concatenate(parts))[None, :]


def top_k(
    queries: Any,
    table: Any,
    k: int,
    *,
    bias: Any = None,
    similarity: SimilarityName = "dot",
    exclude: Matrix | None = None,
    candidates: Any = None,
    block_rows: int = BLOCK_ROWS,
    threads: int | None = None,
) -> tuple[Int64, Float32]:
    """The k best labels of each query, exactly.

    Parameters
    ----------
    queries : (n, dim) float32
    table : (n_labels, dim) float32 or float16
    k : int
    bias, similarity
        See `ExactIndex`, which saves work when many calls share a table.
    exclude : csr_matrix (n, n_labels) or None
        Non-zeros are no candidates of their query.
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
    >>> top_k(np.array([[1, 0]], np.float32), table, 2)[0]
    array([[0, 2]])
    >>> top_k(np.array([[1, 0]], np.float32), table, 2, candidates=[1, 2], similarity="euclidean")
    (array([[2, 1]]), array([[-1.       , -1.4142135]], dtype=float32))
    """
    index = ExactIndex(table, bias=bias, similarity=similarity)
    return index.top_k(queries, k, exclude=exclude, candidates=candidates, block_rows=block_rows, threads=threads)


def _of(chosen: Int64 | None, places: Int64) -> Int64:
    """Label ids of places among the candidates; -1 stays."""
    return places if chosen is None else np.where(places < 0, -1, chosen[places])


def _to_distances(products: Float32, query_norm2: Float32, label_norm2: Float32) -> None:
    """In place: inner products to negative distances."""
    products *= 2
    products -= query_norm2[:, None]
    products -= label_norm2
    np.minimum(products, 0, out=products)  # rounding may lift |q - w|^2 = 0 above it
    np.negative(products, out=products)
    np.sqrt(products, out=products)
    np.negative(products, out=products)


def _useful_threads(threads: int, n_rows: int) -> int:
    """One for few rows, where starting others would cost more than the search."""
    most = n_rows // 32
    return 1 if most < 2 else min(threads, most)
