"""Where negatives come from: a sampler by name, what it needs of the space, and when it must look again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64
from wsabie.base.errors import InputError
from wsabie.space import tables
from wsabie.space.joint import JointSpace
from wsabie.space.protocol import Space
from wsabie.training.threads import Threads

SamplerName = Literal["uniform", "frequency", "adaptive", "full-sort"]
RankDistribution = Literal["exponential", "geometric", "linear"]
_OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "frequency": {"power": 0.5},
    "adaptive": {"rank_scale": 0.1, "distribution": "exponential", "paper": False},
    "full-sort": {"rank_scale": 0.1, "distribution": "exponential", "paper": False},
}
"""Every sampler with its options and their defaults."""

PAIRS_PER_BLOCK = 256
"""Pairs that are weighed against the same frozen tables in deterministic mode. Never a function of the threads."""
SKETCHED_FROM = 1 << 23
"""Bytes of a table of labels from which reading a point costs more than sketches do."""
_REACHABLE = 2.0**-32  # a draw has 32 bits: what is rarer than this never comes


@dataclass(frozen=True)
class Sampler:
    """A sampler and its options.

    Attributes
    ----------
    name : {"uniform", "frequency", "adaptive", "full-sort"}
        "uniform": every label alike. "frequency": with chance (training rows of the label)^power, a label without rows
        as if it had one. "adaptive": [V]'s factor sampler. "full-sort": the sampler that "adaptive" stands for, which
        orders all labels by their score for every draw.
    power : float
    rank_scale : float
        How deep draws go, in shares of the labels: p(r) ~ exp(-r / (rank_scale * n_labels)), whose mean rank is
        rank_scale * n_labels where that is far from the last one.
    distribution : {"exponential", "geometric", "linear"}
        "geometric": (1 - 1/m)^r with m = rank_scale * n_labels; "linear": falls to 0 at rank 2 m, mean 2/3 m.
    paper : bool
        [V] as printed: the scale is `rank_scale` alone, which leaves rank 1 nearly alone for any value up to 1.
    """

    name: SamplerName = "uniform"
    power: float = 0.5
    rank_scale: float = 0.1
    distribution: RankDistribution = "exponential"
    paper: bool = False

    @classmethod
    def given(cls, value: "str | Mapping[str, Any] | Sampler") -> "Sampler":
        """A sampler from its name, or from a mapping with the name and options.

        Raises
        ------
        InputError
            There is no such sampler or option, or a value that cannot be used.

        Examples
        --------
        >>> Sampler.given({"name": "frequency", "power": 0.75}).power
        0.75
        """
        if isinstance(value, Sampler):
            return value
        options = {"name": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
        name = options.get("name")
        if not isinstance(name, str) or name not in _OPTIONS:
            raise InputError(f"sampler is {value!r}; choose one of {', '.join(_OPTIONS)}")
        unknown = sorted(set(options) - {"name", *_OPTIONS[name]})
        if unknown:
            known = ", ".join(_OPTIONS[name]) or "none"
            raise InputError(f"the sampler {name!r} has no option {unknown[0]!r}; its options are: {known}")
        sampler = cls(**options)
        sampler._check()
        return sampler

    def _check(self) -> None:
        for name, low, high in (("power", -4.0, 4.0), ("rank_scale", 1e-9, 1e9)):
            number = getattr(self, name)
            usable = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
            if not usable or not low <= number <= high:
                raise InputError(f"{name} of the sampler is {number!r}; choose a number from {low:g} to {high:g}")
        if not isinstance(self.paper, (bool, np.bool_)):
            raise InputError(f"paper of the sampler is {self.paper!r}; choose True or False")
        if self.distribution not in ("exponential", "geometric", "linear"):
            raise InputError(
                f"distribution of the sampler is {self.distribution!r}; choose exponential, geometric or linear"
            )


def rank_chances(sampler: Sampler, n_labels: int) -> Float64:
    """Chances of the ranks 1, 2, ..., as far as a draw can reach; their sum is 1 (convention 7).

    Examples
    --------
    >>> rank_chances(Sampler("adaptive", rank_scale=0.5, distribution="linear"), 4).round(2).tolist()
    [0.4, 0.3, 0.2, 0.1]
    """
    scale = sampler.rank_scale * (1 if sampler.paper else n_labels)
    r = np.arange(1, n_labels + 1, dtype=np.float64)
    if sampler.distribution == "exponential":
        heights = np.exp(-(r - 1) / scale)  # exp(-r / scale) but for a factor, which would underflow
    elif sampler.distribution == "geometric":
        heights = (1 - min(1 / scale, 1.0)) ** (r - 1)
    else:
        heights = np.maximum(1 - (r - 1) / max(2 * scale, 1.0), 0)
    chances = heights / heights.sum()
    reached = max(1, int(np.searchsorted(-chances, -_REACHABLE)))
    kept: Float64 = chances[:reached] / chances[:reached].sum()
    return kept


def alias_table(chances: Float64) -> Any:
    """Walker's table: place i is drawn with chance 1/n and keeps the draw, or hands it to another place.

    Chances are met to 2^-32.
    """
    from wsabie.kernels.samplers import Alias

    n = len(chances)
    left = chances / chances.sum() * n
    cuts, others = np.full(n, 1 << 32, np.uint64), np.arange(n, dtype=np.int32)
    small, large = [int(i) for i in np.flatnonzero(left < 1)], [int(i) for i in np.flatnonzero(left >= 1)]
    while small and large:
        i, j = small.pop(), large[-1]
        cuts[i], others[i] = round(left[i] * 2**32), j
        left[j] -= 1 - left[i]
        if left[j] < 1:
            small.append(large.pop())
    return Alias(cuts, others)


class Sampling:
    """The sampler of a run, as the loops take it.

    Parameters
    ----------
    per_thread : list
        What the kernels of each thread take; a sampler without scratch is one object for all.
    period : int or None
        Pairs after which it must look at the space again.
    """

    def __init__(self, per_thread: list[Any], period: int | None = None) -> None:
        self.per_thread = per_thread
        self.period = period

    def refresh(self, space: Space, threads: Threads) -> None:
        """Look at the space as it is now."""

    def labels(self, space: Space) -> Any:
        """The labels as kernels draw from them."""
        return space.label_arrays()

    def parts(self, firsts: Int64) -> list[tuple[int, int]]:
        """Visits lo..hi - 1 between two looks at the space; visit t has pairs firsts[t]..firsts[t + 1] - 1."""
        ends, n = [0], len(firsts) - 1
        while ends[-1] < n:
            lo = ends[-1]
            hi = n if self.period is None else int(np.searchsorted(firsts, firsts[lo] + self.period))
            ends.append(min(max(hi, lo + 1), n))
        return list(pairwise(ends))


class SketchedSampling(Sampling):
    """Every label alike, with sketches of all (`kernels.sketches`), which the loops keep up to date as labels move."""

    def __init__(self, space: Any, per_thread: list[Any]) -> None:
        self.codes, self.scales = tables.bytes_like(space.labels), np.zeros(space.n_labels, np.float32)
        super().__init__(per_thread)

    def refresh(self, space: Space, threads: Threads) -> None:
        """Sketch all labels: since the last pass anybody may have moved them."""
        from wsabie.kernels.sketches import sketch_labels

        labels = self.labels(space)
        bounds = np.linspace(0, space.n_labels, threads.n + 1).astype(np.int64)
        threads.each(lambda t: sketch_labels(labels, bounds[t], bounds[t + 1], space.width))

    def labels(self, space: Space) -> Any:
        from wsabie.kernels.sketches import Sketched

        return Sketched(space.label_arrays(), self.codes, self.scales)


def are_sketched(sampler: Sampler, space: Any) -> bool:
    """Whether sketches of these labels save time: where they are points of a table that the cache does not hold.

    Labels that something else moves within a pass, such as those of a relation, can have none: ask of the whole space.
    """
    return (
        sampler.name == "uniform"
        and type(space) is JointSpace
        and space.similarity == "dot"
        and space.candidates is None
        and space.labels is not space.features
        and space.labels.nbytes >= SKETCHED_FROM
    )


class AdaptiveSampling(Sampling):
    """The labels in the order of every factor, looked at anew every ceil(n ln n) pairs ([V] section 4), in place.

    With few labels it is looked at every PAIRS_PER_BLOCK pairs: tables are frozen for as long in deterministic mode.
    Only as many labels from either end as the rank distribution reaches are ordered.
    """

    def __init__(self, space: Space, sampler: Sampler, n_threads: int) -> None:
        from wsabie.kernels.samplers import Adaptive

        n, dim = space.n_labels, space.dim
        chances = rank_chances(sampler, n)
        self.spread = np.zeros(space.label_arrays().table.shape[1], np.float32)
        self.front, self.back = np.zeros((2, dim, len(chances)), np.int32)
        kernels = Adaptive(self.spread, self.front, self.back, alias_table(chances))
        period = max(math.ceil(n * math.log(max(n, 2))), PAIRS_PER_BLOCK)
        super().__init__([kernels] * n_threads, period)

    def refresh(self, space: Space, threads: Threads) -> None:
        """Order the labels by every factor, and take the factors' standard deviations."""
        table = space.label_arrays().table
        dim, step = len(self.front), 16  # a cache line of a row at a time

        def work(t: int) -> None:
            for lo in range(t * step, dim, step * threads.n):
                hi = min(lo + step, dim)
                columns = np.ascontiguousarray(table[:, lo:hi].T)
                self.spread[lo:hi] = columns.std(1)
                self.front[lo:hi], self.back[lo:hi] = _ends(columns, self.front.shape[1])

        threads.each(work)


