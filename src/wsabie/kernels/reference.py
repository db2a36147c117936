"""Slow twins of the training kernels: NumPy, float64, plain loops. What they say is what the fast kernels must do.

They take the same NamedTuples, with tables made float64 by `double`, draw the same random numbers, and move the tables
in place. `Moved` says what a step did. Nothing here is meant for training.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float64
from wsabie.kernels.beside import Apart, Beside
from wsabie.kernels.candidates import Joined, Summed, Weights
from wsabie.kernels.patterns import Both, Given, GivenDense, Pair
from wsabie.kernels.samplers import Adaptive, Uniform, Weighted
from wsabie.kernels.similarity import Dot, Euclidean
from wsabie.kernels.towers import Dense, Frozen, Linear
from wsabie.kernels.warp import DRAWS, EXACT, HISTOGRAM, N_COUNTERS, REJECTED, SKIPPED, UPDATES, VISITED

TINY = float(np.float32(1e-6))
SHORTEST = float(np.float32(1e-3))
_ALL = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def double(arrays: Any) -> Any:
    """The same labels, tower or pattern with float64 tables of its own."""
    if isinstance(arrays, (Summed, Pair, Both)):
        return type(arrays)(*map(double, arrays))
    parts = {name: double(getattr(arrays, name)) for name in ("points", "tower") if name in arrays._fields}
    arrays = arrays._replace(**parts)
    tables = ("table", "words", "bias", "scale", "norm2")
    fields = {name: np.array(getattr(arrays, name), np.float64) for name in tables if name in arrays._fields}
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


def pick(alias: Any, counter: int) -> int:
    """A number with the chances of an alias table: a place by the high 32 bits, kept or handed on by the low ones."""
    bits = mix(counter)
    place = ((bits >> 32) * len(alias.cuts)) >> 32
    return place if (bits & 0xFFFFFFFF) < int(alias.cuts[place]) else int(alias.others[place])


def unit(counter: int) -> float:
    """A number in [0, 1) with 24 bits."""
    return (mix(counter) >> 40) / 2**24


# ---- labels


class Point(NamedTuple):
    """A query that is a point and a row."""

    point: Float64
    row: Float64


def score(labels: Any, q: Any, y: int) -> float:
    """f_y = s(q, w_y) + b_y for points, w_y . x + b_y for weights, or the sum of both."""
    if isinstance(labels, Summed):
        return score(labels.points, q.point, y) + score(labels.weights, q.row, y)
    if isinstance(labels, Joined):
        first, second = np.split(q, 2)
        return score(labels.points, first, y) + float(second @ labels.words[y])
    if isinstance(labels, Weights):
        return float(labels.scale[y] * labels.table[y, : len(q)] @ q + labels.bias[y])
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


def decay(row: Float64, keep: Any) -> None:
    """What L2 regularisation takes."""
    row *= float(keep)


def backprop(tower: Any, i: int, g: Float64, rule: Any) -> None:
    """Every row behind entity i decays, moves by step_rows * coefficient * g and is projected."""
    if isinstance(tower, Frozen):
        return
    rows = [j for j, _ in features_of(tower, i)]
    for j in rows:
        decay(tower.table[j], rule.keep_rows)
    for j, x in features_of(tower, i):
        tower.table[j] += float(rule.step_rows) * x * g
        project(tower.table[j], float(rule.max_norm_rows))


# ---- patterns


def fold(pattern: Any, i: int) -> Any:
    """The query of example i: its point, its row, or both."""
    if isinstance(pattern, (Beside, Apart)):
        other = pattern.other[i]
        label = float(pattern.weight) * pattern.table[other] if other >= 0 else np.zeros(pattern.table.shape[1])
        point = encode(pattern.tower, pattern.who[i])
        return point + label if isinstance(pattern, Beside) else np.concatenate([point, label])
    if isinstance(pattern, Both):
        return Point(fold(pattern.pair, i), fold(pattern.given, i))
    if isinstance(pattern, GivenDense):
        return np.asarray(pattern.rows[i], np.float64)
    if isinstance(pattern, Given):
        span = slice(pattern.indptr[i], pattern.indptr[i + 1])
        row = np.zeros(int(pattern.indices.max(initial=-1)) + 1)
        row[pattern.indices[span]] = pattern.data[span]
        return row
    return encode(pattern.tower, i)


def tower_of(pattern: Any) -> Any:
    """The tower behind the query's point; None when there is none."""
    return pattern.pair.tower if isinstance(pattern, Both) else getattr(pattern, "tower", None)


def spread(pattern: Any, directions: list[tuple[int, Float64]], rule: Any) -> None:
    """Hand directions of queries back: all decays and moves, then one projection of each row that moved.

    A row of features decays once for every visit that moves it, before it moves; free vectors and dense rows in turn.
    """
    if isinstance(pattern, (Beside, Apart)):
        halves = [np.split(g, 2) if isinstance(pattern, Apart) else (g, g) for _, g in directions]
        things = [(int(pattern.who[i]), g) for (i, _), (g, _) in zip(directions, halves, strict=True)]
        apply_directions(pattern.tower, rule, things)
        labels = [(pattern.other[i], g) for (i, _), (_, g) in zip(directions, halves, strict=True)]
        labels = [(label, g) for label, g in labels if label >= 0]
        for label, g in labels:
            decay(pattern.table[label], rule.keep_labels)
            pattern.table[label] += float(rule.step_labels) * float(pattern.weight) * g
        for label in {label for label, _ in labels}:
            project(pattern.table[label], float(rule.max_norm_labels))
        return
    apply_directions(tower_of(pattern), rule, directions)


