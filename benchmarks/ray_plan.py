"""Simulation of averaged training on many nodes: `python -m benchmarks.ray_plan`.

The rounds are those of `wsabie.distributed.averaging_rounds` themselves, over workers that are made up: time goes by as
a part takes pairs / rate (with a spread from part to part, and nodes that are slow), as steps are copied and travel
through the one network card of the coordinator, and as they are joined there. Tables travel to n nodes in log2(n + 1)
steps, for a node that has them sends them on. What it does not know is what is learned; for that see
benchmarks/pages/plan-many-machines.md.

Bytes of a round follow from how many rows of the tables its steps touch: of n rows that are hit u times at random
n (1 - (1 - 1/n)^u) are. Each travels as a number, a scale, and a byte where the table has a float.
"""

import argparse
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from wsabie.distributed.averaging_rounds import AveragingRounds, RoundInterval, RoundReport, WorkerMessage
from wsabie.distributed.table_deltas import TableDeltas
from wsabie.training.loops import EpochTotals

REPORT = EpochTotals(np.zeros(1, np.int64), 0.0, 1, 0.0, 0)


@dataclass(frozen=True)
class Task:
    """Training task.

    Attributes
    ----------
    pairs : int
        Of an epoch.
    features, labels : int
        Rows of both tables.
    width : int
        Floats of a row, with padding.
    nonzeros : float
        Rows of the feature table that a pair moves.
    violations : float
        Steps per pair; each moves two labels.
    part : int
        Pairs of a part.
    """

    pairs: int
    features: int
    labels: int
    width: int = 112
    nonzeros: float = 245.0
    violations: float = 0.9
    part: int = 1 << 12

    @property
    def table_bytes(self) -> int:
        return 4 * self.width * (self.features + self.labels)

    @property
    def row_bytes(self) -> int:
        """Return the bytes that a moved row sends."""
        return self.width + 8

    def step_bytes(self, pairs: float) -> float:
        """Return the bytes that the steps of so many pairs send."""
        steps = pairs * self.violations
        return sum(
            count_touched_rows(rows, hits) * self.row_bytes
            for rows, hits in ((self.features, steps * self.nonzeros), (self.labels, 2 * steps))
        )


def count_touched_rows(rows: int, hits: float) -> float:
    """Rows that are hit at least once.

    Examples
    --------
    >>> touched(2, 1), touched(2, 2), round(touched(1_000_000, 1_000_000))
    (1.0, 1.5, 632121)
    """
    return float(rows * -np.expm1(hits * np.log1p(-1 / rows))) if rows > 1 else float(hits > 0)


@dataclass(frozen=True)
class Machine:
    """Machine of a cluster.

    Attributes
    ----------
    rate : float
        Pairs a second of a node.
    network : float
        Bytes a second into the coordinator, and out of a node.
    joiners : int
        Nodes that each join a share of the rows; 1 is how it is built.
    copy : float
        Seconds for a byte of the tables that a worker compares to give its steps, or that it moves as it takes some.
    add, join : float
        Seconds of the coordinator for a byte of steps that it adds up, and for a byte of tables that it joins to them.
    answer : float
        Seconds from a question to its answer, as in the measured cases.
    start : float
        Seconds until workers are there.
    between : float
        Seconds between two epochs: validation.
    spread : float
        Deviation of the time of a part, relative to it.
    """

    rate: float
    network: float = 1.25e9
    joiners: int = 1
    copy: float = 0.25e-9
    add: float = 0.55e-9
    join: float = 0.65e-9
    answer: float = 0.02
    start: float = 0.0
    between: float = 0.0
    spread: float = 0.1


@dataclass
class _Node:
    pace: float
    free: float = 0.0
    pairs: float = 0.0  # trained and not given


