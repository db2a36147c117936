"""Training on many machines: a worker on each node, whose tables come together as often as their drift asks for.

The loop over epochs, validation, early stopping and checkpoints are `wsabie.training.trainer.Trainer`'s; here is what
an epoch does. Nodes come and go: one that is lost costs the steps that it had not given, and its parts are trained by
others; one that joins the cluster gets the tables and takes part.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.machine import available_cores
from wsabie.base.progress import Stage
from wsabie.distributed.averaging_crew import Crew, Shares
from wsabie.distributed.averaging_rounds import Round, Rounds
from wsabie.distributed.averaging_steps import rehearse
from wsabie.distributed.averaging_worker import Report
from wsabie.distributed.cluster import LOCAL, connect
from wsabie.space.protocol import Trainable
from wsabie.training.loops import Tally
from wsabie.training.samplers import Sampling
from wsabie.training.settings import Settings
from wsabie.training.stats import EpochStats
from wsabie.training.threads import Threads
from wsabie.training.trainer import Blocks, Dealt, Passed, Trainer


def averaging(
    address: str, nodes: int | None = None, told: Callable[[Round], None] = lambda _: None
) -> Callable[..., Trainer]:
    """What makes a trainer on a Ray cluster, as `Wsabie.fit` takes it (`trainer`).

    Parameters
    ----------
    address : str
        Of a cluster that runs ("host:port"), or "local": one on this machine, for as long as the training.
    nodes : int or None
        Workers at most: one on each node. None: all nodes there are, and those that join later; 1 with "local", where
        they share this machine's cores, of which each needs one.
    told : callable
        Is told every round.

    Raises
    ------
    InputError
        Fewer nodes than 1, or with "local" more than there are cores.
    """
    if nodes is not None and nodes < 1:
        raise InputError(f"{nodes} nodes cannot train; give 1 or more")
    cores = available_cores()
    if address == LOCAL and nodes is not None and nodes > cores:  # Ray would wait for cores, and say nothing
        raise InputError(
            f"--ray local gives each of {nodes} nodes a core of this machine, which has {cores}; "
            f"give --nodes {cores} at most"
        )
    return partial(AveragingTrainer, address=address, nodes=nodes, told=told)


class AveragingTrainer(Trainer):
    """Trains a space in place on a Ray cluster; parameters are those of `Trainer` and `averaging`.

    Each worker runs the lock-free loop on all cores of its node, so that runs differ by chance alone.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        address: str,
        nodes: int | None = None,
        told: Callable[[Round], None] = lambda _: None,
        **options: Any,
    ) -> None:
        super().__init__(settings, **options)
        self._address, self._nodes, self._told = address, nodes, told

    def train(self, space: Trainable, blocks: Blocks, n_pairs: int) -> list[EpochStats]:
        """As `Trainer.train`.

        Raises
        ------
        InputError
            Blocks that cannot be dealt to workers, a space without points, or no such cluster.
        NoWorkersError
            All nodes are gone, and none has come for minutes; or workers died on each that there is.
        """
        if not isinstance(blocks, Dealt):
            raise InputError("many machines train on rows in shards; write them with `wsabie shards DATA --out DIR`")
        if "norm2" in space.arrays():
            raise InputError("labels with a weight per feature are not trained on many machines; leave --ray out")
        crew = self._crew(replace(self.settings, deterministic=False), space, blocks)
        limits = self.settings.max_norm, self.settings.max_norm_weights
        try:
            self._rounds = Rounds(crew, space.arrays(), partial(space.settle, *limits), told=self._told)
            return super().train(space, blocks, n_pairs)
        finally:
            crew.end()

    def _crew(self, settings: Settings, space: Trainable, blocks: Dealt) -> Any:
        connect(self._address)
        local = self._address == LOCAL
        return Crew(settings, space, blocks, Shares(self._nodes or 1 if local else self._nodes, on_one=local))

    def compile(self, space: Any, blocks: Blocks) -> None:
        """Nothing is trained here; steps are joined."""
        rehearse()

    def _samplings(self, space: Any, blocks: Blocks) -> dict[str | None, Sampling]:
        return {}

    def _pass(
        self,
        space: Any,
        blocks: Any,
        epoch: int,
        samplings: dict[str | None, Sampling],
        threads: Threads,
        stage: Stage,
    ) -> Passed:
        tally = Tally.new(1)
        beside = [0.0, 0]

        def given(report: Report) -> None:
            tally.counters[0] += report.counters
            tally.loss[0] += report.loss
            beside[0] += report.read
            beside[1] += report.unlabelled
            stage.advance(report.pairs)

        left = self._rate(epoch) / (self.settings.learning_rate or 1.0)
        self._rounds.epoch(epoch, blocks.n_parts(epoch), given, left)
        return Passed(tally, beside[0], int(beside[1]))