# ---- the WARP step


def positives(targets: Any, i: int) -> set[int]:
    """The true labels of example i."""
    return {int(y) for y in targets.indices[targets.indptr[i] : targets.indptr[i + 1]]}


def explicit_negatives(targets: Any, i: int) -> list[int]:
    """Labels that are known not to hold for example i."""
    return [int(y) for y in targets.against[targets.against_indptr[i] : targets.against_indptr[i + 1]]]


def draw(sampler: Any, labels: Any, q: Any, counter: int) -> int:
    """A label from the sampler."""
    if isinstance(sampler, Uniform):
        return below(counter, int(sampler.n_labels))
    if isinstance(sampler, Weighted):
        return pick(sampler.chances, counter)
    rank = pick(sampler.ranks, mix(counter))
    if isinstance(sampler, Adaptive):
        f = factor(sampler, q, counter)
        return int(sampler.front[f, rank] if q[f] >= 0 else sampler.back[f, rank])
    scores = [score(labels, q, y) for y in range(len(sampler.scores))]
    return int(np.lexsort((np.arange(len(scores)), -np.array(scores)))[rank])


def factor(sampler: Any, q: Float64, counter: int) -> int:
    """A factor with chance |q_f| sigma_f; any, when all are 0."""
    heights = np.abs(q[: len(sampler.front)]) * sampler.spread[: len(sampler.front)].astype(np.float64)
    if not heights.sum() > 0:
        return below(counter, len(heights))
    return min(int(np.searchsorted(np.cumsum(heights), unit(counter) * heights.sum(), side="right")), len(heights) - 1)


class Found(NamedTuple):
    """Where the search for a violator ended."""

    violator: int  # -1: none
    drawn: int  # negatives
    rejected: int  # draws that were true labels


def find_violator(
    targets: Any, labels: Any, rule: Any, sampler: Any, i: int, q: Any, threshold: float, counter: int
) -> Found:
    """One explicit negative, if there is one above the threshold (no draw); else labels from the sampler until one is.

    The logistic surrogate takes the first of the sampler's, whatever it scores.

    At most T = min(max_trials, negatives there are) negatives and 2T + 10 labels in all are drawn.
    """
    known, against = positives(targets, i), explicit_negatives(targets, i)
    if against:
        v = against[below(counter, len(against))]
        if score(labels, q, v) > threshold:
            return Found(v, 0, 0)
    lowest = -math.inf if rule.logistic else threshold
    limit = min(int(rule.max_trials), targets.n_labels - len(known))
    drawn = rejected = 0
    for _ in range(2 * limit + 10):
        counter = advance(counter)
        v = draw(sampler, labels, q, counter)
        if v in known:
            rejected += 1
            continue
        drawn += 1
        if score(labels, q, v) > lowest:
            return Found(v, drawn, rejected)
        if drawn >= limit:
            break
    return Found(-1, drawn, rejected)


