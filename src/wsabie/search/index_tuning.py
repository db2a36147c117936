"""Tuning of a label index: the least effort of a search that reaches a recall, and its time."""

import time
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from wsabie.core.arrays import Float32
from wsabie.core.errors import require
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_index import EffortPoint, LabelSearchIndex
from wsabie.search.search_arrays import prepare_float32_rows

MEASURED_AT = 10
"""The k of the recall that is measured."""
TIMED = 40
"""Queries that are timed."""
_QUERIES, _ROUND = 400, 20  # rounds: the threads of BLAS go on for a while on others' time


def sample_queries(
    exact: ExactIndex, queries: ArrayLike | None, rng: np.random.Generator, recall: float = 1.0
) -> tuple[Float32, str]:
    """Sample at most 400 queries, or labels where `queries` is None; return them with a description.

    Raises
    ------
    InputError
        There are fewer than two, or `recall` is not a share.
    """
    require(0 < recall <= 1, f"recall is a share of the top {MEASURED_AT} such as 0.95, not {recall}")
    rows = exact.table if queries is None else prepare_float32_rows(queries, "the queries")
    numbers = exact.list_remaining() if queries is None else np.arange(len(rows))
    require(len(numbers) > 1, "an index is measured on two queries or more; give more rows")
    sample = rows[np.sort(rng.permutation(numbers)[:_QUERIES])].astype(np.float32)
    if queries is None and exact.centre is not None:
        sample = sample + exact.centre
    return sample, f"{len(sample):,} {'labels' if queries is None else 'rows'}"


def time_queries(index: LabelSearchIndex, queries: Float32, threads: int | None) -> tuple[float, float]:
    """Return the median milliseconds of single queries, of this index and of exact search, run in turns."""
    n, times = min(len(queries), TIMED), (list[float](), list[float]())
    for lo in range(0, n, _ROUND):
        for search, durations in zip((index.top_k, index.exact.top_k), times, strict=True):
            for i in range(lo, min(lo + _ROUND, n)):
                start = time.perf_counter()
                search(queries[i : i + 1], MEASURED_AT, threads=threads)
                durations.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[0])), float(np.median(times[1]))


def tune_effort(
    index: LabelSearchIndex,
    queries: Float32,
    target: float,
    settings: Iterable[dict[str, int]],
    efforts: Sequence[int],
    threads: int | None,
) -> None:
    """Apply the first setting that reaches the target on half of the queries; measure it on the others.

    A setting holds attributes of the index. The curve then covers all efforts, ascending.
    """
    index.target_recall = target
    half, k = len(queries) // 2, MEASURED_AT
    tuning_queries, test_queries = queries[:half], queries[half:]
    index.queries = f"{len(test_queries):,} of {index.queries}"
    last = [index.exact.top_k(sample, k, threads=threads)[1][:, -1:] for sample in (tuning_queries, test_queries)]

    def compute_recall(sample: Float32, limit: Float32) -> float:
        return float((index.top_k(sample, k, threads=threads)[1] >= limit).mean())

    for setting in settings:
        vars(index).update(setting)
        if compute_recall(tuning_queries, last[0]) >= target:
            break
    chosen_effort, exact = index.effort, list[float]()
    for effort in efforts:
        index.effort = effort
        duration, exact_duration = time_queries(index, test_queries, threads)
        index.curve.append(EffortPoint(effort, compute_recall(test_queries, last[1]), duration))
        exact.append(exact_duration)
        if effort >= chosen_effort and index.curve[-1].recall > 0.999:
            break
    index.effort = chosen_effort
    index.recall = next(point.recall for point in index.curve if point.effort == chosen_effort)
    index.exact_milliseconds = float(np.median(exact))
