"""The slow twin of a block with a pool: candidates are encoded into slots, which the step takes for labels.

NumPy, float64, plain loops, with the random numbers of `tests.reference.random_numbers`; the surrogate is the hinge,
and the number of draws estimates the rank.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from tests.reference.candidates import compute_slopes, query_gradient, score_label
from tests.reference.random_numbers import advance_counter, draw_below, mix_bits, start_stream
from tests.reference.relation_patterns import backprop_queries, encode_query
from tests.reference.towers import backprop_block, encode_entity
from tests.reference.training_loops import PassReport
from tests.reference.warp import StepProposal, list_positives

from wsabie.core.arrays import Float64
from wsabie.kernels.training.warp import DRAWS, HISTOGRAM, N_COUNTERS, REJECTED, SKIPPED, UPDATES, VISITED


class CandidateSlots(NamedTuple):
    """The candidates of a block."""

    points: Any  # Dot, Euclidean or Cosine over (slots, padded dim) float64
    ids: list[int]  # which item a slot holds
    n_drawn: int  # negatives come from the slots below


def list_visit_pairs(targets: Any, visit: int) -> range:
    """The pairs of a visit."""
    return range(int(targets.starts[visit]), int(targets.starts[visit + 1]))


def gather_pool(
    scored: Any, tower: Any, targets: Any, config: Any, order: Iterable[int], first: int, n_sampled: int
) -> CandidateSlots:
    """Items drawn from all, then the positives of the visits; without drawn ones these are each other's negatives.

    Parameters
    ----------
    scored : type
        Dot, Euclidean or Cosine.
    tower : towers.Linear or Dense
        Over all items that may be ranked.
    first : int
        Pairs of the pass before this block: the key of its random stream.
    """
    counter = mix_bits(start_stream(config.seed, config.epoch, targets.first_pair + first) ^ (2**64 - 1))
    ids = []
    for _ in range(n_sampled):
        counter = advance_counter(counter)
        ids.append(draw_below(counter, targets.n_labels))
    ids += [int(targets.labels[pair]) for visit in order for pair in list_visit_pairs(targets, visit)]
    table = np.array([encode_entity(tower, item) for item in ids])
    return CandidateSlots(scored(table, np.zeros(len(ids))), ids, n_sampled or len(ids))


def warp_step(
    targets: Any, slots: CandidateSlots, n_sampled: int, config: Any, i: int, pair: int, y: int, q: Float64
) -> Any:
    """(what a pair would do, its draws, its rejected draws, its rank); y is the slot of its positive.

    A rank is among all negatives that there are, or, without drawn items, among the slots that hold one, as far as so
    many items are left.
    """
    positives = list_positives(targets, i)
    n_negatives = targets.n_labels - len(positives)
    if not n_sampled:
        n_negatives = min(n_negatives, sum(item not in positives for item in slots.ids))
    none = StepProposal(y, -1, 0.0, np.zeros(1), 0.0)
    if n_negatives <= 0 or targets.weights[pair] == 0:
        return none, 0, 0, 0
    counter = start_stream(config.seed, config.epoch, targets.first_pair + pair)
    threshold = score_label(slots.points, q, y) - float(config.margin)
    limit, n_draws, rejected = min(int(config.max_sampled), n_negatives), 0, 0
    for _ in range(2 * limit + 10):
        counter = advance_counter(counter)
        v = draw_below(counter, slots.n_drawn)
        if slots.ids[v] in positives:
            rejected += 1
            continue
        n_draws += 1
        hinge = score_label(slots.points, q, v) - threshold
        if hinge > 0:
            rank = n_negatives // n_draws
            weight = float(config.losses[rank]) * float(targets.weights[pair])
            direction = weight * query_gradient(slots.points, q, y, v)
            return StepProposal(y, v, weight, direction, weight * hinge), n_draws, rejected, rank
        if n_draws >= limit:
            break
    return none, n_draws, rejected, 0


def run_block(
    pattern: Any, candidates: Any, scored: Any, targets: Any, config: Any, order: Any, n_sampled: int, first: int = 0
) -> PassReport:
    """One block of visits: all proposals against the tables as they stand; then the queries' directions go into the
    rows behind them, and after those the candidates' directions into theirs, which may be the same table.
    """
    slots = gather_pool(scored, candidates, targets, config, order, first, n_sampled)
    counters, loss, at = np.zeros(N_COUNTERS, np.int64), 0.0, n_sampled
    of_queries: list[tuple[int, Float64]] = []
    of_slots = np.zeros(slots.points.table.shape)
    moved: set[int] = set()
    for visit in order:
        i = int(targets.rows[visit])
        q, g, has_update = encode_query(pattern, i), np.zeros(1), False
        for pair in list_visit_pairs(targets, visit):
            step, n_draws, rejected, rank = warp_step(targets, slots, n_sampled, config, i, pair, at, q)
            counters[[VISITED, DRAWS, REJECTED]] += 1, n_draws, rejected
            counters[SKIPPED] += step.violator < 0 and n_draws == 0
            at += 1
            if step.violator < 0:
                continue
            counters[[UPDATES, HISTOGRAM + rank.bit_length() - 1]] += 1
            g, has_update, loss = g + step.direction, True, loss + step.loss
            for y, sign in ((step.positive, 1), (step.violator, -1)):
                a, _, c = compute_slopes(slots.points, q, y)
                of_slots[y] += sign * step.weight * (a * q + c * slots.points.table[y])
                moved.add(y)
        if has_update:
            of_queries.append((i, g))
    backprop_queries(pattern, of_queries, config)
    backprop_block(candidates, config, [(slots.ids[y], of_slots[y]) for y in sorted(moved)])
    return PassReport(counters, loss)
