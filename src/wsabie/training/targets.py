"""From a label matrix to what the kernels visit: pairs in visits, positives as hash masks, explicit negatives."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Int64, Matrix, UInt64
from wsabie.base.mapped import parts
from wsabie.space.protocol import Inputs, Sides

PAIRS_PER_VISIT = 8
"""Pairs of one row that share its query. More would save more encoding and leave the query staler."""

MASK_BITS = 16
"""Bits per positive in its row's hash set: one label in 16 or fewer is looked up in vain."""

_ROWS_AT_ONCE = 1 << 17

Positives = Literal["mean", "pairs"]


class RowBlock(NamedTuple):
    """Some rows with their targets: what the trainer eats. Arrays in memory are one block."""

    inputs: Inputs | Sides
    targets: Any  # kernels.warp.Targets
    ends: Any = None  # of the relation (`space.shared.Ends`) where the space has several
    weight: float = 1.0  # visits of a pair in an epoch
    turn: int | None = None  # kernels' blocks between those of other relations
    begins: float = 0.0  # share of the epoch that is done before it: the rate has fallen by so much of an epoch


def row_blocks(inputs: Inputs, Y: Matrix, weights: Float32 | None, positives: Positives) -> Iterator[RowBlock]:
    """The one-block iterator over arrays in memory."""
    yield RowBlock(inputs, build_targets(Y, weights, positives))


def build_targets(
    Y: Matrix, sample_weight: Float32 | None, positives: Positives, first_pair: int = 0, hidden: Matrix | None = None
) -> Any:
    """Targets of rows with label matrix Y.

    Parameters
    ----------
    Y : csr_matrix (n, n_labels)
        Positive entries are true labels, negative entries explicit negatives. Sorted indices.
    sample_weight : (n,) or None
    positives : {"mean", "pairs"}
        Weight of a pair: sample_weight / number of positives of the row, or sample_weight (convention 3).
    hidden : csr_matrix (n, n_labels) or None
        Non-zeros are not drawn against the row although they are no label of it: the thing itself, among its like.
    """
    from wsabie.kernels.warp import Targets

    true, against = _entries(Y, Y.data > 0), _entries(Y, Y.data < 0)
    counts = np.diff(true.indptr)
    weights = np.ones(len(counts)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if positives == "mean":
        weights = weights / np.maximum(counts, 1)
    visit_rows, starts = _visits(true.indptr)
    known = true if hidden is None else _together(true, hidden, Y.shape)
    masks, mask_starts = _masks(known)
    return Targets(
        rows=visit_rows,
        starts=starts,
        labels=true.indices,
        weights=np.repeat(weights.astype(np.float32), counts),
        indptr=known.indptr,
        indices=known.indices,
        masks=masks,
        mask_starts=mask_starts,
        against_indptr=against.indptr,
        against=against.indices,
        first_pair=first_pair,
        n_labels=Y.shape[1],
    )


class _Lists(NamedTuple):
    indptr: Int64
    indices: Any


def _entries(Y: Matrix, chosen: Any) -> _Lists:
    if chosen.all():
        return _Lists(Y.indptr.astype(np.int64), np.ascontiguousarray(Y.indices, np.int32))
    indptr = np.concatenate([[0], np.cumsum(chosen)])[Y.indptr].astype(np.int64)
    return _Lists(indptr, np.ascontiguousarray(Y.indices[chosen], np.int32))


def _together(true: _Lists, hidden: Matrix, shape: tuple[int, int]) -> _Lists:
    from scipy.sparse import csr_matrix

    both = csr_matrix((np.ones(len(true.indices), np.int8), true.indices, true.indptr), shape) + abs(hidden)
    both.sort_indices()
    return _entries(both, both.data > 0)


def _visits(indptr: Int64) -> tuple[Any, Int64]:
    """Each row's pairs cut into visits of at most PAIRS_PER_VISIT, as equal as they can be."""
    counts = np.diff(indptr)
    per_row = -(-counts // PAIRS_PER_VISIT)
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), per_row)
    ordinal = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    starts = indptr[rows] + ordinal * counts[rows] // np.maximum(per_row[rows], 1)
    return rows, np.append(starts, indptr[-1]).astype(np.int64)


def _masks(true: _Lists) -> tuple[UInt64, Int64]:
    """A hash set per row with MASK_BITS bits per positive, in whole words, and where each begins."""
    from wsabie.kernels.warp import bit_of

    counts = np.diff(true.indptr)
    words = np.maximum(1, -(-counts * MASK_BITS // 64))
    starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    masks = np.zeros(starts[-1], np.uint64)
    for part in parts(len(counts), _ROWS_AT_ONCE):
        some = slice(true.indptr[part.start], true.indptr[part.stop])
        bits = bit_of(true.indices[some], np.repeat(words[part], counts[part]))
        at = np.repeat(starts[part], counts[part]) + (bits >> np.uint64(6)).astype(np.int64)
        np.bitwise_or.at(masks, at, np.uint64(1) << (bits & np.uint64(63)))
    return masks, starts
