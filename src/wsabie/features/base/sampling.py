"""Samples to learn codebooks from, and the document frequency of each word."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress
from wsabie.features.base.extraction_tasks import (
    ExtractionTask,
    ItemDecoder,
    ItemRejection,
    SamplingTask,
    extract_batch,
    sample_batch,
)
from wsabie.features.base.idf_weighting import compute_idf
from wsabie.io.records import Item, ItemSource
from wsabie.storage.rejects import Rejects

BATCH = 16
"""Pictures of a batch for a worker."""

_FEWEST_BLOCKS = 64  # of a picture, while there are more pictures than a sample can take in full
Element = TypeVar("Element")


class WorkContext(NamedTuple):
    """Executor, progress and rejects of a run."""

    executor: Executor
    progress: Progress
    rejects: Rejects


def iterate_batches(elements: Iterable[Element], size: int) -> Iterator[tuple[Element, ...]]:
    """Yield tuples of `size` elements; the last may be shorter.

    Examples
    --------
    >>> list(iterate_batches("abc", 2))
    [('a', 'b'), ('c',)]
    """
    iterator = iter(elements)
    while batch := tuple(islice(iterator, size)):
        yield batch


def iterate_item_batches(items: Iterable[Item], size: int, most: int = 1 << 23) -> Iterator[tuple[Item, ...]]:
    """Yield tuples of `size` items, or fewer where their contents reach `most` bytes in memory.

    Examples
    --------
    >>> items = [Item(str(n), b"12", ()) for n in range(5)]
    >>> [[len(batch) for batch in iterate_item_batches(items, 3, most=most)] for most in (100, 4)]
    [[3, 2], [2, 2, 1]]
    """
    batch: list[Item] = []
    n_bytes = 0
    for item in items:
        batch.append(item)
        n_bytes += len(item.content) if isinstance(item.content, bytes) else 0
        if len(batch) == size or n_bytes >= most:
            yield tuple(batch)
            batch, n_bytes = [], 0
    if batch:
        yield tuple(batch)


def select_evenly(n: int, at_most: int) -> list[int]:
    """Return up to `at_most` positions out of `n`, evenly spread.

    Examples
    --------
    >>> select_evenly(10, 3)
    [0, 3, 6]
    """
    n_positions = min(n, at_most)
    return [i * n // n_positions for i in range(n_positions)]


def iterate_at_positions(elements: Iterable[Element], positions: list[int]) -> Iterator[tuple[int, Element]]:
    """Yield (position, element) at ascending positions.

    Examples
    --------
    >>> list(iterate_at_positions("abcd", [0, 2]))
    [(0, 'a'), (2, 'c')]
    """
    remaining = iter(positions)
    position = next(remaining, None)
    for i, element in enumerate(elements if positions else ()):
        if i == position:
            yield i, element
            position = next(remaining, None)
            if position is None:
                return


def select_sample_positions(source: ItemSource, max_blocks: int) -> list[int]:
    """Return the positions of the pictures for a sample of `max_blocks`."""
    return select_evenly(len(source), max(1, max_blocks // _FEWEST_BLOCKS))


def sample_blocks(
    viewer: ItemDecoder,
    cut: Callable[[Any], Float32],
    source: ItemSource,
    positions: list[int],
    max_blocks: int,
    run: WorkContext,
) -> Float32:
    """Sample an equal number of random blocks from each item at `positions`, as descriptors (n, n_bins).

    `cut` returns all blocks of a view; it is sent to workers.

    Raises
    ------
    InputError
        No picture can be read.
    """
    job = SamplingTask(viewer, cut, -(-max_blocks // max(1, len(positions))))
    blocks: list[Float32] = []
    with run.progress.stage(f"sampling {source.modality}", len(positions), source.modality) as stage:
        for results in run.executor.map_with(
            sample_batch, job, iterate_batches(iterate_at_positions(source, positions), BATCH)
        ):
            for result in results:
                if isinstance(result, ItemRejection):
                    run.rejects.add(*result)
                else:
                    blocks.append(result)
            stage.advance(len(results))
    if not blocks:
        raise InputError(format_nothing_readable(source, run.rejects))
    return np.concatenate(blocks)


def format_nothing_readable(source: ItemSource, rejects: Rejects) -> str:
    """Return the error message for a collection without usable items."""
    if not rejects.listed:
        return f"{source.path} holds no {source.modality}; give a folder or file that has some"
    where, reason, _ = rejects.listed[-1]
    return f"none of the {source.modality} of {source.path} can be read: {where} is refused as {reason}; give others"


def learn_idf(job: ExtractionTask, n_words: int, source: ItemSource, positions: list[int], run: WorkContext) -> Float32:
    """Learn the idf of each word over the items at `positions`, (n_words,)."""
    item_counts, n = np.zeros(n_words, np.int64), 0
    items = iterate_batches((picture for _, picture in iterate_at_positions(source, positions)), BATCH)
    with run.progress.stage("weighing terms", len(positions), source.modality) as stage:
        for results in run.executor.map_with(extract_batch, job, items):
            for result in results:
                if not isinstance(result, ItemRejection):
                    item_counts[result[0].indices] += 1
                    n += 1
            stage.advance(len(results))
    return compute_idf(item_counts, n)