@dataclass
class Cluster:
    """Made-up workers (`Fleet`); `slow` of them take `slowness` times as long."""

    task: Task
    machine: Machine
    n: int
    slow: int = 0
    slowness: float = 1.0
    seed: int = 0
    now: float = 0.0
    received: float = 0.0
    _nodes: dict[str, _Node] = field(default_factory=dict)
    _events: list[tuple[float, int, WorkerMessage]] = field(default_factory=list)
    _in: float = 0.0  # when the coordinator's network is free
    _unjoined_bytes: float = 0.0  # bytes that have not been joined
    _count: int = 0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self.now = self.machine.start

    def poll_new_workers(self) -> Iterable[str]:
        """All, at the beginning."""
        if not self._nodes:
            self._nodes = {f"{i}": _Node(self.slowness if i < self.slow else 1.0, self.now) for i in range(self.n)}
            return list(self._nodes)
        return []

    def train(self, worker: str, epoch: int, part: int, next_part: int | None) -> None:
        """A part takes its pairs / rate, more or less."""
        node, machine = self._nodes[worker], self.machine
        usual = node.pace * self.task.part / machine.rate
        node.free = max(node.free, self.now) + usual * max(0.1, self._rng.normal(1, machine.spread))
        node.pairs += self.task.part
        self._answer(node.free + machine.answer, WorkerMessage(worker, "report", REPORT))

    def request_deltas(self, worker: str) -> None:
        """Tables are compared, and the rows that moved travel, one worker's after the other's."""
        node, machine = self._nodes[worker], self.machine
        node.free = max(node.free, self.now) + machine.copy * self.task.table_bytes
        size = self.task.step_bytes(node.pairs)
        node.pairs = 0.0
        self._in = max(self._in, node.free) + size / (machine.network * machine.joiners)
        self.received += size
        self._unjoined_bytes += size
        self._answer(self._in + machine.answer, WorkerMessage(worker, "deltas", {}))

    def send_tables(self, workers: Iterable[str], deltas: TableDeltas) -> None:
        """Steps have been joined; the rows that moved travel to all."""
        workers = list(workers)
        task, machine = self.task, self.machine
        rows = min(self._unjoined_bytes / task.row_bytes, task.features + task.labels)
        size = rows * task.row_bytes
        if self._unjoined_bytes:
            self.now += (machine.add * self._unjoined_bytes + machine.join * task.table_bytes) / machine.joiners
        self._unjoined_bytes = 0.0
        hops = float(np.log2(len(workers) + 1)) if machine.joiners == 1 else 1.0
        arrival = self.now + hops * size / machine.network + machine.copy * 4 * task.width * rows
        for worker in workers:
            node = self._nodes[worker]
            node.free = max(node.free, arrival)

    def poll_messages(self, seconds: float) -> Iterator[WorkerMessage]:
        """Time goes on to the next answer."""
        until = self.now + seconds
        if not self._events or self._events[0][0] > until:
            self.now = until
            return
        self.now = max(self.now, self._events[0][0])
        while self._events and self._events[0][0] <= self.now:
            yield heapq.heappop(self._events)[2]

    def dismiss(self, worker: str) -> None:
        """No worker is lost here."""

    def _answer(self, when: float, answer: WorkerMessage) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, answer))


@dataclass
class Fixed(RoundInterval):
    """So many parts of a worker between two rounds, whatever the drift."""

    def reset(self) -> None:
        """The same."""

    def compute_parts(self, drift: float, workers: int, max_parts: float, rate_share: float = 1.0) -> float:
        """The same."""
        return self.parts


