"""Samplers of negatives: by name, state from the space, refresh periods, and the most draws of a step."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32, Float64, Int64
from wsabie.core.errors import InputError
from wsabie.embedding import tables
from wsabie.embedding.joint_space import JointSpace
from wsabie.embedding.protocols import EmbeddingSpace, KernelArrays
from wsabie.kernels.embedding.label_sketches import SketchedLabels, sketch_labels
from wsabie.kernels.training import negative_samplers
from wsabie.kernels.training.sequential_loop import ViolatorScores
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.rank_losses import LossName

SamplerName = Literal["uniform", "frequency", "adaptive", "full-sort"]
RankDistribution = Literal["exponential", "geometric", "linear"]
_BY_RANK = ("rank_scale", "distribution", "paper")
_OPTIONS = {"uniform": (), "frequency": ("power",), "adaptive": _BY_RANK, "full-sort": _BY_RANK}
"""Options of every sampler."""

AUTO_MAX_SAMPLED = 1000
"""Most negatives that a step draws for a violator, by default."""
PAIRS_PER_BLOCK = 256
"""Pairs scored against the same frozen tables in deterministic mode; never a function of the threads."""
SKETCHED_FROM = 1 << 23
"""Size in bytes of a label table from which sketches are cheaper than reading points."""
_REACHABLE = 2.0**-32  # a draw has 32 bits, so that rarer events never occur


@dataclass(frozen=True)
class SamplerConfig:
    """Sampler with its options.

    Attributes
    ----------
    name : {"uniform", "frequency", "adaptive", "full-sort"}
        "uniform": every label alike. "frequency": with chance (training rows of the label)^power, where 0 rows count as
        1. "adaptive": the factor sampler of Guo et al. 2018. "full-sort": the sampler that "adaptive" approximates,
        which orders all labels by their score for every draw.
    power : float
    rank_scale : float
        Depth of draws as a share of the labels: p(r) ~ exp(-r / (rank_scale * n_labels)), with mean rank
        rank_scale * n_labels if that is far from the last rank.
    distribution : {"exponential", "geometric", "linear"}
        "geometric": (1 - 1/m)^r with m = rank_scale * n_labels; "linear": falls to 0 at rank 2 m, mean 2/3 m.
    paper : bool
        Guo et al. 2018 as printed: the scale is `rank_scale`, so that values up to 1 draw almost only rank 1.
    """

    name: SamplerName = "uniform"
    power: float = 0.5
    rank_scale: float = 0.1
    distribution: RankDistribution = "exponential"
    paper: bool = False

    @classmethod
    def from_value(cls, value: "str | Mapping[str, Any] | SamplerConfig") -> "SamplerConfig":
        """Create a sampler from its name, or from a mapping with the name and options.

        Raises
        ------
        InputError
            There is no such sampler or option, or a value is invalid.

        Examples
        --------
        >>> SamplerConfig.from_value({"name": "frequency", "power": 0.75}).power
        0.75
        """
        if isinstance(value, SamplerConfig):
            return value
        options = {"name": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
        name = options.get("name")
        if not isinstance(name, str) or name not in _OPTIONS:
            raise InputError(f"sampler is {value!r}; choose one of {', '.join(_OPTIONS)}")
        unknown = sorted(set(options) - {"name", *_OPTIONS[name]})
        if unknown:
            option_names = ", ".join(_OPTIONS[name]) or "none"
            raise InputError(f"the sampler {name!r} has no option {unknown[0]!r}; its options are: {option_names}")
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
            fact = f"distribution of the sampler is {self.distribution!r}"
            raise InputError(f"{fact}; choose exponential, geometric or linear")


def compute_rank_chances(sampler: SamplerConfig, n_labels: int) -> Float64:
    """Compute chances of the ranks 1, 2, ..., as far as a draw can reach; their sum is 1 (convention 7).

    Examples
    --------
    >>> compute_rank_chances(SamplerConfig("adaptive", rank_scale=0.5, distribution="linear"), 4).round(2).tolist()
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
    return np.asarray(chances[:reached] / chances[:reached].sum())


