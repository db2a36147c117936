"""Training loop over epochs: schedule, validation, best model, divergence, checkpoints."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from wsabie.core.arrays import Csr, Float32, Int64
from wsabie.core.errors import DivergenceError
from wsabie.core.progress import SILENT, Progress, Stage
from wsabie.embedding.protocols import (
    ComposedInputs,
    EmbeddingSpace,
    Inputs,
    TrainableTables,
    map_examples_to_items,
    select_tower_inputs,
)
from wsabie.training.candidate_pool import limit_pool_draws
from wsabie.training.checkpoints import CheckpointFolder, TrainingProgress
from wsabie.training.epoch_stats import EpochStats, summarise_epoch
from wsabie.training.interleave import report_pass_progress, run_interleaved, run_sequentially
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import Run, StepCounters, run_blocks, run_hogwild, run_owpc, warm_up_loops
from wsabie.training.losses import build_losses
from wsabie.training.samplers import NegativeSampler, can_use_sketches, create_sampler
from wsabie.training.settings import TrainingSettings
from wsabie.training.targets import RowBlock

Blocks = Callable[[int], Iterable[RowBlock]]
"""Function of the epoch number that returns the blocks of an epoch.

Blocks that are read from files provide label counts beforehand (`RelationBlocks`).
"""


class EpochPass(NamedTuple):
    """Counters of an epoch, rows of features read, and rows without a true label."""

    step_counters: StepCounters
    rows_read: float
    unlabelled: int


OnEpoch = Callable[[EpochStats], None]
EXPLODED = 1e6
_compiled_types: set[tuple[Any, ...]] = set()
"""Types of arrays for which this process has compiled the loops, or read them from the compiler's cache."""


class EpochMonitor(Protocol):
    """Monitor of the space after every epoch."""

    def figures(self, space: Any) -> Mapping[str, float]:
        """Return figures by name, higher is better. The first selects the best epoch."""
        ...


@runtime_checkable
class RelationBlocks(Protocol):
    """Blocks of one relation that training does not scan beforehand, which would cost another epoch."""

    @property
    def of_label(self) -> Int64: ...

    def alike(self) -> RowBlock:
        """Return a block of few rows with the same types. No property, because `isinstance` would read it."""
        ...

    def __call__(self, epoch: int) -> Iterable[RowBlock]: ...


@runtime_checkable
class NumberedBlocks(RelationBlocks, Protocol):
    """Blocks identified by epoch and number, so that any process can read any of them."""

    def n_parts(self, epoch: int) -> int:
        """Return the number of parts of an epoch."""
        ...

    def part(self, epoch: int, number: int) -> RowBlock: ...


@runtime_checkable
class CompiledMonitor(EpochMonitor, Protocol):
    """Monitor with kernels to compile."""

    def rehearse(self, space: Any) -> None:
        """Run the kernels of `figures` once, on minimal input."""
        ...


