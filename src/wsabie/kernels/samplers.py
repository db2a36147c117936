"""Where a negative comes from, dispatched on the sampler's type: `draw(sampler, labels, q, counter, width)`.

Random numbers are a hash of a counter, so which labels will be drawn is known beforehand where the query has no say:
`expect` has them asked for, so that memory answers while others are looked at.

Uniform    every label alike: the only one from which the number of draws estimates a rank
Weighted   with given chances, by an alias table (Walker 1977): frequency^p for instance
Adaptive   a factor f with chance proportional to |q_f| sigma_f, then a rank r of the labels in the order of that
           factor, from the front where q_f >= 0 and from the back otherwise ([V] section 4; docs/conventions.md)
FullSort   a rank r of the labels ordered by their score of q itself: what `Adaptive` stands for ([V] section 3)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from wsabie.base.arrays import LANES
from wsabie.kernels._jit import INLINE, cold, jit
from wsabie.kernels.candidates import ask_for, score
from wsabie.kernels.rng import advance, below, mix

_LOW, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_UNIT = np.float32(2**-24)

AHEAD = 16
"""Draws that are asked for before they are looked at, at most: as long as memory takes to answer."""


class Alias(NamedTuple):
    """Chances of 0 .. n - 1, in which a draw takes one look."""

    cuts: Any  # (n,) uint64: place i keeps a draw whose low 32 bits are below cuts[i] ...
    others: Any  # (n,) int32: ... and else hands it to others[i]


class Uniform(NamedTuple):
    """Every label alike."""

    n_labels: Any  # int64


class Weighted(NamedTuple):
    """Labels with given chances."""

    chances: Alias


class Adaptive(NamedTuple):
    """Labels in the order of each factor, as far as the ranks reach."""

    spread: Any  # (padded dim,) float32: standard deviation of each factor over the labels
    front: Any  # (dim, n_ranks) int32: the labels of highest coordinate, highest first
    back: Any  # (dim, n_ranks) int32: those of lowest coordinate, lowest first
    ranks: Alias  # chances of the ranks


class FullSort(NamedTuple):
    """Labels in the order of their scores, found anew for every draw."""

    scores: Any  # (n_labels,) float32, scratch
    order: Any  # (n_labels,) int32, scratch
    ranks: Alias


class FromPool(NamedTuple):
    """The sampled things of a block, or else its positives, every slot alike (`wsabie.kernels.pools`)."""


@jit
def pick(alias, counter):
    """A number with the chances of the table."""
    bits = mix(counter)
    place = np.int64(((bits >> _S32) * np.uint64(len(alias.cuts))) >> _S32)
    return place if (bits & _LOW) < alias.cuts[place] else np.int64(alias.others[place])


@jit
def unit(counter):
    """A number in [0, 1)."""
    return np.float32(mix(counter) >> np.uint64(40)) * _UNIT


def _draw_uniform(sampler, labels, q, counter, width):
    return below(counter, sampler.n_labels)


def _draw_weighted(sampler, labels, q, counter, width):
    return pick(sampler.chances, counter)


@jit
def draw_factor(spread, n_factors, q, counter, width):
    """A factor with chance |q_f| sigma_f; every factor alike where all are 0."""
    total = np.float32(0)
    for k in range(LANES * len(width)):
        total += abs(q[k]) * spread[k]
    if not total > 0:
        return below(counter, n_factors)
    left, f = unit(counter) * total - abs(q[0]) * spread[0], 0
    while left >= 0 and f + 1 < n_factors:
        f += 1
        left -= abs(q[f]) * spread[f]
    return np.int64(f)


def _draw_adaptive(sampler, labels, q, counter, width):
    f = draw_factor(sampler.spread, len(sampler.front), q, counter, width)
    r = pick(sampler.ranks, mix(counter))
    return np.int64(sampler.front[f, r]) if q[f] >= 0 else np.int64(sampler.back[f, r])


@jit
def _before(scores, a, b):
    """Whether label a comes before b: higher score, or the same and a lower number."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and a < b)


@cold
def label_of_rank(scores, order, r):
    """The label with r others before it, by quickselect; `order` is scratch."""
    for y in range(len(order)):
        order[y] = y
    lo, hi = 0, len(order) - 1
    while lo < hi:
        pivot, i, j = order[(lo + hi) >> 1], lo, hi
        while i <= j:
            while _before(scores, order[i], pivot):
                i += 1
            while _before(scores, pivot, order[j]):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if r <= j:
            hi = j
        elif r >= i:
            lo = i
        else:
            break
    return np.int64(order[r])


def _draw_full_sort(sampler, labels, q, counter, width):
    for y in range(len(sampler.scores)):
        sampler.scores[y] = score(labels, q, y, width)
    return label_of_rank(sampler.scores, sampler.order, pick(sampler.ranks, mix(counter)))


def _draw_from_pool(sampler, labels, q, counter, width):
    return below(counter, labels.drawn[0])


def _expect_uniform(sampler, labels, counter, t, width):
    if t < AHEAD:  # two for each draw: a search that ends soon has asked for little in vain
        ask_for(labels, below(advance(counter, t + 1), sampler.n_labels), width)
        ask_for(labels, below(advance(counter, t + 2), sampler.n_labels), width)
    else:
        ask_for(labels, below(advance(counter, AHEAD + 1), sampler.n_labels), width)


def _expect_nothing(sampler, labels, counter, t, width):
    return


_DRAW: dict[type, Callable[..., Any]] = {
    Uniform: _draw_uniform,
    Weighted: _draw_weighted,
    Adaptive: _draw_adaptive,
    FullSort: _draw_full_sort,
    FromPool: _draw_from_pool,
}
_EXPECT: dict[type, Callable[..., Any]] = {**dict.fromkeys(_DRAW, _expect_nothing), Uniform: _expect_uniform}


def draw(sampler: Any, labels: Any, q: Any, counter: Any, width: Any) -> Any:
    """A label."""
    return _DRAW[type(sampler)](sampler, labels, q, counter, width)


def expect(sampler: Any, labels: Any, counter: Any, t: int, width: Any) -> Any:
    """Ask for labels that later draws of a search bring; `counter` is that of its t-th draw, from 0."""
    return _EXPECT[type(sampler)](sampler, labels, counter, t, width)


@overload(draw, jit_options=INLINE)
def _draw(sampler, labels, q, counter, width):
    return _DRAW[sampler.instance_class]


@overload(expect, jit_options=INLINE)
def _expect(sampler, labels, counter, t, width):
    return _EXPECT[sampler.instance_class]
