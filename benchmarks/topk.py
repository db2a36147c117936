"""Exact top k against the BLAS product alone, in one run, by turns: `python -m benchmarks.topk [--json]`.

Bars: 1,000 rows at most 1.3 times the product of the same arrays with the same threads, written into a ready
array; one row, median of 1,000 calls, at most 1.5 times the matrix-vector product plus 100 us. Memory is what
a search allocates beyond its arguments at its peak.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine, told
from wsabie.base.machine import available_cores
from wsabie.models.wsabie import Wsabie
from wsabie.search.exact import ExactIndex, top_k

N_LABELS, DIM, ROWS, K = 16_000, 100, 1_000, 10
ROUNDS, REPEATS, CALLS = 20, 40, 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N_LABELS, DIM)).astype(np.float32)
    queries = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    counts = sorted({1, available_cores()})
    found = [measure(table, queries, threads) for threads in counts]
    result = {
        "schema": 1,
        "machine": machine(),
        "labels": N_LABELS,
        "dim": DIM,
        "rows": ROWS,
        "k": K,
    }
    result |= {"runs": found, "model_rank_us": 1e6 * model_rank(rng), "memory": memory(table, queries)}
    print(json.dumps(result, indent=1) if arguments.json else as_text(result))


def measure(table: Any, queries: Any, threads: int) -> dict[str, Any]:
    """Many rows and one row, with `threads` threads for BLAS and for the scan."""
    out, one_out = np.empty((ROWS, N_LABELS), np.float32), np.empty(N_LABELS, np.float32)
    index, one, vector = ExactIndex(table), queries[:1], queries[0]
    with threadpool_limits(threads, user_api="blas"):
        product, search = alternate(
            lambda: np.matmul(queries, table.T, out=out),
            lambda: top_k(queries, table, K, threads=threads),
            REPEATS,
        )
        one_product, one_search = alternate(
            lambda: np.matmul(table, vector, out=one_out),
            lambda: index.top_k(one, K, threads=threads),
            CALLS,
        )
    bar = 1.5 * one_product + 100e-6
    return {
        "threads": threads,
        "product_ms": 1e3 * product,
        "search_ms": 1e3 * search,
        "ratio": search / product,
        "ratio_bar": 1.3,
        "one_product_us": 1e6 * one_product,
        "one_search_us": 1e6 * one_search,
        "one_bar_us": 1e6 * bar,
        "met": search <= 1.3 * product and one_search <= bar,
    }


def model_rank(rng: np.random.Generator) -> float:
    """Median seconds of `rank` for one row of 244 non-zeros: checked, scaled, encoded, searched."""
    indices = np.concatenate([rng.choice(10_000, 244, replace=False) for _ in range(ROWS)])
    X = csr_matrix((np.ones(len(indices)), indices, np.arange(0, len(indices) + 1, 244)), shape=(ROWS, 10_000))
    names = [f"label {number}" for number in range(N_LABELS)]
    model = Wsabie(DIM, epochs=1).fit(X, rng.integers(0, N_LABELS, ROWS), label_names=names)
    found = []
    for i in range(CALLS):
        row = X[i % ROWS]
        start = time.perf_counter()
        model.rank(row, K)
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def alternate(a: Callable[[], Any], b: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median seconds of a and of b, in rounds by turns, so that both meet the same neighbours on the machine.

    Before each round the threads of BLAS get time to fall asleep: they spin for some 25 ms after a product, on the
    cores of whoever comes next.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, found in zip((a, b), times, strict=True):
            time.sleep(0.1)
            work()
            for _ in range(repeats // ROUNDS):
                start = time.perf_counter()
                work()
                found.append(time.perf_counter() - start)
    return float(np.median(times[0])), float(np.median(times[1]))


def memory(table: Any, queries: Any) -> dict[str, float]:
    """Peak MiB allocated by a search, by number of rows; the whole matrix of scores for comparison."""
    peaks = {}
    for rows in (1, ROWS, 4 * ROWS):
        many = np.resize(queries, (rows, DIM))
        tracemalloc.start()
        top_k(many, table, K)
        peaks[f"{rows}_rows_mib"] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return peaks | {f"all_scores_of_{4 * ROWS}_rows_mib": 4 * ROWS * N_LABELS * 4 / 2**20}


def as_text(result: dict[str, Any]) -> str:
    lines = [f"top {K} of {N_LABELS:,} labels, D = {DIM}; {told()}"]
    for run in result["runs"]:
        verdict = "met" if run["met"] else "MISSED"
        lines.append(
            f"{run['threads']} thread(s): {run['search_ms']:.1f} ms against {run['product_ms']:.1f} ms for the product,"
            f" ratio {run['ratio']:.2f} (bar {run['ratio_bar']}); one row {run['one_search_us']:.0f} us against "
            f"{run['one_product_us']:.0f} us (bar {run['one_bar_us']:.0f} us): {verdict}"
        )
    lines.append(f"one row through a model's rank, encoding and all: {result['model_rank_us']:.0f} us")
    return "\n".join([*lines, *(f"{name}: {value:.1f}" for name, value in result["memory"].items())])


if __name__ == "__main__":
    main()
