"""Random order of the blocks of rows that an epoch reads."""

import numpy as np

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
