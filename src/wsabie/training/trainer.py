"""The training loop over epochs: schedule, validation, best model, divergence, checkpoints."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from wsabie.base.arrays import Csr, Float32, Int64
from wsabie.base.errors import DivergenceError
from wsabie.base.progress import SILENT, Progress, Stage
from wsabie.space.protocol import Inputs, Sides, Space, Trainable, of_things, things_of
from wsabie.training.checkpoints import Checkpoints, Progressed
from wsabie.training.loops import Run, Tally, rehearse, run_blocks, run_hogwild, run_owpc
from wsabie.training.losses import losses_for
from wsabie.training.pools import pool_trials
from wsabie.training.samplers import Sampling, are_sketched, sampling_of
from wsabie.training.settings import Settings
from wsabie.training.stats import EpochStats, summarise
from wsabie.training.targets import RowBlock
from wsabie.training.threads import Threads
from wsabie.training.turns import advancing, in_turns, one_by_one

Blocks = Callable[[int], Iterable[RowBlock]]
"""What an epoch, by its number, goes over. Blocks that are read say beforehand how often labels come (`Counted`)."""


class Passed(NamedTuple):
    """What an epoch did: counters, rows of features read, rows without a true label."""

    tally: Tally
    rows_read: float
    unlabelled: int


OnEpoch = Callable[[EpochStats], None]
EXPLODED = 1e6
_rehearsed: set[tuple[Any, ...]] = set()
"""What this process has compiled, or read from the compiler's cache, by the types of the arrays."""


class Monitor(Protocol):
    """Looks at the space after every epoch."""

    def figures(self, space: Any) -> Mapping[str, float]:
        """Figures by name, higher is better. The first decides; the others are kept beside it."""
        ...


@runtime_checkable
class Counted(Protocol):
    """Blocks of one relation that are not gone through before training, for that would be another epoch."""

    @property
    def of_label(self) -> Int64: ...

    def alike(self) -> RowBlock:
        """A block of few rows, of the same types; it is read, which `isinstance` would do with a property."""
        ...

    def __call__(self, epoch: int) -> Iterable[RowBlock]: ...


@runtime_checkable
class Dealt(Counted, Protocol):
    """Blocks of which somebody else can make any: each is named by its epoch and number."""

    def n_parts(self, epoch: int) -> int:
        """Into how many parts an epoch is dealt."""
        ...

    def part(self, epoch: int, number: int) -> RowBlock: ...


@runtime_checkable
class Rehearsed(Monitor, Protocol):
    """A monitor with something to compile."""

    def rehearse(self, space: Any) -> None:
        """Do what `figures` does once, on as little as possible."""
        ...


