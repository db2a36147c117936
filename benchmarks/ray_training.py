"""Training on two nodes of one core each against one: `python -m benchmarks.ray_training speed|kills --out DIR`.

`speed` writes shards with the statistics of the first paper's pictures (fewer labels), and trains on them in turns: in
one process that is pinned to one core, without Ray, and on a cluster of two nodes, pinned to a core each. Both run the
lock-free loop with one thread a node, the same number of epochs. It prints the wall time of the whole fit, which
workers take seconds of to start; MAP on rows that were set aside; what the processes of the cluster that do not
train have used of the processors; and what a round is like.

`kills` trains again and again on the cluster while a node is killed at a random moment and another joins, and prints
the MAP and the wall time of each run beside those of one node, and whether every pair was counted once in every epoch.
With few `--judged` rows the figures of two runs differ by chance more than what is to be seen.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np

from benchmarks import papers_size
from benchmarks.machine import describe_machine, machine, verdict
from wsabie.distributed.averaging_rounds import RoundReport
from wsabie.distributed.averaging_trainer import make_averaging_trainer
from wsabie.io.shards.shard_folder import is_shard_folder
from wsabie.io.shards.sharded_table import open_shards
from wsabie.models.joint_embedding.estimator import Wsabie

SEEDS = 3
"""Of the trainings that are compared: what one seed comes to is chance, by some thousandths of the MAP."""
SETTINGS = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3, "worker_niceness": 0}
"""A lost node is noticed in seconds; workers have the priority of any process, which by itself Ray lowers."""


def data(arguments: argparse.Namespace) -> Path:
    """Shards of the asked number of rows and labels."""
    out: Path = arguments.out / f"rows-{arguments.rows}-{arguments.labels}"
    if not is_shard_folder(out):
        papers_size.LABELS["imagenet"] = arguments.labels
        papers_size.write(papers_size.law_of("imagenet", arguments.rows), out, threads=1)
    return out


def fit(arguments: argparse.Namespace, **options: Any) -> dict[str, Any]:
    """Train with one thread a node, and what it came to."""
    rows = open_shards(data(arguments))
    training, held_out = rows.split_holdout(arguments.judged / len(rows.shards))
    validation_rows = held_out.read_first(arguments.judged)
    model = Wsabie(dim=arguments.dim, epochs=arguments.epochs, threads=1, deterministic=False, seed=arguments.seed)
    started = time.perf_counter()
    model.fit(training, validation=(validation_rows.X, validation_rows.Y), **options)
    history = model.history_
    return {
        "seconds": time.perf_counter() - started,
        "MAP": [round(stats.validation or 0.0, 4) for stats in history],
        "pairs": sorted({stats.pairs for stats in history}),
        "training": sum(stats.seconds for stats in history),
        "validation": sum(stats.validation_seconds for stats in history),
    }


def fit_on_ray(arguments: argparse.Namespace) -> dict[str, Any]:
    rounds: list[RoundReport] = []

    def record_round(round_report: RoundReport) -> None:
        rounds.append(round_report)
        if arguments.note is not None:
            arguments.note.write_text(f"{round_report.epoch} {round_report.n_joined}")

    outcome = fit(arguments, trainer=make_averaging_trainer(arguments.address, on_round=record_round))
    return outcome | {"rounds": about(rounds)}


def about(rounds: list[RoundReport]) -> dict[str, Any]:
    """Return the figures of rounds, and their change with the epochs."""
    of_epoch: dict[int, list[RoundReport]] = defaultdict(list)
    for report in rounds:
        of_epoch[report.epoch].append(report)
    return {
        "n": len(rounds),
        "came": rounds[-1].n_joined,
        "lost": rounds[-1].n_lost,
        "bytes_received": round(mean(report.received for report in rounds)),
        "bytes_sent_to_each": round(mean(report.sent for report in rounds)),
        "seconds": round(mean(report.seconds for report in rounds), 4),
        "joining": round(mean(report.joining for report in rounds), 4),
        "of_epochs": {
            epoch: {"n": len(reports), "drift": round(mean(report.drift for report in reports), 4),
                    "parts": round(mean(report.parts for report in reports), 2)}
            for epoch, reports in of_epoch.items()
        },
    }  # fmt: skip


# ---- the cluster


class Pinned:
    """A cluster of two nodes on this machine, each on a core of its own, the head on the first."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cores = sorted(os.sched_getaffinity(0))[:2]
        if len(self.cores) < 2:
            raise SystemExit("two nodes need two cores")
        os.sched_setaffinity(0, self.cores[:1])
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": SETTINGS}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.add()

    def add(self) -> None:
        os.sched_setaffinity(0, self.cores[1:])
        self.cluster.add_node(num_cpus=1)
        os.sched_setaffinity(0, self.cores)

    def kill(self) -> None:
        """The node that is not the head, with everything on it."""
        self.cluster.remove_node(next(iter(self.cluster.worker_nodes)), allow_graceful=False)

    def used(self) -> dict[str, float]:
        """Seconds of processor time so far of the workers that train, and of all other processes of the cluster."""
        seconds_by_part = {"training": 0.0, "ray": 0.0}
        parents = {pid: stat for pid in Path("/proc").iterdir() if pid.name.isdigit() and (stat := stat_of(pid))}
        ours = {handle.process.pid for node in self.cluster.list_all_nodes()
                for processes in node.all_processes.values() for handle in processes}  # fmt: skip
        while more := {int(pid.name) for pid, stat in parents.items() if stat[0] in ours} - ours:
            ours |= more
        for pid, (_, name, seconds) in parents.items():
            if int(pid.name) in ours:
                seconds_by_part["training" if name.startswith("ray::") else "ray"] += seconds
        return seconds_by_part