def rank_of(targets: Any, labels: Any, rule: Any, i: int, q: Any, threshold: float, found: Found, counter: int) -> int:
    """floor(negatives there are / drawn), 1 for an explicit negative; or violators counted in all or in a sample."""
    known = positives(targets, i)
    n_negatives = targets.n_labels - len(known)
    if rule.rank_sample == 0:
        return n_negatives // found.drawn if found.drawn else 1
    if rule.rank_sample == EXACT:
        return max(1, sum(score(labels, q, y) > threshold for y in range(targets.n_labels) if y not in known))
    above = drawn = 0
    counter = mix(counter)
    for _ in range(2 * int(rule.rank_sample) + 10):
        counter = advance(counter)
        y = below(counter, targets.n_labels)
        if y in known:
            continue
        drawn, above = drawn + 1, above + int(score(labels, q, y) > threshold)
        if drawn == rule.rank_sample:
            break
    return max(1, int(above * n_negatives // max(drawn, 1)))


def positive_of(targets: Any, labels: Any, rule: Any, i: int, pair: int, q: Any, counter: int) -> int:
    """The pair's label; or of n drawn positives the one at a drawn place in the order of their scores."""
    if len(rule.places) == 1:
        return int(targets.labels[pair])
    counter = mix(counter ^ _ALL)
    place = int(np.searchsorted(rule.places[:-1], unit(counter), side="right"))
    own = targets.indices[targets.indptr[i] : targets.indptr[i + 1]]
    drawn = []
    for _ in rule.places:
        counter = advance(counter)
        drawn.append(int(own[below(counter, len(own))]))
    return sorted(drawn, key=lambda y: -score(labels, q, y))[place]


class Proposal(NamedTuple):
    """One pair's step, not taken yet."""

    positive: int
    violator: int  # -1: no step
    weight: float
    direction: Float64  # of the query's point
    loss: float


def propose(targets: Any, labels: Any, rule: Any, sampler: Any, i: int, pair: int, q: Any, counters: Any) -> Proposal:
    """L(rank) * pair weight * loss of the two labels, and its descent direction for the query."""
    y, none = int(targets.labels[pair]), np.zeros(1)
    counters[VISITED] += 1
    if len(positives(targets, i)) >= targets.n_labels or targets.weights[pair] == 0:
        counters[SKIPPED] += 1
        return Proposal(y, -1, 0.0, none, 0.0)
    counter = stream(rule.seed, rule.epoch, targets.first_pair + pair)
    y = positive_of(targets, labels, rule, i, pair, q, counter)
    base = score(labels, q, y)
    threshold = base - float(rule.margin)
    found = find_violator(targets, labels, rule, sampler, i, q, threshold, counter)
    counters[DRAWS] += found.drawn
    counters[REJECTED] += found.rejected
    if found.violator < 0:
        counters[SKIPPED] += found.drawn == 0
        return Proposal(y, -1, 0.0, none, 0.0)
    rank = rank_of(targets, labels, rule, i, q, threshold, found, counter)
    counters[UPDATES] += 1
    counters[HISTOGRAM + rank.bit_length() - 1] += 1
    weight = float(rule.losses[rank]) * float(targets.weights[pair])
    gap = score(labels, q, found.violator) - base
    slope, loss = (1 / (1 + math.exp(-gap)), math.log1p(math.exp(gap))) if rule.logistic else (1, gap + rule.margin)
    direction = pull(labels, q, y, found.violator)
    return Proposal(y, found.violator, weight * slope, weight * slope * direction, weight * float(loss))


def pull(labels: Any, q: Any, y: int, v: int) -> Float64:
    """df_y / dq - df_v / dq, for the query's point; weights leave none."""
    if isinstance(labels, Weights):
        return np.zeros(1)
    if isinstance(labels, Summed):
        return pull(labels.points, q.point, y, v)
    if isinstance(labels, Joined):
        return np.concatenate([labels.points.table[y] - labels.points.table[v], labels.words[y] - labels.words[v]])
    (a_y, b_y, _), (a_v, b_v, _) = slopes(labels, q, y), slopes(labels, q, v)
    direction: Float64 = a_y * labels.table[y] + b_y * q - a_v * labels.table[v] - b_v * q
    return direction


def push(labels: Any, rule: Any, y: int, q: Any, weight: float) -> None:
    """Label y decays and takes its step along df_y; not projected. Weights are kept with a scale of 1."""
    if isinstance(labels, Summed):
        push(labels.points, rule, y, q.point, weight)
        push(labels.weights, rule, y, q.row, weight)
        return
    if isinstance(labels, Joined):
        first, second = np.split(q, 2)
        push(labels.points, rule, y, first, weight)
        decay(labels.words[y], rule.keep_labels)
        labels.words[y] += float(rule.step_labels) * weight * second
        return
    row = labels.table[y]
    if isinstance(labels, Weights):
        decay(row, rule.keep_weights)
        row[: len(q)] += float(rule.step_weights) * weight * q
    else:
        decay(row, rule.keep_labels)
        a, _, c = slopes(labels, q, y)
        row += float(rule.step_labels) * weight * (a * q + c * row)
    labels.bias[y] += float(rule.step_bias) * weight


def limit(labels: Any, rule: Any, y: int) -> None:
    """Label y is cut to its longest norm."""
    if isinstance(labels, Summed):
        limit(labels.points, rule, y)
        limit(labels.weights, rule, y)
        return
    if isinstance(labels, Joined):
        limit(labels.points, rule, y)
        project(labels.words[y], float(rule.max_norm_labels))
        return
    weights = isinstance(labels, Weights)
    project(labels.table[y], float(rule.max_norm_weights if weights else rule.max_norm_labels))


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
    """One block of visits: all proposals against the tables as they stand, then all moves, then one projection.

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
    for y in {y for y, _, _ in steps}:
        limit(labels, rule, y)
    spread(pattern, directions, rule)
    return Moved(counters, loss)


def apply_directions(tower: Any, rule: Any, directions: list[tuple[int, Float64]]) -> None:
    """All decays and moves of a block's feature rows, then one exact projection of each that moved.

    A row decays once for every visit that moves it, before it moves; free vectors and dense rows in turn.
    """
    if tower is None or isinstance(tower, Frozen):
        return
    free = rule._replace(max_norm_rows=np.float32(np.inf))
    if isinstance(tower, Linear):
        for j in (j for i, _ in directions for j, _ in features_of(tower, i)):
            decay(tower.table[j], rule.keep_rows)
        free = free._replace(keep_rows=np.float32(1))
    for i, g in directions:
        backprop(tower, i, g, free)
    for j in {j for i, _ in directions for j, _ in features_of(tower, i)}:
        project(tower.table[j], float(rule.max_norm_rows))
