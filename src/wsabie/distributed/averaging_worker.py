"""What a node does: it trains parts of an epoch on tables of its own, and says how far it has moved them."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from wsabie.base.arrays import Float64, Int64
from wsabie.distributed.averaging_steps import Parts, rehearse, steps, take
from wsabie.training.loops import Tally
from wsabie.training.settings import Settings
from wsabie.training.targets import RowBlock
from wsabie.training.threads import Threads
from wsabie.training.trainer import Dealt, Trainer, read_for


class Report(NamedTuple):
    """What the training of a part did."""

    counters: Int64
    loss: Float64
    pairs: int
    read: float
    unlabelled: int


class Worker:
    """Trains parts on its own tables.

    Parameters
    ----------
    settings : Settings
        Its threads are those of this node.
    space : Trainable
        Where it begins; copied.
    blocks : Dealt
    """

    def __init__(self, settings: Settings, space: Any, blocks: Dealt) -> None:
        self.settings, self.space, self.blocks = settings, space, blocks
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="wsabie-reads")
        self._coming: tuple[tuple[int, int], Future[RowBlock]] | None = None

    def begin(self) -> None:
        """What may take a while, or fail."""
        settings, self.space = self.settings, self.space.copy()
        self.before = {name: table.copy() for name, table in self.space.arrays().items()}
        self.trainer, self.threads = Trainer(settings), Threads(settings.threads)
        self.trainer.compile(self.space, self.blocks)
        rehearse()
        self.sampling = self.trainer.sampling(self.space, self.blocks.of_label)

    def train(self, epoch: int, number: int, coming: int | None = None) -> Report:
        """Train a part; the coming one is read meanwhile."""
        block = self._block(epoch, number)
        if coming is not None:
            self._coming = (epoch, coming), self._reads.submit(self.blocks.part, epoch, coming)
        tally = Tally.new(self.threads.n)
        _, visits = self.trainer.visited(self.space, block, epoch, number, self.sampling, self.threads, tally)
        for _ in visits:
            pass
        return Report(tally.counters.sum(0), tally.loss.sum(0), len(block.targets.labels), *read_for(block))

    def _block(self, epoch: int, number: int) -> RowBlock:
        coming, self._coming = self._coming, None
        if coming is not None and coming[0] == (epoch, number):
            return coming[1].result()
        return self.blocks.part(epoch, number)

    def give(self) -> Parts:
        """How far the tables have moved since they were taken; they go back by it until `take`."""
        return steps(self.space.arrays(), self.before, back=True)

    def take(self, news: Parts) -> None:
        """Go on from new tables, with what was not given."""
        take(self.space.arrays(), self.before, news)

    def work(
        self, news: Parts | None, part: tuple[int, int, int | None] | None, gives: bool
    ) -> tuple[Report | None, Parts | None]:
        """Take, train and give by one message; what was not asked is None."""
        if news is not None:
            self.take(news)
        report = None if part is None else self.train(*part)
        return report, self.give() if gives else None
