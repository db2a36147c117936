"""The defaults against the best of 30 random settings: `python -m benchmarks.defaults [TASK ...] [--data FOLDER]`.

For each task the 30 settings of `setting` are trained with seed 0 and measured on the validation rows (at most 5,000);
the best one and the defaults are then trained with seeds 0, 1 and 2 and measured on the test rows. Every run keeps the
epoch that the validation rows choose. Finished runs are lines of a JSONL file in benchmarks/results and are not
repeated (`--again` runs them again, after a change of code, of which every line holds a fingerprint); each worker is
a process with one thread, and the deterministic loop makes threads irrelevant for the figures.

`--sweep` shows instead what each parameter does by itself: the defaults with one of them changed, on the validation
rows.
"""

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ledger import Ledger
from benchmarks.machine import describe_machine
from benchmarks.peers.environments import code_of
from benchmarks.quality import evaluate_model
from benchmarks.tasks import NAMES, Side, sides
from wsabie import Wsabie

CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"scaling": "tfidf"},
    *({"max_norm": norm} for norm in (1.0, 1.25, 1.75, 2.0)),
    *({"margin": margin} for margin in (0.5, 1.5)),
    *({"learning_rate": factor} for factor in (0.1, 0.5, 2.0, 5.0)),
    {"rank_weight": "top1"},
    {"pair_weighting": "pairs"},
)
"""What a sweep changes, one at a time; a learning rate as a multiple of the default's."""
RESULTS = Path(__file__).parent / "results" / "defaults.jsonl"
TRIALS, SEEDS = 30, (0, 1, 2)
SCORED_ROWS = 5000
Job = dict[str, Any]


