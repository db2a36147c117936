"""Slow twins of whole passes: NumPy, float64, plain loops. What they say is what the fast kernels must do.

They take the same NamedTuples, with tables made float64 by `double`, draw the same random numbers, and move the tables
in place. `Moved` says what a pass did. Nothing here is meant for training. Their parts are beside the kernels that
they are twins of: `rng`, `towers`, `candidates`, `patterns`, `samplers` and `warp`, each with `_reference`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsabie.kernels.candidates import Summed
from wsabie.kernels.candidates_reference import limit, pull, push, score
from wsabie.kernels.patterns import Both, Pair
from wsabie.kernels.patterns_reference import fold, spread
from wsabie.kernels.warp import DRAWS, HISTOGRAM, N_COUNTERS, SKIPPED, UPDATES, VISITED
from wsabie.kernels.warp_reference import positives, propose


def double(arrays: Any) -> Any:
    """The same labels, tower or pattern with float64 tables of its own."""
    if isinstance(arrays, (Summed, Pair, Both)):
        return type(arrays)(*map(double, arrays))
    parts = {name: double(getattr(arrays, name)) for name in ("points", "tower") if name in arrays._fields}
    arrays = arrays._replace(**parts)
    tables = ("table", "words", "bias", "scale", "norm2")
    fields = {name: np.array(getattr(arrays, name), np.float64) for name in tables if name in arrays._fields}
    return arrays._replace(**fields)


class Moved(NamedTuple):
    """What a pass did besides moving the tables."""

    counters: Any  # (N_COUNTERS,) int64
    loss: float


def run_visits(pattern: Any, labels: Any, targets: Any, rule: Any, sampler: Any, order: Iterable[int]) -> Moved:
    """Algorithm 1: one visit after the other; the pairs of a visit share the query and add up its direction."""
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    for visit in order:
        i = int(targets.rows[visit])
        q = fold(pattern, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = propose(targets, labels, rule, sampler, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                for y, sign in ((step.positive, 1), (step.violator, -1)):
                    push(labels, rule, y, q, sign * step.weight)
                    limit(labels, rule, y)
        if moved:
            spread(pattern, [(i, g)], rule)
    return Moved(counters, loss)


def run_visits_owpc(pattern: Any, labels: Any, targets: Any, rule: Any, order: Iterable[int]) -> Moved:
    """[W] eq. 5: every violator shares in L(rank) / rank times its own hinge."""
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    for visit in order:
        i = int(targets.rows[visit])
        q, known = fold(pattern, i), positives(targets, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            counters[VISITED] += 1
            others = [y for y in range(targets.n_labels) if y not in known]
            if not others or targets.weights[pair] == 0:
                counters[SKIPPED] += 1
                continue
            counters[DRAWS] += len(others)
            y = int(targets.labels[pair])
            over = {v: score(labels, q, v) - score(labels, q, y) + float(rule.margin) for v in others}
            over = {v: hinge for v, hinge in over.items() if hinge > 0}
            if not over:
                continue
            counters[UPDATES] += 1
            counters[HISTOGRAM + len(over).bit_length() - 1] += 1
            share = float(rule.losses[len(over)]) / len(over) * float(targets.weights[pair])
            moved = True
            for v, hinge in over.items():
                g = g + share * pull(labels, q, y, v)
                push(labels, rule, v, q, -share)
                limit(labels, rule, v)
                loss += share * hinge
            push(labels, rule, y, q, share * len(over))
            limit(labels, rule, y)
        if moved:
            spread(pattern, [(i, g)], rule)
    return Moved(counters, loss)


def run_block(pattern: Any, labels: Any, targets: Any, rule: Any, sampler: Any, order: Iterable[int]) -> Moved:
    """One block of visits: all proposals against the tables as they stand, then all moves, as Algorithm 1 makes them.

    Label rows move in the order of the pairs, each by the slopes at where the row has come to inside the block.
    """
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    steps, directions = [], []
    for visit in order:
        i = int(targets.rows[visit])
        q = fold(pattern, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = propose(targets, labels, rule, sampler, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                steps += [(step.positive, q, step.weight), (step.violator, q, -step.weight)]
        if moved:
            directions.append((i, g))
    for y, q, weight in steps:
        push(labels, rule, y, q, weight)
        limit(labels, rule, y)
    spread(pattern, directions, rule)
    return Moved(counters, loss)
