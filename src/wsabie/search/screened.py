"""Exact top k by way of codes of a byte a coordinate: who cannot be among the best is never read from the table.

Codes say of every label between which two scores its own lies (`kernels.screening`). The few that can be among the
best are scored from the table, by the sums of the exact search: so the answer is that of `ExactIndex`, bit for bit.
Where codes cannot tell (too many labels come into question), the row is searched by `ExactIndex` itself.
"""

from typing import Any

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64, Matrix, under_one_type
from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.base.mapped import parts
from wsabie.base.threads import for_each
from wsabie.base.validation import require, whole_number
from wsabie.kernels.byte_products import LABELS, WIDEST, by_bytes
from wsabie.kernels.screening import ByteCodes, ByteQueries, in_sight, screen, settle
from wsabie.search.approximate import NARROW, drop
from wsabie.search.byte_codes import codes_of, padded, queries_of
from wsabie.search.codes import refuse_few
from wsabie.search.exact import BLOCK_ROWS, ExactIndex
from wsabie.search.measured import MEASURED_AT, MeasuredIndex, Reached, fingerprint, sample_of
from wsabie.search.ready import as_rows, hidden_labels
from wsabie.storage.folder import Parts

KIND = "int8 codes"

_FEW = 8
"""Rows that are screened quicker than multiplied by BLAS on a processor that has no instruction for bytes."""

_LARGE = 16 << 20
"""Bytes of codes times rows from which on threads share out the blocks of few rows."""

_MANY = 64
"""Rows from which on threads share out the rows."""

_TOGETHER = 128
"""Rows whose labels in sight are scored from the table together."""

_HIDDEN = 100
"""Labels that a row hides, above which the exact search, which can leave them out, is quicker: here they are found."""

_CELLS = 1 << 20
"""Labels in sight of all rows that a thread has at once, 12 MiB."""

_ROOM, _LEAST_ROOM = 8, 1024
"""Labels in sight for each one that is wanted, and so many more."""


