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
from benchmarks.machine import machine, told, verdict
from wsabie.distributed.averaging_rounds import RoundReport
from wsabie.distributed.averaging_trainer import make_averaging_trainer
from wsabie.io.shards.shard_folder import is_shard_folder
from wsabie.io.shards.sharded_table import open_shards
from wsabie.models.wsabie.estimator import Wsabie

SEEDS = 3
"""Of the trainings that are compared: what one seed comes to is chance, by some thousandths of the MAP."""
SETTINGS = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3, "worker_niceness": 0}
"""A lost node is noticed in seconds; workers have the priority of any process, which by itself Ray lowers."""


def data(asked: argparse.Namespace) -> Path:
    """Shards of the asked number of rows and labels."""
    out: Path = asked.out / f"rows-{asked.rows}-{asked.labels}"
    if not is_shard_folder(out):
        papers_size.LABELS["imagenet"] = asked.labels
        papers_size.write(papers_size.law_of("imagenet", asked.rows), out, threads=1)
    return out


def fit(asked: argparse.Namespace, **options: Any) -> dict[str, Any]:
    """Train with one thread a node, and what it came to."""
    rows = open_shards(data(asked))
    learnt, judged = rows.split_holdout(asked.judged / len(rows.shards))
    some = judged.first(asked.judged)
    model = Wsabie(dim=asked.dim, epochs=asked.epochs, threads=1, deterministic=False, seed=asked.seed)
    started = time.perf_counter()
    model.fit(learnt, validation=(some.X, some.Y), **options)
    history = model.history_
    return {
        "seconds": time.perf_counter() - started,
        "MAP": [round(stats.validation or 0.0, 4) for stats in history],
        "pairs": sorted({stats.pairs for stats in history}),
        "training": sum(stats.seconds for stats in history),
        "validation": sum(stats.validation_seconds for stats in history),
    }


def fit_on_ray(asked: argparse.Namespace) -> dict[str, Any]:
    rounds: list[RoundReport] = []

    def told(one: RoundReport) -> None:
        rounds.append(one)
        if asked.note is not None:
            asked.note.write_text(f"{one.epoch} {one.n_joined}")

    found = fit(asked, trainer=make_averaging_trainer(asked.address, on_round=told))
    return found | {"rounds": about(rounds)}


