"""Training on many machines: a worker on each node, and tables joined as often as the drift requires.

The loop over epochs, validation, early stopping and checkpoints belong to `wsabie.training.trainer.Trainer`; this
module runs the epochs. Nodes come and go. A lost node costs the steps that it had not given, and others train its
parts. A node that joins the cluster gets the tables and takes part.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wsabie.core.errors import InputError
from wsabie.core.machine import count_available_cores
from wsabie.core.progress import Stage
from wsabie.distributed.averaging_rounds import AveragingRounds, RoundReport
from wsabie.distributed.averaging_worker import PartReport
from wsabie.distributed.ray_cluster import LOCAL, connect
from wsabie.distributed.ray_fleet import RayFleet, WorkerPlan
from wsabie.distributed.table_deltas import warm_up
from wsabie.embedding.protocols import TrainableTables
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import StepCounters
from wsabie.training.samplers import NegativeSampler
from wsabie.training.settings import TrainingSettings
from wsabie.training.trainer import Blocks, EpochPass, NumberedBlocks, Trainer


def make_averaging_trainer(
    address: str, nodes: int | None = None, on_round: Callable[[RoundReport], None] = lambda _: None
) -> Callable[..., Trainer]:
    """Make a factory of trainers on a Ray cluster, for the parameter `trainer` of `Wsabie.fit`.

    Parameters
    ----------
    address : str
        "host:port" of a running cluster, or "local": a cluster on this machine for the time of the training.
    nodes : int or None
        Maximum number of workers, one on each node. None: all nodes, including those that join later. With "local" the
        workers share this machine's cores, of which each needs one, and None means 1.
    on_round : callable
        Called with the report of every round.

    Raises
    ------
    InputError
        Fewer nodes than 1, or with "local" more nodes than cores.
    """
    if nodes is not None and nodes < 1:
        raise InputError(f"{nodes} nodes cannot train; give 1 or more")
    cores = count_available_cores()
    if address == LOCAL and nodes is not None and nodes > cores:  # Ray would wait for cores without a message
        raise InputError(
            f"--ray local gives each of {nodes} nodes a core of this machine, which has {cores}; "
            f"give --nodes {cores} at most"
        )
    return partial(AveragingTrainer, address=address, nodes=nodes, on_round=on_round)


class AveragingTrainer(Trainer):
    """Trainer on a Ray cluster; parameters are those of `Trainer` and `make_averaging_trainer`.

    Each worker runs the lock-free loop on all cores of its node, so that two runs differ by chance.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        *,
        address: str,
        nodes: int | None = None,
        on_round: Callable[[RoundReport], None] = lambda _: None,
        **options: Any,
    ) -> None:
        super().__init__(settings, **options)
        self._address, self._nodes, self._on_round = address, nodes, on_round

    def train(self, space: TrainableTables, blocks: Blocks, n_pairs: int) -> list[EpochStats]:
        """Run all epochs; see `Trainer.train`.

        Raises
        ------
        InputError
            The blocks cannot be assigned to workers, the space has no points, or there is no such cluster.
        NoWorkersError
            All nodes are gone, and none has come for minutes; or workers died on every node.
        """
        if not isinstance(blocks, NumberedBlocks):
            raise InputError("many machines train on rows in shards; write them with `wsabie shards DATA --out DIR`")
        if "norm2" in space.arrays():
            raise InputError("labels with a weight per feature are not trained on many machines; leave --ray out")
        fleet = self._crew(replace(self.settings, deterministic=False), space, blocks)
        limits = self.settings.max_norm, self.settings.max_norm_weights
        try:
            self._rounds = AveragingRounds(
                fleet, space.arrays(), partial(space.settle, *limits), on_round=self._on_round
            )
            return super().train(space, blocks, n_pairs)
        finally:
            fleet.end()

    def _crew(self, settings: TrainingSettings, space: TrainableTables, blocks: NumberedBlocks) -> Any:
        connect(self._address)
        local = self._address == LOCAL
        return RayFleet(
            settings, space, blocks, WorkerPlan(self._nodes or 1 if local else self._nodes, on_single_node=local)
        )

    def compile(self, space: Any, blocks: Blocks) -> None:
        """Compile the kernels that join steps; workers compile those of training."""
        warm_up()

    def _samplings(self, space: Any, blocks: Blocks) -> dict[str | None, NegativeSampler]:
        return {}

    def _pass(
        self,
        space: Any,
        blocks: Any,
        epoch: int,
        samplings: dict[str | None, NegativeSampler],
        threads: KernelThreads,
        stage: Stage,
    ) -> EpochPass:
        step_counters = StepCounters.new(1)
        row_totals = [0.0, 0]

        def add_report(report: PartReport) -> None:
            step_counters.counters[0] += report.counters
            step_counters.loss[0] += report.loss
            row_totals[0] += report.rows_read
            row_totals[1] += report.unlabelled
            stage.advance(report.pairs)

        rate_share = self._rate(epoch) / (self.settings.learning_rate or 1.0)
        self._rounds.epoch(epoch, blocks.n_parts(epoch), add_report, rate_share)
        return EpochPass(step_counters, row_totals[0], int(row_totals[1]))
