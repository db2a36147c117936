"""Training loop over epochs and the passes of each: schedule, validation, divergence, checkpoints."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

import numpy as np

from wsabie.core.arrays import Csr, Float32, Int64
from wsabie.core.errors import DivergenceError
from wsabie.core.execution import SILENT, Progress, Stage
from wsabie.embedding import protocols
from wsabie.kernels.training.warp import StepConfig
from wsabie.training import samplers
from wsabie.training.checkpoints import CheckpointFolder, TrainingProgress
from wsabie.training.early_stopping import EarlyStopping, record_epoch
from wsabie.training.epoch_stats import EpochStats, summarise_epoch
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.loops import BlockVisits, EpochTotals, StepCounters, VisitLoop, run_blocks, run_hogwild
from wsabie.training.rank_losses import build_losses
from wsabie.training.relation_turns import draw_orders, run_interleaved, run_sequentially
from wsabie.training.resolved_settings import TrainingSettings
from wsabie.training.training_data import RowBlock, TrainingData

_compiled_types: set[tuple[object, ...]] = set()
"""Types of arrays for which this process has compiled the loops, or read them from the compiler's cache."""


class EpochMonitor(Protocol):
    """Monitor of the space after every epoch; its `warm_up`, if it has one, compiles its kernels before."""

    def figures(self, space: protocols.TrainableTables) -> Mapping[str, float]:
        """Return figures by name, higher is better. The first selects the best epoch."""
        ...


