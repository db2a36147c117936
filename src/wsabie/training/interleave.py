"""Passes over several blocks of rows: sequential, or in turns so that relations advance together."""

import heapq
from collections.abc import Iterable, Iterator

from wsabie.core.progress import Stage
from wsabie.training.targets import RowBlock

Passes = Iterable[tuple[int, Iterator[int]]]
"""Passes with the number of their visits; each step of an iterator makes some visits and yields their number."""


def run_sequentially(passes: Passes) -> Iterator[int]:
    """Run every pass to its end before the next one begins."""
    for _, run in passes:
        yield from run


def run_interleaved(passes: Passes) -> Iterator[int]:
    """Run one turn at a time, always of the least advanced pass, so that all passes end together.

    Examples
    --------
    >>> list(run_interleaved([(3, iter([1, 1, 1])), (20, iter([10, 10]))]))
    [1, 10, 1, 10, 1]
    """
    waiting = [(0.0, number, 0, visits, run) for number, (visits, run) in enumerate(passes) if visits]
    while waiting:
        _, number, visits_done, visits, run = waiting[0]
        n_visits = next(run, 0)
        if n_visits:
            visits_done += n_visits
            heapq.heapreplace(waiting, (visits_done / visits, number, visits_done, visits, run))
            yield n_visits
        else:
            heapq.heappop(waiting)


def report_pass_progress(run: Iterator[int], stage: Stage, block: RowBlock) -> Iterator[int]:
    """Run a pass and advance the progress bar by its visits, in pairs."""
    pairs_per_visit = len(block.targets.labels) / max(len(block.targets.rows), 1)
    visited = reported_pairs = 0
    for n_visits in run:
        visited += n_visits
        pairs = round(visited * pairs_per_visit)
        stage.advance(pairs - reported_pairs)
        reported_pairs = pairs
        yield n_visits