class ScreenedIndex(MeasuredIndex):
    """Label vectors with codes of a byte a coordinate; made by `build`.

    Attributes
    ----------
    exact, recall, curve, exact_milliseconds, queries, n_bytes
        See `MeasuredIndex`; the recall is 1, and the curve a single point.
    kind : "int8"
    effort : int
        Labels that were scored from the table for a row's top 10, on average.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> exact = ExactIndex(table)
    >>> index = ScreenedIndex.build(exact)
    >>> mine, theirs = index.top_k(table[:3], 2), exact.top_k(table[:3], 2)
    >>> all((a == b).all() for a, b in zip(mine, theirs))
    True
    """

    kind = "int8"

    def __init__(self, exact: ExactIndex, codes: ByteCodes) -> None:
        super().__init__(exact, 0)
        self._codes = codes
        self.n_bytes = sum(part.nbytes for part in codes)

    @classmethod
    def build(
        cls, exact: ExactIndex, *, queries: Any = None, seed: int = 0, threads: int | None = None
    ) -> "ScreenedIndex":
        """Make codes of the labels and take the time.

        Parameters
        ----------
        exact : ExactIndex
        queries : (n, dim) float32 or None
            Points of rows, of which at most 400 are taken. None: labels of the table.
        seed : int
        threads : int or None

        Raises
        ------
        InputError
            A distance has a bias, there are too few labels or queries, or more dimensions than sums of bytes can hold.
        """
        n, dim = exact.table.shape
        refuse_few(n)
        if exact.similarity == "euclidean" and exact.bias is not None:
            raise InputError("distances with a bias per label have no index; search them exactly")
        require(dim <= WIDEST, f"labels of {dim:,} dimensions have no index of bytes ({WIDEST:,} at most)")
        index = cls(exact, codes_of(exact.product_rows, exact.offsets(), dim))
        asked, index.queries = sample_of(exact, queries, np.random.default_rng(seed))
        index._measure(asked, threads)
        return index

    def top_k(
        self,
        queries: Any,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: Any = None,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """The k best labels of each query, as `ExactIndex.top_k` gives them."""
        k, n = whole_number(k, "k"), len(self.exact.table)
        given, points, norm2 = self.exact.checked(queries)
        chosen, exclude = self.exact.among(candidates), as_rows(exclude)
        hidden = hidden_labels(exclude, len(given), n, None)
        out = 0 if hidden is None else int(np.diff(hidden.indptr).max(initial=0))
        left = n if chosen is None else len(chosen)
        quick = len(given) <= _FEW or by_bytes()
        if not quick or left < NARROW * n or _room(k + out) > left or out > _HIDDEN:
            return self.exact.top_k(given, k, exclude=exclude, candidates=chosen, threads=threads)
        codes = self._of(chosen)
        asked = self._asked(points, norm2)
        ids, scores = np.empty((len(given), k), np.int64), np.empty((len(given), k), np.float32)
        n_threads, n_spans = self._threads(len(given), threads)

        def search(rows: slice) -> None:
            labels = self._in_sight(codes, ByteQueries(*(part[rows] for part in asked)), k + out, n_spans)
            if hidden is not None:
                drop(labels, hidden.part(rows.start, rows.stop))
            ids[rows], scores[rows] = self._rescored(given[rows], labels, k)

        rows = max(1, min(BLOCK_ROWS, _CELLS // _room(k + out), -(-len(given) // n_threads)))
        for_each(search, list(parts(len(given), rows)), n_threads)
        doubt = np.flatnonzero((ids[:, -1] < 0) | ~np.isfinite(scores[:, -1]))
        if len(doubt):
            theirs = None if exclude is None else exclude[doubt]
            ids[doubt], scores[doubt] = self.exact.top_k(
                given[doubt], k, exclude=theirs, candidates=chosen, threads=threads
            )
        return ids, scores

    def _asked(self, points: Float32, norm2: Float64) -> ByteQueries:
        """Queries in bytes; both the scores of codes and the exact ones are off by rounding."""
        return queries_of(self.exact.product_queries(points), 2 * self.exact.slack(norm2))

    def _threads(self, n: int, threads: int | None) -> tuple[int, int]:
        """Threads that share out rows, and threads that share out the blocks of labels for each of them."""
        many, large = n >= _MANY, n * self._codes.words.nbytes >= _LARGE
        if not (many or large):
            return 1, 1  # without asking for the number of cores, which takes longer than a small search
        most = threads or available_cores()
        return (most, 1) if many else (1, most)

    def _of(self, chosen: Int64 | None) -> ByteCodes:
        """The codes with no candidates but these."""
        if chosen is None:
            return self._codes
        offsets = np.full_like(self._codes.offsets, -np.inf)
        offsets[chosen] = self._codes.offsets[chosen]
        return self._codes._replace(offsets=offsets)

    def _in_sight(self, codes: ByteCodes, asked: ByteQueries, k: int, n_spans: int) -> Int64:
        """Labels that may be among the k best of each query, (n, most), -1 behind them; none at all where codes cannot
        tell."""
        n, n_blocks = len(asked.words), len(codes.largest)
        edges = np.linspace(0, n_blocks, n_spans + 1).astype(int).tolist()
        found = [in_sight(n, k, _room(k)) for _ in range(n_spans)]

        def look(span: int) -> None:
            screen(codes, asked, found[span], np.empty((4, LABELS), np.int32), edges[span], edges[span + 1])

        for_each(look, range(n_spans), n_spans)
        bounds = np.max([own.bounds for own in found], axis=0)
        for own in found:
            settle(own, bounds)
        labels = np.hstack([own.labels[:, : max(own.counts.max(), k)] for own in found])
        labels[np.min([own.counts for own in found], axis=0) < 0] = -1
        return labels

    def to_parts(self) -> Parts:
        """What a folder keeps: the codes, and of which table they are."""
        words, scales, _, largest = self._codes
        return Parts(KIND, self.told(), {"words": words, "scales": scales, "largest": largest})

    @classmethod
    def from_parts(cls, parts: Parts, exact: ExactIndex) -> "ScreenedIndex | None":
        """The index of these labels; None when it was made of others.

        Raises
        ------
        ValueError, KeyError, TypeError
            The parts hold something else.
        """
        config, tensors = parts.config, parts.tensors
        if parts.kind != KIND:
            raise ValueError(f"it holds {parts.kind!r} and no codes")
        if config["table"] != fingerprint(exact):
            return None
        n_blocks, n_words = -(-len(exact.table) // LABELS), -(-exact.table.shape[1] // 4)
        wanted = {
            "words": (np.uint32, (n_blocks * n_words * LABELS,)),
            "scales": (np.float32, (n_blocks * LABELS,)),
            "largest": (np.float32, (n_blocks, 2)),
        }
        for name, (dtype, shape) in wanted.items():
            if tensors[name].dtype != dtype or tensors[name].shape != shape:
                raise ValueError(f"{name} do not fit {len(exact.table):,} labels")
        words, scales, largest = (under_one_type(tensors[name]) for name in wanted)
        index = cls(exact, ByteCodes(words, scales, padded(exact.offsets(), n_blocks), largest))
        index.tell(config)
        return index

    def _rescored(self, queries: Float32, labels: Int64, k: int) -> tuple[Int64, Float32]:
        """The k best of the labels listed, rows with short lists apart from those with long ones."""
        ids, scores = np.empty((len(labels), k), np.int64), np.empty((len(labels), k), np.float32)
        lengths = labels.shape[1] - (labels >= 0)[:, ::-1].argmax(axis=1)
        order = np.argsort(lengths, kind="stable")
        for part in parts(len(order), _TOGETHER):
            some = order[part]
            most = max(int(lengths[some[-1]]), k)
            ids[some], scores[some] = self.exact.rescored(queries[some], labels[some, :most], k)
        return ids, scores

    def _measure(self, queries: Float32, threads: int | None) -> None:
        points, norm2 = self.exact.checked(queries)[1:]
        labels = self._in_sight(self._codes, self._asked(points, norm2), MEASURED_AT, 1)
        self.effort = round(float((labels >= 0).sum(axis=1).mean()))
        mine, self.exact_milliseconds = self.time(queries, threads)
        self.recall = 1.0
        self.curve = [Reached(self.effort, self.recall, mine)]


def _room(k: int) -> int:
    return _LEAST_ROOM + _ROOM * k