class EpochRunner:
    """Passes over the data of a run in this process, which move the tables of a space.

    Parameters
    ----------
    settings : TrainingSettings
    space : TrainableTables
    data : TrainingData
    """

    def __init__(self, settings: TrainingSettings, space: protocols.TrainableTables, data: TrainingData) -> None:
        self.settings, self.space, self.data = settings, space, data
        self._samplers: dict[str | None, samplers.NegativeSampler] = {}

    def prepare(self, progress: Progress, monitor: EpochMonitor | None) -> None:
        """Create the samplers; compile all kernels in a progress stage of its own, which may take long."""
        self._samplers = self._create_samplers()
        missing = self._find_uncompiled(monitor) if self.data.n_pairs else {}
        if not missing:
            return
        with progress.stage("compiling (once)", None, ""):
            for visits in missing.values():
                for _ in self._run(visits):  # none, which compiles the loop; otherwise the first visits would wait
                    pass
            if (warm_up := getattr(monitor, "warm_up", None)) is not None:
                warm_up(self.space)
        _compiled_types.update(missing)

    def run_epoch(self, epoch: int, threads: KernelThreads, stage: Stage) -> EpochTotals:
        """Train on all blocks once."""
        step_counters = StepCounters.allocate(threads.n)
        reads = list[tuple[int, float, int]]()

        def passes() -> Iterator[tuple[int, Iterator[int]]]:
            for number, block in enumerate(self.data.read_epoch(epoch)):
                reads.append(count_block_reads(block))
                n_visits, run = self.prepare_visits(block, epoch, number, threads, step_counters)
                yield n_visits, report_pass_progress(run, stage, block)

        for _ in run_interleaved(passes()) if None not in self._samplers else run_sequentially(passes()):
            pass
        return step_counters.sum(reads)

    def prepare_visits(
        self, block: RowBlock, epoch: int, number: int, threads: KernelThreads, step_counters: StepCounters
    ) -> tuple[int, Iterator[int]]:
        """Return the number of visits of a block, and an iterator that makes them."""
        orders = draw_orders(len(block.targets.rows), block.weight, self.settings.seed, epoch, number)
        visible, sampler = self.space.view(block.ends), self._samplers[_get_relation_name(block)]
        step_config = self.build_step_config(visible, epoch + block.epoch_progress)

        def visit_rounds() -> Iterator[int]:
            for number, order in orders.items():
                round_config = step_config._replace(epoch=number)  # every round has its own draws
                yield from self._run(BlockVisits(visible, block, round_config, sampler, order, threads, step_counters))

        return sum(map(len, orders.values())), visit_rounds()

    def close(self) -> None:
        """Release what the passes hold."""

    def build_step_config(self, space: protocols.EmbeddingSpace, epoch: float) -> protocols.KernelArrays:
        """Build the configuration of steps on a space for the loops, at a point of the schedule in epochs."""
        s = self.settings
        rate_share, max_sampled = s.get_rate_share(epoch), s.max_sampled
        limit, limit_weights = (np.float32(np.inf if n is None else n) for n in (s.max_norm, s.max_norm_weights))
        steps = [np.float32(rate * rate_share) for rate in (s.feature_rate, s.learning_rate, s.weight_rate)]
        penalties = zip(steps, (s.l2_rows, s.l2_labels, s.l2_weights), strict=True)
        decays = [np.float32(1 - float(step) * l2) for step, l2 in penalties]
        if space.frozen[1]:
            steps[1], decays[1] = np.float32(0), np.float32(1)
        if space.candidates is not None:  # further draws would repeat candidates of the pool
            pooled: Any = space
            max_sampled = min(max_sampled, pooled.negatives or samplers.PAIRS_PER_BLOCK)
        return StepConfig(
            margin=np.float32(s.margin),
            losses=build_losses(s.loss, s.rank_weight, space.n_labels),
            max_sampled=max_sampled,
            learning_rate_rows=steps[0],
            learning_rate_labels=steps[1],
            learning_rate_weights=steps[2],
            max_norm_rows=limit,
            max_norm_labels=np.float32(np.inf) if space.frozen[1] else limit,
            max_norm_weights=limit_weights,
            decay_rows=decays[0],
            decay_labels=decays[1],
            decay_weights=decays[2],
            learning_rate_bias=np.float32(s.bias_rate * rate_share),
            logistic=s.surrogate == "logistic",
            rank_sample=s.rank_sample,
            order_statistic_cdf=np.array(s.order_statistic_cdf, np.float32),
            seed=s.seed,
            epoch=int(epoch),
        )

    def _find_uncompiled(self, monitor: EpochMonitor | None) -> dict[tuple[object, ...], BlockVisits]:
        """Return a block, and what a pass over it needs, of each combination of types not compiled yet."""
        missing: dict[tuple[object, ...], BlockVisits] = {}
        for block in self.data.read_samples():
            visible, sampler = self.space.view(block.ends), self._samplers[_get_relation_name(block)]
            inputs = (block.inputs, visible.candidates)
            states = (self._run, type(sampler), type(sampler.per_thread[0]), type(monitor))
            types = (*states, self.space.similarity, visible.width, *map(_describe_input_types, inputs))
            if types not in _compiled_types:
                config, counters = self.build_step_config(visible, 0), StepCounters.allocate(1)
                no_visits, thread = np.zeros(0, np.int64), KernelThreads(1)
                missing.setdefault(types, BlockVisits(visible, block, config, sampler, no_visits, thread, counters))
            if block.ends is None:
                break  # the others have the same types
        return missing

    def _create_samplers(self) -> dict[str | None, samplers.NegativeSampler]:
        """Create the sampler of each relation; the key is None if the space has no relations."""
        counts: dict[str | None, Int64] = {}
        views: dict[str | None, protocols.EmbeddingSpace] = {}
        if self.data.label_counts is not None:
            counts[None], views[None] = self.data.label_counts, self.space.view(None)
        for block in () if counts else self.data.read_epoch(0):
            name = _get_relation_name(block)
            visible = views.setdefault(name, self.space.view(block.ends))
            label_counts = counts.setdefault(name, np.zeros(visible.n_labels, np.int64))
            label_counts += np.bincount(block.targets.labels, minlength=visible.n_labels)
        if self.settings.loss == "owpc":
            return {name: samplers.create_exact_sampler(visible) for name, visible in views.items()}
        config, n_threads = self.settings.sampler, self.settings.threads
        can_sketch = samplers.can_use_sketches(config, self.space)
        return {  # other relations move the labels of a view within a pass
            name: samplers.create_sampler(config, visible, counts[name], n_threads, name is None and can_sketch)
            for name, visible in views.items()
        }

    @property
    def _run(self) -> VisitLoop:
        return run_blocks if self.settings.deterministic and self.settings.loss != "owpc" else run_hogwild


def count_block_reads(block: RowBlock) -> tuple[int, float, int]:
    """Count a block's pairs, the feature rows that its visits read, and its rows without a true label."""
    inputs, item_ids = protocols.select_tower_inputs(block.inputs), block.targets.rows
    if isinstance(block.inputs, protocols.ComposedInputs):
        item_ids = block.inputs.item_ids[item_ids]
    if isinstance(inputs, Csr):
        n_read = int(np.diff(inputs.indptr)[item_ids].sum())
    else:
        n_read = len(item_ids) * (inputs.shape[1] if inputs.ndim == 2 else 1)
    is_unlabelled = np.ones(len(block.targets.indptr) - 1, bool)
    is_unlabelled[block.targets.rows] = False
    return len(block.targets.labels), n_read * block.weight, int(np.count_nonzero(is_unlabelled))


def report_pass_progress(run: Iterator[int], stage: Stage, block: RowBlock) -> Iterator[int]:
    """Run a pass and advance the progress bar by its visits, in pairs."""
    pairs_per_visit = len(block.targets.labels) / max(len(block.targets.rows), 1)
    visited = reported_pairs = 0
    for n_visits in run:
        visited += n_visits
        pairs = round(visited * pairs_per_visit)
        stage.advance(pairs - reported_pairs)
        reported_pairs = pairs
        yield n_visits


