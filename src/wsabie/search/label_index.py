"""Base of label indexes, with their measured recall and time, and the fingerprint of a table."""

import hashlib
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Float32, Float64, Int64, Matrix, iterate_slices
from wsabie.core.errors import require
from wsabie.core.json_conversion import JsonObject
from wsabie.core.label_lists import LabelLists
from wsabie.core.validation import check_positive_integer, convert_to_csr
from wsabie.search.exact_index import ExactIndex
from wsabie.search.search_arrays import list_hidden_labels
from wsabie.storage.model_folder import ModelState

DEFAULT_RECALL = 0.95
"""Default recall that an index aims at."""
MIN_VECTORS = 1000
"""Vectors from which on an index saves time."""
NARROW = 0.1
"""Share of the labels below which all candidates are scored."""
_ROWS = 1 << 14
_MEASUREMENTS = "kind", "effort", "target_recall", "recall", "exact_milliseconds", "queries"


class EffortPoint(NamedTuple):
    """Recall and time of one effort."""

    effort: int
    recall: float
    milliseconds: float  # median of a single query


class SearchRequest(NamedTuple):
    """Checked arguments of a search."""

    queries: Float32  # (n, dim)
    points: Float32  # (n, dim), the queries about the centre of the table
    norm2: Float64  # (n,), squared lengths of `points`
    k: int
    candidate_ids: Int64 | None  # ascending; None: all labels but removed ones
    n_candidates: int
    hidden: LabelLists
    n_hidden: int  # of the query with most
    threads: int | None


