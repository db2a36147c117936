"""Exact top k with byte codes, which rule out most labels before the table is read.

Codes of a byte a coordinate bound the score of every label (`wsabie.kernels.ranking.topk`). The few labels
that can be among the best are scored from the table with the sums of the exact search, so the result is that of
`ExactIndex`, bit for bit. Where codes leave too many candidates, `ExactIndex` itself searches the row.

faiss has codes of a byte too, but ranks by them alone, so that some of its labels are others
(`docs/decisions/exact-search.md`).
"""

from collections.abc import Callable
from typing import Self

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int64, iterate_slices, view_as_writable
from wsabie.core.errors import require
from wsabie.core.execution import run_in_threads
from wsabie.core.machine import resolve_threads
from wsabie.kernels.ranking import topk
from wsabie.kernels.simd.byte_products import LABELS, WIDEST, has_byte_products
from wsabie.search import index_tuning, label_index
from wsabie.search.exact_index import BLOCK_ROWS, ExactIndex
from wsabie.storage.model_folder import ModelState
from wsabie.storage.schema_validation import check_array

_ROWS = 1 << 14
_MAX_CODE = 127
_ZERO_POINT = 128  # what stands for 0 among codes without a sign
_TINY = float(np.finfo(np.float32).tiny)
_ROUNDING_FACTOR = 1 + 1e-6  # more than float32 rounds down
_MAX_SCREENED_ROWS = 8
"""Rows up to which screening beats BLAS on a processor that has no instruction for bytes."""
_MIN_PARALLEL_BYTES = 16 << 20
"""Bytes of codes times rows from which on threads share the blocks of few rows."""
_MIN_PARALLEL_ROWS = 64
"""Rows from which on threads share the rows."""
_RESCORED_AT_ONCE = 128
"""Rows whose candidates are scored from the table together."""
_MAX_HIDDEN = 100
"""Hidden labels of a row above which the exact search, which can leave them out, is quicker."""
_CELLS = 1 << 20
"""Candidates of all rows that a thread holds at once, 12 MiB."""
_ROOM_FACTOR, _MIN_ROOM = 8, 1024
"""Room for candidates: a multiple of k, and a minimum."""


def encode_byte_rows(rows: Callable[[slice], Float32], offsets: Float32, dim: int) -> topk.ByteCodes:
    """Encode rows(part), (len, dim) float32, of labels with these offsets."""
    n = len(offsets)
    n_blocks, n_words = -(-n // LABELS), -(-dim // 4)
    words = np.empty((n_blocks, n_words, LABELS), np.uint32)
    scales, largest = np.zeros((n_blocks, LABELS), np.float32), np.zeros((n_blocks, 2), np.float32)
    for part in iterate_slices(n, _ROWS):
        vectors = rows(part)
        blocks = slice(part.start // LABELS, -(-part.stop // LABELS))
        signed, scale, residual_norms = _quantise(vectors)
        filled = np.full(((blocks.stop - blocks.start) * LABELS, 4 * n_words), _ZERO_POINT, np.uint8)
        filled[: len(vectors), :dim] = signed + _ZERO_POINT
        by_label = filled.reshape(-1, LABELS, n_words, 4).view("<u4")[..., 0]
        words[blocks] = by_label.transpose(0, 2, 1)
        scales[blocks].reshape(-1)[: len(vectors)] = scale
        sizes = np.zeros((len(filled), 2))
        sizes[: len(vectors), 0] = residual_norms / scale
        sizes[: len(vectors), 1] = np.sqrt(np.einsum("ij,ij->i", signed, signed, dtype=np.float64))
        largest[blocks] = _round_up(sizes.reshape(-1, LABELS, 2).max(axis=1))
    return topk.ByteCodes(words.reshape(-1), scales.reshape(-1), pad_offsets(offsets, n_blocks), largest)


def pad_offsets(offsets: Float32, n_blocks: int) -> Float32:
    """Pad offsets to whole blocks with -inf."""
    padded = np.full(n_blocks * LABELS, -np.inf, np.float32)
    padded[: len(offsets)] = offsets
    return padded


def encode_byte_queries(points: Float32, slack: Float64) -> topk.ByteQueries:
    """Encode queries in bytes; `slack` bounds the error of scores for other reasons."""
    n, dim = points.shape
    signed, scale, residual_norms = _quantise(points)
    filled = np.zeros((n, dim + -dim % 4), np.int8)
    filled[:, :dim] = signed
    starts = -_ZERO_POINT * signed.sum(axis=1, dtype=np.int32)
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64))
    bounds = map(_round_up, (lengths, residual_norms, slack))
    return topk.ByteQueries(filled.view("<u4"), starts, scale, *bounds)


