"""Slow twins of whole passes: NumPy, float64, plain loops. What they say is what the fast kernels must do.

They take the same NamedTuples, with tables made float64 by `convert_to_float64`, draw the same random numbers, and move
the tables in place. `PassReport` says what a pass did. Nothing here is meant for training. Their parts are beside the
kernels that they are twins of: `rng`, `towers`, `candidates`, `patterns`, `samplers` and `warp`, each with
`_reference`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from tests.reference.candidates import clip_norm, query_gradient, score_label, update_label
from tests.reference.relation_patterns import backprop_queries, encode_query
from tests.reference.warp import list_positives, warp_step

from wsabie.kernels.embedding.candidates import PointAndWeightLabels
from wsabie.kernels.embedding.relation_patterns import TowerAndRowPattern, TowerPattern
from wsabie.kernels.training.warp import DRAWS, HISTOGRAM, N_COUNTERS, SKIPPED, UPDATES, VISITED


def convert_to_float64(arrays: Any) -> Any:
    """The same labels, tower or pattern with float64 tables of its own."""
    if isinstance(arrays, (PointAndWeightLabels, TowerPattern, TowerAndRowPattern)):
        return type(arrays)(*map(convert_to_float64, arrays))
    parts = {name: convert_to_float64(getattr(arrays, name)) for name in ("points", "tower") if name in arrays._fields}
    arrays = arrays._replace(**parts)
    tables = ("table", "words", "bias", "scale", "norm2")
    fields = {name: np.array(getattr(arrays, name), np.float64) for name in tables if name in arrays._fields}
    return arrays._replace(**fields)


class PassReport(NamedTuple):
    """Counters and loss of a pass."""

    counters: Any  # (N_COUNTERS,) int64
    loss: float


def run_visits(pattern: Any, labels: Any, targets: Any, config: Any, sampler: Any, order: Iterable[int]) -> PassReport:
    """Algorithm 1: one visit after the other; the pairs of a visit share the query and add up its direction."""
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    for visit in order:
        i = int(targets.rows[visit])
        q = encode_query(pattern, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = warp_step(targets, labels, config, sampler, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                for y, sign in ((step.positive, 1), (step.violator, -1)):
                    update_label(labels, config, y, q, sign * step.weight)
                    clip_norm(labels, config, y)
        if moved:
            backprop_queries(pattern, [(i, g)], config)
    return PassReport(counters, loss)


def run_owpc_visits(pattern: Any, labels: Any, targets: Any, config: Any, order: Iterable[int]) -> PassReport:
    """Visit pairs by Weston et al. 2010, equation 5: each violator gets L(rank) / rank times its hinge."""
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    for visit in order:
        i = int(targets.rows[visit])
        q, positives = encode_query(pattern, i), list_positives(targets, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            counters[VISITED] += 1
            negatives = [y for y in range(targets.n_labels) if y not in positives]
            if not negatives or targets.weights[pair] == 0:
                counters[SKIPPED] += 1
                continue
            counters[DRAWS] += len(negatives)
            y = int(targets.labels[pair])
            over = {v: score_label(labels, q, v) - score_label(labels, q, y) + float(config.margin) for v in negatives}
            over = {v: hinge for v, hinge in over.items() if hinge > 0}
            if not over:
                continue
            counters[UPDATES] += 1
            counters[HISTOGRAM + len(over).bit_length() - 1] += 1
            share = float(config.losses[len(over)]) / len(over) * float(targets.weights[pair])
            moved = True
            for v, hinge in over.items():
                g = g + share * query_gradient(labels, q, y, v)
                update_label(labels, config, v, q, -share)
                clip_norm(labels, config, v)
                loss += share * hinge
            update_label(labels, config, y, q, share * len(over))
            clip_norm(labels, config, y)
        if moved:
            backprop_queries(pattern, [(i, g)], config)
    return PassReport(counters, loss)


def run_block(pattern: Any, labels: Any, targets: Any, config: Any, sampler: Any, order: Iterable[int]) -> PassReport:
    """One block of visits: all proposals against the tables as they stand, then all moves, as Algorithm 1 makes them.

    Label rows move in the order of the pairs, each by the slopes at where the row has come to inside the block.
    """
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    steps, directions = [], []
    for visit in order:
        i = int(targets.rows[visit])
        q = encode_query(pattern, i)
        g, moved = np.zeros(1), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = warp_step(targets, labels, config, sampler, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                steps += [(step.positive, q, step.weight), (step.violator, q, -step.weight)]
        if moved:
            directions.append((i, g))
    for y, q, weight in steps:
        update_label(labels, config, y, q, weight)
        clip_norm(labels, config, y)
    backprop_queries(pattern, directions, config)
    return PassReport(counters, loss)
