"""Slow twins of the training kernels: NumPy, float64, plain loops. What they say is what the fast kernels must do.

They take the same NamedTuples, with tables made float64 by `double`, draw the same random numbers, and move the tables
in place. `Moved` says what a step did. Nothing here is meant for training.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.kernels.similarity import Dot, Euclidean
from wsabie.kernels.towers import Dense, Frozen, Linear
from wsabie.kernels.warp import DRAWS, HISTOGRAM, N_COUNTERS, REJECTED, SKIPPED, UPDATES, VISITED

TINY = float(np.float32(1e-6))
SHORTEST = float(np.float32(1e-3))
_ALL = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def double(arrays: Any) -> Any:
    """The same labels or tower with a float64 table and bias of its own."""
    fields = {name: np.array(getattr(arrays, name), np.float64) for name in ("table", "bias") if name in arrays._fields}
    return arrays._replace(**fields)


# ---- random numbers: the stream of a pair is a function of (seed, epoch, pair) alone


def mix(z: int) -> int:
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    return z ^ (z >> 31)


def stream(seed: int, epoch: int, example: int) -> int:
    """First counter of an example's stream."""
    return mix((mix((seed + _GOLDEN * (epoch + 1)) & _ALL) + _GOLDEN * example) & _ALL)


def advance(counter: int) -> int:
    """The next counter."""
    return (counter + _GOLDEN) & _ALL


def below(counter: int, n: int) -> int:
    """A number in 0..n-1: the high 32 bits, read as a fraction, times n."""
    return ((mix(counter) >> 32) * n) >> 32


# ---- similarity


def score(labels: Any, q: Float64, y: int) -> float:
    """f_y = s(q, w_y) + b_y."""
    w, bias = labels.table[y], float(labels.bias[y])
    if isinstance(labels, Dot):
        return float(q @ w) + bias
    if isinstance(labels, Euclidean):
        return bias - max(float(np.linalg.norm(q - w)), TINY)
    return float(q @ w) / (max(float(np.linalg.norm(q)), SHORTEST) * max(float(np.linalg.norm(w)), SHORTEST)) + bias


def slopes(labels: Any, q: Float64, y: int) -> tuple[float, float, float]:
    """(a, b, c) with ds/dq = a w + b q and ds/dw = a q + c w; a cosine's length held at SHORTEST has no slope."""
    w = labels.table[y]
    if isinstance(labels, Dot):
        return 1.0, 0.0, 0.0
    if isinstance(labels, Euclidean):
        inverse = 1 / max(float(np.linalg.norm(q - w)), TINY)
        return inverse, -inverse, -inverse
    qq, ww = float(q @ q), float(w @ w)
    a = 1 / math.sqrt(max(qq, SHORTEST**2) * max(ww, SHORTEST**2))
    s = float(q @ w) * a
    return a, -s / qq if qq > SHORTEST**2 else 0.0, -s / ww if ww > SHORTEST**2 else 0.0


# ---- towers


def features_of(tower: Any, i: int) -> list[tuple[int, float]]:
    """(row of the table, coefficient) of everything that makes the point of entity i."""
    if isinstance(tower, Linear):
        span = slice(tower.indptr[i], tower.indptr[i + 1])
        return [(int(j), float(x)) for j, x in zip(tower.indices[span], tower.data[span], strict=True)]
    if isinstance(tower, Dense):
        return [(j, float(x)) for j, x in enumerate(tower.rows[i])]
    return [(int(tower.ids[i]), 1.0)]


def encode(tower: Any, i: int) -> Float64:
    """The point of entity i: the sum of coefficient times row."""
    q = np.zeros(tower.table.shape[1])
    for j, x in features_of(tower, i):
        q += x * tower.table[j]
    return q


def project(row: Float64, max_norm: float) -> None:
    """Scale a row down to `max_norm` when it is longer."""
    length = float(np.linalg.norm(row))
    if length > max_norm:
        row *= max_norm / length


def backprop(tower: Any, i: int, g: Float64, step: float, max_norm: float) -> None:
    """Every row behind entity i moves by step * coefficient * g and is projected."""
    if isinstance(tower, Frozen):
        return
    for j, x in features_of(tower, i):
        tower.table[j] += step * x * g
        project(tower.table[j], max_norm)


# ---- the WARP step


def positives(targets: Any, i: int) -> set[int]:
    """The true labels of example i."""
    return {int(y) for y in targets.indices[targets.indptr[i] : targets.indptr[i + 1]]}


def explicit_negatives(targets: Any, i: int) -> list[int]:
    """Labels that are known not to hold for example i."""
    return [int(y) for y in targets.against[targets.against_indptr[i] : targets.against_indptr[i + 1]]]


class Found(NamedTuple):
    """Where the search for a violator ended."""

    violator: int  # -1: none
    rank: int  # estimated; 0: none
    drawn: int  # negatives
    rejected: int  # draws that were true labels


