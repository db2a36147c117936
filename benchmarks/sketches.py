"""Cost of a drawn label with sketches and without: `python -m benchmarks.sketches`.

Random points. The threshold of a query is the score that one label in a hundred exceeds, as late in training, or one in
two, as at the beginning; a search ends after a hundred draws. Nanoseconds a draw on one thread, the least of ROUNDS by
turns: the tables lie in a cache that others may use too. `--out FILE` gets a JSON document.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.machine import describe_machine, machine
from wsabie.embedding.joint_space import JointSpace
from wsabie.kernels.primitives.random_numbers import start_stream
from wsabie.kernels.training import warp
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import SamplerConfig, can_use_sketches, create_sampler
from wsabie.training.trainer import EpochRunner
from wsabie.training.training_data import TrainingData, build_targets

LABELS = (4_000, 16_000, 50_000, 109_444)
CASES = [(dim, n_labels, 0.01) for dim in (64, 100, 200) for n_labels in LABELS] + [(100, LABELS[-1], 0.5)]
QUERIES, SEARCHES, TRIALS, ROUNDS = 512, 4_000, 100, 9


@numba.njit(nogil=True)
def search(targets, labels, config, sampler, queries, thresholds, first, n, counters, width):
    """Search for a violator n times; how many labels were drawn."""
    n_draws = 0
    for t in range(first, first + n):
        i = t % len(queries)
        counter, n_negatives = start_stream(config.seed, config.epoch, t), targets.n_labels - 1
        n_draws += warp.find_violator(
            targets, labels, config, sampler, i, queries[i], thresholds[i], n_negatives, counter, counters, width
        )[1]
    return n_draws


def measure_search(dim: int, n_labels: int, violate: float) -> dict[str, Any]:
    """Time both ways on the same points, of which this share violates."""
    rng = np.random.default_rng(0)
    space = JointSpace.random(QUERIES, n_labels, dim, "dot", rng)
    positives = csr_matrix((np.ones(QUERIES, np.int8), (np.arange(QUERIES), rng.integers(0, n_labels, QUERIES))))
    positives.resize(QUERIES, n_labels)
    targets = build_targets(positives, None, "mean")
    settings = Wsabie(max_sampled=TRIALS, threads=1)._resolve_settings(TrainingRows(None, positives).shape)
    config = EpochRunner(settings, space, TrainingData([])).build_step_config(space, 0)
    thresholds = np.quantile(space.features @ space.labels.T, 1 - violate, axis=1).astype(np.float32)
    width, counters = space.width, np.zeros(warp.N_COUNTERS, np.int64)
    best: dict[bool, float] = dict.fromkeys((False, True), float("inf"))
    with KernelThreads(1) as threads:
        for turn in range(ROUNDS + 1):
            for sketched in best:
                sampling = create_sampler(SamplerConfig(), space, np.ones(n_labels, np.int64), 1, sketched)
                sampling.refresh(space, threads)
                search_arguments = (
                    targets,
                    sampling.label_arrays(space),
                    config,
                    sampling.per_thread[0],
                    space.features,
                    thresholds,
                )
                started = time.perf_counter()
                n_draws = search(*search_arguments, turn * SEARCHES, SEARCHES if turn else 1, counters, width)
                seconds = time.perf_counter() - started
                best[sketched] = min(best[sketched], seconds / n_draws * 1e9) if turn else best[sketched]
    nanoseconds = {"ns": best[False], "ns_sketched": best[True], "ratio": best[True] / best[False]}
    size = {"dim": dim, "labels": n_labels, "violate": violate, "table_mb": round(space.labels.nbytes / 1e6, 1)}
    return (
        size
        | {name: round(value, 2) for name, value in nanoseconds.items()}
        | {"by_default": can_use_sketches(SamplerConfig(), space)}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    print(describe_machine())
    print(f"{'dim':>5}{'labels':>10}{'violate':>9}{'MB':>8}{'ns a draw':>12}{'sketched':>10}{'ratio':>7}  by default")
    rows = []
    for case in CASES:
        row = measure_search(*case)
        rows.append(row)
        print(
            f"{row['dim']:>5}{row['labels']:>10,}{row['violate']:>9}{row['table_mb']:>8}{row['ns']:>12}{row['ns_sketched']:>10}"
            f"{row['ratio']:>7}  {'sketched' if row['by_default'] else ''}",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(1), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