def _quantise(rows: Float32) -> tuple[Float32, Float32, Float64]:
    """Return integers -127 to 127 (n, dim), scales (n,), and the lengths (n,) of the residuals."""
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0) / np.float32(_MAX_CODE), np.float32(_TINY))
    signed: Float32 = np.clip(np.rint(rows / scale[:, None]), -_MAX_CODE, _MAX_CODE)
    residuals = rows - signed * scale[:, None].astype(np.float64)
    return signed, scale, np.sqrt(np.einsum("ij,ij->i", residuals, residuals))


def _round_up(values: Float64) -> Float32:
    return (values * _ROUNDING_FACTOR + _TINY).astype(np.float32)


class ScreeningIndex(label_index.LabelSearchIndex):
    """Label vectors with codes of a byte a coordinate; `build` makes one.

    Attributes
    ----------
    exact, recall, curve, exact_milliseconds, queries, n_bytes
        See `LabelSearchIndex`; the recall is 1, and the curve a single point.
    kind : "int8"
    effort : int
        Mean number of labels scored from the table for the top 10 of a row.

    Examples
    --------
    >>> table = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> exact = ExactIndex(table)
    >>> index = ScreeningIndex.build(exact)
    >>> top, exact_top = index.top_k(table[:3], 2), exact.top_k(table[:3], 2)
    >>> all((a == b).all() for a, b in zip(top, exact_top))
    True
    """

    folder_kind = "int8 codes"
    noun = "codes"
    kind = "int8"

    def __init__(self, exact: ExactIndex, codes: topk.ByteCodes) -> None:
        super().__init__(exact, 0)
        self._codes = codes
        self.n_bytes = sum(part.nbytes for part in codes)

    @classmethod
    def build(
        cls, exact: ExactIndex, *, queries: Array | None = None, seed: int = 0, threads: int | None = None
    ) -> Self:
        """Encode the labels and measure the time of a search.

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
        label_index.require_enough_vectors(n)
        label_index.refuse_biased_distances(exact)
        require(dim <= WIDEST, f"labels of {dim:,} dimensions have no index of bytes ({WIDEST:,} at most)")
        index = cls(exact, encode_byte_rows(exact.product_rows, exact.offsets(), dim))
        test_queries, index.queries = index_tuning.sample_queries(exact, queries, np.random.default_rng(seed))
        index._measure(test_queries, threads)
        return index

    def _is_exact_quicker(self, request: label_index.SearchRequest) -> bool:
        n_candidates, n_hidden = request.n_candidates, request.n_hidden
        is_slow = len(request.queries) > _MAX_SCREENED_ROWS and not has_byte_products()
        is_narrow = (
            n_candidates < label_index.NARROW * len(self.exact.table)
            or _compute_room(request.k + n_hidden) > n_candidates
        )
        return is_slow or is_narrow or n_hidden > _MAX_HIDDEN

    def _search(self, request: label_index.SearchRequest) -> tuple[Int64, Float32]:
        n, k, n_screened = len(request.queries), request.k, request.k + request.n_hidden
        codes = self._restrict_codes(request.candidate_ids)
        byte_queries = self._encode_queries(request.points, request.norm2)
        ids, scores = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
        n_threads, n_spans = self._choose_threads(n, request.threads)

        def search(rows: slice) -> None:
            part = topk.ByteQueries._make(column[rows] for column in byte_queries)
            labels = self._screen_candidates(codes, part, n_screened, n_spans)
            label_index.mask_hidden(labels, request.hidden.part(rows.start, rows.stop))
            ids[rows], scores[rows] = self._rescore(request.queries[rows], labels, k)

        step = max(1, min(BLOCK_ROWS, _CELLS // _compute_room(n_screened), -(-n // n_threads)))
        run_in_threads(search, list(iterate_slices(n, step)), n_threads)
        return ids, scores

    def _encode_queries(self, points: Float32, norm2: Float64) -> topk.ByteQueries:
        """Return the queries in bytes; rounding affects both the code scores and the exact ones."""
        return encode_byte_queries(self.exact.product_queries(points), 2 * self.exact.slack(norm2))

    def _choose_threads(self, n: int, threads: int | None) -> tuple[int, int]:
        """Return the threads that share the rows, and the threads that share the label blocks of each."""
        many, large = n >= _MIN_PARALLEL_ROWS, n * self._codes.words.nbytes >= _MIN_PARALLEL_BYTES
        if not (many or large):
            return 1, 1  # without asking for the number of cores, which takes longer than a small search
        most = resolve_threads(threads)
        return (most, 1) if many else (1, most)

    def _restrict_codes(self, candidate_ids: Int64 | None) -> topk.ByteCodes:
        """Return the codes with these candidates alone."""
        if candidate_ids is None:
            return self._codes
        offsets = np.full_like(self._codes.offsets, -np.inf)
        offsets[candidate_ids] = self._codes.offsets[candidate_ids]
        return self._codes._replace(offsets=offsets)

    def _screen_candidates(self, codes: topk.ByteCodes, queries: topk.ByteQueries, k: int, n_spans: int) -> Int64:
        """Return the labels that may be among the k best of each query, (n, width), padded with -1."""
        # a row of -1 alone had too many candidates
        n, n_blocks = len(queries.words), len(codes.largest)
        edges = np.linspace(0, n_blocks, n_spans + 1).astype(int).tolist()
        candidates = [topk.allocate_candidates(n, k, _compute_room(k)) for _ in range(n_spans)]

        def screen(span: int) -> None:
            topk.screen_labels(
                codes, queries, candidates[span], np.empty((4, LABELS), np.int32), edges[span], edges[span + 1]
            )

        run_in_threads(screen, range(n_spans), n_spans)
        bounds = np.max([part.bounds for part in candidates], axis=0)
        for part in candidates:
            topk.drop_below_bounds(part, bounds)
        labels = np.hstack([part.labels[:, : max(part.counts.max(), k)] for part in candidates])
        labels[np.min([part.counts for part in candidates], axis=0) < 0] = -1
        return labels

    def to_state(self) -> ModelState:
        """Return the state to save: the codes and the fingerprint of their table."""
        words, scales, _, largest = self._codes
        return ModelState(self.folder_kind, self.to_config(), {"words": words, "scales": scales, "largest": largest})

    @classmethod
    def _restore(cls, state: ModelState, exact: ExactIndex) -> Self:
        n_blocks, n_words = -(-len(exact.table) // LABELS), -(-exact.table.shape[1] // 4)
        words = check_array(state.tensors, "words", "uint32", (n_blocks * n_words * LABELS,))
        scales = check_array(state.tensors, "scales", "float32", (n_blocks * LABELS,))
        largest = check_array(state.tensors, "largest", "float32", (n_blocks, 2))
        columns = words, scales, pad_offsets(exact.offsets(), n_blocks), largest
        index = cls(exact, topk.ByteCodes(*map(view_as_writable, columns)))
        index.restore_config(state.config)
        return index

    def _rescore(self, queries: Float32, labels: Int64, k: int) -> tuple[Int64, Float32]:
        """Return the k best of the listed labels; rows with lists of similar length are scored together."""
        ids, scores = np.empty((len(labels), k), np.int64), np.empty((len(labels), k), np.float32)
        lengths = labels.shape[1] - (labels >= 0)[:, ::-1].argmax(axis=1)
        order = np.argsort(lengths, kind="stable")
        for part in iterate_slices(len(order), _RESCORED_AT_ONCE):
            rows = order[part]
            width = max(int(lengths[rows[-1]]), k)
            ids[rows], scores[rows] = self.exact.rescore(queries[rows], labels[rows, :width], k)
        return ids, scores

    def _measure(self, queries: Float32, threads: int | None) -> None:
        points, norm2 = self.exact.check_queries(queries)[1:]
        labels = self._screen_candidates(self._codes, self._encode_queries(points, norm2), index_tuning.MEASURED_AT, 1)
        self.effort = round(float((labels >= 0).sum(axis=1).mean()))
        milliseconds, self.exact_milliseconds = index_tuning.time_queries(self, queries, threads)
        self.recall = 1.0
        self.curve = [label_index.EffortPoint(self.effort, self.recall, milliseconds)]


def _compute_room(k: int) -> int:
    return _MIN_ROOM + _ROOM_FACTOR * k
