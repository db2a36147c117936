"""Best pairs of labels among all of them, on one core: `python -m benchmarks.label_pairs [S M] [--json]`.

A quick model of each task gives the scores of two held-out pictures against all labels, with edges of several weights.
Bars at weight 0.1, with less than 50 MB: top 10 of a query in at most 10 ms for a million pairs (S), in at most 50 ms
for 256 million (M). Beside them: the scores made as a share of all pairs, brute force by blocks of BLAS products, what
happens to scores that no model gives, and ranks of the true pair of 50,000 queries.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import describe_machine, machine, verdict
from benchmarks.tasks import sides
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.search.label_pairs import LabelPairIndex

DIM, K, QUERIES, RANKED = 100, 10, 50, 50_000
MODELS = {"S": [(1.0, 5)], "M": [(1.0, 3), (1.5, 3)]}
"""Norm limits and epochs by task."""
WEIGHTS = (0.1, 1.0, -1.0, 0.0)
BARS = {"S": 10.0, "M": 50.0}
MEGABYTES = 50.0
BLOCK = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="*", default=["S", "M"], help="S (1,000 labels) or M (16,000)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not set(options.task) <= set(MODELS):
        parser.error("choose of S and M")
    runs: list[dict[str, Any]] = []
    for name in options.task:
        for max_norm, epochs in MODELS[name]:
            runs.extend(measure_task(name, max_norm, epochs))
    result = {"schema": 1, "machine": machine(1), "dim": DIM, "k": K, "runs": runs}
    print(json.dumps(result, indent=1) if options.json else "\n".join([describe_machine(), *map(as_text, runs)]))


def measure_task(name: str, max_norm: float, epochs: int) -> list[dict[str, Any]]:
    """All that is measured with one model."""
    task = sides(name)
    model = Wsabie(DIM, max_norm=max_norm, epochs=epochs).fit(task.fit.X, task.fit.Y)
    W, points = model.label_vectors, model.transform(task.test.X)
    rng, n = np.random.default_rng(0), len(W)
    rows = rng.integers(len(points), size=(2, QUERIES))
    a, b = (points[side] @ W.T for side in rows)
    told_of = {"task": name, "labels": n, "max_norm": max_norm}
    with threadpool_limits(1, user_api="blas"):
        searches = [time_search(W, weight, a, b) | {"scores": "model"} for weight in WEIGHTS]
        if max_norm == 1:
            normal = rng.normal(size=(2, 1, n)).astype(np.float32)
            nothing = np.zeros((1, n), np.float32)
            searches.append(time_search(W, 0.1, *normal) | {"scores": "normal"})
            searches.append(time_search(W, 0.1, nothing, nothing) | {"scores": "all 0"})
            searches.append(
                time_search(W, 0.1, nothing, nothing, same=False) | {"scores": "all 0, no label with itself"}
            )
            searches.append(time_search(np.ones_like(W), 0.1, nothing, nothing) | {"scores": "all 0, all labels equal"})
        if name == "S":
            searches.append(time_ranks(W, points, task.test.Y, rng))
    for run in searches:
        bound = run.get("scores") == "model" and run["weight"] == 0.1
        run["bar_ms"] = BARS[name] if bound else None
    return [told_of | run for run in searches]


def time_search(W: Any, weight: float, a: Any, b: Any, *, same: bool = True) -> dict[str, Any]:
    """Time, memory and pairs scored, query by query; and brute force once."""
    pairs = LabelPairIndex(W, weight, same=same)
    times, n_scored = [], []
    pairs.top(a[:1], b[:1], K, threads=1)
    for q in range(len(a)):
        _, seconds = time_work(lambda q=q: pairs.top(a[q : q + 1], b[q : q + 1], K, threads=1))  # type: ignore[misc]
        times.append(1e3 * seconds)
        n_scored.append(int(pairs.n_scored_[0]))
    best, seconds = time_work(lambda: brute(W, weight, a[0], b[0], same))
    scores = pairs.top(a[:1], b[:1], K, threads=1)[2][0]
    if not np.allclose(scores, best, atol=1e-4):
        raise SystemExit(f"brute force finds {best}, the search {scores}")
    tracemalloc.start()
    LabelPairIndex(W, weight, same=same).top(a[:1], b[:1], K, threads=1)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return {
        "weight": weight,
        "median_ms": float(np.median(times)),
        "largest_ms": max(times),
        "batch_ms": 1e3 * time_work(lambda: pairs.top(a, b, K, threads=1))[1] / len(a),
        "share": float(np.mean(n_scored)) / len(W) ** 2,
        "brute_ms": 1e3 * seconds,
        "ratio": float(np.median(times)) / (1e3 * seconds),
        "megabytes": peak,
    }


def brute(W: Any, weight: float, a: Any, b: Any, same: bool) -> Any:
    """The K best scores of all pairs, by products of blocks of objects with all parts."""
    best = np.full(K, -np.inf, np.float32)
    for first in range(0, len(W), BLOCK):
        scores = (weight * W[first : first + BLOCK]) @ W.T
        scores += b
        scores += a[first : first + BLOCK, None]
        if not same:
            scores[np.arange(len(scores)), first + np.arange(len(scores))] = -np.inf
        near = scores[scores >= best[-1]]  # few, but for the first block
        best = -np.sort(-np.concatenate([best, np.partition(near, -K)[-K:] if len(near) > K else near]))[:K]
    return best


def time_ranks(W: Any, points: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Seconds for the ranks of RANKED true pairs, in batches as a validation would."""
    pairs, seconds, cpu, total = LabelPairIndex(W, 0.1), 0.0, 0.0, 0
    for _ in range(RANKED // 5000):
        x, z = rng.integers(len(points), size=(2, 5000))
        a, b = points[x] @ W.T, points[z] @ W.T
        if not seconds:
            pairs.counts(a[:1], b[:1], y[x[:1]], y[z[:1]])
        cpu_start = time.process_time()
        label_ranks, more = time_work(lambda a=a, b=b, x=x, z=z: pairs.counts(a, b, y[x], y[z], threads=1).ranks)  # type: ignore[misc]
        cpu += time.process_time() - cpu_start
        seconds, total = seconds + more, total + int(label_ranks.sum())
    return {"weight": 0.1, "ranks": RANKED, "seconds": seconds, "cpu_seconds": cpu, "mean_rank": total / RANKED}


def time_work(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    value = work()
    return value, time.perf_counter() - start


def as_text(run: dict[str, Any]) -> str:
    head = f"{run['labels']:,} labels, norms to {run['max_norm']}, weight {run['weight']}"
    if "ranks" in run:
        return (
            f"{head}: ranks of {run['ranks']:,} pairs in {run['seconds']:.1f} s, {run['cpu_seconds']:.1f} s of the "
            f"processor; mean {run['mean_rank']:,.0f}"
        )
    met = ""
    if run["bar_ms"]:
        met = f"; {verdict(run['median_ms'], most=run['bar_ms'])}, memory {verdict(run['megabytes'], most=MEGABYTES)}"
    return (
        f"{head}, scores {run['scores']}: {run['median_ms']:.2f} ms (at most {run['largest_ms']:.2f}, in a batch "
        f"{run['batch_ms']:.2f}), {run['share']:.2%} of the pairs, {run['megabytes']:.1f} MB, brute force "
        f"{run['brute_ms']:,.0f} ms, ratio {run['ratio']:.4f}{met}"
    )


if __name__ == "__main__":
    main()
