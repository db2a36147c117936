"""Training rows in shards: blocks for the trainer, and scaling from the shards' statistics."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from wsabie.core.arrays import Csr, Int64, Matrix
from wsabie.io.shards.sharded_table import LabelStatistics, ShardedFeatureTable
from wsabie.models.base.feature_matrix import Inputs
from wsabie.models.base.hyperparameters import compute_checksum
from wsabie.models.base.row_scaling import Rows, RowScaling, RowStatistics
from wsabie.training.prefetch import CHUNK, Spans, compute_block_size, plan_blocks, prefetch
from wsabie.training.targets import Positives, RowBlock, build_targets

PARTS, ROWS_PER_PART = 64, 1 << 12
"""Parts of an epoch that other processes can take, and most rows of a part."""
PAIRS_OF_PART = 36
"""Bits of a pair's number within its part."""
ROWS_READ = 1 << 14
"""Most rows that are read at once in their order."""
_plan_cached = lru_cache(maxsize=2)(plan_blocks)


def fit_scaling(rows: Any, n_features: int, method: Rows) -> RowScaling:
    """Fit a scaling to checked rows, or to all rows of the shards."""
    if not isinstance(rows, ShardedFeatureTable):
        return RowScaling.learned(rows, n_features, method, constant=True)
    facts, shard_statistics = rows.shards.facts, rows.shards.statistics()
    moments = (shard_statistics["mean"], shard_statistics["deviation"]) if rows.shards.dense else None
    statistics = RowStatistics(
        len(rows.shards), float(facts["least"]), lambda: shard_statistics["rows_above_0"], lambda: moments
    )
    return RowScaling.from_statistics(statistics, n_features, method, dense=rows.shards.dense, constant=True)


def compute_shard_checksum(rows: Any, targets: Any, sample_weight: Any) -> int:
    """Return the CRC-32 of the training data, so that a checkpoint is only used with the same rows."""
    if not isinstance(rows, ShardedFeatureTable):
        return compute_checksum(rows, targets, sample_weight)
    return zlib.crc32(repr(rows.identity).encode())


def iterate_scaled_parts(inputs: Any, targets: Any, scaling: RowScaling) -> Iterator[tuple[Inputs, Matrix]]:
    """Yield scaled rows with their labels: all at once, or rows of shards in parts, which are scaled here."""
    if not isinstance(inputs, ShardedFeatureTable):
        yield inputs, targets
        return
    size = min(ROWS_READ, compute_block_size(len(inputs.shards), int(inputs.shards.facts["nonzeros"])))
    for X, Y in prefetch(inputs.read([span]) for span in inputs.spans(size)):
        if Y.shape[0]:
            yield scaling(X), Y


@dataclass(frozen=True)
class ShardBlocks:
    """Blocks of each epoch; a block is read, scaled and laid out while training uses the previous one.

    Attributes
    ----------
    of_label : (n_labels,) int64
        Number of rows that have each label.
    """

    rows: ShardedFeatureTable
    scaling: RowScaling
    positives: Positives
    seed: int
    truth: LabelStatistics

    @property
    def of_label(self) -> Int64:
        return self.truth.of_label

    def alike(self) -> RowBlock:
        """Return a small block of the same types."""
        return self._block([(self.rows.lo, self.rows.lo + 1)], 0, 0.0)

    def __call__(self, epoch: int) -> Iterator[RowBlock]:
        return prefetch(self._blocks(epoch))

    def n_parts(self, epoch: int) -> int:
        """Return the number of parts of an epoch."""
        return len(self._parts(epoch))

    def part(self, epoch: int, number: int) -> RowBlock:
        """Return a part of an epoch; the numbers of its pairs differ from those of all other parts."""
        parts = self._parts(epoch)
        return self._block(parts[number], number << PAIRS_OF_PART, number / len(parts))

    def _parts(self, epoch: int) -> list[Spans]:
        rows = self.rows
        size = min(self._size, ROWS_PER_PART, max(CHUNK, -(-(rows.hi - rows.lo) // PARTS)))
        return _plan_cached(rows.lo, rows.hi, size, self.seed, epoch)

    @property
    def _size(self) -> int:
        shards = self.rows.shards
        return compute_block_size(len(shards), int(shards.facts["nonzeros"]))

    def _blocks(self, epoch: int) -> Iterator[RowBlock]:
        rows, first_pair, n_rows_done, size = self.rows, 0, 0, self._size
        for spans in plan_blocks(rows.lo, rows.hi, size, self.seed, epoch):
            block = self._block(spans, first_pair, n_rows_done / (rows.hi - rows.lo))
            first_pair += len(block.targets.labels)
            n_rows_done += sum(hi - lo for lo, hi in spans)
            yield block

    def _block(self, spans: Spans, first_pair: int, begins: float) -> RowBlock:
        X, Y = self.rows.read(spans)
        inputs: Any = self.scaling(X, into=X.data) if isinstance(X, Csr) else self.scaling(X)
        return RowBlock(inputs, build_targets(Y, None, self.positives, first_pair), begins=begins)
