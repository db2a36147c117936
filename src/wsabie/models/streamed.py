"""What `fit` makes of rows in shards: blocks for the trainer, scaling from the statistics beside them."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from wsabie.base.arrays import Csr, Int64, Matrix
from wsabie.models.inputs import Inputs
from wsabie.models.parameters import checksum
from wsabie.models.scaling import Rows, RowScaling, Seen
from wsabie.sources.sharded import ShardedRows, Truth
from wsabie.training.ahead import CHUNK, Spans, ahead, planned, rows_per_block
from wsabie.training.targets import Positives, RowBlock, build_targets

PARTS, ROWS_PER_PART = 64, 1 << 12
"""Parts of an epoch that others can take, and rows of one at most."""
PAIRS_OF_PART = 36
"""Bits for the number of a pair in its part."""
ROWS_READ = 1 << 14
"""Rows that are read at once where all are looked at in their order, at most."""
_dealt = lru_cache(maxsize=2)(planned)


def scaling_of(rows: Any, n_features: int, how: Rows) -> RowScaling:
    """The scaling that checked rows ask for, or all rows of the shards."""
    if not isinstance(rows, ShardedRows):
        return RowScaling.learned(rows, n_features, how, constant=True)
    facts, found = rows.shards.facts, rows.shards.statistics()
    moments = (found["mean"], found["deviation"]) if rows.shards.dense else None
    seen = Seen(len(rows.shards), float(facts["least"]), lambda: found["rows_above_0"], lambda: moments)
    return RowScaling.told(seen, n_features, how, dense=rows.shards.dense, constant=True)


def checksum_of(rows: Any, targets: Any, sample_weight: Any) -> int:
    """CRC-32 of the training data, so that a checkpoint is not taken for that of other rows."""
    if not isinstance(rows, ShardedRows):
        return checksum(rows, targets, sample_weight)
    return zlib.crc32(repr(rows.identity).encode())


def scaled_parts(inputs: Any, targets: Any, scaling: RowScaling) -> Iterator[tuple[Inputs, Matrix]]:
    """Scaled rows with their labels: all at once, or those of shards some at a time, which are scaled here."""
    if not isinstance(inputs, ShardedRows):
        yield inputs, targets
        return
    size = min(ROWS_READ, rows_per_block(len(inputs.shards), int(inputs.shards.facts["nonzeros"])))
    for X, Y in ahead(inputs.read([span]) for span in inputs.spans(size)):
        if Y.shape[0]:
            yield scaling(X), Y


@dataclass(frozen=True)
class ReadBlocks:
    """The blocks of an epoch, by its number, each read, scaled and laid out while the one before is trained on.

    Attributes
    ----------
    of_label : (n_labels,) int64
        Rows of which each label is true.
    """

    rows: ShardedRows
    scaling: RowScaling
    positives: Positives
    seed: int
    truth: Truth

    @property
    def of_label(self) -> Int64:
        return self.truth.of_label

    def alike(self) -> RowBlock:
        """A block of few rows, of the same types."""
        return self._block([(self.rows.lo, self.rows.lo + 1)], 0, 0.0)

    def __call__(self, epoch: int) -> Iterator[RowBlock]:
        return ahead(self._blocks(epoch))

    def n_parts(self, epoch: int) -> int:
        """Into how many parts an epoch is dealt."""
        return len(self._parts(epoch))

    def part(self, epoch: int, number: int) -> RowBlock:
        """A part of an epoch; its pairs have numbers of their own, which those of no other part are."""
        parts = self._parts(epoch)
        return self._block(parts[number], number << PAIRS_OF_PART, number / len(parts))

    def _parts(self, epoch: int) -> list[Spans]:
        rows = self.rows
        size = min(self._size, ROWS_PER_PART, max(CHUNK, -(-(rows.hi - rows.lo) // PARTS)))
        return _dealt(rows.lo, rows.hi, size, self.seed, epoch)

    @property
    def _size(self) -> int:
        shards = self.rows.shards
        return rows_per_block(len(shards), int(shards.facts["nonzeros"]))

    def _blocks(self, epoch: int) -> Iterator[RowBlock]:
        rows, first_pair, done, size = self.rows, 0, 0, self._size
        for spans in planned(rows.lo, rows.hi, size, self.seed, epoch):
            block = self._block(spans, first_pair, done / (rows.hi - rows.lo))
            first_pair += len(block.targets.labels)
            done += sum(hi - lo for lo, hi in spans)
            yield block

    def _block(self, spans: Spans, first_pair: int, begins: float) -> RowBlock:
        X, Y = self.rows.read(spans)
        inputs: Any = self.scaling(X, into=X.data) if isinstance(X, Csr) else self.scaling(X)
        return RowBlock(inputs, build_targets(Y, None, self.positives, first_pair), begins=begins)
