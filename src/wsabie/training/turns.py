"""Passes over several blocks of rows: one after the other, or in turns, so that relations advance side by side."""

import heapq
from collections.abc import Iterable, Iterator

from wsabie.base.progress import Stage
from wsabie.training.targets import RowBlock

Passes = Iterable[tuple[int, Iterator[int]]]
"""Each with the number of its visits; the iterator makes some of them and says how many."""


def one_by_one(passes: Passes) -> Iterator[int]:
    """Every pass to its end before the next one begins."""
    for _, run in passes:
        yield from run


def in_turns(passes: Passes) -> Iterator[int]:
    """A turn at a time, always of the pass that has come least far: all end together, however long they are.

    Examples
    --------
    >>> list(in_turns([(3, iter([1, 1, 1])), (20, iter([10, 10]))]))
    [1, 10, 1, 10, 1]
    """
    waiting = [(0.0, number, 0, visits, run) for number, (visits, run) in enumerate(passes) if visits]
    while waiting:
        _, number, done, visits, run = waiting[0]
        made = next(run, 0)
        if made:
            done += made
            heapq.heapreplace(waiting, (done / visits, number, done, visits, run))
            yield made
        else:
            heapq.heappop(waiting)


def advancing(run: Iterator[int], stage: Stage, block: RowBlock) -> Iterator[int]:
    """The same pass; the progress bar is told of its visits in pairs."""
    pairs_per_visit = len(block.targets.labels) / max(len(block.targets.rows), 1)
    visited = told = 0
    for made in run:
        visited += made
        pairs = round(visited * pairs_per_visit)
        stage.advance(pairs - told)
        told = pairs
        yield made
