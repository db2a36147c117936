"""Rows of a training, in memory or in shards: shape, scaling, checksum, and data for the trainer."""

import zlib
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from wsabie.core.arrays import Csr, Float32, Matrix
from wsabie.io.shards.sharded_table import LabelStatistics, ShardedFeatureTable
from wsabie.models.base.feature_matrix import FeatureMatrix, take_rows
from wsabie.models.base.hyperparameters import compute_checksum
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.base.row_scaling import RowScaling, Scaling
from wsabie.training.prefetch import prefetch
from wsabie.training.training_data import PairWeighting, PartitionedData, RowBlock, TrainingData, build_targets

PARTS, ROWS_PER_PART = 64, 1 << 12
"""Parts of an epoch that other processes can take, and most rows of a part."""
PAIRS_OF_PART = 36
"""Bits of a pair's number within its part."""
ROWS_READ = 1 << 14
"""Most rows that are read at once in their order."""
CHUNK = 256
"""Rows of one read; the shards store rows in random order already."""
ROWS_PER_BLOCK = 1 << 15
"""Maximum rows of a block. The rate falls from block to block, so that larger blocks would end at a higher rate."""
NONZEROS_PER_BLOCK = 1 << 23

Spans = list[tuple[int, int]]


def compute_block_size(n_rows: int, nonzeros: int) -> int:
    """Compute the number of rows of a block, fewer for long rows.

    Examples
    --------
    >>> compute_block_size(10_000_000, 2_450_000_000), compute_block_size(1000, 1_024_000)
    (32768, 8192)
    """
    return max(CHUNK, min(ROWS_PER_BLOCK, NONZEROS_PER_BLOCK * n_rows // max(nonzeros, 1)))


def plan_blocks(lo: int, hi: int, block: int, seed: int, epoch: int, chunk: int | None = None) -> list[Spans]:
    """Divide the rows lo..hi - 1 into blocks of about `block` rows, each of random chunks.

    Every epoch draws other chunks. Within a block they keep the order of the rows, which reads fast; the visits of a
    block are shuffled anyway. Rows that fit into one block are read in order.

    Examples
    --------
    >>> plan_blocks(0, 1000, 1000, 0, 0)
    [[(0, 1000)]]
    >>> sum(hi - lo for spans in plan_blocks(7, 1000, 300, 0, 0) for lo, hi in spans)
    993
    """
    chunk = chunk or CHUNK
    n_chunks = -(-(hi - lo) // chunk)
    order = np.random.default_rng([seed, 2, epoch]).permutation(n_chunks)
    parts = np.array_split(order, max(1, -(-(hi - lo) // block)))
    firsts = [np.sort(lo + part * chunk).tolist() for part in parts]
    return [_merge_spans([(first, min(first + chunk, hi)) for first in part]) for part in firsts]


def _merge_spans(spans: Spans) -> Spans:
    merged: Spans = []
    for lo, hi in spans:
        if merged and merged[-1][1] == lo:
            merged[-1] = merged[-1][0], hi
        else:
            merged.append((lo, hi))
    return merged


_plan_cached = lru_cache(maxsize=2)(plan_blocks)


@dataclass(frozen=True)
class TrainingRows:
    """Checked rows of a training with their label matrix, in memory.

    Attributes
    ----------
    inputs : Csr or (n, n_features) float32
    targets : csr_matrix (n, n_labels)
    weights : (n,) float32 or None
    is_update : bool
        The rows continue the training of a fitted model.
    """

    inputs: Any
    targets: Any
    weights: Float32 | None = None
    is_update: bool = False

    @property
    def shape(self) -> TrainingShape:
        """Sizes that values of "auto" depend on; explicit negatives are not pairs."""
        rows, n_labels = self.targets.shape
        return TrainingShape(rows, int((self.targets.data > 0).sum()), n_labels)

    def fit_scaling(self, n_features: int, method: Scaling) -> RowScaling:
        """Fit a scaling to all rows."""
        return RowScaling.fit(self.inputs, n_features, method, constant=True)

    def compute_checksum(self) -> int:
        """Return the CRC-32 of the rows, so that a checkpoint is only used with the same ones."""
        return compute_checksum(self.inputs, self.targets, self.weights)

    def scale(self, scaling: RowScaling) -> Self:
        """Return the rows as training reads them: scaled now, or when they are read."""
        return replace(self, inputs=scaling(self.inputs))

    def iterate_parts(self, scaling: RowScaling) -> Iterator[tuple[FeatureMatrix, Matrix]]:
        """Yield scaled rows with their labels, all at once or in parts."""
        yield self.inputs, self.targets

    def sample(
        self, scaling: RowScaling, most: int, rng: np.random.Generator
    ) -> tuple[FeatureMatrix, Matrix, Float32 | None]:
        """Return scaled rows, their labels and weights: all rows, or as many random ones, in their order."""
        n = self.targets.shape[0]
        if n <= most:
            return self.inputs, self.targets, self.weights
        row_ids = np.sort(rng.choice(n, most, replace=False))
        weights = None if self.weights is None else self.weights[row_ids]
        return take_rows(self.inputs, row_ids), self.targets[row_ids], weights

    def build_data(self, scaling: RowScaling, pair_weighting: PairWeighting, seed: int) -> TrainingData:
        """Return the rows as data of the trainer."""
        return TrainingData([RowBlock(self.inputs, build_targets(self.targets, self.weights, pair_weighting))])


@dataclass(frozen=True)
class ShardedRows(TrainingRows):
    """Rows in shards (`inputs`, a ShardedFeatureTable), with their LabelStatistics as `targets`."""

    @property
    def shape(self) -> TrainingShape:
        """Sizes that values of "auto" depend on."""
        return TrainingShape(self.targets.rows, self.targets.pairs, len(self.targets.of_label))

    def fit_scaling(self, n_features: int, method: Scaling) -> RowScaling:
        """Fit a scaling from the statistics of the shards."""
        shards = self.inputs.shards
        least, statistics = float(shards.facts["least"]), shards.read_statistics()
        if shards.is_dense:
            return RowScaling.from_columns(method, lambda: (statistics["mean"], statistics["deviation"]), constant=True)
        return RowScaling.from_counts(method, n_features, len(shards), least, lambda: statistics["rows_above_0"])

    def compute_checksum(self) -> int:
        """Return the CRC-32 of what identifies the shards."""
        return zlib.crc32(repr(self.inputs.identity).encode())

    def scale(self, scaling: RowScaling) -> Self:
        """Return the rows, which are scaled when they are read."""
        return self

    def iterate_parts(self, scaling: RowScaling) -> Iterator[tuple[FeatureMatrix, Matrix]]:
        """Yield scaled rows with their labels in parts."""
        table = self.inputs
        size = min(ROWS_READ, compute_block_size(len(table.shards), int(table.shards.facts["nonzeros"])))
        for X, Y in prefetch(table.read_spans([span]) for span in table.list_spans(size)):
            if Y.shape[0]:
                yield _scale_in_place(scaling, X), Y

    def sample(
        self, scaling: RowScaling, most: int, rng: np.random.Generator
    ) -> tuple[FeatureMatrix, Matrix, Float32 | None]:
        """Return the first rows, because the order of rows in shards is random."""
        table = self.inputs
        X, Y = table.read_spans([(table.lo, min(table.hi, table.lo + most))])
        return _scale_in_place(scaling, X), Y, None

    def build_data(self, scaling: RowScaling, pair_weighting: PairWeighting, seed: int) -> TrainingData:
        """Return blocks that are read while training uses those before."""
        return ShardedData(self.inputs, scaling, pair_weighting, seed, self.targets)


@dataclass
class ShardedData(PartitionedData):
    """Blocks of shards; a block is read, scaled and laid out while training uses the previous one."""

    rows: ShardedFeatureTable
    scaling: RowScaling
    pair_weighting: PairWeighting
    seed: int
    truth: InitVar[LabelStatistics]

    def __post_init__(self, truth: LabelStatistics) -> None:
        self.label_counts, self.n_pairs = truth.of_label, truth.pairs

    def read_epoch(self, epoch: int) -> Iterator[RowBlock]:
        """Read the blocks of an epoch, each while the one before is in use."""
        return prefetch(self._iterate_blocks(epoch))

    def read_samples(self) -> list[RowBlock]:
        """Return a small block of the same types as all others."""
        return [self._read_block([(self.rows.lo, self.rows.lo + 1)], 0, 0.0)]

    def count_parts(self, epoch: int) -> int:
        """Return the number of parts of an epoch."""
        return len(self._plan_parts(epoch))

    def read_part(self, epoch: int, number: int) -> RowBlock:
        """Return a part of an epoch; the numbers of its pairs differ from those of all other parts."""
        parts = self._plan_parts(epoch)
        return self._read_block(parts[number], number << PAIRS_OF_PART, number / len(parts))

    def _plan_parts(self, epoch: int) -> list[Spans]:
        rows = self.rows
        size = min(self._size, ROWS_PER_PART, max(CHUNK, -(-(rows.hi - rows.lo) // PARTS)))
        return _plan_cached(rows.lo, rows.hi, size, self.seed, epoch)

    @property
    def _size(self) -> int:
        shards = self.rows.shards
        return compute_block_size(len(shards), int(shards.facts["nonzeros"]))

    def _iterate_blocks(self, epoch: int) -> Iterator[RowBlock]:
        rows, first_pair, n_rows_done, size = self.rows, 0, 0, self._size
        for spans in plan_blocks(rows.lo, rows.hi, size, self.seed, epoch):
            block = self._read_block(spans, first_pair, n_rows_done / (rows.hi - rows.lo))
            first_pair += len(block.targets.labels)
            n_rows_done += sum(hi - lo for lo, hi in spans)
            yield block

    def _read_block(self, spans: Spans, first_pair: int, epoch_progress: float) -> RowBlock:
        X, Y = self.rows.read_spans(spans)
        inputs = _scale_in_place(self.scaling, X)
        return RowBlock(inputs, build_targets(Y, None, self.pair_weighting, first_pair), epoch_progress=epoch_progress)


def _scale_in_place(scaling: RowScaling, X: FeatureMatrix) -> FeatureMatrix:
    """Return scaled rows; values of sparse ones are overwritten."""
    return scaling(X, out=X.data) if isinstance(X, Csr) else scaling(X)
