"""Exact best pairs of labels, and ranks of given ones, among all n_labels^2 pairs or among given couples.

Nothing of the size of all pairs is ever made. How little of them the search looks at is in `kernels/label_pairs.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabie.base.arrays import Bool, Float32, Float64, Int64, under_one_type
from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.base.threads import for_each
from wsabie.base.validation import whole_number
from wsabie.kernels.label_pairs import (
    BLOCK,
    TILE,
    Asked,
    Bounds,
    Counts,
    Labels,
    Listed,
    Order,
    count_listed,
    count_pairs,
    edges_of,
    new_tile,
    top_listed,
    top_pairs,
)
from wsabie.kernels.topk import Heap, new_heap, sort_topk
from wsabie.search.ready import flat, float32_rows

_CELLS = 2**18
"""Scores of the queries that are put in order together: 1 MiB a copy."""

_COUNTED = 1024
"""Queries that share the edges of a block while they are counted."""

_LARGEST = float(np.finfo(np.float32).max) / 8


class LabelPairs:
    """Label vectors made ready for searches over all pairs of labels.

    The pair (i, j) scores a[i] + b[j] + weight * W_i . W_j, in this order and in float32: a whole and its part ([P],
    s. 3), or any two things whose labels are related.

    Parameters
    ----------
    W : (n_labels, dim) float32
        Label vectors. Not copied when its rows are contiguous.
    weight : float
        What the edge between two labels counts, any sign; 0 leaves it out.
    known : (m, 2) int array or None
        Pairs that are known to be related.
    offset : float
        Added last to the score of a known pair: with weight 0 and offset 100 the "IO" models of [P], s. 6.4.
    same : bool, default True
        Whether a label may be paired with itself.

    Attributes
    ----------
    looked_ : (n,) int64
        Scores that the last `top` made for each query; labels beside themselves and known pairs may count twice.

    Raises
    ------
    InputError
        When something is not finite or does not fit.

    Examples
    --------
    A car and a wheel; the second best pair takes both pictures for wheels.

    >>> pairs = LabelPairs(np.array([[1, 0], [0.8, 0.6], [0, -1]], np.float32), weight=0.5)
    >>> a, b = np.array([[1, 0.75, 0]], np.float32), np.array([[0, 1, 0.75]], np.float32)
    >>> pairs.top(a, b, 2)
    (array([[0, 1]]), array([[1, 1]]), array([[2.4 , 2.25]], dtype=float32))
    >>> pairs.ranks(a, b, [0], [2])
    array([3])
    """

    looked_: Int64

    def __init__(self, W: Any, weight: float, known: Any = None, offset: float = 0.0, *, same: bool = True) -> None:
        table = float32_rows(W, "the label table")
        self.n_labels, self.dim = table.shape
        if not self.n_labels:
            raise InputError("the label table has no rows; give a vector per label")
        if not (abs(weight) < _LARGEST and abs(offset) < _LARGEST):
            raise InputError(f"the weight is {weight} and the offset {offset}; choose finite numbers")
        norm2: Float64 = np.einsum("ij,ij->i", table, table, dtype=np.float64) * abs(np.float64(np.float32(weight)))
        if not (norm2 < _LARGEST).all():
            raise InputError("label vectors are not finite, or too long for float32; the model has diverged")
        self._labels = Labels(*flat(table), self.n_labels, np.float32(weight))
        self._half: Float32 = (norm2 / 2).astype(np.float32)
        self._largest = float(norm2.max())
        self._numbers = np.arange(self.n_labels)
        self._known = np.empty(0, np.int64) if known is None else self._codes(known, "the known pairs")
        self._offset, self._same = np.float32(offset), same
        # A label beside itself has the longest edge there is: scored first, it tells early what is too low.
        own = self._numbers * (self.n_labels + 1)
        self._listed = self._list(np.union1d(own, self._known))

    @property
    def n_pairs(self) -> int:
        """How many pairs there are, where no couples are given."""
        return int(self.n_labels * (self.n_labels - (not self._same)))

    def top(
        self, a: Any, b: Any, k: int, *, couples: Any = None, threads: int | None = None
    ) -> tuple[Int64, Int64, Float32]:
        """The k best pairs of each query, exactly.

        Parameters
        ----------
        a, b : (n, n_labels) float32
            Scores of the two things of each query against all labels.
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
        k, asked, size = whole_number(k, "k"), *self._asked(a, b)
        n = len(asked.a)
        chosen = None if couples is None else self._list(self._codes(couples, "the couples"))
        heap = new_heap(n, min(k, self.n_labels**2 if chosen is None else len(chosen.codes)))
        looked = np.full(n, 0 if chosen is None else len(chosen.codes))

        def search(lo: int, hi: int) -> None:
            mine = Heap(heap.scores[lo:hi], heap.labels[lo:hi])
            some = Asked(asked.a[lo:hi], asked.b[lo:hi])
            if chosen is None:
                order = self._order(some, size[lo:hi])
                tile = new_tile(self.dim)
                top_pairs(self._labels, some, order, self._listed, self.dim, tile, mine, looked[lo:hi], 0, hi - lo)
            else:
                top_listed(some, chosen, mine, 0, hi - lo)
            sort_topk(mine, 0, hi - lo)

        _in_chunks(search, n, max(1, _CELLS // self.n_labels), threads)
        self.looked_ = looked
        codes, scores = np.full((n, k), -1), np.full((n, k), -np.inf, np.float32)
        width = heap.labels.shape[1]
        codes[:, :width], scores[:, :width] = heap.labels, heap.scores
        objects, parts = np.divmod(codes, self.n_labels)
        parts[codes < 0] = -1
        return objects, parts, scores

    def counts(
        self, a: Any, b: Any, objects: Any, parts: Any, *, couples: Any = None, threads: int | None = None
    ) -> Counts:
        """How many pairs score more than one given pair of each query, and how many others score the same.

        Parameters
        ----------
        a, b, couples, threads
            As for `top`.
        objects, parts : (n,) int
            The pair of each query; with couples it must be one of them.

        Returns
        -------
        Counts
            `above` and `tied`, (n,) int64.

        Raises
        ------
        InputError
            As for `top`, and when a given pair is no candidate.
        """
        asked, size = self._asked(a, b)
        n = len(asked.a)
        codes = self._given(objects, parts, n)
        chosen = self._listed if couples is None else self._list(self._codes(couples, "the couples"))
        own = self._own(asked, codes)
        self._check_candidates(own, codes, None if couples is None else chosen)
        counts = Counts(np.zeros(n, np.int64), np.full(n, -1))

        def count(lo: int, hi: int) -> None:
            some, theirs = Asked(asked.a[lo:hi], asked.b[lo:hi]), Counts(counts.above[lo:hi], counts.tied[lo:hi])
            if couples is None:
                bounds, edges = self._bounds(some, size[lo:hi]), np.zeros((BLOCK, TILE), np.float32)
                scratch = self._numbers, self.dim, new_tile(self.dim), edges
                count_pairs(self._labels, some, bounds, own[lo:hi], *scratch, theirs, 0, hi - lo)
            count_listed(some, chosen, own[lo:hi], couples is None, theirs, 0, hi - lo)

        _in_chunks(count, n, _COUNTED, threads)
        return counts

    def ranks(
        self, a: Any, b: Any, objects: Any, parts: Any, *, couples: Any = None, threads: int | None = None
    ) -> Int64:
        """Rank of one given pair of each query, from 1, among all pairs or the couples; see `counts`.

        Returns
        -------
        (n,) int64
            1 + pairs above + half of those that tie with it, rounded up: the middle of the tie, so that a constant
            scorer gets what chance gives.
        """
        counts = self.counts(a, b, objects, parts, couples=couples, threads=threads)
        ranks: Int64 = 1 + counts.above + (counts.tied + 1) // 2
        return ranks

    # ---- what is given

    def _asked(self, a: Any, b: Any) -> tuple[Asked, Float64]:
        """The scores as kernels take them, and how large a sum of each query may get."""
        given = [np.ascontiguousarray(float32_rows(s, f"the scores {name}")) for s, name in ((a, "a"), (b, "b"))]
        if given[0].shape != given[1].shape or given[0].shape[1] != self.n_labels:
            raise InputError(
                f"the scores a and b have shapes {given[0].shape} and {given[1].shape}, but there are {self.n_labels} "
                "labels; give a row for each query, with a score for each label"
            )
        size = np.full(len(given[0]), self._largest)
        for scores in given:
            size += np.abs(scores).max(axis=1, initial=0)
        if not (size < _LARGEST).all():
            row = int((size < _LARGEST).argmin())
            raise InputError(f"row {row} of the scores holds NaN, or what is too large for float32; drop the row")
        return Asked(*map(under_one_type, given)), size

    def _codes(self, pairs: Any, what: str) -> Int64:
        """Codes of the pairs, ascending, each once."""
        given = np.asarray(pairs)
        if not given.size:
            return np.empty(0, np.int64)
        if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
            raise InputError(f"{what} have shape {given.shape} and type {given.dtype}; give two label numbers a row")
        codes: Int64 = np.unique(self._code(given[:, 0], given[:, 1], what))
        return codes

    def _code(self, objects: Any, parts: Any, what: str) -> Int64:
        for labels in (objects, parts):
            bad = (labels < 0) | (labels >= self.n_labels)
            if bad.any():
                raise InputError(
                    f"label {labels[bad.argmax()]} of {what} does not exist; "
                    f"labels are numbered 0 to {self.n_labels - 1}"
                )
        codes: Int64 = objects.astype(np.int64) * self.n_labels + parts.astype(np.int64)
        return codes

    def _given(self, objects: Any, parts: Any, n: int) -> Int64:
        """Codes of one pair per query."""
        sides = np.asarray(objects), np.asarray(parts)
        if any(side.shape != (n,) or not np.issubdtype(side.dtype, np.integer) for side in sides):
            raise InputError(f"objects and parts do not fit {n} queries; give one label number each per query")
        return self._code(*sides, "the given pairs")

    def _check_candidates(self, own: Float32, codes: Int64, chosen: Listed | None) -> None:
        bad: Bool = ~np.isfinite(own)
        if chosen is not None:
            bad |= ~np.isin(codes, chosen.codes)
        if bad.any():
            row = int(bad.argmax())
            object_, part = divmod(int(codes[row]), self.n_labels)
            raise InputError(f"the pair ({object_}, {part}) of row {row} is no candidate; drop the row or add the pair")

    # ---- what kernels take

    def _edges(self, objects: Int64, parts: Int64) -> Float32:
        out = np.empty(len(objects), np.float32)
        edges_of(self._labels, objects, parts, self.dim, new_tile(self.dim), out, 0, len(out))
        return out

    def _list(self, codes: Int64) -> Listed:
        objects, parts = np.divmod(codes, self.n_labels)
        extra = np.where(np.isin(codes, self._known), self._offset, np.float32(0))
        if not self._same:
            extra[objects == parts] = -np.inf
        return Listed(codes, objects, parts, self._edges(objects, parts), extra)

    def _own(self, asked: Asked, codes: Int64) -> Float32:
        """Score of one pair of each query, added up in the kernels' order."""
        listed, rows = self._list(codes), np.arange(len(codes))
        plain: Float32 = (asked.a[rows, listed.objects] + asked.b[rows, listed.parts]) + listed.edges
        own: Float32 = plain + listed.extra
        return own

    def _slack(self, size: Float64) -> Float32:
        """Twice what rounding may do to a sum of `dim` products and a few scores whose sizes sum up to `size`."""
        slack: Float32 = ((self.dim + 16) * (2.0**-23 * size + 2.0**-126)).astype(np.float32)
        return slack

    def _order(self, asked: Asked, size: Float64) -> Order:
        ups = [asked.a + self._half, asked.b + self._half]
        objects, parts = (np.argsort(-up, axis=1) for up in ups)
        up_a, up_b = (np.take_along_axis(up, o, axis=1) for up, o in zip(ups, (objects, parts), strict=True))
        return Order(objects, parts, up_a, up_b, self._slack(size))

    def _bounds(self, asked: Asked, size: Float64) -> Bounds:
        up_b = np.maximum.reduceat(asked.b + self._half, np.arange(0, self.n_labels, TILE), axis=1)
        return Bounds(asked.a + self._half, up_b, self._slack(size))


def _in_chunks(work: Callable[[int, int], None], n: int, rows: int, threads: int | None) -> None:
    """work(lo, hi) for all rows, at most `rows` at once, on several threads where there are enough."""
    threads = available_cores() if threads is None else whole_number(threads, "threads")
    rows = max(1, min(rows, -(-n // threads)))
    for_each(lambda lo: work(lo, min(lo + rows, n)), range(0, n, rows), threads)