class Trainer:
    """Trains a space in place.

    Parameters
    ----------
    settings : Settings
    monitor : Monitor or None
        The space whose first figure is best is kept, and training stops when that figure no longer rises.
    on_epoch : callable or None
        Called with the figures of every epoch.
    checkpoints : Checkpoints or None
        Where to save after epochs, and to go on from.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        monitor: Monitor | None = None,
        on_epoch: OnEpoch | None = None,
        checkpoints: Checkpoints | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self.settings = settings
        self.monitor = monitor
        self.on_epoch = on_epoch or (lambda stats: None)
        self.checkpoints = checkpoints
        self.progress = progress

    def train(self, space: Trainable, blocks: Blocks, n_pairs: int) -> list[EpochStats]:
        """Run all epochs; afterwards `space` is the best one seen (the last one without a monitor).

        Raises
        ------
        DivergenceError
            The loss or the tables are no longer finite.
        """
        state = self._resume(space) or Progressed(0, [], None, None)
        left = n_pairs * (self.settings.epochs - state.epoch)
        if left:
            self.compile(space, blocks)
        samplings = self._samplings(space, blocks)
        with (
            Threads(self.settings.threads) as threads,
            self.progress.stage("training", left, "pairs") as stage,
        ):
            while state.epoch < self.settings.epochs and not self._exhausted(state.history):
                stats = self._epoch(space, blocks, n_pairs, state.epoch, samplings, threads, stage)
                state = self._after(space, state, stats)
                self.on_epoch(stats)
                if self.checkpoints is not None:
                    self.checkpoints.save(space, state)
        if state.best is not None:
            space.assign(state.best)
        return state.history

    def compile(self, space: Any, blocks: Blocks) -> None:
        """Have everything compiled, which may take longer than the epochs, under a name of its own."""
        run, monitor, sampler = self._run, self.monitor, self.settings.sampler
        missing: dict[Any, tuple[Space, RowBlock, bool]] = {}
        for block in [blocks.alike()] if isinstance(blocks, Counted) else blocks(0):
            seen = seen_by(space, block)
            pooled = getattr(seen, "candidates", None)
            types = (
                run,
                sampler.name,
                sketched := self._sketched(space),
                space.similarity,
                seen.width,
                *map(_form, (block.inputs, pooled)),
                type(monitor),
            )
            if types not in _rehearsed:
                missing.setdefault(types, (seen, block, sketched))
            if block.ends is None:
                break  # the others have the same types
        if not missing:
            return
        with self.progress.stage("compiling (once)", None, ""):
            for seen, block, sketched in missing.values():
                rehearse(seen, block, self._rule(seen, 0), sampler, run, sketched)
            if isinstance(monitor, Rehearsed):
                monitor.rehearse(space)
        _rehearsed.update(missing)

    def _samplings(self, space: Any, blocks: Blocks) -> dict[str | None, Sampling]:
        """The sampler of each relation; there is one without a name where the space has no relations."""
        if isinstance(blocks, Counted):
            return {None: self.sampling(space, blocks.of_label)}
        counts: dict[str | None, Int64] = {}
        views: dict[str | None, Space] = {}
        for block in blocks(0):
            seen = views.setdefault(_relation(block), seen_by(space, block))
            own = counts.setdefault(_relation(block), np.zeros(seen.n_labels, np.int64))
            own += np.bincount(block.targets.labels, minlength=seen.n_labels)
        return {key: self.sampling(seen, counts[key], alone=key is None) for key, seen in views.items()}

    def sampling(self, space: Space, counts: Int64, alone: bool = True) -> Sampling:
        """Where negatives come from; `alone`: within a pass nothing but it moves the labels."""
        settings = self.settings
        return sampling_of(settings.sampler, space, counts, settings.threads, alone and self._sketched(space))

    def _sketched(self, space: Any) -> bool:
        return self.settings.loss != "owpc" and are_sketched(self.settings.sampler, space)

    def _after(self, space: Trainable, state: Progressed, stats: EpochStats) -> Progressed:
        """The state with one more epoch; the space is kept when it is the best so far."""
        state = replace(state, epoch=state.epoch + 1, history=[*state.history, stats])
        figure = stats.validation
        if figure is None or (state.best_figure is not None and figure <= state.best_figure):
            return state
        if state.best is None:
            return replace(state, best_figure=figure, best=space.copy())
        state.best.assign(space)
        return replace(state, best_figure=figure)

    def _resume(self, space: Trainable) -> Progressed | None:
        return self.checkpoints.restore(space) if self.checkpoints is not None else None

    def _exhausted(self, history: list[EpochStats]) -> bool:
        """Whether half of the schedule is done and the validation figure has not risen for `patience` epochs.

        While the rate is high the figure of few rows goes up and down; most of the rise comes as the rate falls.
        """
        figures = [s.validation for s in history if s.validation is not None]
        patience = self.settings.patience
        if patience is None or len(figures) <= max(patience, self.settings.epochs // 2):
            return False
        return int(np.argmax(figures)) < len(figures) - patience

    def _epoch(
        self,
        space: Any,
        blocks: Blocks,
        n_pairs: int,
        epoch: int,
        samplings: dict[str | None, Sampling],
        threads: Threads,
        stage: Stage,
    ) -> EpochStats:
        started = time.perf_counter()
        tally, rows_read, unlabelled = self._pass(space, blocks, epoch, samplings, threads, stage)
        space.settle(self.settings.max_norm, self.settings.max_norm_weights)
        seconds = time.perf_counter() - started
        stats = summarise(tally, epoch, self._rate(epoch), seconds, space.traffic(rows_read / max(n_pairs, 1)))
        self._check(space, stats)
        stats = self._validated(space, replace(stats, unlabelled=unlabelled))
        name, value = next(iter(stats.validation_metrics.items()), ("loss", stats.loss))
        stage.advance(0, **{name: value})
        return stats

    def _pass(
        self,
        space: Any,
        blocks: Blocks,
        epoch: int,
        samplings: dict[str | None, Sampling],
        threads: Threads,
        stage: Stage,
    ) -> Passed:
        """Train on everything once."""
        tally = Tally.new(threads.n)
        rows_read, unlabelled = 0.0, 0

        def passes() -> Iterator[tuple[int, Iterator[int]]]:
            nonlocal rows_read, unlabelled
            for number, block in enumerate(blocks(epoch)):
                read, bare = read_for(block)
                rows_read, unlabelled = rows_read + read, unlabelled + bare
                n_visits, run = self.visited(space, block, epoch, number, samplings[_relation(block)], threads, tally)
                yield n_visits, advancing(run, stage, block)

        for _ in in_turns(passes()) if None not in samplings else one_by_one(passes()):
            pass
        return Passed(tally, rows_read, unlabelled)

    def visited(
        self,
        space: Any,
        block: RowBlock,
        epoch: int,
        number: int,
        sampling: Sampling,
        threads: Threads,
        tally: Tally,
    ) -> tuple[int, Iterator[int]]:
        """The visits of a block, which has this number in the epoch: how many, and the making of them."""
        orders = self._orders(block, epoch, number)
        return sum(map(len, orders.values())), self._visits(space, block, epoch, orders, sampling, threads, tally)

    def _visits(
        self,
        space: Any,
        block: RowBlock,
        epoch: int,
        orders: dict[int, Int64],
        sampling: Sampling,
        threads: Threads,
        tally: Tally,
    ) -> Iterator[int]:
        """The passes of an epoch over a block; every round draws anew."""
        seen = seen_by(space, block)
        rule = self._rule(seen, epoch + block.begins)
        for number, order in orders.items():
            yield from self._run(seen, block, rule._replace(epoch=number), sampling, order, threads, tally)

    def _orders(self, block: RowBlock, epoch: int, number: int) -> dict[int, Int64]:
        """The visits of an epoch by rounds, each of which visits everything once in a random order of its own.

        A relation's weight is the rounds in an epoch: with .5 the second half of a round comes in the next one.
        """
        n = len(block.targets.rows)
        lo, hi = (round(n * block.weight * done) for done in (epoch, epoch + 1))
        orders = {}
        for one in range(lo // max(n, 1), -(-hi // max(n, 1))):
            order = np.random.default_rng([self.settings.seed, 1, one, number]).permutation(n)
            orders[one] = order[max(lo - n * one, 0) : hi - n * one]
        return orders

    def _validated(self, space: Trainable, stats: EpochStats) -> EpochStats:
        if self.monitor is None:
            return stats
        started = time.perf_counter()
        figures = dict(self.monitor.figures(space))
        seconds, decides = time.perf_counter() - started, next(iter(figures.values()))
        return replace(stats, validation=decides, validation_metrics=figures, validation_seconds=seconds)

    @property
    def _run(self) -> Run:
        if self.settings.loss == "owpc":
            return run_owpc
        return run_blocks if self.settings.deterministic else run_hogwild

    def _rate(self, epoch: float) -> float:
        left = 1 - epoch / self.settings.epochs if self.settings.schedule == "linear" else 1.0
        return self.settings.learning_rate * left

    def _rule(self, space: Space, epoch: float) -> Any:
        from wsabie.kernels.warp import Rule

        s = self.settings
        left = self._rate(epoch) / s.learning_rate if s.learning_rate else 0.0
        limit, limit_weights = (np.float32(np.inf if n is None else n) for n in (s.max_norm, s.max_norm_weights))
        steps = [np.float32(rate * left) for rate in (s.feature_rate, s.learning_rate, s.weight_rate)]
        keeps = [
            np.float32(1 - float(step) * l2)
            for step, l2 in zip(steps, (s.l2_rows, s.l2_labels, s.l2_weights), strict=True)
        ]
        if space.given[1]:
            steps[1], keeps[1] = np.float32(0), np.float32(1)
        return Rule(
            margin=np.float32(s.margin),
            losses=losses_for(s.loss, s.rank_weight, space.n_labels),
            max_trials=s.max_trials if space.candidates is None else pool_trials(space, s.max_trials),
            step_rows=steps[0],
            step_labels=steps[1],
            step_weights=steps[2],
            max_norm_rows=limit,
            max_norm_labels=np.float32(np.inf) if space.given[1] else limit,
            max_norm_weights=limit_weights,
            keep_rows=keeps[0],
            keep_labels=keeps[1],
            keep_weights=keeps[2],
            step_bias=np.float32(s.bias_rate * left),
            logistic=s.surrogate == "logistic",
            rank_sample=s.rank_sample,
            places=np.array(s.places, np.float32),
            seed=s.seed,
            epoch=int(epoch),
        )

    def _check(self, space: Trainable, stats: EpochStats) -> None:
        coordinates = [table for name, table in space.arrays().items() if name != "norm2"]
        peak = float(np.max([*map(_peak, coordinates), abs(stats.loss)]))
        if not np.isfinite(peak) or peak > EXPLODED:
            limit = "set max_norm (1 to 3) or " if self.settings.max_norm is None else ""
            raise DivergenceError(
                f"training diverged in epoch {stats.epoch + 1} (loss {stats.loss:.3g}, largest coordinate {peak:.3g}); "
                f"{limit}lower the learning rate (now {self.settings.learning_rate:g}), "
                "and look at the scale of the features"
            )


def seen_by(space: Any, block: RowBlock) -> Space:
    """What the loops see of a space: all of it, or the relation that the block is of."""
    seen: Space = space if block.ends is None else space.view(block.ends)
    return seen


def read_for(block: RowBlock) -> tuple[float, int]:
    """Rows of features that a block's visits read, and how many of its rows have no true label."""
    return _feature_rows(block) * block.weight, _unlabelled(block)


def _relation(block: RowBlock) -> str | None:
    return None if block.ends is None else block.ends.name


def _form(inputs: Inputs | Sides | None) -> tuple[Any, ...]:
    """What a kernel is compiled for."""
    if isinstance(inputs, Sides):
        return Sides, *_form(inputs.things)
    return type(inputs), getattr(inputs, "ndim", 0)


def _peak(table: Float32) -> float:
    """Largest absolute value; NaN if there is one."""
    return float(max(table.max(initial=0), -table.min(initial=0))) if np.isfinite(table).all() else float("nan")


def _unlabelled(block: RowBlock) -> int:
    """Rows that no visit is of."""
    left = np.ones(len(block.targets.indptr) - 1, bool)
    left[block.targets.rows] = False
    return int(np.count_nonzero(left))


def _feature_rows(block: RowBlock) -> int:
    """Feature rows read when every visit is encoded once."""
    inputs, things = of_things(block.inputs), things_of(block.inputs, block.targets.rows)
    if isinstance(inputs, Csr):
        return int(np.diff(inputs.indptr)[things].sum())
    return int(len(things) * (inputs.shape[1] if inputs.ndim == 2 else 1))
