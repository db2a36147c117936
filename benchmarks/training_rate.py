"""Training rate against what the machine allows, in one run: `python -m benchmarks.training_rate [S|tiny] [--json]`.

The ceiling of one thread is 1 / (nnz * t_gather + draws * t_label + update_share * (nnz + 2) * t_scatter): the times to
read and add one feature row, to score one label, and to read, change and write one feature row, each taken here on the
task's own index stream and table sizes, with draws and update share as counted in the run. The ceiling of two threads
takes the three times with two threads at work, rows to be written parted by owner. The hand-fused loop is Algorithm 1
written as one function for this one case (sparse rows, dot, single label, dim 100).
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from benchmarks.machine import describe_machine, machine, verdict
from benchmarks.visterm_task import load
from wsabie.core.validation import check_features
from wsabie.embedding import tables
from wsabie.kernels.compiler import FLAGS
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.rank_losses import compute_rank_losses
from wsabie.training.training_data import build_targets

DIM = 100
BARS = {
    "sequential / ceiling of 1": 0.75,
    "deterministic 2 / ceiling of 2": 0.65,
    "deterministic 2 / Hogwild 2": 0.8,
    "sequential / hand-fused": 0.95,
}
ROUNDS = 7


@numba.njit(**FLAGS)
def gather(indptr, indices, data, table, lo, hi, out, width):
    for i in range(lo, hi):
        for k in range(16 * len(width)):
            out[k] = 0
        p, end = indptr[i], indptr[i + 1]
        while p + 4 <= end:
            a, b, c, d = table[indices[p]], table[indices[p + 1]], table[indices[p + 2]], table[indices[p + 3]]
            s, t, u, v = data[p], data[p + 1], data[p + 2], data[p + 3]
            for k in range(16 * len(width)):
                out[k] += s * a[k] + t * b[k] + u * c[k] + v * d[k]
            p += 4
        while p < end:
            a, s = table[indices[p]], data[p]
            for k in range(16 * len(width)):
                out[k] += s * a[k]
            p += 1


@numba.njit(**FLAGS)
def label_dots(ids, table, lo, hi, q, width):
    best = np.float32(-1e9)
    for n in range(lo, hi):
        row = table[ids[n]]
        total = np.float32(0)
        for k in range(16 * len(width)):
            total += q[k] * row[k]
        best = max(best, total)
    return best


@numba.njit(**FLAGS)
def scatter(indptr, indices, data, table, lo, hi, g, first, last, width):
    """Rows first..last-1 only: with two threads each writes its own share."""
    for i in range(lo, hi):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if first <= j < last:
                row, s = table[j], data[p]
                for k in range(16 * len(width)):
                    row[k] += s * g[k]


@numba.njit(**FLAGS)
def run_fused_loop(indptr, indices, data, y, V, W, order, losses, rate, max_norm, q, g, width):
    """Algorithm 1 by hand: encode, search, two label steps, feature steps, projections."""
    n_labels = len(W)
    state = np.uint64(88172645463325252)
    limit2 = max_norm * max_norm
    updates = 0
    for position in range(len(order)):
        i = order[position]
        for k in range(16 * len(width)):
            q[k] = 0
        for p in range(indptr[i], indptr[i + 1]):
            row, x = V[indices[p]], data[p]
            for k in range(16 * len(width)):
                q[k] += x * row[k]
        positive = W[y[i]]
        fy = np.float32(0)
        for k in range(16 * len(width)):
            fy += q[k] * positive[k]
        n_drawn, v = 0, -1
        while n_drawn < min(1000, n_labels - 1):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            c = np.int64(((state >> np.uint64(32)) * np.uint64(n_labels)) >> np.uint64(32))
            if c == y[i]:
                continue
            n_drawn += 1
            row = W[c]
            fc = np.float32(0)
            for k in range(16 * len(width)):
                fc += q[k] * row[k]
            if fc > fy - np.float32(1):
                v = c
                break
        if v < 0:
            continue
        updates += 1
        step = rate * losses[max((n_labels - 1) // n_drawn, 1)]
        negative = W[v]
        pp, nn = np.float32(0), np.float32(0)
        for k in range(16 * len(width)):
            g[k] = positive[k] - negative[k]
            positive[k] += step * q[k]
            negative[k] -= step * q[k]
            pp += positive[k] * positive[k]
            nn += negative[k] * negative[k]
        if pp > limit2:
            for k in range(16 * len(width)):
                positive[k] *= max_norm / math.sqrt(pp)
        if nn > limit2:
            for k in range(16 * len(width)):
                negative[k] *= max_norm / math.sqrt(nn)
        for p in range(indptr[i], indptr[i + 1]):
            row, x = V[indices[p]], step * data[p]
            norm2 = np.float32(0)
            for k in range(16 * len(width)):
                row[k] += x * g[k]
                norm2 += row[k] * row[k]
            if norm2 > limit2:
                for k in range(16 * len(width)):
                    row[k] *= max_norm / math.sqrt(norm2)
    return updates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="S")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    task = load(arguments.task)
    result = {"schema": 1, "machine": machine(), "task": arguments.task, "dim": DIM, **measure(task.X, task.y)}
    print(json.dumps(result, indent=1) if arguments.json else as_text(result))


def measure(X: Any, y: Any) -> dict[str, Any]:
    """Medians over rounds in which everything takes its turn, because a machine changes in a minute."""
    Wsabie(dim=DIM, epochs=1, threads=1, deterministic=False).fit(X[:64], np.arange(64), sample_weight=None)  # compiles
    inputs = model_inputs(X, y)
    rounds = [one_round(X, y, inputs) for _ in range(ROUNDS + 1)][1:]
    ratios = [ratios_of(r) for r in rounds]
    return {
        "rounds": ROUNDS,
        "rates": {name: float(np.median([r["rates"][name] for r in rounds])) for name in rounds[0]["rates"]},
        "ceilings": {
            threads: {key: float(np.median([r["ceilings"][threads][key] for r in rounds])) for key in terms}
            for threads, terms in rounds[0]["ceilings"].items()
        },
        "ratios": {name: float(np.median([r[name] for r in ratios])) for name in ratios[0]},
        "ranges": {name: [min(r[name] for r in ratios), max(r[name] for r in ratios)] for name in ratios[0]},
    }


def one_round(X: Any, y: Any, inputs: Any) -> dict[str, Any]:
    """Pairs per second of everything, and the terms of the ceilings."""
    ours = {
        "sequential, 1 thread": first_epoch(X, y, threads=1, deterministic=False),
        "deterministic, 1 thread": first_epoch(X, y, threads=1, deterministic=True),
        "Hogwild, 2 threads": first_epoch(X, y, threads=2, deterministic=False),
        "deterministic, 2 threads": first_epoch(X, y, threads=2, deterministic=True),
    }
    rates = {name: stats.pairs_per_second for name, stats in ours.items()}
    rates["hand-fused loop, 1 thread"] = fused_rate(inputs, y)
    epoch_stats = ours["sequential, 1 thread"]
    return {"rates": rates, "ceilings": {n: ceiling(inputs, int(y.max()) + 1, n, epoch_stats) for n in (1, 2)}}


def ceiling(inputs: Any, n_labels: int, threads: int, epoch_stats: EpochStats) -> dict[str, float]:
    """Return the machine's ceiling with its terms."""
    nnz = len(inputs.indices) / inputs.n_rows
    terms = machine_terms(inputs, n_labels, threads)
    seconds = (
        nnz * terms["t_gather"]
        + epoch_stats.mean_draws * terms["t_label"]
        + epoch_stats.violation_rate * (nnz + 2) * terms["t_scatter"]
    )
    counts = {"nnz": nnz, "draws": epoch_stats.mean_draws, "update_share": epoch_stats.violation_rate}
    return {**terms, **counts, "pairs_per_second": 1 / seconds}


