"""Base of label indexes: measurement of recall and time, and the fingerprint of a table."""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32, Int64, Matrix
from wsabie.core.file_backed_arrays import iterate_slices
from wsabie.core.validation import require
from wsabie.search.exact_index import ExactIndex
from wsabie.search.search_arrays import prepare_float32_rows
from wsabie.storage.model_folder import ModelState

MEASURED_AT = 10
"""The k of the recall that is measured."""
TIMED = 40
"""Queries that are timed."""
DEFAULT_RECALL = 0.95
"""Default recall that an index aims at."""
_QUERIES, _ROUND = 400, 20  # rounds: the threads of BLAS go on for a while on others' time
_ROWS = 1 << 14


class EffortPoint(NamedTuple):
    """Recall and time of one effort."""

    effort: int
    recall: float
    milliseconds: float  # median of a single query


class LabelSearchIndex(ABC):
    """Index of labels with its measured recall and time.

    Attributes
    ----------
    exact : ExactIndex
        Of the same labels.
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

    kind: str

    def __init__(self, exact: ExactIndex, effort: int) -> None:
        self.exact, self.effort = exact, effort
        self.target_recall, self.recall, self.exact_milliseconds = 1.0, float("nan"), float("nan")
        self.curve: list[EffortPoint] = []
        self.queries = "nothing"
        self.n_bytes = 0

    def facts(self) -> dict[str, Any]:
        """Return kind, recall, times and size, JSON-able."""
        milliseconds = next(
            (point.milliseconds for point in self.curve if point.effort == self.effort), None
        )  # None: not measured
        return {
            "kind": self.kind,
            "recall@10": self.recall,
            "measured_on": self.queries,
            "milliseconds": milliseconds,
            "exact_milliseconds": self.exact_milliseconds,
            "effort": self.effort,
            "bytes": self.n_bytes,
        }

    @abstractmethod
    def top_k(
        self,
        queries: Any,
        k: int,
        *,
        exclude: Matrix | None = None,
        candidates: Any = None,
        threads: int | None = None,
    ) -> tuple[Int64, Float32]:
        """Return about the k best labels of each query; no row gets fewer than from `ExactIndex.top_k`."""

    def follow_changes(self, exact: ExactIndex, changed: Int64) -> "LabelSearchIndex | None":
        """Return the index for labels of which some changed or were removed; None: it has to be rebuilt.

        Parameters
        ----------
        exact : ExactIndex
            Of the current labels.
        changed : (m,) int64
            Numbers of the changed labels; all others keep their vectors and biases.
        """
        return None

    @abstractmethod
    def to_parts(self) -> ModelState:
        """Return the state to save: the index and the fingerprint of its table."""

    def to_config(self) -> dict[str, Any]:
        """Return the measurements and the fingerprint of the table, for the config of a folder."""
        return {
            "kind": self.kind,
            "table": compute_table_fingerprint(self.exact),
            "effort": self.effort,
            "wanted": self.target_recall,
            "recall": self.recall,
            "curve": [list(point) for point in self.curve],
            "exact_milliseconds": self.exact_milliseconds,
            "queries": self.queries,
        }

    def restore_config(self, config: dict[str, Any]) -> None:
        """Restore the measurements from `to_config`."""
        self.effort, self.recall = int(config["effort"]), float(config["recall"])
        self.target_recall = float(config.get("wanted", DEFAULT_RECALL))
        self.exact_milliseconds, self.queries = float(config["exact_milliseconds"]), str(config["queries"])
        self.curve = [EffortPoint(int(effort), float(r), float(ms)) for effort, r, ms in config["curve"]]

    def time(self, queries: Float32, threads: int | None) -> tuple[float, float]:
        """Return the median milliseconds of single queries, of this index and of the exact search."""
        return time_interleaved(
            lambda query: self.top_k(query, MEASURED_AT, threads=threads),
            lambda query: self.exact.top_k(query, MEASURED_AT, threads=threads),
            [queries[i : i + 1] for i in range(min(len(queries), TIMED))],
        )

    def tune(
        self,
        queries: Float32,
        target: float,
        settings: Iterable[Callable[[], None]],
        efforts: Sequence[int],
        threads: int | None,
    ) -> None:
        """Apply the first setting that reaches the target on half of the queries; measure it on the others.

        A setting is a function that changes the index. The curve then covers all efforts, ascending.
        """
        self.target_recall = target
        half, k = len(queries) // 2, MEASURED_AT
        tuning_queries, test_queries = queries[:half], queries[half:]
        self.queries = f"{len(test_queries):,} of {self.queries}"
        last = [self.exact.top_k(sample, k, threads=threads)[1][:, -1:] for sample in (tuning_queries, test_queries)]

        def compute_recall(sample: Float32, limit: Float32) -> float:
            return float((self.top_k(sample, k, threads=threads)[1] >= limit).mean())

        for setting in settings:
            setting()
            if compute_recall(tuning_queries, last[0]) >= target:
                break
        chosen_effort, exact = self.effort, list[float]()
        for effort in efforts:
            self.effort = effort
            duration, exact_duration = self.time(test_queries, threads)
            self.curve.append(EffortPoint(effort, compute_recall(test_queries, last[1]), duration))
            exact.append(exact_duration)
            if effort >= chosen_effort and self.curve[-1].recall > 0.999:
                break
        self.effort = chosen_effort
        self.recall = next(point.recall for point in self.curve if point.effort == chosen_effort)
        self.exact_milliseconds = float(np.median(exact))


def sample_queries(exact: ExactIndex, queries: Any, rng: np.random.Generator) -> tuple[Float32, str]:
    """Sample at most 400 queries, or labels where `queries` is None; return them with a description.

    Raises
    ------
    InputError
        There are fewer than two.
    """
    rows = exact.table if queries is None else prepare_float32_rows(queries, "the queries")
    numbers = exact.list_remaining() if queries is None else np.arange(len(rows))
    require(len(numbers) > 1, "an index is measured on two queries or more; give more rows")
    sample = rows[np.sort(rng.permutation(numbers)[:_QUERIES])].astype(np.float32)
    if queries is None and exact.centre is not None:
        sample = sample + exact.centre
    return sample, f"{len(sample):,} {'labels' if queries is None else 'rows'}"


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


def time_interleaved(
    search: Callable[[Any], Any], reference: Callable[[Any], Any], queries: list[Any]
) -> tuple[float, float]:
    """Return the median milliseconds of two searches of single queries, run in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for lo in range(0, len(queries), _ROUND):
        for run, durations in zip((search, reference), times, strict=True):
            for query in queries[lo : lo + _ROUND]:
                start = time.perf_counter()
                run(query)
                durations.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[0])), float(np.median(times[1]))