def _get_relation_name(block: RowBlock) -> str | None:
    return None if block.ends is None else block.ends.name


def _describe_input_types(inputs: protocols.EntityInputs | protocols.ComposedInputs | None) -> tuple[object, ...]:
    """Return the types of inputs that decide about compilation."""
    if isinstance(inputs, protocols.ComposedInputs):
        return protocols.ComposedInputs, *_describe_input_types(inputs.items)
    return type(inputs), getattr(inputs, "ndim", 0)


MAX_COORDINATE = 1e6
"""Absolute value of a coordinate above which training counts as diverged."""
OnEpoch = Callable[[EpochStats], None]
MakeRunner = Callable[[TrainingSettings, protocols.TrainableTables, TrainingData], EpochRunner]


@dataclass
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
    progress : Progress
    make_runner : callable
        Returns the runner of the epochs from the settings, the space and the data.
    """

    settings: TrainingSettings
    _: KW_ONLY
    monitor: EpochMonitor | None = None
    on_epoch: OnEpoch | None = None
    checkpoints: CheckpointFolder | None = None
    progress: Progress = SILENT
    make_runner: MakeRunner = EpochRunner

    def train(self, space: protocols.TrainableTables, data: TrainingData) -> list[EpochStats]:
        """Run all epochs; afterwards `space` has the tables of the best one (of the last without a monitor).

        Raises
        ------
        DivergenceError
            The loss or the tables are no longer finite.
        """
        n_epochs = self.settings.epochs
        stopping = EarlyStopping(self.settings.patience, n_epochs)
        with closing(self.make_runner(self.settings, space, data)) as runner:
            checkpoint = None if self.checkpoints is None else self.checkpoints.restore(space)
            state = checkpoint or TrainingProgress(0, [], None, None)
            if state.epoch < n_epochs:
                runner.prepare(self.progress, self.monitor)
            remaining_pairs = data.n_pairs * (n_epochs - state.epoch)
            with (
                KernelThreads(self.settings.threads) as threads,
                self.progress.stage("training", remaining_pairs, "pairs") as stage,
            ):
                while state.epoch < n_epochs and not stopping.is_exhausted(state.history):
                    stats = self._run_epoch(runner, state.epoch, threads, stage)
                    state = record_epoch(space, state, stats)
                    if self.on_epoch is not None:
                        self.on_epoch(stats)
                    if self.checkpoints is not None:
                        self.checkpoints.save(space, state)
        if state.best is not None:
            space.assign(state.best)
        return state.history

    def _run_epoch(self, runner: EpochRunner, epoch: int, threads: KernelThreads, stage: Stage) -> EpochStats:
        settings, space, started = self.settings, runner.space, time.perf_counter()
        epoch_pass = runner.run_epoch(epoch, threads, stage)
        space.finish_epoch(settings.max_norm, settings.max_norm_weights)
        seconds = time.perf_counter() - started
        traffic = space.traffic(epoch_pass.rows_read / max(runner.data.n_pairs, 1))
        stats = summarise_epoch(epoch_pass, epoch, settings.get_rate(epoch), seconds, traffic)
        check_divergence(space, stats, self.settings)
        stats = self._validate(space, stats)
        name, value = next(iter(stats.validation_metrics.items()), ("loss", stats.loss))
        stage.advance(0, **{name: value})
        return stats

    def _validate(self, space: protocols.TrainableTables, stats: EpochStats) -> EpochStats:
        if self.monitor is None:
            return stats
        started = time.perf_counter()
        figures = dict(self.monitor.figures(space))
        seconds, figure = time.perf_counter() - started, next(iter(figures.values()))
        return replace(stats, validation=figure, validation_metrics=figures, validation_seconds=seconds)


def check_divergence(space: protocols.TrainableTables, stats: EpochStats, settings: TrainingSettings) -> None:
    """Raise DivergenceError where the loss or a coordinate is not finite, or beyond `MAX_COORDINATE`."""
    coordinates = [table for name, table in space.list_arrays().items() if name != "norm2"]
    peak = float(np.max([*map(_find_peak, coordinates), abs(stats.loss)]))
    if not np.isfinite(peak) or peak > MAX_COORDINATE:
        limit = "set max_norm (1 to 3) or " if settings.max_norm is None else ""
        raise DivergenceError(
            f"training diverged in epoch {stats.epoch + 1} (loss {stats.loss:.3g}, largest coordinate {peak:.3g}); "
            f"{limit}lower the learning rate (now {settings.learning_rate:g}), and look at the scale of the features"
        )


def _find_peak(table: Float32) -> float:
    """Return the largest absolute value; NaN if a value is not finite."""
    return float(max(table.max(initial=0), -table.min(initial=0))) if np.isfinite(table).all() else float("nan")
