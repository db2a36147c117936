"""Exact top k: blocks of queries against tiles of the label table, and a heap per query.

A tile of scores is made by one BLAS product and scanned while it is still in cache, so memory is bounded by
the tile and by k, whatever the number of labels. Scores come from BLAS: their last bits may differ between
machines and numbers of threads.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.errors import InputError
from wsabie.base.lists import Lists, lists_of
from wsabie.base.machine import available_cores, one_blas_thread
from wsabie.kernels.similarity import SHORTEST
from wsabie.kernels.topk import Heap, hide_labels, new_heap, scan_topk, sort_topk
from wsabie.space.joint import SIMILARITIES, SimilarityName

BLOCK_ROWS = 1024
"""Queries per product: enough that packing the table costs little."""

_CELLS = 2**21
"""Scores in the tiles of all threads, 8 MiB: large for few products, small enough for the last cache level."""

_FAR = 16
"""Squared distance of the points' mean from the origin, over their mean squared distance from it, that is far."""

_BLOCK_CELLS = 2**24
"""Scores per block that is handed out, 64 MiB."""


class ExactIndex:
    """Label vectors made ready for searches.

    Parameters
    ----------
    table : (n_labels, dim) float32
        Not copied when its rows are contiguous (columns cut from a padded table are fine), unless distances are asked
        for and it lies far from the origin.
    bias : (n_labels,) float32 or None
        Added to the similarity.
    similarity : {"dot", "euclidean", "cosine"}
        "euclidean" is the negative distance.

    Examples
    --------
    >>> index = ExactIndex(np.eye(3, dtype=np.float32))
    >>> ids, scores = index.top_k(np.array([[0.5, 2.0, 1.0]], np.float32), 2)
    >>> ids, scores
    (array([[1, 2]]), array([[2., 1.]], dtype=float32))
    """

    def __init__(self, table: Any, *, bias: Any = None, similarity: SimilarityName = "dot") -> None:
        if similarity not in SIMILARITIES:
            raise InputError(f'similarity {similarity!r} is unknown; choose "dot", "euclidean" or "cosine"')
        self.table = _float32(table, "the label table")
        self._centre = _far_centre(self.table) if similarity == "euclidean" else None
        if self._centre is not None:
            self.table = self.table - self._centre
        self.similarity = similarity
        self.bias: Float32 | None = None if bias is None else np.ascontiguousarray(bias, np.float32)
        if self.bias is not None and self.bias.shape != (len(self.table),):
            raise InputError(f"there are {self.bias.size} biases for {len(self.table)} labels; give one per label")
        self._norm2: Float32 | None = None
        if similarity != "dot":
            self._norm2 = np.einsum("ij,ij->i", self.table, self.table)
        if self._norm2 is not None and similarity == "cosine":
            self._scale = 1 / np.maximum(np.sqrt(self._norm2), SHORTEST)

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
        queries = self._checked(queries, k, block_rows)
        chosen = None if candidates is None else _candidates(candidates, len(self.table))
        hidden = _hidden(exclude, len(queries), len(self.table), chosen)
        heap = new_heap(len(queries), k)
        by_distance = self.similarity == "euclidean" and self.bias is None
        n = _useful_threads(threads, len(queries))
        rows = max(1, min(block_rows, -(-len(queries) // n)))

        def search(lo: int) -> None:
            hi = min(lo + rows, len(queries))
            part = None if hidden is None else hidden.part(lo, hi)
            best = Heap(heap.scores[lo:hi], heap.labels[lo:hi])
            for first, tile in self._tiles(queries[lo:hi], chosen, _CELLS // n, order_only=by_distance):
                if part is not None:
                    hide_labels(tile, first, part)
                if scan_topk(tile, first, best, 0, hi - lo):
                    raise InputError(_not_a_number(queries, lo, hi))
            sort_topk(best, 0, hi - lo)

        _for_each(search, range(0, len(queries), rows), n)
        if chosen is not None:
            heap.labels[heap.labels >= 0] = chosen[heap.labels[heap.labels >= 0]]
        found: tuple[Int64, Float32] = heap.labels, heap.scores
        return self._with_distances(queries, heap.labels, block_rows) if by_distance else found

    def score_blocks(self, queries: Any, *, block_rows: int | None = None) -> Iterator[tuple[int, Float32]]:
        """Scores of all labels, as (first row, (b, n_labels)); None = blocks of at most 64 MiB, or one row.

        Raises
        ------
        InputError
            As for `top_k`, except that NaN is passed on.
        """
        if block_rows is None:
            block_rows = max(1, min(BLOCK_ROWS, _BLOCK_CELLS // max(len(self.table), 1)))
        queries = self._checked(queries, 1, block_rows)
        for lo in range(0, len(queries), block_rows):
            part = queries[lo : lo + block_rows]
            out = np.empty((len(part), len(self.table)), np.float32)
            self._score(part, slice(None), out, order_only=False)
            yield lo, out

    def _checked(self, queries: Any, k: int, block_rows: int) -> Float32:
        if k < 1 or block_rows < 1:
            raise InputError(f"k = {k} and block_rows = {block_rows} but both must be 1 or more")
        points = _float32(queries, "the queries")
        if points.shape[1] != self.table.shape[1]:
            raise InputError(
                f"the queries have {points.shape[1]} dimensions but the labels {self.table.shape[1]}; "
                "use points of the same space"
            )
        return points if self._centre is None else points - self._centre

    def _tiles(
        self, queries: Float32, chosen: Int64 | None, n_cells: int, *, order_only: bool
    ) -> Iterator[tuple[int, Float32]]:
        """Tiles of about `n_cells` scores from left to right, in the same memory: the next one overwrites the last."""
        n_labels = len(self.table) if chosen is None else len(chosen)
        width = max(1, min(n_labels, n_cells // len(queries)))
        cells = np.empty(len(queries) * width, np.float32)
        for first in range(0, n_labels, width):
            stop = min(first + width, n_labels)
            tile = cells[: len(queries) * (stop - first)].reshape(len(queries), -1)
            self._score(queries, slice(first, stop) if chosen is None else chosen[first:stop], tile, order_only)
            yield first, tile

    def _score(self, queries: Float32, which: Any, out: Float32, order_only: bool) -> None:
        """Scores of the labels `which`, a slice or ids; `order_only`: for a distance, anything in the same
        order.
        """
        if self.similarity == "cosine":
            queries = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), SHORTEST)
        np.matmul(queries, self.table[which].T, out=out)
        if self.similarity == "cosine":
            out *= self._scale[which]
        elif self._norm2 is not None and order_only:
            out -= self._norm2[which] / 2
        elif self._norm2 is not None:
            _to_distances(out, np.einsum("ij,ij->i", queries, queries), self._norm2[which])
        if self.bias is not None:
            out += self.bias[which]

    def _with_distances(self, queries: Float32, ids: Int64, block_rows: int) -> tuple[Int64, Float32]:
        """Negative distances taken directly, not from a difference of large products, and the order they
        give.
        """
        scores = np.full(ids.shape, -np.inf, np.float32)
        rows = max(1, min(block_rows, _CELLS // (ids.shape[1] * queries.shape[1] or 1)))
        for lo in range(0, len(queries), rows):
            part = ids[lo : lo + rows]
            distances = np.linalg.norm(queries[lo : lo + rows, None, :] - self.table[part], axis=2)
            scores[lo : lo + rows] = np.where(part < 0, -np.inf, 0 - distances)
        order = np.lexsort((ids, -scores), axis=1)
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


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
    table : (n_labels, dim) float32
    k : int
    bias, similarity
        See `ExactIndex`, which saves work when many calls share a table.
    exclude : csr_matrix (n, n_labels) or None
        Non-zeros are no candidates of their query.
    candidates : int array or None
        Only these labels; repetitions do not count.
    block_rows : int
        Queries per product; a tile of scores holds at most 8 MiB or one label.
    threads : int or None
        None = the cores this process may use. With 1, or few queries, the products use BLAS's own threads.

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


def all_scores(queries: Any, table: Any, *, bias: Any = None, similarity: SimilarityName = "dot") -> Float32:
    """Every score, (n, n_labels) float32, for blocks of queries small enough to be held.

    Examples
    --------
    >>> all_scores(np.array([[3, 4]], np.float32), np.array([[0, 0]], np.float32), similarity="euclidean")
    array([[-5.]], dtype=float32)
    """
    index = ExactIndex(table, bias=bias, similarity=similarity)
    blocks = [scores for _, scores in index.score_blocks(queries, block_rows=max(1, len(queries)))]
    return blocks[0] if blocks else np.empty((0, len(index.table)), np.float32)


def _float32(values: Any, what: str) -> Float32:
    """float32 with contiguous rows, as BLAS takes it without a copy."""
    values = np.asarray(values, np.float32)
    if values.ndim != 2:
        raise InputError(f"{what} has {values.ndim} dimension(s) but rows of vectors are needed")
    regular = values.strides[1] == values.itemsize and values.strides[0] >= values.shape[1] * values.itemsize
    return values if regular else np.ascontiguousarray(values)


def _far_centre(table: Float32) -> Float32 | None:
    """The mean of points that lie far from the origin, else None.

    Distances do not know where the origin is, but |q|^2 - 2 qw + |w|^2 loses its digits far from it.
    """
    if not len(table):
        return None
    centre = table.mean(axis=0, dtype=np.float64)
    spread = np.einsum("ij,ij->", table, table, dtype=np.float64) / len(table) - centre @ centre
    return centre.astype(np.float32) if centre @ centre > _FAR * spread else None


def _candidates(candidates: Any, n_labels: int) -> Int64:
    ids: Int64 = np.unique(np.asarray(candidates, np.int64))
    if len(ids) and not (ids[0] >= 0 and ids[-1] < n_labels):
        bad = ids[0] if ids[0] < 0 else ids[-1]
        raise InputError(f"candidate {bad} does not exist; labels are numbered 0 to {n_labels - 1}")
    return ids


def _hidden(exclude: Matrix | None, n_rows: int, n_labels: int, chosen: Int64 | None) -> Lists | None:
    """The excluded labels of each query, by their place among the candidates."""
    if exclude is None:
        return None
    lists = lists_of(exclude, n_labels, "exclude")
    if lists.n_rows != n_rows:
        raise InputError(f"exclude has {lists.n_rows} rows but there are {n_rows} queries; give one row each")
    if chosen is None:
        return lists
    place = np.full(n_labels, -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    known = place[lists.labels] >= 0
    before = np.concatenate([[0], np.cumsum(known)])
    return Lists(before[lists.indptr], place[lists.labels[known]])


def _to_distances(products: Float32, query_norm2: Float32, label_norm2: Float32) -> None:
    """In place: inner products to negative distances."""
    products *= 2
    products -= query_norm2[:, None]
    products -= label_norm2
    np.minimum(products, 0, out=products)  # rounding may lift |q - w|^2 = 0 above it
    np.negative(products, out=products)
    np.sqrt(products, out=products)
    np.negative(products, out=products)


def _not_a_number(queries: Float32, lo: int, hi: int) -> str:
    bad = np.flatnonzero(~np.isfinite(queries[lo:hi]).all(axis=1))
    if len(bad):
        return f"query {lo + bad[0]} holds a value that is not finite, so its scores are NaN; drop that row"
    return f"a score of the queries {lo} to {hi - 1} is NaN; the model has diverged, so train it anew"


def _useful_threads(threads: int | None, n_rows: int) -> int:
    """One for few rows, where starting others would cost more than the search."""
    return max(1, min(threads or available_cores(), n_rows // 32))


def _for_each(work: Callable[[int], None], items: range, threads: int) -> None:
    """work(item) for every item. Each thread makes products and scans of its own, so that none waits for another."""
    if threads == 1:
        for item in items:
            work(item)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="wsabie") as pool:
        for _ in pool.map(work, items):
            pass
