"""What a dictionary learns from: a sample of blocks, and in how many pictures each term is found."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.features.viewer import Describing, Rejected, Sampling, Viewer, describe_batch, sample_batch
from wsabie.features.weighting import idf
from wsabie.sources.records import Item, ItemSource
from wsabie.storage.rejects import Rejects

BATCH = 16
"""Pictures that travel to a worker together."""

_FEWEST_BLOCKS = 64  # of a picture, while there are more pictures than a sample can take in full
Thing = TypeVar("Thing")


class Run(NamedTuple):
    """Where the work runs and whom it tells."""

    executor: Executor
    progress: Progress
    rejects: Rejects


def batches(things: Iterable[Thing], size: int) -> Iterator[tuple[Thing, ...]]:
    """Tuples of `size` things, the last one perhaps shorter.

    Examples
    --------
    >>> list(batches("abc", 2))
    [('a', 'b'), ('c',)]
    """
    iterator = iter(things)
    while batch := tuple(islice(iterator, size)):
        yield batch


def item_batches(items: Iterable[Item], size: int, most: int = 1 << 23) -> Iterator[tuple[Item, ...]]:
    """Tuples of `size` items, or of fewer where their contents come to `most` bytes in memory.

    Examples
    --------
    >>> items = [Item(str(n), b"12", ()) for n in range(5)]
    >>> [len(batch) for batch in item_batches(items, 3)], [len(batch) for batch in item_batches(items, 3, most=4)]
    ([3, 2], [2, 2, 1])
    """
    batch: list[Item] = []
    held = 0
    for item in items:
        batch.append(item)
        held += len(item.content) if isinstance(item.content, bytes) else 0
        if len(batch) == size or held >= most:
            yield tuple(batch)
            batch, held = [], 0
    if batch:
        yield tuple(batch)


def spread(n: int, at_most: int) -> list[int]:
    """Up to `at_most` places of `n`, evenly spread.

    Examples
    --------
    >>> spread(10, 3)
    [0, 3, 6]
    """
    chosen = min(n, at_most)
    return [i * n // chosen for i in range(chosen)]


def taken_at(things: Iterable[Thing], places: list[int]) -> Iterator[tuple[int, Thing]]:
    """(place, thing) at ascending places.

    Examples
    --------
    >>> list(taken_at("abcd", [0, 2]))
    [(0, 'a'), (2, 'c')]
    """
    wanted = iter(places)
    place = next(wanted, None)
    for i, thing in enumerate(things if places else ()):
        if i == place:
            yield i, thing
            place = next(wanted, None)
            if place is None:
                return


def sample_places(source: ItemSource, max_blocks: int) -> list[int]:
    """Which pictures a sample of `max_blocks` is drawn from."""
    return spread(len(source), max(1, max_blocks // _FEWEST_BLOCKS))


def sample_blocks(
    viewer: Viewer,
    cut: Callable[[Any], Float32],
    source: ItemSource,
    places: list[int],
    max_blocks: int,
    run: Run,
) -> Float32:
    """An equal number of random blocks from each item at `places`, as descriptors (n, n_bins).

    `cut` gives all blocks of a look; it travels to workers.

    Raises
    ------
    InputError
        No picture can be read.
    """
    job = Sampling(viewer, cut, -(-max_blocks // max(1, len(places))))
    found: list[Float32] = []
    with run.progress.stage(f"sampling {source.things}", len(places), source.things) as stage:
        for seen in run.executor.map_with(sample_batch, job, batches(taken_at(source, places), BATCH)):
            for one in seen:
                if isinstance(one, Rejected):
                    run.rejects.add(*one)
                else:
                    found.append(one)
            stage.advance(len(seen))
    if not found:
        raise InputError(nothing_read(source, run.rejects))
    return np.concatenate(found)


def nothing_read(source: ItemSource, rejects: Rejects) -> str:
    """The sentence for a collection of which no picture can be used."""
    if not rejects.listed:
        return f"{source.path} holds no {source.things}; give a folder or file that has some"
    where, reason, _ = rejects.listed[-1]
    return f"none of the {source.things} of {source.path} can be read: {where} is refused as {reason}; give others"


def learn_idf(job: Describing, n_terms: int, source: ItemSource, places: list[int], run: Run) -> Float32:
    """The idf of each term over the pictures at `places`, (n_terms,)."""
    seen_in, n = np.zeros(n_terms, np.int64), 0
    items = batches((picture for _, picture in taken_at(source, places)), BATCH)
    with run.progress.stage("weighing terms", len(places), source.things) as stage:
        for seen in run.executor.map_with(describe_batch, job, items):
            for one in seen:
                if not isinstance(one, Rejected):
                    seen_in[one[0].indices] += 1
                    n += 1
            stage.advance(len(seen))
    return idf(seen_in, n)