class Trainer:
    """Trainer of a space, in place.

    Parameters
    ----------
    settings : TrainingSettings
    monitor : EpochMonitor or None
        Its first figure selects the best epoch, and training stops when that figure no longer rises.
    on_epoch : callable or None
        Called with the figures of every epoch.
    checkpoints : CheckpointFolder or None
        Folder to save to after epochs, and to resume from.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        *,
        monitor: EpochMonitor | None = None,
        on_epoch: OnEpoch | None = None,
        checkpoints: CheckpointFolder | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self.settings = settings
        self.monitor = monitor
        self.on_epoch = on_epoch or (lambda stats: None)
        self.checkpoints = checkpoints
        self.progress = progress

    def train(self, space: TrainableTables, blocks: Blocks, n_pairs: int) -> list[EpochStats]:
        """Run all epochs; afterwards `space` has the tables of the best one (of the last without a monitor).

        Raises
        ------
        DivergenceError
            The loss or the tables are no longer finite.
        """
        state = self._resume(space) or TrainingProgress(0, [], None, None)
        remaining_pairs = n_pairs * (self.settings.epochs - state.epoch)
        if remaining_pairs:
            self.compile(space, blocks)
        samplings = self._samplings(space, blocks)
        with (
            KernelThreads(self.settings.threads) as threads,
            self.progress.stage("training", remaining_pairs, "pairs") as stage,
        ):
            while state.epoch < self.settings.epochs and not self._is_exhausted(state.history):
                stats = self._epoch(space, blocks, n_pairs, state.epoch, samplings, threads, stage)
                state = self._record_epoch(space, state, stats)
                self.on_epoch(stats)
                if self.checkpoints is not None:
                    self.checkpoints.save(space, state)
        if state.best is not None:
            space.assign(state.best)
        return state.history

    def compile(self, space: Any, blocks: Blocks) -> None:
        """Compile all kernels in a progress stage of its own; this may take longer than the epochs."""
        run, monitor, sampler = self._run, self.monitor, self.settings.sampler
        missing: dict[Any, tuple[EmbeddingSpace, RowBlock, bool]] = {}
        for block in [blocks.alike()] if isinstance(blocks, RelationBlocks) else blocks(0):
            visible = select_visible_space(space, block)
            pooled = getattr(visible, "candidates", None)
            types = (
                run,
                sampler.name,
                sketched := self._can_sketch(space),
                space.similarity,
                visible.width,
                *map(_describe_input_types, (block.inputs, pooled)),
                type(monitor),
            )
            if types not in _compiled_types:
                missing.setdefault(types, (visible, block, sketched))
            if block.ends is None:
                break  # the others have the same types
        if not missing:
            return
        with self.progress.stage("compiling (once)", None, ""):
            for visible, block, sketched in missing.values():
                warm_up_loops(visible, block, self._build_step_config(visible, 0), sampler, run, sketched)
            if isinstance(monitor, CompiledMonitor):
                monitor.rehearse(space)
        _compiled_types.update(missing)

    def _samplings(self, space: Any, blocks: Blocks) -> dict[str | None, NegativeSampler]:
        """Create the sampler of each relation; the key is None if the space has no relations."""
        if isinstance(blocks, RelationBlocks):
            return {None: self.make_sampler(space, blocks.of_label)}
        counts: dict[str | None, Int64] = {}
        views: dict[str | None, EmbeddingSpace] = {}
        for block in blocks(0):
            visible = views.setdefault(_get_relation_name(block), select_visible_space(space, block))
            label_counts = counts.setdefault(_get_relation_name(block), np.zeros(visible.n_labels, np.int64))
            label_counts += np.bincount(block.targets.labels, minlength=visible.n_labels)
        return {
            key: self.make_sampler(visible, counts[key], is_only_mover=key is None) for key, visible in views.items()
        }

    def make_sampler(self, space: EmbeddingSpace, counts: Int64, is_only_mover: bool = True) -> NegativeSampler:
        """Create a sampler; `is_only_mover`: no other code moves its labels within a pass."""
        settings = self.settings
        return create_sampler(
            settings.sampler, space, counts, settings.threads, is_only_mover and self._can_sketch(space)
        )

    def _can_sketch(self, space: Any) -> bool:
        return self.settings.loss != "owpc" and can_use_sketches(self.settings.sampler, space)

    def _record_epoch(self, space: TrainableTables, state: TrainingProgress, stats: EpochStats) -> TrainingProgress:
        """Add an epoch to the state, and keep a copy of the space if it is the best so far."""
        state = replace(state, epoch=state.epoch + 1, history=[*state.history, stats])
        figure = stats.validation
        if figure is None or (state.best_figure is not None and figure <= state.best_figure):
            return state
        if state.best is None:
            return replace(state, best_figure=figure, best=space.copy())
        state.best.assign(space)
        return replace(state, best_figure=figure)

    def _resume(self, space: TrainableTables) -> TrainingProgress | None:
        return self.checkpoints.restore(space) if self.checkpoints is not None else None

    def _is_exhausted(self, history: list[EpochStats]) -> bool:
        """Return whether half of the schedule is over and the figure has not risen for `patience` epochs.

        While the rate is high the figure of few rows fluctuates; most of the rise comes as the rate falls.
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
        samplings: dict[str | None, NegativeSampler],
        threads: KernelThreads,
        stage: Stage,
    ) -> EpochStats:
        started = time.perf_counter()
        step_counters, rows_read, unlabelled = self._pass(space, blocks, epoch, samplings, threads, stage)
        space.settle(self.settings.max_norm, self.settings.max_norm_weights)
        seconds = time.perf_counter() - started
        stats = summarise_epoch(
            step_counters, epoch, self._rate(epoch), seconds, space.traffic(rows_read / max(n_pairs, 1))
        )
        self._check_divergence(space, stats)
        stats = self._validate(space, replace(stats, unlabelled=unlabelled))
        name, value = next(iter(stats.validation_metrics.items()), ("loss", stats.loss))
        stage.advance(0, **{name: value})
        return stats

    def _pass(
        self,
        space: Any,
        blocks: Blocks,
        epoch: int,
        samplings: dict[str | None, NegativeSampler],
        threads: KernelThreads,
        stage: Stage,
    ) -> EpochPass:
        """Train on all blocks once."""
        step_counters = StepCounters.new(threads.n)
        rows_read, unlabelled = 0.0, 0

        def passes() -> Iterator[tuple[int, Iterator[int]]]:
            nonlocal rows_read, unlabelled
            for number, block in enumerate(blocks(epoch)):
                n_read, n_bare = count_block_reads(block)
                rows_read, unlabelled = rows_read + n_read, unlabelled + n_bare
                n_visits, run = self.prepare_visits(
                    space, block, epoch, number, samplings[_get_relation_name(block)], threads, step_counters
                )
                yield n_visits, report_pass_progress(run, stage, block)

        for _ in run_interleaved(passes()) if None not in samplings else run_sequentially(passes()):
            pass
        return EpochPass(step_counters, rows_read, unlabelled)

    def prepare_visits(
        self,
        space: Any,
        block: RowBlock,
        epoch: int,
        number: int,
        sampling: NegativeSampler,
        threads: KernelThreads,
        step_counters: StepCounters,
    ) -> tuple[int, Iterator[int]]:
        """Return the number of visits of a block, and an iterator that makes them."""
        orders = self._draw_orders(block, epoch, number)
        return sum(map(len, orders.values())), self._visits(
            space, block, epoch, orders, sampling, threads, step_counters
        )

    def _visits(
        self,
        space: Any,
        block: RowBlock,
        epoch: int,
        orders: dict[int, Int64],
        sampling: NegativeSampler,
        threads: KernelThreads,
        step_counters: StepCounters,
    ) -> Iterator[int]:
        """Run the passes of an epoch over a block; every round has its own draws."""
        visible = select_visible_space(space, block)
        step_config = self._build_step_config(visible, epoch + block.begins)
        for number, order in orders.items():
            yield from self._run(
                visible, block, step_config._replace(epoch=number), sampling, order, threads, step_counters
            )

    def _draw_orders(self, block: RowBlock, epoch: int, number: int) -> dict[int, Int64]:
        """Draw the order of visits by rounds; a round visits everything once in its own random order.

        The weight of a relation is its number of rounds in an epoch: with .5 the second half of a round comes in the
        next epoch.
        """
        n = len(block.targets.rows)
        lo, hi = (round(n * block.weight * n_epochs) for n_epochs in (epoch, epoch + 1))
        orders = {}
        for round_number in range(lo // max(n, 1), -(-hi // max(n, 1))):
            order = np.random.default_rng([self.settings.seed, 1, round_number, number]).permutation(n)
            orders[round_number] = order[max(lo - n * round_number, 0) : hi - n * round_number]
        return orders

    def _validate(self, space: TrainableTables, stats: EpochStats) -> EpochStats:
        if self.monitor is None:
            return stats
        started = time.perf_counter()
        figures = dict(self.monitor.figures(space))
        seconds, figure = time.perf_counter() - started, next(iter(figures.values()))
        return replace(stats, validation=figure, validation_metrics=figures, validation_seconds=seconds)

    @property
    def _run(self) -> Run:
        if self.settings.loss == "owpc":
            return run_owpc
        return run_blocks if self.settings.deterministic else run_hogwild

    def _rate(self, epoch: float) -> float:
        share = 1 - epoch / self.settings.epochs if self.settings.schedule == "linear" else 1.0
        return self.settings.learning_rate * share

    def _build_step_config(self, space: EmbeddingSpace, epoch: float) -> Any:
        from wsabie.kernels.training.warp import StepConfig

        s = self.settings
        rate_share = self._rate(epoch) / s.learning_rate if s.learning_rate else 0.0
        limit, limit_weights = (np.float32(np.inf if n is None else n) for n in (s.max_norm, s.max_norm_weights))
        steps = [np.float32(rate * rate_share) for rate in (s.feature_rate, s.learning_rate, s.weight_rate)]
        keeps = [
            np.float32(1 - float(step) * l2)
            for step, l2 in zip(steps, (s.l2_rows, s.l2_labels, s.l2_weights), strict=True)
        ]
        if space.given[1]:
            steps[1], keeps[1] = np.float32(0), np.float32(1)
        return StepConfig(
            margin=np.float32(s.margin),
            losses=build_losses(s.loss, s.rank_weight, space.n_labels),
            max_trials=s.max_trials if space.candidates is None else limit_pool_draws(space, s.max_trials),
            step_rows=steps[0],
            step_labels=steps[1],
            step_weights=steps[2],
            max_norm_rows=limit,
            max_norm_labels=np.float32(np.inf) if space.given[1] else limit,
            max_norm_weights=limit_weights,
            keep_rows=keeps[0],
            keep_labels=keeps[1],
            keep_weights=keeps[2],
            step_bias=np.float32(s.bias_rate * rate_share),
            logistic=s.surrogate == "logistic",
            rank_sample=s.rank_sample,
            places=np.array(s.places, np.float32),
            seed=s.seed,
            epoch=int(epoch),
        )

    def _check_divergence(self, space: TrainableTables, stats: EpochStats) -> None:
        coordinates = [table for name, table in space.arrays().items() if name != "norm2"]
        peak = float(np.max([*map(_find_peak, coordinates), abs(stats.loss)]))
        if not np.isfinite(peak) or peak > EXPLODED:
            limit = "set max_norm (1 to 3) or " if self.settings.max_norm is None else ""
            raise DivergenceError(
                f"training diverged in epoch {stats.epoch + 1} (loss {stats.loss:.3g}, largest coordinate {peak:.3g}); "
                f"{limit}lower the learning rate (now {self.settings.learning_rate:g}), "
                "and look at the scale of the features"
            )


def select_visible_space(space: Any, block: RowBlock) -> EmbeddingSpace:
    """Return the space as the loops see it: all of it, or the view of the block's relation."""
    visible: EmbeddingSpace = space if block.ends is None else space.view(block.ends)
    return visible


def count_block_reads(block: RowBlock) -> tuple[float, int]:
    """Count the feature rows that a block's visits read, and its rows without a true label."""
    return _count_feature_rows(block) * block.weight, _count_unlabelled(block)


def _get_relation_name(block: RowBlock) -> str | None:
    return None if block.ends is None else block.ends.name


def _describe_input_types(inputs: Inputs | ComposedInputs | None) -> tuple[Any, ...]:
    """Return the types of inputs that decide about compilation."""
    if isinstance(inputs, ComposedInputs):
        return ComposedInputs, *_describe_input_types(inputs.things)
    return type(inputs), getattr(inputs, "ndim", 0)


def _find_peak(table: Float32) -> float:
    """Return the largest absolute value; NaN if a value is not finite."""
    return float(max(table.max(initial=0), -table.min(initial=0))) if np.isfinite(table).all() else float("nan")


def _count_unlabelled(block: RowBlock) -> int:
    """Count the rows without a visit."""
    is_unlabelled = np.ones(len(block.targets.indptr) - 1, bool)
    is_unlabelled[block.targets.rows] = False
    return int(np.count_nonzero(is_unlabelled))


def _count_feature_rows(block: RowBlock) -> int:
    """Count the feature rows read if every visit is encoded once."""
    inputs, item_ids = select_tower_inputs(block.inputs), map_examples_to_items(block.inputs, block.targets.rows)
    if isinstance(inputs, Csr):
        return int(np.diff(inputs.indptr)[item_ids].sum())
    return int(len(item_ids) * (inputs.shape[1] if inputs.ndim == 2 else 1))
