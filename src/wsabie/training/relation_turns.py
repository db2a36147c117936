"""Turns of the relations in an epoch: rounds by their weights, one after another or interleaved."""

import heapq
from collections.abc import Iterable, Iterator

import numpy as np

from wsabie.core.arrays import Int64

Passes = Iterable[tuple[int, Iterator[int]]]
"""Passes with the number of their visits; a step of an iterator makes some visits and yields the count."""


def draw_orders(n: int, weight: float, seed: int, epoch: int, number: int) -> dict[int, Int64]:
    """Draw the order of n visits of a block by rounds; a round visits everything once at random.

    The weight of a relation is its number of rounds in an epoch: with .5 the second half of a round comes in the
    next epoch. `number` is the block's position in the epoch.
    """
    lo, hi = (round(n * weight * n_epochs) for n_epochs in (epoch, epoch + 1))
    orders = {}
    for round_number in range(lo // max(n, 1), -(-hi // max(n, 1))):
        order = np.random.default_rng([seed, 1, round_number, number]).permutation(n)
        orders[round_number] = order[max(lo - n * round_number, 0) : hi - n * round_number]
    return orders


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