def build_alias_table(chances: Float64) -> KernelArrays:
    """Build Walker's alias table: number i is drawn with chance 1/n and becomes itself or its alias.

    Chances are accurate to 2^-32.
    """
    n = len(chances)
    shares = chances / chances.sum() * n
    thresholds, aliases = np.full(n, 1 << 32, np.uint64), np.arange(n, dtype=np.int32)
    small, large = [int(i) for i in np.flatnonzero(shares < 1)], [int(i) for i in np.flatnonzero(shares >= 1)]
    while small and large:
        i, j = small.pop(), large[-1]
        thresholds[i], aliases[i] = round(shares[i] * 2**32), j
        shares[j] -= 1 - shares[i]
        if shares[j] < 1:
            small.append(large.pop())
    return negative_samplers.AliasTable(thresholds, aliases)


@dataclass
class NegativeSampler:
    """Sampler of a run, as the loops use it.

    Parameters
    ----------
    per_thread : list
        State for the kernels of each thread; a sampler without scratch shares one object.
    period : int or None
        Number of pairs between two refreshes; None: no refresh within a pass.
    """

    per_thread: list[KernelArrays]
    period: int | None = None

    def refresh(self, space: EmbeddingSpace, threads: KernelThreads) -> None:
        """Update the sampler from the current space."""

    def label_arrays(self, space: EmbeddingSpace) -> KernelArrays:
        """Return the labels in the form that kernels draw from."""
        return space.label_arrays()

    def split_visits(self, pair_starts: Int64) -> list[tuple[int, int]]:
        """Return (lo, hi) of the visits between refreshes; without visits, one empty part.

        Visit t has the pairs pair_starts[t]..pair_starts[t + 1] - 1.
        """
        ends, n = [0], len(pair_starts) - 1
        while ends[-1] < n:
            lo = ends[-1]
            hi = n if self.period is None else int(np.searchsorted(pair_starts, pair_starts[lo] + self.period))
            ends.append(min(max(hi, lo + 1), n))
        return list(pairwise(ends)) or [(0, 0)]


class SketchedNegativeSampler(NegativeSampler):
    """Uniform sampler with sketches of all labels, which the loops update as labels move."""

    def __init__(self, space: Any, per_thread: list[KernelArrays]) -> None:
        self.codes, self.scales = tables.allocate_bytes_like(space.labels), np.zeros(space.n_labels, np.float32)
        super().__init__(per_thread)

    def refresh(self, space: EmbeddingSpace, threads: KernelThreads) -> None:
        """Sketch all labels again, because other code may have moved them since the last pass."""
        labels = self.label_arrays(space)
        bounds = np.linspace(0, space.n_labels, threads.n + 1).astype(np.int64)
        threads.run_each(lambda t: sketch_labels(labels, bounds[t], bounds[t + 1], space.width))

    def label_arrays(self, space: EmbeddingSpace) -> KernelArrays:
        points = space.label_arrays()
        return SketchedLabels(points.table, points.bias, self.codes, self.scales)


def can_use_sketches(sampler: SamplerConfig, space: Any) -> bool:
    """Return whether sketches of these labels save time: points of a table larger than the cache.

    Labels that other code moves within a pass, such as those of a relation, have no sketches: pass the whole space.
    """
    return (
        sampler.name == "uniform"
        and type(space) is JointSpace
        and space.similarity == "dot"
        and space.candidates is None
        and space.labels is not space.features
        and space.labels.nbytes >= SKETCHED_FROM
    )


