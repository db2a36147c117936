"""Cost and quality of negative samplers: `python -m benchmarks.samplers WHAT`.

draw       ns per draw of every sampler at D = 100, and what it costs to look at the labels again
step       CPU time per pair of a step with the adaptive sampler, refresh included, over that of WARP's, search
           included, both on the space of a WARP run at its plateau
mirflickr  MIRFlickr-25k tags (--data FILE kv_dataset2.csv), pictures as ids, one tag of each held out: quality by
           CPU time of WARP, VSE-ens, Opt-AUC, hinge AUC and the hybrid, each with the same settings tried
M          the same on the generated visual-word task, fewer rows
ablation   MIRFlickr (without --data: M) with a search or one draw, uniform or adaptive, weighted by rank or not
paper      MIRFlickr with the settings and the ranges of Guo et al. 2018
study      generated tasks: what the gain depends on

All on one thread, with the plain sequential loop, in seconds of CPU; systems take turns. `--out FILE` gets one JSON
document, and FILE.jsonl every run as it ends.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks import negatives, sampler_study
from benchmarks.machine import describe_machine, machine, verdict
from wsabie.core.arrays import count_rows
from wsabie.embedding.joint_space import JointSpace
from wsabie.kernels.training import negative_samplers as kernels
from wsabie.models.base.training_rows import TrainingRows
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import SamplerConfig, create_sampler
from wsabie.training.trainer import Trainer

DIM = 100
LABELS = (1_000, 16_000, 109_444)
SAMPLERS: dict[str, dict[str, Any]] = {
    "uniform": {"name": "uniform"},
    "frequency": {"name": "frequency"},
    "adaptive, rank_scale .001": {"name": "adaptive", "rank_scale": 0.001},
    "adaptive, rank_scale .01": {"name": "adaptive", "rank_scale": 0.01},
    "adaptive, rank_scale .1": {"name": "adaptive", "rank_scale": 0.1},
    "full-sort": {"name": "full-sort"},
}
ROUNDS = 5
DRAW_BAR, STEP_BAR = 1000.0, 1.0


@numba.njit(nogil=True)
def draws(sampler: Any, labels: Any, queries: Any, n: int, width: Any) -> int:
    """Draw n labels, a query after the other; the sum, so that nothing is left out."""
    total = 0
    for t in range(n):
        q = queries[t % len(queries)]
        total += kernels.draw_label(sampler, labels, q, np.uint64(t) * np.uint64(0x9E3779B97F4A7C15), width)
    return total


def draw(_: Path | None) -> dict[str, Any]:
    """Medians over rounds."""
    figures: dict[str, Any] = {}
    for n_labels in LABELS:
        rng = np.random.default_rng(0)
        space = JointSpace.random(4096, n_labels, DIM, "dot", rng, {"V": 0.1, "W": 0.1})
        counts = rng.integers(1, 1000, n_labels)
        rounds_by_sampler = {name: [] for name in SAMPLERS}
        for name, options in SAMPLERS.items():
            rounds_by_sampler[name] = [
                _time_draws(SamplerConfig.from_value(options), space, counts) for _ in range(ROUNDS)
            ]
        for name, rounds in rounds_by_sampler.items():
            at = {key: float(np.median([r[key] for r in rounds])) for key in rounds[0]}
            figures.setdefault(str(n_labels), {})[name] = at
            print(f"{n_labels:>8,} labels  {name:<26}", _format_figures(at), flush=True)
    worst = max(at["ns_per_draw"] for name, at in figures[str(LABELS[-1])].items() if name.startswith("adaptive"))
    print(f"a draw of the adaptive sampler takes at most {worst:.0f} ns, {verdict(worst, most=DRAW_BAR)}")
    return figures


def _time_draws(sampler: SamplerConfig, space: JointSpace, counts: Any) -> dict[str, float]:
    sampling = create_sampler(sampler, space, counts, 1)
    with KernelThreads(1) as threads:
        sampling.refresh(space, threads)
        started = time.process_time()
        sampling.refresh(space, threads)
        refreshed = time.process_time() - started
    n = 50 if sampler.name == "full-sort" else 300_000
    sampler_arguments = sampling.per_thread[0], space.label_arrays(), space.features
    draws(*sampler_arguments, 10, space.width)
    started = time.process_time()
    draws(*sampler_arguments, n, space.width)
    figures = {"ns_per_draw": (time.process_time() - started) / n * 1e9}
    if sampling.period is not None:
        figures |= {
            "ranks": float(sampling.per_thread[0].highest_labels.shape[1]),
            "period_pairs": float(sampling.period),
            "refresh_ms": refreshed * 1e3,
            "refresh_ns_per_pair": refreshed / sampling.period * 1e9,
        }
    return figures


STEPS: dict[str, dict[str, Any]] = {
    "WARP": {},
    "VSE-ens": {"loss": "auc", "sampler": {"name": "adaptive", "rank_scale": 0.01}},
    "VSE-ens, rank_scale .1": {"loss": "auc", "sampler": {"name": "adaptive", "rank_scale": 0.1}},
    "VSE-ens, rank_scale .001": {"loss": "auc", "sampler": {"name": "adaptive", "rank_scale": 0.001}},
    "hybrid": {"sampler": {"name": "adaptive", "rank_scale": 0.01}},
    "hinge AUC": {"loss": "auc"},
}


def step(data: Path | None) -> dict[str, Any]:
    """One WARP run to its plateau, then epochs of every rule from there, by turns."""
    tasks: dict[str, Callable[[], Any]] = {
        "MIRFlickr, 6,677 tags, ids": lambda: negatives.mirflickr(data, 5),
        "MIRFlickr, 1,386 tags, ids": lambda: negatives.mirflickr(data, 20),
        "S": lambda: negatives.visterms("S", 15_000),
        "M": lambda: negatives.visterms("M", 30_000),
    }
    if data is None:
        tasks = {name: task for name, task in tasks.items() if not name.startswith("MIR")}
    return {name: _steps(name, task()) for name, task in tasks.items()}


def _steps(name: str, task: Any) -> dict[str, Any]:
    epochs = 30 if task.exclude is not None else 12  # ids take the defaults' 30 in seconds
    base = Wsabie(epochs=epochs, threads=1, deterministic=False).fit(task.X, task.Y)
    plateau = base.history_[-3:]
    rounds: dict[str, list[dict[str, float]]] = {rule: [] for rule in STEPS}
    for turn in range(ROUNDS):
        for rule, changes in STEPS.items():
            rounds[rule].append(_epoch(base, task, changes, seed=turn + 1))
    at = {
        rule: {key: float(np.median([r[key] for r in samples])) for key in samples[0]}
        for rule, samples in rounds.items()
    }
    warp = [r["us_per_pair"] for r in rounds["WARP"]]
    for rule, samples in rounds.items():
        ratios = [r["us_per_pair"] / w for r, w in zip(samples, warp, strict=True)]
        at[rule] |= {"ratio": float(np.median(ratios)), "lowest": min(ratios), "highest": max(ratios)}
        bar = verdict(at[rule]["ratio"], most=STEP_BAR) if rule.startswith("VSE") else ""
        print(f"{name:<28} {rule:<24}", _format_figures(at[rule]), bar, flush=True)
    return {"plateau": {"mean_draws": float(np.mean([s.mean_draws for s in plateau]))}, "rules": at}


def _epoch(base: Wsabie, task: Any, changes: dict[str, Any], seed: int) -> dict[str, float]:
    """CPU time per pair of the second of two epochs from the space of `base`, at the rate of its last epochs."""
    model = Wsabie(**{**base.get_params(), **changes, "epochs": 2, "schedule": "constant", "seed": seed})
    inputs, targets = model._open_rows(task.X, task.Y, None)
    settings = model._resolve_settings(TrainingRows(inputs, targets).shape)
    settings = replace(settings, learning_rate=settings.learning_rate * 0.1, feature_rate=settings.feature_rate * 0.1)
    watch = negatives.Watch(None)
    rows = base.scaling_(inputs)
    trainer = Trainer(settings, monitor=watch)
    data = TrainingRows(rows, targets).build_data(base.scaling_, model.pair_weighting, seed)
    assert count_rows(rows) == task.X.shape[0]
    history = trainer.train(base.space_.copy(), data)
    return {
        "us_per_pair": watch.seconds[1] / targets.nnz * 1e6,
        "draws": history[1].mean_draws,
        "steps": history[1].violation_rate,
        "us_per_step": watch.seconds[1] / max(history[1].violation_rate * targets.nnz, 1) * 1e6,
    }


def _format_figures(figures: dict[str, float]) -> str:
    return ", ".join(f"{key} {value:.4g}" for key, value in figures.items())


TITLES = {
    "mirflickr": "MIRFlickr-25k, pictures as ids",
    "M": "Task M, 30,000 rows",
    "ablation": "Search or one draw, uniform or adaptive, weighted by rank or not",
    "paper": "With the paper's settings",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "step", "mirflickr", "M", "ablation", "paper", "study"])
    parser.add_argument("--data", type=Path, help="MIRFlickr's kv_dataset2.csv")
    parser.add_argument("--trials", type=int, default=12, help="settings tried by each system (default: %(default)s)")
    parser.add_argument("--svg", type=Path, help="draw quality by time to this file")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    if options.what in ("mirflickr", "paper") and options.data is None:
        sys.exit("this needs --data FILE; see the first lines of the file")
    print(describe_machine(), flush=True)
    measured = {"draw": draw, "step": step}
    if options.what in measured:
        figures = measured[options.what](options.data)
    elif options.what == "study":
        figures = sampler_study.study(options.out)
    else:
        figures = negatives.measure(options.what, options.data, options.trials, options.out)
        if options.svg:
            negatives.chart(figures["envelopes"], TITLES[options.what], options.svg)
    if options.out:
        document = {"schema": 1, "machine": machine(threads=1), "what": options.what, "figures": figures}
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
