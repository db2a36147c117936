"""Training with more workers than machines: `python -m benchmarks.interleaved_workers --out DIR [--nodes 1 2 8]`.

The workers of `wsabie.distributed.averaging_trainer` without Ray, one after the other in this process, so that an epoch
takes as long with any number of them: what counts is the MAP. `--parts` keeps the interval at so many parts of a worker
between two rounds; without it the interval follows the drift. Data are those of `benchmarks.ray_training`.
"""

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.ray_plan import Fixed
from benchmarks.ray_training import about, fit
from wsabie.distributed import averaging_rounds
from wsabie.distributed.averaging_rounds import RoundReport, WorkerLoss, WorkerMessage
from wsabie.distributed.averaging_trainer import AveragingRunner, AveragingWorker
from wsabie.distributed.table_deltas import TableDeltas
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.trainer import Trainer


class LocalFleet:
    """The fleet in this process: what a worker is asked it does when answers are asked for."""

    def __init__(self, settings: TrainingSettings, space: Any, blocks: Any, n: int) -> None:
        self.workers = {str(i): AveragingWorker(settings, space, blocks) for i in range(n)}
        for worker in self.workers.values():
            worker.prepare()
        self.new = list(self.workers)
        self.requests: list[tuple[str, Any, Any]] = []

    def poll_new_workers(self) -> Iterable[str]:
        """All, once."""
        new, self.new = self.new, []
        return new

    def train(self, worker: str, epoch: int, part: int, next_part: int | None) -> None:
        """See `Fleet`."""
        self.requests.append((worker, "report", partial(self.workers[worker].train, epoch, part)))

    def request_deltas(self, worker: str) -> None:
        """See `Fleet`."""
        self.requests.append((worker, "deltas", self.workers[worker].extract_deltas))

    def send_tables(self, workers: Iterable[str], deltas: TableDeltas) -> None:
        """See `Fleet`."""
        for worker in workers:
            self.workers[worker].update_tables(deltas)

    def poll_messages(self, seconds: float) -> Iterator[WorkerMessage]:
        """See `Fleet`."""
        requests, self.requests = self.requests, []
        for worker, kind, do in requests:
            yield WorkerMessage(worker, kind, do())

    def dismiss(self, worker: str) -> None:
        """Do nothing: no local worker fails."""

    def explain_absence(self) -> WorkerLoss:
        """Return the loss of no worker."""
        return WorkerLoss()

    def close(self) -> None:
        """Nothing to end."""


class InterleavedRunner(AveragingRunner):
    """Trains with so many workers in turns."""

    def __init__(self, settings: TrainingSettings, space: Any, data: Any, *, nodes: int, **options: Any) -> None:
        self.n = nodes
        super().__init__(settings, space, data, address="", nodes=nodes, **options)

    def _build_fleet(self, settings: TrainingSettings, space: Any, data: Any) -> LocalFleet:
        return LocalFleet(settings, space, data, self.n)


def make_interleaved_trainer(nodes: int, **options: Any) -> partial[Trainer]:
    """Make a factory of trainers with so many workers in turns."""
    return partial(Trainer, make_runner=partial(InterleavedRunner, nodes=nodes, **options))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--judged", type=int, default=2000, help="rows set aside, of which the MAP is")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--parts", type=int)
    options = parser.parse_args()
    print(describe_machine())
    averaging_rounds.STRAGGLER_WAIT = 1e9  # workers wait for each other here
    if options.parts:
        averaging_rounds.RoundInterval = partial(Fixed, parts=options.parts)  # type: ignore[assignment,misc]
    for n in options.nodes:
        rounds: list[RoundReport] = []
        outcome = fit(options, trainer=make_interleaved_trainer(n, on_round=rounds.append))
        of_epochs = about(rounds)["of_epochs"].values()
        more = [[epoch_figures[name] for epoch_figures in of_epochs] for name in ("drift", "parts")]
        print(f"{n} workers: MAP {outcome['MAP']}, drift {more[0]}, parts {more[1]}", flush=True)


if __name__ == "__main__":
    main()