def simulate(task: Task, machine: Machine, n: int, parts: float, epochs: int = 1, **nodes: Any) -> dict[str, float]:
    """Seconds, how many times as fast as one node that needs no rounds, rounds, bytes of steps in one."""
    cluster, rounds = Cluster(task, machine, n, **nodes), list[RoundReport]()
    work = AveragingRounds(cluster, {}, interval=Fixed(parts), on_round=rounds.append, clock=lambda: cluster.now)
    n_parts = -(-task.pairs // task.part)
    for epoch in range(epochs):
        work.run_epoch(epoch, n_parts)
        cluster.now += machine.between
    single_seconds = epochs * (n_parts * task.part / machine.rate + machine.between)
    return {
        "seconds": cluster.now,
        "times": single_seconds / cluster.now,
        "rounds": float(len(rounds)),
        "bytes": cluster.received / max(len(rounds), 1),
    }


BILLION = Task(pairs=1_000_000_000, features=10_000, labels=1_000_000)
"""A billion items of one label each, among a million labels; items as in the first paper."""


def plan_rounds(networks: Iterable[float] = (10e9, 25e9), sizes: Iterable[int] = (8, 64)) -> list[dict[str, Any]]:
    """Four rounds of the billion, which come after 4 to 256 parts of a node; and joined by all nodes."""
    rows = []
    for bits, n, parts, joiners in product(networks, sizes, (4, 16, 64, 256), (1, 0)):
        machine = Machine(rate=NODE_RATE, network=bits / 8, joiners=joiners or n)
        of_round = n * parts * BILLION.part
        simulation = simulate(replace(BILLION, pairs=4 * of_round), machine, n, parts)
        rows.append({"Gbit/s": bits / 1e9, "nodes": n, "joined by": machine.joiners, "parts": parts,
                     "pairs of a round": of_round, "MB of a node": BILLION.step_bytes(parts * BILLION.part) / 1e6,
                     "s of a round": simulation["seconds"] / simulation["rounds"],
                     "times as fast": simulation["times"]})  # fmt: skip
    return rows


NODE_RATE = 8 * 60_000.0
"""Pairs a second of a node of 8 cores: the rate of a core among 109,444 labels, from `quality-and-speed.md`."""


MEASURED: dict[str, dict[str, float]] = {
    "200,000 rows, rounds after 4 parts": {
        "seconds": 33.3, "pairs": 198_000, "part": 3094, "epochs": 8, "rate": 36_500, "parts": 4, "start": 7.5,
    },
    "the same with nothing else on the machine": {
        "seconds": 18.8, "pairs": 198_000, "part": 3094, "epochs": 8, "rate": 89_000, "parts": 4, "start": 4.0,
    },
    "the same of 16 epochs": {
        "seconds": 28.5, "pairs": 198_000, "part": 3094, "epochs": 16, "rate": 89_000, "parts": 4, "start": 4.0,
    },
    "the same of 16 epochs, with the kernels and the rate of now": {
        "seconds": 33.2, "pairs": 198_000, "part": 3094, "epochs": 16, "rate": 72_000, "parts": 4, "start": 4.0,
    },
    "50 epochs of four rounds, a Xeon": {
        "seconds": 51.8, "pairs": 190_000, "part": 2969, "epochs": 50, "rate": 115_000, "parts": 8, "start": 4.0,
    },
    "50 epochs of four rounds, the faster EPYC": {
        "seconds": 44.0, "pairs": 190_000, "part": 2969, "epochs": 50, "rate": 165_000, "parts": 8, "start": 4.0,
    },
}  # fmt: skip
"""Of `benchmarks.ray_training speed`: seconds of all epochs on two nodes, which are to come out, and what the run had:
pairs of a part, pairs a second of one node alone, parts of a worker between two rounds, seconds of the start."""
PICTURES = Task(pairs=598_000, features=10_000, labels=4000, part=1 << 12)


def simulate_case(case: str) -> dict[str, float]:
    """A measured case, simulated. Both nodes, the driver and Ray are on two cores: what travels is copied
    through memory; .02 s for an answer were fitted to the earlier cases.
    """
    case_figures = MEASURED[case]
    machine = Machine(rate=case_figures["rate"], network=2e9, start=case_figures["start"])
    task = replace(PICTURES, pairs=int(case_figures["pairs"]), part=int(case_figures["part"]))
    return simulate(task, machine, 2, case_figures["parts"], epochs=int(case_figures["epochs"]))


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0]).parse_args()
    for case, figures in MEASURED.items():
        print(f"{case}: measured {figures['seconds']} s, simulated {simulate_case(case)['seconds']:.1f} s")
    rows = plan_rounds()
    print(" | ".join(rows[0]))
    for row in rows:
        print(" | ".join(f"{value:,.4g}" for value in row.values()))


if __name__ == "__main__":
    main()