def ratios_of(round_figures: dict[str, Any]) -> dict[str, float]:
    """The ratios of one round."""
    rates = round_figures["rates"]
    one_thread, two = (round_figures["ceilings"][n]["pairs_per_second"] for n in (1, 2))
    return {
        "sequential / ceiling of 1": rates["sequential, 1 thread"] / one_thread,
        "deterministic 1 / ceiling of 1": rates["deterministic, 1 thread"] / one_thread,
        "deterministic 2 / ceiling of 2": rates["deterministic, 2 threads"] / two,
        "deterministic 2 / Hogwild 2": rates["deterministic, 2 threads"] / rates["Hogwild, 2 threads"],
        "deterministic 2 / deterministic 1": rates["deterministic, 2 threads"] / rates["deterministic, 1 thread"],
        "sequential / hand-fused": rates["sequential, 1 thread"] / rates["hand-fused loop, 1 thread"],
    }


def first_epoch(X: Any, y: Any, **options: Any) -> EpochStats:
    """The figures of a first epoch."""
    return Wsabie(dim=DIM, epochs=1, learning_rate=0.03, max_norm=1.5, **options).fit(X, y).history_[0]


def model_inputs(X: Any, y: Any) -> Any:
    """The scaled rows, as the kernels see them."""
    model = Wsabie(dim=8, epochs=1, threads=1).fit(X[:2000], y[:2000])
    return model.scaling_(check_features(X))


