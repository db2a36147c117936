"""Data of a run: blocks of rows with targets (visits, hash masks of positives, explicit negatives)."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from wsabie.core.arrays import Array, Bool, Float32, Int64, Matrix, UInt64, iterate_slices
from wsabie.core.label_lists import LabelLists
from wsabie.embedding.protocols import ComposedInputs, EntityInputs, KernelArrays, RelationEnds
from wsabie.kernels.training.warp import TrainingTargets, hash_to_bit

PAIRS_PER_VISIT = 8
"""Pairs of one row that share its query. More pairs would save encoding but make the query staler."""

MASK_BITS = 16
"""Bits per positive in its row's hash set; at most one label in 16 is a false hit."""

_ROWS_AT_ONCE = 1 << 17

PairWeighting = Literal["mean", "pairs"]


class RowBlock(NamedTuple):
    """Block of rows with their targets, the input of the trainer. Arrays in memory are one block."""

    inputs: EntityInputs | ComposedInputs
    targets: KernelArrays  # kernels.warp.TrainingTargets
    ends: RelationEnds | None = None  # if the space has several relations
    weight: float = 1.0  # visits of a pair in an epoch
    blocks_per_turn: int | None = None  # kernels' blocks between those of other relations
    epoch_progress: float = 0.0  # share of the epoch before this block, which lowers the rate


class TrainingData:
    """Blocks that training visits in every epoch; a subclass draws or reads them again.

    Parameters
    ----------
    blocks : sequence of RowBlock

    Attributes
    ----------
    n_pairs : int
        Pairs that an epoch visits, perhaps a few less.
    label_counts : (n_labels,) int64 or None
        Number of rows that have each label; None: the trainer counts them in the blocks of the first epoch.
    """

    label_counts: Int64 | None = None

    def __init__(self, blocks: Sequence[RowBlock]) -> None:
        self._blocks = blocks
        self.n_pairs = sum(round(len(block.targets.labels) * block.weight) for block in blocks)

    def read_epoch(self, epoch: int) -> Iterable[RowBlock]:
        """Return the blocks of an epoch."""
        return self._blocks

    def read_samples(self) -> Iterable[RowBlock]:
        """Return blocks of all types that an epoch has, for compilation."""
        return self.read_epoch(0)


class DrawnData(TrainingData):
    """Data with one block in each epoch, which a function draws from the number of the epoch."""

    def __init__(self, draw: Callable[[int], RowBlock]) -> None:
        self._draw = draw
        self.n_pairs = len(draw(0).targets.labels)

    def read_epoch(self, epoch: int) -> Iterable[RowBlock]:
        """Draw the block of an epoch, when it is needed."""
        yield self._draw(epoch)


class PartitionedData(TrainingData):
    """Data in parts that are identified by epoch and number, so that any process can read any of them."""

    @abstractmethod
    def count_parts(self, epoch: int) -> int:
        """Return the number of parts of an epoch."""

    @abstractmethod
    def read_part(self, epoch: int, number: int) -> RowBlock:
        """Return a part of an epoch."""


def build_targets(
    Y: Matrix, weights: Float32 | None, pair_weighting: PairWeighting, first_pair: int = 0, hidden: Matrix | None = None
) -> KernelArrays:
    """Build the targets of rows with label matrix Y.

    Parameters
    ----------
    Y : csr_matrix (n, n_labels)
        Positive entries are true labels, negative entries explicit negatives. Sorted indices.
    weights : (n,) or None
        Weights of the rows.
    pair_weighting : {"mean", "pairs"}
        Weight of a pair: that of the row / number of its positives, or that of the row (convention 3).
    hidden : csr_matrix (n, n_labels) or None
        Non-zeros are not drawn as negatives of the row although they are not labels of it, such as the item itself.
    """
    positives, explicit_negatives = _select_entries(Y, Y.data > 0), _select_entries(Y, Y.data < 0)
    counts = np.diff(positives.indptr)
    row_weights = np.ones(len(counts)) if weights is None else np.asarray(weights, np.float64)
    if pair_weighting == "mean":
        row_weights = row_weights / np.maximum(counts, 1)
    visit_rows, starts = _split_visits(positives.indptr)
    hidden_lists = positives if hidden is None else _merge_hidden(positives, hidden, Y.shape)
    masks, mask_starts = _build_masks(hidden_lists)
    return TrainingTargets(
        rows=visit_rows,
        starts=starts,
        labels=positives.labels,
        weights=np.repeat(row_weights.astype(np.float32), counts),
        indptr=hidden_lists.indptr,
        indices=hidden_lists.labels,
        masks=masks,
        mask_starts=mask_starts,
        explicit_indptr=explicit_negatives.indptr,
        explicit_negatives=explicit_negatives.labels,
        first_pair=first_pair,
        n_labels=Y.shape[1],
    )


def _select_entries(Y: Matrix, mask: Bool) -> LabelLists:
    if mask.all():
        return LabelLists(Y.indptr.astype(np.int64), np.ascontiguousarray(Y.indices, np.int32))
    indptr = np.concatenate([[0], np.cumsum(mask)])[Y.indptr].astype(np.int64)
    return LabelLists(indptr, np.ascontiguousarray(Y.indices[mask], np.int32))


def _merge_hidden(positives: LabelLists, hidden: Matrix, shape: tuple[int, int]) -> LabelLists:
    ones = np.ones(len(positives.labels), np.int8)
    merged = csr_matrix((ones, positives.labels, positives.indptr), shape) + abs(hidden)
    merged.sort_indices()
    return _select_entries(merged, merged.data > 0)


def _split_visits(indptr: Int64) -> tuple[Array, Int64]:
    """Split each row's pairs into visits of at most PAIRS_PER_VISIT, as equal as possible."""
    counts = np.diff(indptr)
    per_row = -(-counts // PAIRS_PER_VISIT)
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), per_row)
    ordinal = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    starts = indptr[rows] + ordinal * counts[rows] // np.maximum(per_row[rows], 1)
    return rows, np.append(starts, indptr[-1]).astype(np.int64)


def _build_masks(positives: LabelLists) -> tuple[UInt64, Int64]:
    """Build a hash set per row with MASK_BITS bits per positive, in whole words; return sets and starts."""
    counts = np.diff(positives.indptr)
    words = np.maximum(1, -(-counts * MASK_BITS // 64))
    starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    masks = np.zeros(starts[-1], np.uint64)
    for part in iterate_slices(len(counts), _ROWS_AT_ONCE):
        entries = slice(positives.indptr[part.start], positives.indptr[part.stop])
        bits = hash_to_bit(positives.labels[entries], np.repeat(words[part], counts[part]))
        words_of_bits = np.repeat(starts[part], counts[part]) + (bits >> np.uint64(6)).astype(np.int64)
        np.bitwise_or.at(masks, words_of_bits, np.uint64(1) << (bits & np.uint64(63)))
    return masks, starts