def _ends(columns: Float32, k: int) -> tuple[Any, Any]:
    """Places of the k highest values of each row, highest first, equal ones by place; and of the k lowest, from the
    other end of the same order.

    Values and places are sorted as one integer, for which NumPy has vector instructions.
    """
    n = columns.shape[1]
    bits = (columns + np.float32(0)).view(np.int32)  # no -0
    falling = np.where(bits < 0, bits, ~bits ^ np.int32(-(2**31))).view(np.uint32)
    packed = (falling.astype(np.uint64) << np.uint64(32)) | np.arange(n, dtype=np.uint64)
    if 2 * k >= n:
        packed.sort(axis=1)
        first, last = packed[:, :k], packed[:, n - k :]
    else:
        packed.partition(k - 1, axis=1)
        first, last = np.sort(packed[:, :k], axis=1), packed[:, k:]
        last.partition(n - 2 * k, axis=1)
        last = np.sort(last[:, n - 2 * k :], axis=1)
    low = np.uint64(2**32 - 1)
    return first & low, (last & low)[:, ::-1]


def sampling_of(sampler: Sampler, space: Space, counts: Int64, n_threads: int, sketched: bool = False) -> Sampling:
    """The sampler of a run on this space.

    Parameters
    ----------
    counts : (n_labels,) int
        Training rows of each label.
    sketched : bool
        See `are_sketched`.

    Raises
    ------
    InputError
        "adaptive" for labels that are not points under the inner product.
    """
    from wsabie.kernels.samplers import FromPool, FullSort, Uniform, Weighted

    n = space.n_labels
    if space.candidates is not None:
        return Sampling([FromPool()] * n_threads)
    if sampler.name == "uniform":
        alike = [Uniform(np.int64(n))] * n_threads
        return SketchedSampling(space, alike) if sketched else Sampling(alike)
    if sampler.name == "frequency":
        chances = np.maximum(counts, 1).astype(np.float64) ** sampler.power
        return Sampling([Weighted(alias_table(chances / chances.sum()))] * n_threads)
    if sampler.name == "adaptive":
        if space.similarity != "dot":
            weights = "weights" in space.similarity  # no choice of a similarity takes them away
            advice = "choose another sampler" if weights else 'choose similarity="dot", or another sampler'
            raise InputError(
                f'the sampler "adaptive" orders labels by factors of an inner product, and scores are by '
                f"{space.similarity}; {advice}"
            )
        return AdaptiveSampling(space, sampler, n_threads)
    ranks = alias_table(rank_chances(sampler, n))
    new = partial(FullSort, ranks=ranks)
    return Sampling([new(np.zeros(n, np.float32), np.zeros(n, np.int32)) for _ in range(n_threads)])