def machine_terms(inputs: Any, n_labels: int, threads: int) -> dict[str, float]:
    """Seconds per row of the three kinds of access, per thread at work, best of a few."""
    rng = np.random.default_rng(0)
    V, W = (tables.draw_gaussian(n, DIM, DIM**-0.5, rng) for n in (int(inputs.indices.max()) + 1, n_labels))
    width = (None,) * (V.shape[1] // 16)
    rows = min(inputs.n_rows, 20_000)
    nnz = int(inputs.indptr[rows])
    bounds = np.linspace(0, rows, threads + 1).astype(int)
    load_ = np.cumsum(np.bincount(inputs.indices, minlength=len(V)))
    owners = [0, *np.searchsorted(load_, np.arange(1, threads) * load_[-1] / threads), len(V)]
    ids = rng.integers(0, n_labels, 2_000_000)
    parts = np.linspace(0, len(ids), threads + 1).astype(int)
    out = np.zeros((threads, V.shape[1] + 64), np.float32)
    q = rng.standard_normal(V.shape[1]).astype(np.float32) * np.float32(1e-6)

    def gathers(t: int) -> None:
        gather(*inputs, V, bounds[t], bounds[t + 1], out[t], width)

    def labels(t: int) -> None:
        label_dots(ids, W, parts[t], parts[t + 1], q, width)

    def scatters(t: int) -> None:
        scatter(*inputs, V, 0, rows, q, owners[t], owners[t + 1], width)

    return {
        "t_gather": best(gathers, threads) / nnz,
        "t_label": best(labels, threads) / len(ids),
        "t_scatter": best(scatters, threads) / nnz,
    }


def best(work: Callable[[int], None], threads: int) -> float:
    """The shorter wall time of two of `work` in all threads at once."""
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(2):
            started = time.perf_counter()
            list(pool.map(work, range(threads)))
            times.append(time.perf_counter() - started)
    return min(times)


def fused_rate(inputs: Any, y: Any) -> float:
    """Pairs per second of the hand-fused loop in a first epoch."""
    n_labels = int(y.max()) + 1
    losses = compute_rank_losses("precision", n_labels)
    labels = build_targets_labels(y, n_labels)
    rng = np.random.default_rng(0)
    V, W = (tables.draw_gaussian(n, DIM, DIM**-0.5, rng) for n in (int(inputs.indices.max()) + 1, n_labels))
    scratch = np.zeros((2, V.shape[1]), np.float32)
    order = rng.permutation(inputs.n_rows)
    width = (None,) * (V.shape[1] // 16)
    started = time.perf_counter()
    run_fused_loop(*inputs, labels, V, W, order, losses, np.float32(0.03), np.float32(1.5), *scratch, width)
    return inputs.n_rows / (time.perf_counter() - started)


def build_targets_labels(y: Any, n_labels: int) -> Any:
    from scipy.sparse import csr_matrix

    Y = csr_matrix((np.ones(len(y), np.int8), y, np.arange(len(y) + 1)), shape=(len(y), n_labels))
    return build_targets(Y, None, "mean").labels


def as_text(result: dict[str, Any]) -> str:
    lines = [
        describe_machine(),
        f"task {result['task']}, dim {result['dim']}, first epoch, medians of {result['rounds']} rounds",
    ]
    lines += [f"  {name:<26} {value:>10,.0f} pairs/s" for name, value in result["rates"].items()]
    for threads, terms in result["ceilings"].items():
        lines.append(
            f"  ceiling, {threads} thread(s)        {terms['pairs_per_second']:>10,.0f} pairs/s = 1 / "
            f"({terms['nnz']:.0f} x "
            f"{terms['t_gather'] * 1e9:.1f} ns + {terms['draws']:.1f} x {terms['t_label'] * 1e9:.1f} ns + "
            f"{terms['update_share']:.2f} x {terms['nnz'] + 2:.0f} x {terms['t_scatter'] * 1e9:.1f} ns)"
        )
    for name, value in result["ratios"].items():
        low, high = result["ranges"][name]
        told_bar = f"  {verdict(value, least=BARS[name])}" if name in BARS else ""
        lines.append(f"  {name:<34} {value:.2f}  ({low:.2f} to {high:.2f}){told_bar}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