def about(rounds: list[RoundReport]) -> dict[str, Any]:
    """What rounds are like, and how they change with the epochs."""
    of_epoch: dict[int, list[RoundReport]] = defaultdict(list)
    for one in rounds:
        of_epoch[one.epoch].append(one)
    return {
        "n": len(rounds),
        "came": rounds[-1].n_joined,
        "lost": rounds[-1].n_lost,
        "bytes_received": round(mean(one.received for one in rounds)),
        "bytes_sent_to_each": round(mean(one.sent for one in rounds)),
        "seconds": round(mean(one.seconds for one in rounds), 4),
        "joining": round(mean(one.joining for one in rounds), 4),
        "of_epochs": {
            epoch: {"n": len(some), "drift": round(mean(one.drift for one in some), 4),
                    "parts": round(mean(one.parts for one in some), 2)}
            for epoch, some in of_epoch.items()
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
        found = {"training": 0.0, "ray": 0.0}
        parents = {pid: stat for pid in Path("/proc").iterdir() if pid.name.isdigit() and (stat := stat_of(pid))}
        ours = {one.process.pid for node in self.cluster.list_all_nodes() for some in node.all_processes.values()
                for one in some}  # fmt: skip
        while more := {int(pid.name) for pid, stat in parents.items() if stat[0] in ours} - ours:
            ours |= more
        for pid, (_, name, seconds) in parents.items():
            if int(pid.name) in ours:
                found["training" if name.startswith("ray::") else "ray"] += seconds
        return found


def stat_of(pid: Path) -> tuple[int, str, float] | None:
    """Parent, command line and processor seconds of a process that is still there."""
    try:
        after = (pid / "stat").read_text().rpartition(")")[2].split()
        name = (pid / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return None
    return int(after[1]), name, (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


# ---- what is measured


def begun(asked: argparse.Namespace, name: str, cores: list[int], **more: Any) -> "subprocess.Popen[str]":
    """One fit in a process of its own, on these cores."""
    words = [sys.executable, "-m", "benchmarks.ray_training", name]
    for key in ("out", "rows", "labels", "dim", "epochs", "judged"):
        words += [f"--{key}", str(getattr(asked, key))]
    more = {"seed": asked.seed, **more}
    words += [str(word) for key, value in more.items() for word in (f"--{key}", value)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))  # fmt: skip


def ended(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """What it came to."""
    out, err = process.communicate()
    if process.returncode:
        raise SystemExit(err)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def children() -> float:
    """Processor seconds of processes begun here that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(asked: argparse.Namespace, pinned: Pinned) -> dict[str, Any]:
    """A fit on the cluster, and the processor seconds of the driver, of the workers and of Ray's own processes."""
    before, own = pinned.used(), children()
    process, used = begun(asked, "two", pinned.cores, address=pinned.cluster.address), before
    while process.poll() is None:  # workers are gone when the driver is
        used = {name: max(used[name], seconds) for name, seconds in pinned.used().items()}
        time.sleep(1)
    found = ended(process)
    spent = {name: round(used[name] - before[name], 1) for name in used}
    return found | {"processor": {"driver": round(children() - own, 1), **spent}}


def speed(asked: argparse.Namespace) -> None:
    """Both sides in turns."""
    print(told())
    data(asked)
    pinned = Pinned()
    sides: dict[str, list[dict[str, Any]]] = {"one": [], "two": []}
    for turn in range(asked.repeats):
        asked.seed, own = turn, children()
        found = ended(begun(asked, "one", pinned.cores[:1]))
        sides["one"].append(found | {"processor": {"driver": round(children() - own, 1)}})
        sides["two"].append(watched(asked, pinned))
        for name, runs in sides.items():
            print(name, json.dumps(runs[-1]), f"load {os.getloadavg()[0]:.1f}", flush=True)
    pinned.cluster.shutdown()
    seconds = {name: median(one["seconds"] for one in runs) for name, runs in sides.items()}
    figures = {name: mean(one["MAP"][-1] for one in runs) for name, runs in sides.items()}
    spent = {name: mean(sum(one["processor"].values()) for one in runs) for name, runs in sides.items()}
    ratio, apart = seconds["two"] / seconds["one"], figures["two"] - figures["one"]
    print(
        f"wall: one {seconds['one']:.1f} s, two {seconds['two']:.1f} s, ratio {ratio:.2f}, {verdict(ratio, most=0.75)}"
    )
    print(f"MAP: one {figures['one']:.4f}, two {figures['two']:.4f}, {apart:+.4f}, {verdict(apart, least=-0.005)}")
    rays = mean(one["processor"]["ray"] for one in sides["two"])
    print(f"processor: one {spent['one']:.1f} s, two {spent['two']:.1f} s, of which Ray's own processes {rays:.1f} s "
          f"({rays / (2 * seconds['two']):.1%} of both cores)")  # fmt: skip
    keep(asked, **sides)


def keep(asked: argparse.Namespace, **figures: Any) -> None:
    """Write figures to the file that is asked for."""
    if asked.json is not None:
        kept = {"schema": 1, "machine": machine(), "rows": asked.rows, "epochs": asked.epochs, **figures}
        asked.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def reach(note: Path, epoch: int, process: "subprocess.Popen[str]") -> None:
    """Wait until a run is in this epoch, with both nodes."""
    while process.poll() is None:
        told = note.read_text().split() if note.exists() else []
        if len(told) == 2 and int(told[0]) >= epoch and int(told[1]) >= 2:
            return
        time.sleep(0.01)


def kills(asked: argparse.Namespace) -> None:
    """A node is killed at a random moment of each run, and another one joins."""
    print(told())
    data(asked)
    pinned = Pinned()
    address, note = pinned.cluster.address, asked.out / "note"
    alone = [ended(begun(asked, "one", pinned.cores[:1], seed=seed)) for seed in range(SEEDS)]
    whole = [ended(begun(asked, "two", pinned.cores, address=address, seed=seed)) for seed in range(SEEDS)]
    for name, runs in (("one node", alone), ("undisturbed", whole)):
        print(name, [run["MAP"][-1] for run in runs], [round(run["seconds"], 1) for run in runs], flush=True)
    rng, found = np.random.default_rng(asked.seed), []
    for i in range(asked.times):
        note.unlink(missing_ok=True)
        process = begun(asked, "two", pinned.cores, address=address, note=note, seed=i % SEEDS)
        moment = float(rng.uniform(0, asked.epochs - 0.5))
        reach(note, int(moment), process)
        time.sleep((moment % 1) * whole[-1]["training"] / asked.epochs)
        pinned.kill()
        pinned.add()
        run = ended(process)
        once, seen = run["pairs"] == alone[0]["pairs"], run["rounds"]
        found.append({"moment": moment, "MAP": run["MAP"][-1], "seconds": run["seconds"], "once": once})
        print(f"killed in epoch {moment:.2f}: MAP {run['MAP'][-1]:.4f}, {run['seconds']:.1f} s, "
              f"lost {seen['lost']} of {seen['came']} workers, pairs once an epoch: {once}", flush=True)  # fmt: skip
    pinned.cluster.shutdown()
    usual, seconds = (mean(run["MAP"][-1] for run in alone), median(run["seconds"] for run in alone))
    maps, shares = [one["MAP"] for one in found], [one["seconds"] / seconds for one in found]
    print(f"{len(found)} runs ended; MAP {mean(maps):.4f} (deviation {stdev(maps):.4f}, least {min(maps):.4f}), "
          f"one node {usual:.4f}, {verdict(min(maps) - usual, least=-0.005)}")  # fmt: skip
    print(f"of one node's wall time {median(shares):.2f}, at most {max(shares):.2f}, {verdict(max(shares), most=0.75)}")
    sides = {name: [{"MAP": run["MAP"][-1], "seconds": run["seconds"]} for run in runs]
             for name, runs in (("one", alone), ("undisturbed", whole))}  # fmt: skip
    keep(asked, **sides, killed=found)


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
    asked = parser.parse_args()
    if asked.what in ("one", "two"):
        print(json.dumps(fit(asked) if asked.what == "one" else fit_on_ray(asked)))
    else:
        {"speed": speed, "kills": kills}[asked.what](asked)


if __name__ == "__main__":
    main()