def stat_of(pid: Path) -> tuple[int, str, float] | None:
    """Parent, command line and processor seconds of a process that is still there."""
    try:
        fields = (pid / "stat").read_text().rpartition(")")[2].split()
        name = (pid / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return None
    return int(fields[1]), name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- what is measured


def start_run(arguments: argparse.Namespace, name: str, cores: list[int], **more: Any) -> "subprocess.Popen[str]":
    """One fit in a process of its own, on these cores."""
    words = [sys.executable, "-m", "benchmarks.ray_training", name]
    for key in ("out", "rows", "labels", "dim", "epochs", "judged"):
        words += [f"--{key}", str(getattr(arguments, key))]
    more = {"seed": arguments.seed, **more}
    words += [str(word) for key, value in more.items() for word in (f"--{key}", value)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))  # fmt: skip


def wait_for_result(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return the result that a run printed."""
    out, err = process.communicate()
    if process.returncode:
        raise SystemExit(err)
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def children() -> float:
    """Processor seconds of processes begun here that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_two_nodes(arguments: argparse.Namespace, pinned: Pinned) -> dict[str, Any]:
    """A fit on the cluster, and the processor seconds of the driver, of the workers and of Ray's own processes."""
    usage_before, driver_start = pinned.used(), children()
    process, used = start_run(arguments, "two", pinned.cores, address=pinned.cluster.address), usage_before
    while process.poll() is None:  # workers are gone when the driver is
        used = {name: max(used[name], seconds) for name, seconds in pinned.used().items()}
        time.sleep(1)
    result = wait_for_result(process)
    spent = {name: round(used[name] - usage_before[name], 1) for name in used}
    return result | {"processor": {"driver": round(children() - driver_start, 1), **spent}}


def speed(arguments: argparse.Namespace) -> None:
    """Run both sides in turns."""
    print(describe_machine())
    data(arguments)
    pinned = Pinned()
    sides: dict[str, list[dict[str, Any]]] = {"one": [], "two": []}
    for turn in range(arguments.repeats):
        arguments.seed, driver_start = turn, children()
        result = wait_for_result(start_run(arguments, "one", pinned.cores[:1]))
        sides["one"].append(result | {"processor": {"driver": round(children() - driver_start, 1)}})
        sides["two"].append(run_two_nodes(arguments, pinned))
        for name, runs in sides.items():
            print(name, json.dumps(runs[-1]), f"load {os.getloadavg()[0]:.1f}", flush=True)
    pinned.cluster.shutdown()
    seconds = {name: median(run_figures["seconds"] for run_figures in runs) for name, runs in sides.items()}
    figures = {name: mean(run_figures["MAP"][-1] for run_figures in runs) for name, runs in sides.items()}
    spent = {name: mean(sum(run_figures["processor"].values()) for run_figures in runs) for name, runs in sides.items()}
    ratio, difference = seconds["two"] / seconds["one"], figures["two"] - figures["one"]
    print(
        f"wall: one {seconds['one']:.1f} s, two {seconds['two']:.1f} s, ratio {ratio:.2f}, {verdict(ratio, most=0.75)}"
    )
    print(
        f"MAP: one {figures['one']:.4f}, two {figures['two']:.4f}, {difference:+.4f}, "
        f"{verdict(difference, least=-0.005)}"
    )
    rays = mean(run_figures["processor"]["ray"] for run_figures in sides["two"])
    print(f"processor: one {spent['one']:.1f} s, two {spent['two']:.1f} s, of which Ray's own processes {rays:.1f} s "
          f"({rays / (2 * seconds['two']):.1%} of both cores)")  # fmt: skip
    keep(arguments, **sides)


def keep(arguments: argparse.Namespace, **figures: Any) -> None:
    """Write figures to the file that is asked for."""
    if arguments.json is not None:
        content = {"schema": 1, "machine": machine(), "rows": arguments.rows, "epochs": arguments.epochs, **figures}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def reach(note: Path, epoch: int, process: "subprocess.Popen[str]") -> None:
    """Wait until a run is in this epoch, with both nodes."""
    while process.poll() is None:
        note_words = note.read_text().split() if note.exists() else []
        if len(note_words) == 2 and int(note_words[0]) >= epoch and int(note_words[1]) >= 2:
            return
        time.sleep(0.01)


def kills(arguments: argparse.Namespace) -> None:
    """A node is killed at a random moment of each run, and another one joins."""
    print(describe_machine())
    data(arguments)
    pinned = Pinned()
    address, note = pinned.cluster.address, arguments.out / "note"
    single_runs = [wait_for_result(start_run(arguments, "one", pinned.cores[:1], seed=seed)) for seed in range(SEEDS)]
    undisturbed_runs = [
        wait_for_result(start_run(arguments, "two", pinned.cores, address=address, seed=seed)) for seed in range(SEEDS)
    ]
    for name, runs in (("one node", single_runs), ("undisturbed", undisturbed_runs)):
        print(name, [run["MAP"][-1] for run in runs], [round(run["seconds"], 1) for run in runs], flush=True)
    rng, kill_runs = np.random.default_rng(arguments.seed), []
    for i in range(arguments.times):
        note.unlink(missing_ok=True)
        process = start_run(arguments, "two", pinned.cores, address=address, note=note, seed=i % SEEDS)
        moment = float(rng.uniform(0, arguments.epochs - 0.5))
        reach(note, int(moment), process)
        time.sleep((moment % 1) * undisturbed_runs[-1]["training"] / arguments.epochs)
        pinned.kill()
        pinned.add()
        run = wait_for_result(process)
        once, round_figures = run["pairs"] == single_runs[0]["pairs"], run["rounds"]
        kill_runs.append({"moment": moment, "MAP": run["MAP"][-1], "seconds": run["seconds"], "once": once})
        print(f"killed in epoch {moment:.2f}: MAP {run['MAP'][-1]:.4f}, {run['seconds']:.1f} s, "
              f"lost {round_figures['lost']} of {round_figures['came']} workers, "
              f"pairs once an epoch: {once}", flush=True)  # fmt: skip
    pinned.cluster.shutdown()
    usual, seconds = (mean(run["MAP"][-1] for run in single_runs), median(run["seconds"] for run in single_runs))
    maps, shares = (
        [run_figures["MAP"] for run_figures in kill_runs],
        [run_figures["seconds"] / seconds for run_figures in kill_runs],
    )
    print(f"{len(kill_runs)} runs ended; MAP {mean(maps):.4f} (deviation {stdev(maps):.4f}, least {min(maps):.4f}), "
          f"one node {usual:.4f}, {verdict(min(maps) - usual, least=-0.005)}")  # fmt: skip
    print(f"of one node's wall time {median(shares):.2f}, at most {max(shares):.2f}, {verdict(max(shares), most=0.75)}")
    sides = {name: [{"MAP": run["MAP"][-1], "seconds": run["seconds"]} for run in runs]
             for name, runs in (("one", single_runs), ("undisturbed", undisturbed_runs))}  # fmt: skip
    keep(arguments, **sides, killed=kill_runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("speed", "kills", "one", "two"))
    parser.add_argument("--out", type=Path, required=True, help="folder for the shards; finished ones are used again")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--labels", type=int, default=4000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--judged", type=int, default=2000, help="rows set aside, of which the MAP is")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--address")
    parser.add_argument("--note", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.what in ("one", "two"):
        print(json.dumps(fit(arguments) if arguments.what == "one" else fit_on_ray(arguments)))
    else:
        {"speed": speed, "kills": kills}[arguments.what](arguments)


if __name__ == "__main__":
    main()