def setting(trial: int, labels_per_row: float) -> dict[str, Any]:
    """The parameters of a trial. The learning rate is drawn around what the labels per row suggest, so that no trial
    is wasted on steps that are off by a factor of ten.

    Examples
    --------
    >>> setting(0, 1.0) == setting(0, 1.0) != setting(1, 1.0)
    True
    """
    rng = np.random.default_rng([1, trial])

    def log_uniform(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")

    def one_of(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    parameters = {
        "learning_rate": log_uniform(0.0075, 0.12),
        "dim": one_of(50, 100, 150, 200),
        "max_norm": round(float(rng.uniform(1.0, 3.0)), 2),
        "margin": round(float(rng.uniform(0.3, 1.5)), 2),
        "rank_weight": one_of("precision", "precision", "mean_rank", "top1"),
        "pair_weighting": one_of("mean", "pairs"),
        "max_sampled": one_of(100, 300, 1000),
        "epochs": round(log_uniform(6, 40)),
    }
    if parameters["pair_weighting"] == "mean":
        parameters["learning_rate"] = float(f"{parameters['learning_rate'] * labels_per_row**0.75:.3g}")
    return parameters


def run(job: Job, data: Path | None) -> Job:
    """Train and measure: validation rows in the search, test rows at the end."""
    task = sides(job["task"], data)
    params = {"init": "random", **job["params"], "seed": job["repeat"], "threads": 1}
    started = time.perf_counter()
    model = Wsabie(**params).fit(*task.fit, validation=tuple(task.valid))
    seconds = time.perf_counter() - started
    side = task.test if job["kind"] == "final" else task.valid
    step = 1 if job["kind"] == "final" else -(-side.X.shape[0] // SCORED_ROWS)
    figures = evaluate_model(model, side.X[::step], side.Y[::step]).means
    settings = {name: model.settings_[name] for name in ("learning_rate", "epochs", "max_norm", "max_sampled")}
    outcome = {"MAP": figures["MAP"], "p@1": figures["p@1"], "seconds": round(seconds, 1), "resolved": settings}
    return {**job, **outcome, "code": code_of("wsabie")}


class Study:
    """Runs what the ledger lacks, several at a time."""

    def __init__(self, data: Path | None, workers: int, results: Path = RESULTS) -> None:
        self.data, self.workers = data, workers
        self.ledger = Ledger(results)

    def task(self, name: str) -> dict[str, Any]:
        """Search, then the best setting and the defaults with three seeds."""
        density = labels_per_row(sides(name, self.data).fit)
        searched = self.run([_job(name, "search", t, setting(t, density), 0) for t in range(TRIALS)])
        best = max(searched, key=lambda line: float(line["MAP"]))
        rivals = {"best of 30": (best["trial"], best["params"]), "defaults": (-1, {})}
        finals = {
            system: self.run([_job(name, "final", trial, params, seed) for seed in SEEDS])
            for system, (trial, params) in rivals.items()
        }
        means = {system: statistics.fmean(float(line["MAP"]) for line in lines) for system, lines in finals.items()}
        return {
            "task": name,
            "best": best,
            "finals": finals,
            "means": means,
            "ratio": means["defaults"] / means["best of 30"],
        }

    def sweep(self, name: str) -> list[tuple[str, Job]]:
        """Return each change of a default with its result."""
        density = labels_per_row(sides(name, self.data).fit)
        jobs = [_job(name, "sweep", 0, apply_change(change, density), 0) for change in CHANGES]
        titles = [", ".join(f"{key} {value}" for key, value in change.items()) or "defaults" for change in CHANGES]
        return list(zip(titles, self.run(jobs), strict=True))

    def run(self, jobs: list[Job]) -> list[Job]:
        """Lines of the jobs, from the ledger or made now."""
        missing = [job for job in jobs if self.ledger.get(**job) is None]
        if missing:
            with ProcessPoolExecutor(self.workers) as pool:
                for line in pool.map(partial(run, data=self.data), missing):
                    print(_format_line(self.ledger.add(line)), flush=True)
        return [line for job in jobs if (line := self.ledger.get(**job))]


def labels_per_row(side: Side) -> float:
    """Mean number of labels of the rows that have any."""
    return 1.0 if isinstance(side.Y, np.ndarray) else float(side.Y.nnz / max(1, (np.diff(side.Y.indptr) > 0).sum()))


def apply_change(change: dict[str, Any], density: float) -> dict[str, Any]:
    """The parameters of a change; a factor of the learning rate becomes a rate.

    Examples
    --------
    >>> changed({"learning_rate": 2.0}, 16.0), changed({"max_norm": 2.0}, 16.0)
    ({'learning_rate': 0.48}, {'max_norm': 2.0})
    """
    if "learning_rate" not in change:
        return change
    return {"learning_rate": float(f"{change['learning_rate'] * 0.03 * density**0.75:.3g}")}


def _job(task: str, kind: str, trial: int, params: dict[str, Any], seed: int) -> Job:
    return {"task": task, "system": "wsabie", "kind": kind, "trial": trial, "params": params, "repeat": seed}


def _format_line(line: Job) -> str:
    return (
        f"{line['task']:>8} {line['kind']:<6} {line['trial']:>2} seed {line['repeat']}: MAP {line['MAP']:.4f}, "
        f"p@1 {line['p@1']:.4f}, {line['seconds']:.0f} s {line['params']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--data", type=Path, help="folder of Corel5k's sparse ARFF files")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget what was run on these tasks")
    parser.add_argument("--sweep", action="store_true", help="one parameter at a time, on the validation rows")
    options = parser.parse_args()
    print(describe_machine())
    study = Study(options.data, options.workers)
    for name in options.tasks:
        if options.again:
            study.ledger.forget(name, "wsabie")
        if options.sweep:
            for title, line in study.sweep(name):
                print(f"{name:>8} {title:<22} validation MAP {line['MAP']:.4f}, p@1 {line['p@1']:.4f}", flush=True)
            continue
        summary = study.task(name)
        means = ", ".join(f"{system} {value:.4f}" for system, value in summary["means"].items())
        met = "met" if summary["ratio"] >= 0.95 else "MISSED"
        print(f"{name}: test MAP {means}; ratio {summary['ratio']:.3f} (bar .95): {met}", flush=True)


if __name__ == "__main__":
    main()