class AdaptiveNegativeSampler(NegativeSampler):
    """Sampler by factor order, refreshed every ceil(n ln n) pairs (Guo et al. 2018, section 4), in place.

    With few labels it refreshes every PAIRS_PER_BLOCK pairs, because deterministic mode freezes tables as long. It
    orders only as many labels from either end as the rank distribution reaches.
    """

    def __init__(self, space: EmbeddingSpace, sampler: SamplerConfig, n_threads: int) -> None:
        n, dim = space.n_labels, space.dim
        chances = compute_rank_chances(sampler, n)
        self.factor_std = np.zeros(space.label_arrays().table.shape[1], np.float32)
        self.highest_labels, self.lowest_labels = np.zeros((2, dim, len(chances)), np.int32)
        ranks = build_alias_table(chances)
        kernels = negative_samplers.AdaptiveSamplerState(
            self.factor_std, self.highest_labels, self.lowest_labels, ranks
        )
        period = max(math.ceil(n * math.log(max(n, 2))), PAIRS_PER_BLOCK)
        super().__init__([kernels] * n_threads, period)

    def refresh(self, space: EmbeddingSpace, threads: KernelThreads) -> None:
        """Order the labels by every factor, and compute the factors' standard deviations."""
        table = space.label_arrays().table
        dim, n_ranks = self.highest_labels.shape
        step = 16  # a cache line of a row at a time

        def work(t: int) -> None:
            for lo in range(t * step, dim, step * threads.n):
                hi = min(lo + step, dim)
                columns = np.ascontiguousarray(table[:, lo:hi].T)
                self.factor_std[lo:hi] = columns.std(1)
                self.highest_labels[lo:hi], self.lowest_labels[lo:hi] = _find_extremes(columns, n_ranks)

        threads.run_each(work)


def _find_extremes(columns: Float32, k: int) -> tuple[Array, Array]:
    """Return the positions of the k highest and the k lowest values of each row, outermost first."""
    # ties are sorted by position; values and positions are sorted as one integer, for which NumPy has vector
    # instructions
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


def create_sampler(
    sampler: SamplerConfig, space: EmbeddingSpace, counts: Int64, n_threads: int, sketched: bool = False
) -> NegativeSampler:
    """Create the sampler of a run on this space.

    Parameters
    ----------
    counts : (n_labels,) int
        Training rows of each label.
    sketched : bool
        See `can_use_sketches`.

    Raises
    ------
    InputError
        The sampler is "adaptive" and labels are not points under the inner product.
    """
    n = space.n_labels
    if space.candidates is not None:
        return NegativeSampler([negative_samplers.PoolSamplerState()] * n_threads)
    if sampler.name == "uniform":
        states = [negative_samplers.UniformSamplerState(np.int64(n))] * n_threads
        return SketchedNegativeSampler(space, states) if sketched else NegativeSampler(states)
    if sampler.name == "frequency":
        chances = np.maximum(counts, 1).astype(np.float64) ** sampler.power
        return NegativeSampler([build_alias_table(chances / chances.sum())] * n_threads)
    if sampler.name == "adaptive":
        if space.similarity != "dot":
            weights = "weights" in space.similarity  # another similarity would not help
            advice = "choose another sampler" if weights else 'choose similarity="dot", or another sampler'
            raise InputError(
                f'the sampler "adaptive" orders labels by factors of an inner product, and scores are by '
                f"{space.similarity}; {advice}"
            )
        return AdaptiveNegativeSampler(space, sampler, n_threads)
    ranks = build_alias_table(compute_rank_chances(sampler, n))
    scratch = ((np.zeros(n, np.float32), np.zeros(n, np.int32)) for _ in range(n_threads))
    return NegativeSampler([negative_samplers.FullSortSamplerState(*arrays, ranks) for arrays in scratch])


def create_exact_sampler(space: EmbeddingSpace) -> NegativeSampler:
    """Create the sampler of the loss "owpc", which scores all labels in one thread and draws none."""
    return NegativeSampler([ViolatorScores(np.zeros(space.n_labels, np.float32))])


def resolve_max_sampled(loss: LossName, max_sampled: int | Literal["auto"] | None, n_labels: int) -> int:
    """Return the maximum number of draws: 1 for "auc", all for None (Algorithm 1), 1,000 for "auto"."""
    if loss == "auc":
        return 1
    if max_sampled is None:
        return n_labels
    return min(AUTO_MAX_SAMPLED, n_labels) if max_sampled == "auto" else int(max_sampled)
