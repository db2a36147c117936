"""Blocks of rows read in a random order, the next one while kernels train on the one before."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
CHUNK = 256
"""Rows that are read in one go; they lie in the shards in a random order already."""
ROWS_PER_BLOCK = 1 << 15
"""The rate falls from block to block, so that few large ones end at a higher one."""
NONZEROS_PER_BLOCK = 1 << 23
_END: Any = object()

Spans = list[tuple[int, int]]


def rows_per_block(n_rows: int, nonzeros: int) -> int:
    """Rows of a block: fewer where they are long.

    Examples
    --------
    >>> rows_per_block(10_000_000, 2_450_000_000), rows_per_block(1000, 1_024_000)
    (32768, 8192)
    """
    return max(CHUNK, min(ROWS_PER_BLOCK, NONZEROS_PER_BLOCK * n_rows // max(nonzeros, 1)))


def planned(lo: int, hi: int, block: int, seed: int, epoch: int, chunk: int | None = None) -> list[Spans]:
    """The rows lo..hi - 1 dealt into blocks of about `block` rows, each of chunks from everywhere.

    Chunks are drawn anew in every epoch; in a block they are in the order of the rows, which is quickly read, because
    the visits of a block are put in a random order anyway. What fits into one block is simply read.

    Examples
    --------
    >>> planned(0, 1000, 1000, 0, 0)
    [[(0, 1000)]]
    >>> sum(hi - lo for spans in planned(7, 1000, 300, 0, 0) for lo, hi in spans)
    993
    """
    chunk = chunk or CHUNK
    n_chunks = -(-(hi - lo) // chunk)
    order = np.random.default_rng([seed, 2, epoch]).permutation(n_chunks)
    parts = np.array_split(order, max(1, -(-(hi - lo) // block)))
    firsts = [np.sort(lo + part * chunk).tolist() for part in parts]
    return [_merged([(first, min(first + chunk, hi)) for first in part]) for part in firsts]


def _merged(spans: Spans) -> Spans:
    merged: Spans = []
    for lo, hi in spans:
        if merged and merged[-1][1] == lo:
            merged[-1] = merged[-1][0], hi
        else:
            merged.append((lo, hi))
    return merged


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in a thread while the one before is in use: two are there at once, and no more.

    Examples
    --------
    >>> list(ahead(range(3)))
    [0, 1, 2]
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="wsabie-reads") as pool:
        coming = pool.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, iterator, _END)
            yield item