class LabelSearchIndex(ABC):
    """Index of labels with its measured recall and time.

    Attributes
    ----------
    exact : ExactIndex
        Exact index of the same labels.
    kind : str
    effort : int
        Effort of a search, in units of the kind.
    target_recall, recall : float
        Share of the exact top 10: the target, and the value measured on queries that did not choose the effort.
    curve : list of EffortPoint
        Recall and time of every effort.
    exact_milliseconds : float
        Median of a single query of an exact search, measured in turns with the curve.
    queries : str
        The queries of the measurement, in words: those that did not choose the effort.
    n_bytes : int
        Bytes of the index beside the table.
    """

    folder_kind: ClassVar[str]
    """Kind in the config of a saved folder."""
    noun: ClassVar[str]
    """Noun for error messages."""
    kind: str

    def __init__(self, exact: ExactIndex, effort: int) -> None:
        self.exact, self.effort = exact, effort
        self.target_recall, self.recall, self.exact_milliseconds = 1.0, float("nan"), float("nan")
        self.curve: list[EffortPoint] = []
        self.queries = "nothing"
        self.n_bytes = 0

    def facts(self) -> JsonObject:
        """Return kind, recall, times and size, JSON-able."""
        milliseconds = {point.effort: point.milliseconds for point in self.curve}
        return {
            "kind": self.kind,
            "recall@10": self.recall,
            "measured_on": self.queries,
            "milliseconds": milliseconds.get(self.effort),
            "exact_milliseconds": self.exact_milliseconds,
            "effort": self.effort,
            "bytes": self.n_bytes,
        }

    def top_k(
        self,
        queries: ArrayLike,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: ArrayLike | None = None,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """Return about the k best labels of each query; no row gets fewer than from `ExactIndex.top_k`."""
        k, n = check_positive_integer(k, "k"), len(self.exact.table)
        queries, points, norm2 = self.exact.check_queries(queries)
        exclude = convert_to_csr(exclude, "exclude") if hasattr(exclude, "tocsr") else exclude  # can be sliced by rows
        candidate_ids = self.exact.resolve_candidates(candidates)
        hidden = list_hidden_labels(exclude, len(queries), n, None)
        n_hidden = int(np.diff(hidden.indptr).max(initial=0))
        n_candidates = n if candidate_ids is None else len(candidate_ids)
        request = SearchRequest(queries, points, norm2, k, candidate_ids, n_candidates, hidden, n_hidden, threads)

        def search_exactly(rows: Int64 | slice) -> tuple[Int64, Float32]:
            excluded = None if exclude is None else exclude[rows]
            return self.exact.top_k(queries[rows], k, exclude=excluded, candidates=candidate_ids, threads=threads)

        if self._is_exact_quicker(request):
            return search_exactly(slice(None))
        ids, scores = self._search(request)
        rows = np.flatnonzero((ids[:, -1] < 0) | ~np.isfinite(scores[:, -1]))
        if len(rows):
            ids[rows], scores[rows] = search_exactly(rows)
        return ids, scores

    @abstractmethod
    def _is_exact_quicker(self, request: SearchRequest) -> bool:
        """Return True where the exact search takes less time."""

    @abstractmethod
    def _search(self, request: SearchRequest) -> tuple[Int64, Float32]:
        """Return ids and scores, (n, k); rows that end with an id of -1 are searched exactly."""

    def follow_changes(self, exact: ExactIndex, changed: Int64) -> "LabelSearchIndex | None":
        """Return the index for labels of which some changed or were removed; None: it has to be rebuilt.

        Parameters
        ----------
        exact : ExactIndex
            Exact index of the current labels.
        changed : (m,) int64
            Numbers of the changed labels; all others keep their vectors and biases.
        """
        return None

    @abstractmethod
    def to_state(self) -> ModelState:
        """Return the state to save: the index and the fingerprint of its table."""

    @classmethod
    def from_state(cls, state: ModelState, exact: ExactIndex) -> Self | None:
        """Return the saved index, or None when it belongs to another table.

        Raises
        ------
        ValueError, KeyError, TypeError
            The state hold something else.
        """
        if state.kind != cls.folder_kind:
            raise ValueError(f"it holds {state.kind!r} and no {cls.noun}")
        if state.config["table"] != compute_table_fingerprint(exact):
            return None
        return cls._restore(state, exact)

    @classmethod
    @abstractmethod
    def _restore(cls, state: ModelState, exact: ExactIndex) -> Self:
        """Return the index of a saved state of this kind and table."""

    def to_config(self) -> JsonObject:
        """Return the measurements and the fingerprint of the table, for the config of a folder."""
        measurements = {name: getattr(self, name) for name in _MEASUREMENTS}
        curve, table = [list(point) for point in self.curve], compute_table_fingerprint(self.exact)
        return {**measurements, "curve": curve, "table": table}

    def restore_config(self, config: JsonObject) -> None:
        """Restore the measurements from `to_config`."""
        self.effort, self.recall = int(config["effort"]), float(config["recall"])
        self.target_recall = float(config.get("target_recall", DEFAULT_RECALL))
        self.exact_milliseconds, self.queries = float(config["exact_milliseconds"]), str(config["queries"])
        self.curve = [EffortPoint(int(effort), float(r), float(ms)) for effort, r, ms in config["curve"]]


def require_enough_vectors(n: int, noun: str = "vectors") -> None:
    """Raise InputError where n vectors are too few for an index to be a gain."""
    require(n >= MIN_VECTORS, f"an index of {n:,} {noun} saves no time, one of {MIN_VECTORS:,} does; search exactly")


def refuse_biased_distances(exact: ExactIndex) -> None:
    """Raise InputError for distances with a bias, which codes do not order."""
    is_biased = exact.similarity == "euclidean" and exact.bias is not None
    require(not is_biased, "distances with a bias per label have no index; search them exactly")


def mask_hidden(ids: Int64, hidden: LabelLists) -> None:
    """Set the hidden labels of each query to -1."""
    for i in np.flatnonzero(np.diff(hidden.indptr)):
        hidden_ids = hidden.labels[hidden.indptr[i] : hidden.indptr[i + 1]]
        ids[i, np.isin(ids[i], hidden_ids)] = -1


def compute_table_fingerprint(exact: ExactIndex) -> str:
    """Return a hash of a label table with its biases, similarity and removed labels."""
    hashed = hashlib.sha256(f"{exact.similarity} {exact.table.shape} {exact.table.dtype}".encode())
    for part in iterate_slices(len(exact.table), _ROWS):
        hashed.update(np.ascontiguousarray(exact.table[part]).data)
    if exact.bias is not None:
        hashed.update(exact.bias.data)
    if len(exact.removed):
        hashed.update(exact.removed.data)
    return hashed.hexdigest()
