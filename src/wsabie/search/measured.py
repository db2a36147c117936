"""What an index is measured on and by, and how a table is known again."""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix
from wsabie.base.mapped import parts
from wsabie.base.validation import require
from wsabie.search.exact import ExactIndex
from wsabie.search.ready import float32_rows
from wsabie.storage.folder import Parts

MEASURED_AT = 10
"""The k of the recall that is measured."""
TIMED = 40
"""Queries whose times are taken."""
WANTED = 0.95
"""The recall that an index is made for where none is asked for."""
_QUERIES, _ROUND = 400, 20  # rounds: the threads of BLAS go on for a while on others' time
_ROWS = 1 << 14


class Reached(NamedTuple):
    """What one effort brings."""

    effort: int
    recall: float
    milliseconds: float  # median of a single query


class MeasuredIndex(ABC):
    """An index of labels, and what it was measured to bring.

    Attributes
    ----------
    exact : ExactIndex
        Of the same labels.
    kind : str
    effort : int
        How hard it looks; what that counts is the kind's own.
    wanted, recall : float
        Share of the exact top 10 that was asked for, and that was found for queries that did not choose the effort.
    curve : list of Reached
        The same for every effort.
    exact_milliseconds : float
        Median of a single query of an exact search, taken in turns with those of the curve.
    queries : str
        What it was measured on: of those that there were the ones that did not choose the effort.
    n_bytes : int
        Beside the table.
    """

    kind: str

    def __init__(self, exact: ExactIndex, effort: int) -> None:
        self.exact, self.effort = exact, effort
        self.wanted, self.recall, self.exact_milliseconds = 1.0, float("nan"), float("nan")
        self.curve: list[Reached] = []
        self.queries = "nothing"
        self.n_bytes = 0

    def facts(self) -> dict[str, Any]:
        """What it is and what it brings, JSON-able."""
        here = next((one.milliseconds for one in self.curve if one.effort == self.effort), None)  # None: not measured
        return {
            "kind": self.kind,
            "recall@10": self.recall,
            "measured_on": self.queries,
            "milliseconds": here,
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
        """About the k best labels of each query, as `ExactIndex.top_k` gives them; no row gets fewer than there."""

    def following(self, exact: ExactIndex, changed: Int64) -> "MeasuredIndex | None":
        """The same index for labels of which some are others now, or gone; None: it has to be made anew.

        Parameters
        ----------
        exact : ExactIndex
            Of the labels as they are now.
        changed : (m,) int64
            Their numbers; all others have the vectors and biases that they had.
        """
        return None

    @abstractmethod
    def to_parts(self) -> Parts:
        """What a folder keeps: the index, and of which table it is."""

    def told(self) -> dict[str, Any]:
        """The part of a folder's config that says what was measured, and of which table."""
        return {
            "kind": self.kind,
            "table": fingerprint(self.exact),
            "effort": self.effort,
            "wanted": self.wanted,
            "recall": self.recall,
            "curve": [list(one) for one in self.curve],
            "exact_milliseconds": self.exact_milliseconds,
            "queries": self.queries,
        }

    def tell(self, config: dict[str, Any]) -> None:
        """Take over what `told` gave."""
        self.effort, self.recall = int(config["effort"]), float(config["recall"])
        self.wanted = float(config.get("wanted", WANTED))
        self.exact_milliseconds, self.queries = float(config["exact_milliseconds"]), str(config["queries"])
        self.curve = [Reached(int(effort), float(r), float(ms)) for effort, r, ms in config["curve"]]

    def time(self, queries: Float32, threads: int | None) -> tuple[float, float]:
        """Median milliseconds of single queries, its own and those of the exact search."""
        return by_turns(
            lambda query: self.top_k(query, MEASURED_AT, threads=threads),
            lambda query: self.exact.top_k(query, MEASURED_AT, threads=threads),
            [queries[i : i + 1] for i in range(min(len(queries), TIMED))],
        )

    def tune(
        self,
        queries: Float32,
        wanted: float,
        settings: Iterable[Callable[[], None]],
        efforts: Sequence[int],
        threads: int | None,
    ) -> None:
        """Take the first setting with which half of the queries reach what is wanted; measure it on the others.

        A setting is what sets the index; the curve is that of all efforts, ascending, with the rest as it was set.
        """
        self.wanted = wanted
        half, k = len(queries) // 2, MEASURED_AT
        choosing, judging = queries[:half], queries[half:]
        self.queries = f"{len(judging):,} of {self.queries}"
        last = [self.exact.top_k(some, k, threads=threads)[1][:, -1:] for some in (choosing, judging)]

        def recall(some: Float32, worst: Float32) -> float:
            return float((self.top_k(some, k, threads=threads)[1] >= worst).mean())

        for setting in settings:
            setting()
            if recall(choosing, last[0]) >= wanted:
                break
        chosen, exact = self.effort, list[float]()
        for effort in efforts:
            self.effort = effort
            mine, theirs = self.time(judging, threads)
            self.curve.append(Reached(effort, recall(judging, last[1]), mine))
            exact.append(theirs)
            if effort >= chosen and self.curve[-1].recall > 0.999:
                break
        self.effort = chosen
        self.recall = next(one.recall for one in self.curve if one.effort == chosen)
        self.exact_milliseconds = float(np.median(exact))


def sample_of(exact: ExactIndex, queries: Any, rng: np.random.Generator) -> tuple[Float32, str]:
    """At most 400 of the queries, or of the labels where they are None, and in words how many of what.

    Raises
    ------
    InputError
        There are fewer than two.
    """
    rows = exact.table if queries is None else float32_rows(queries, "the queries")
    numbers = exact.there() if queries is None else np.arange(len(rows))
    require(len(numbers) > 1, "an index is measured on two queries or more; give more rows")
    asked = rows[np.sort(rng.permutation(numbers)[:_QUERIES])].astype(np.float32)
    if queries is None and exact.centre is not None:
        asked = asked + exact.centre
    return asked, f"{len(asked):,} {'labels' if queries is None else 'rows'}"


def fingerprint(exact: ExactIndex) -> str:
    """What tells one table of labels, with its biases and its similarity, from others."""
    hashed = hashlib.sha256(f"{exact.similarity} {exact.table.shape} {exact.table.dtype}".encode())
    for part in parts(len(exact.table), _ROWS):
        hashed.update(np.ascontiguousarray(exact.table[part]).data)
    if exact.bias is not None:
        hashed.update(exact.bias.data)
    if len(exact.gone):
        hashed.update(exact.gone.data)
    return hashed.hexdigest()


def by_turns(mine: Callable[[Any], Any], theirs: Callable[[Any], Any], queries: list[Any]) -> tuple[float, float]:
    """Median milliseconds of two searches of single queries."""
    times: tuple[list[float], list[float]] = ([], [])
    for lo in range(0, len(queries), _ROUND):
        for work, found in zip((mine, theirs), times, strict=True):
            for query in queries[lo : lo + _ROUND]:
                start = time.perf_counter()
                work(query)
                found.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[0])), float(np.median(times[1]))