def find_violator(targets: Any, labels: Any, rule: Any, i: int, q: Float64, threshold: float, counter: int) -> Found:
    """One explicit negative, if there is one (rank 1); else uniform labels until one scores above the threshold.

    The rank is floor(negatives there are / negatives drawn). At most T = min(max_trials, negatives there are)
    negatives and 2T + 10 labels in all are drawn.
    """
    known, against = positives(targets, i), explicit_negatives(targets, i)
    if against:
        v = against[below(counter, len(against))]
        if score(labels, q, v) > threshold:
            return Found(v, 1, 0, 0)
    n_negatives = len(labels.table) - len(known)
    limit = min(int(rule.max_trials), n_negatives)
    drawn = rejected = 0
    for _ in range(2 * limit + 10):
        counter = advance(counter)
        v = below(counter, len(labels.table))
        if v in known:
            rejected += 1
            continue
        drawn += 1
        if score(labels, q, v) > threshold:
            return Found(v, n_negatives // drawn, drawn, rejected)
        if drawn >= limit:
            break
    return Found(-1, 0, drawn, rejected)


class Proposal(NamedTuple):
    """One pair's step, not taken yet."""

    violator: int  # -1: no step
    weight: float
    direction: Float64  # of the query
    loss: float


def propose(targets: Any, labels: Any, rule: Any, i: int, pair: int, q: Float64, counters: Any) -> Proposal:
    """L(rank) * pair weight * max(0, margin - f_y + f_v) and its descent direction for the query."""
    nothing = Proposal(-1, 0.0, np.zeros_like(q), 0.0)
    y = int(targets.labels[pair])
    counters[VISITED] += 1
    if len(positives(targets, i)) >= len(labels.table) or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return nothing
    threshold = score(labels, q, y) - float(rule.margin)
    counter = stream(rule.seed, rule.epoch, targets.first_pair + pair)
    found = find_violator(targets, labels, rule, i, q, threshold, counter)
    counters[DRAWS] += found.drawn
    counters[REJECTED] += found.rejected
    if found.violator < 0:
        return nothing
    counters[UPDATES] += 1
    counters[HISTOGRAM + found.rank.bit_length() - 1] += 1
    weight = float(rule.losses[found.rank]) * float(targets.weights[pair])
    (a_y, b_y, _), (a_v, b_v, _) = slopes(labels, q, y), slopes(labels, q, found.violator)
    up = a_y * labels.table[y] + b_y * q
    down = a_v * labels.table[found.violator] + b_v * q
    hinge = score(labels, q, found.violator) - threshold
    return Proposal(found.violator, weight, weight * (up - down), weight * hinge)


def move_label(labels: Any, rule: Any, y: int, q: Float64, weight: float) -> None:
    """Row y takes its step along ds/dw; not projected."""
    a, _, c = slopes(labels, q, y)
    labels.table[y] += float(rule.step_labels) * weight * (a * q + c * labels.table[y])
    labels.bias[y] += float(rule.step_bias) * weight


class Moved(NamedTuple):
    """What a pass did besides moving the tables."""

    counters: Any  # (N_COUNTERS,) int64
    loss: float


def run_visits(tower: Any, labels: Any, targets: Any, rule: Any, order: Iterable[int]) -> Moved:
    """Algorithm 1: one visit after the other; the pairs of a visit share the query and add up its direction."""
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    for visit in order:
        i = int(targets.rows[visit])
        q = encode(tower, i)
        g, moved = np.zeros_like(q), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = propose(targets, labels, rule, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                for y, sign in ((int(targets.labels[pair]), 1), (step.violator, -1)):
                    move_label(labels, rule, y, q, sign * step.weight)
                    project(labels.table[y], float(rule.max_norm_labels))
        if moved:
            backprop(tower, i, g, float(rule.step_rows), float(rule.max_norm_rows))
    return Moved(counters, loss)


def run_block(tower: Any, labels: Any, targets: Any, rule: Any, order: Iterable[int]) -> Moved:
    """One block of visits: all proposals against the tables as they stand, then all moves, then one projection.

    Label rows move in the order of the pairs, each by the slopes at where the row has come to inside the block.
    """
    counters, loss = np.zeros(N_COUNTERS, np.int64), 0.0
    steps, directions = [], []
    for visit in order:
        i = int(targets.rows[visit])
        q = encode(tower, i)
        g, moved = np.zeros_like(q), False
        for pair in range(targets.starts[visit], targets.starts[visit + 1]):
            step = propose(targets, labels, rule, i, pair, q, counters)
            if step.violator >= 0:
                g, moved = g + step.direction, True
                loss += step.loss
                steps += [
                    (int(targets.labels[pair]), q, step.weight),
                    (step.violator, q, -step.weight),
                ]
        if moved:
            directions.append((i, g))
    for y, q, weight in steps:
        move_label(labels, rule, y, q, weight)
    for y in {y for y, _, _ in steps}:
        project(labels.table[y], float(rule.max_norm_labels))
    apply_directions(tower, rule, directions)
    return Moved(counters, loss)


def apply_directions(tower: Any, rule: Any, directions: list[tuple[int, Float64]]) -> None:
    """All moves of a block's feature rows, then one exact projection of each that moved."""
    if isinstance(tower, Frozen):
        return
    for i, g in directions:
        backprop(tower, i, g, float(rule.step_rows), math.inf)
    for j in {j for i, _ in directions for j, _ in features_of(tower, i)}:
        project(tower.table[j], float(rule.max_norm_rows))
