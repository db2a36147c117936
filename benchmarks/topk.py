"""Exact top k against the BLAS product alone, in one run, by turns: `python -m benchmarks.topk [--labels N] [--json]`.

Bars: 1,000 rows at most 1.3 times the product of the same arrays with the same threads, written into a ready
array (from 100,000 labels on 1.15 times); one row, median of 1,000 calls, at most 1.5 times the matrix-vector product
plus 100 us. The index of bytes (`wsabie index --kind int8`) has the same answer and takes its turn with both. Memory
is what a search allocates beyond its arguments at its peak.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from benchmarks.machine import describe_machine, machine
from wsabie.core.machine import count_available_cores
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.search.exact_index import ExactIndex, find_top_k
from wsabie.search.screening_index import ScreeningIndex

N_LABELS, DIM, ROWS, K = 16_000, 100, 1_000, 10
ROUNDS, REPEATS, CALLS = 20, 40, 1_000
LARGE, LARGE_ROUNDS, LARGE_REPEATS, LARGE_CALLS = 100_000, 10, 10, 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=N_LABELS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rng, n_labels = np.random.default_rng(0), arguments.labels
    table = rng.normal(size=(n_labels, DIM)).astype(np.float32)
    queries = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    counts = sorted({1, count_available_cores()})
    runs = [measure(table, queries, threads) for threads in counts]
    result = {"schema": 1, "machine": machine(), "labels": n_labels, "dim": DIM, "rows": ROWS, "k": K}
    result |= {"runs": runs, "memory": memory(table, queries)}
    if n_labels < LARGE:
        result["model_rank_us"] = 1e6 * model_rank(rng, n_labels)
    print(json.dumps(result, indent=1) if arguments.json else as_text(result))


def measure(table: Any, queries: Any, threads: int) -> dict[str, Any]:
    """Many rows and one row, with `threads` threads for BLAS and for the scan."""
    large = len(table) >= LARGE
    rounds, repeats, calls = (LARGE_ROUNDS, LARGE_REPEATS, LARGE_CALLS) if large else (ROUNDS, REPEATS, CALLS)
    out, one_out = np.empty((ROWS, len(table)), np.float32), np.empty(len(table), np.float32)
    index, single_query, vector = ExactIndex(table), queries[:1], queries[0]
    screened = ScreeningIndex.build(index, queries=queries)
    with threadpool_limits(threads, user_api="blas"):
        product, search, by_bytes = alternate(
            [
                lambda: np.matmul(queries, table.T, out=out),
                lambda: find_top_k(queries, table, K, threads=threads),
                lambda: screened.top_k(queries, K, threads=threads),
            ],
            rounds,
            repeats // rounds,
        )
        one_product, one_search, one_by_bytes = alternate(
            [
                lambda: np.matmul(table, vector, out=one_out),
                lambda: index.top_k(single_query, K, threads=threads),
                lambda: screened.top_k(single_query, K, threads=threads),
            ],
            rounds,
            calls // rounds,
        )
    bar, ratio_bar = 1.5 * one_product + 100e-6, 1.15 if large else 1.3
    return {
        "threads": threads,
        "product_ms": 1e3 * product,
        "search_ms": 1e3 * search,
        "ratio": search / product,
        "ratio_bar": ratio_bar,
        "int8_ms": 1e3 * by_bytes,
        "int8_ratio": by_bytes / product,
        "one_product_us": 1e6 * one_product,
        "one_search_us": 1e6 * one_search,
        "one_bar_us": 1e6 * bar,
        "one_int8_us": 1e6 * one_by_bytes,
        "met": search <= ratio_bar * product and one_search <= bar,
    }


def model_rank(rng: np.random.Generator, n_labels: int) -> float:
    """Median seconds of `rank` for one row of 244 non-zeros: checked, scaled, encoded, searched."""
    indices = np.concatenate([rng.choice(10_000, 244, replace=False) for _ in range(ROWS)])
    X = csr_matrix((np.ones(len(indices)), indices, np.arange(0, len(indices) + 1, 244)), shape=(ROWS, 10_000))
    names = [f"label {number}" for number in range(n_labels)]
    model = Wsabie(DIM, epochs=1).fit(X, rng.integers(0, n_labels, ROWS), label_names=names)
    times = []
    for i in range(CALLS):
        row = X[i % ROWS]
        start = time.perf_counter()
        model.rank(row, K)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def alternate(works: Sequence[Callable[[], Any]], rounds: int, repeats: int) -> list[float]:
    """Median seconds of each, in rounds by turns, so that all meet the same neighbours on the machine.

    Before each round the threads of BLAS get time to fall asleep: they spin for some 25 ms after a product, on the
    cores of whoever comes next.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, work_times in zip(works, times, strict=True):
            time.sleep(0.1)
            work()
            for _ in range(repeats):
                start = time.perf_counter()
                work()
                work_times.append(time.perf_counter() - start)
    return [float(np.median(work_times)) for work_times in times]


def memory(table: Any, queries: Any) -> dict[str, float]:
    """Peak MiB allocated by a search, by number of rows; the whole matrix of scores for comparison."""
    peaks = {}
    for rows in (1, ROWS, 4 * ROWS):
        many = np.resize(queries, (rows, DIM))
        tracemalloc.start()
        find_top_k(many, table, K)
        peaks[f"{rows}_rows_mib"] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return peaks | {f"all_scores_of_{4 * ROWS}_rows_mib": 4 * ROWS * len(table) * 4 / 2**20}


def as_text(result: dict[str, Any]) -> str:
    lines = [f"top {K} of {result['labels']:,} labels, D = {DIM}; {describe_machine()}"]
    for run in result["runs"]:
        verdict = "met" if run["met"] else "MISSED"
        lines.append(
            f"{run['threads']} thread(s): {run['search_ms']:.1f} ms against {run['product_ms']:.1f} ms for the product,"
            f" ratio {run['ratio']:.2f} (bar {run['ratio_bar']}); one row {run['one_search_us']:.0f} us against "
            f"{run['one_product_us']:.0f} us (bar {run['one_bar_us']:.0f} us): {verdict}; by the index of bytes "
            f"{run['int8_ms']:.1f} ms, ratio {run['int8_ratio']:.2f}, and {run['one_int8_us']:.0f} us"
        )
    if "model_rank_us" in result:
        lines.append(f"one row through a model's rank, encoding and all: {result['model_rank_us']:.0f} us")
    return "\n".join([*lines, *(f"{name}: {value:.1f}" for name, value in result["memory"].items())])


if __name__ == "__main__":
    main()
