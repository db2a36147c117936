"""Worker of a node: it trains parts of an epoch on its own tables and returns their steps."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from wsabie.core.arrays import Float64, Int64
from wsabie.core.progress import SILENT
from wsabie.distributed.table_deltas import TableDeltas, apply_deltas, compute_deltas, warm_up
from wsabie.training.epoch_runner import EpochRunner, count_block_reads
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import StepCounters
from wsabie.training.settings import TrainingSettings
from wsabie.training.training_data import PartitionedData, RowBlock


class PartReport(NamedTuple):
    """Counters and sums of training a part."""

    counters: Int64
    loss: Float64
    pairs: int
    rows_read: float
    unlabelled: int


class AveragingWorker:
    """Worker that trains parts on its own tables.

    Parameters
    ----------
    settings : TrainingSettings
        `threads` are those of this node.
    space : TrainableTables
        Initial tables; copied.
    data : PartitionedData
    """

    def __init__(self, settings: TrainingSettings, space: Any, data: PartitionedData) -> None:
        self.settings, self.space, self.data = settings, space, data
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="wsabie-reads")
        self._prefetch: tuple[tuple[int, int], Future[RowBlock]] | None = None

    def begin(self) -> None:
        """Copy the tables, compile the kernels and create the sampler; this may take a while, or fail."""
        settings, self.space = self.settings, self.space.copy()
        self.base_tables = {name: table.copy() for name, table in self.space.arrays().items()}
        self.threads, self.runner = KernelThreads(settings.threads), EpochRunner(settings, self.space, self.data)
        self.runner.prepare(SILENT, None)
        warm_up()

    def train(self, epoch: int, number: int, coming: int | None = None) -> PartReport:
        """Train a part while another thread reads the coming one."""
        block = self._read_block(epoch, number)
        if coming is not None:
            self._prefetch = (epoch, coming), self._reader.submit(self.data.read_part, epoch, coming)
        step_counters = StepCounters.new(self.threads.n)
        _, visits = self.runner.prepare_visits(block, epoch, number, self.threads, step_counters)
        for _ in visits:
            pass
        return PartReport(
            step_counters.counters.sum(0),
            step_counters.loss.sum(0),
            len(block.targets.labels),
            *count_block_reads(block),
        )

    def _read_block(self, epoch: int, number: int) -> RowBlock:
        coming, self._prefetch = self._prefetch, None
        if coming is not None and coming[0] == (epoch, number):
            return coming[1].result()
        return self.data.read_part(epoch, number)

    def give(self) -> TableDeltas:
        """Return the steps since the tables were taken; the tables go back by these until `take`."""
        return compute_deltas(self.space.arrays(), self.base_tables, back=True)

    def take(self, news: TableDeltas) -> None:
        """Continue from new tables, and keep the steps that are not given yet."""
        apply_deltas(self.space.arrays(), self.base_tables, news)

    def work(
        self, news: TableDeltas | None, part: tuple[int, int, int | None] | None, gives: bool
    ) -> tuple[PartReport | None, TableDeltas | None]:
        """Take, train and give by one message; results that were not requested are None."""
        if news is not None:
            self.take(news)
        report = None if part is None else self.train(*part)
        return report, self.give() if gives else None
