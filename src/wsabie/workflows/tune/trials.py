"""Trials: settings are proposed, trained, and stopped when they fall behind or time is up."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wsabie.core.errors import DivergenceError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress, Stage
from wsabie.models.base.auto_defaults import TrainingShape
from wsabie.models.linear.one_vs_rest import ModelTooLargeError
from wsabie.training.epoch_stats import EpochStats
from wsabie.workflows.compare.entrant_fitting import evaluate_model
from wsabie.workflows.train.model_training import TrainingData, select_supported_fit_params
from wsabie.workflows.tune.search_spaces import ParameterSpace
from wsabie.workflows.tune.trial_journal import Trial, TrialJournal, find_best_trial
from wsabie.workflows.tune.trial_proposals import TrialOutcome, propose_trial
from wsabie.workflows.tune.tuning_results import TuningPlan

RUNGS = (0.25, 0.5)
"""Shares of a trial's epochs after which it is stopped unless it is in the better half of its rivals."""


class TrialStoppedError(Exception):
    """Raised from `on_epoch` to end a fit: the trial fell behind, or time is up."""


def is_behind(figures: Sequence[float], epochs: int, earlier_trials: Sequence[Trial]) -> bool:
    """Return True at a rung if the trial is not in the better half of the trials that reached it.

    Examples
    --------
    >>> rivals = [Trial(0, {}, {}, 8, [0.2, 0.4], "done", "", 1.0)]
    >>> is_behind([0.3], 4, rivals), is_behind([0.5], 4, rivals), is_behind([0.1], 40, rivals)
    (True, False, False)
    """
    for rung in RUNGS:
        if len(figures) != math.ceil(rung * epochs):
            continue
        ends = [(trial.figures, math.ceil(rung * trial.epochs)) for trial in earlier_trials]
        rivals = [max(figures_[:end]) for figures_, end in ends if len(figures_) >= end]
        if sum(rival > max(figures) for rival in rivals) >= max(1, (len(rivals) + 1) // 2):
            return True
    return False


class TrialTraining(NamedTuple):
    """Functions that train and evaluate a trial.

    Attributes
    ----------
    fit : callable
        (parameters, on_epoch or None) -> the fitted model.
    figure : callable
        The figure of a model that reported none in training.
    seed : int
    """

    fit: Callable[[dict[str, Any], Callable[[EpochStats], None] | None], Any]
    figure: Callable[[Any], float]
    seed: int


def run_trials(
    log: TrialJournal,
    training: TrialTraining,
    shape: TrainingShape,
    plan: TuningPlan,
    executor: Executor,
    progress: Progress,
) -> None:
    """Add trials to the journal until a limit is reached; the defaults come first and always finish.

    Trials that are proposed together run on standing workers of the executor, or else one after another in this
    process.
    """
    start_time, spent_seconds = time.monotonic(), log.seconds
    limit = math.inf if plan.minutes is None else 60 * plan.minutes
    max_trials = max(1, math.inf if plan.trials is None else plan.trials)

    def seconds_left() -> float:
        return limit - spent_seconds - (time.monotonic() - start_time)

    bar = _SearchBar(plan, len(log.trials), seconds_left)
    with progress.stage("tuning", bar.total, bar.unit) as stage:
        while len(log.trials) < max_trials and (seconds_left() > 0 or not log.trials):
            first, end = find_proposal_group(len(log.trials), plan.together)
            numbers = range(len(log.trials), int(min(end, max_trials)))
            work = _TrialGroup(log.trials[:first], training, shape, plan, seconds_left)
            if executor.standing:
                new_trials = executor.map_with(
                    _run_trial_in_worker, (work._replace(seconds_left=None), seconds_left()), numbers
                )
            else:
                new_trials = (
                    _run_trial(work, number, lambda figure: bar.advance(stage, figure, log.trials))
                    for number in numbers
                )
            for trial in new_trials:
                if trial is None:
                    return
                log.add(trial)
                bar.advance(stage, trial.figure, log.trials, steps=1)


def find_proposal_group(number: int, size: int) -> tuple[int, int]:
    """Return first and end of the numbers proposed together with this one; the defaults are alone.

    Examples
    --------
    >>> [find_proposal_group(number, 3) for number in (0, 1, 3, 4)]
    [(0, 1), (1, 4), (1, 4), (4, 7)]
    """
    start = 0 if number == 0 else 1 + (number - 1) // size * size
    return start, start + (size if number else 1)


class _TrialGroup(NamedTuple):
    """Values that trials proposed together share; `earlier_trials` holds the trials before them."""

    earlier_trials: Sequence[Trial]
    training: TrialTraining
    shape: TrainingShape
    plan: TuningPlan
    seconds_left: Callable[[], float] | None


class _SearchBar:
    """Progress bar of a search: it counts seconds if there is a limit in minutes, otherwise trials."""

    def __init__(self, plan: TuningPlan, n_finished: int, seconds_left: Callable[[], float]) -> None:
        self.plan, self.seconds_left, self.elapsed = plan, seconds_left, 0
        self.total: int | None = None
        if plan.minutes is not None:
            self.total = max(0, round(seconds_left()))
        elif plan.trials is not None:
            self.total = max(0, plan.trials - n_finished)
        self.unit = "trials" if plan.minutes is None else "s"

    def advance(self, stage: Stage, figure: float | None, trials: Sequence[Trial], steps: int = 0) -> None:
        """Advance, and show the best figure and that of the running trial."""
        if self.plan.minutes is not None:
            elapsed = (self.total or 0) - max(0, round(self.seconds_left()))
            steps, self.elapsed = elapsed - self.elapsed, elapsed
        best = find_best_trial(trials)
        figures = {} if best is None or best.figure is None else {f"best {self.plan.metric}": best.figure}
        stage.advance(steps, **figures, **({} if figure is None else {"now": figure}))


def _run_trial_in_worker(work_and_seconds: tuple[_TrialGroup, float], number: int) -> Trial | None:
    """Run a trial in a worker, which has its own clock."""
    work, seconds = work_and_seconds
    deadline = time.monotonic() + seconds
    return _run_trial(work._replace(seconds_left=lambda: deadline - time.monotonic()), number, lambda _: None)


def _run_trial(work: _TrialGroup, number: int, tell: Callable[[float], None]) -> Trial | None:
    """Run a trial; None if time ran out before its end."""
    earlier_trials, training, shape, plan, seconds_left = work
    search = plan.search
    place = search.start(shape) if number == 0 else _propose(earlier_trials, plan, training.seed, number)
    parameters = search.fixed if number == 0 else search.parameters(place or {}, shape)
    epochs = count_planned_epochs(search, parameters, shape)
    figures: list[float] = []
    outcome = {"state": "done", "reason": ""}

    def on_epoch(stats: EpochStats) -> None:
        figures.append(float(stats.validation or 0.0))
        tell(max(figures))
        if len(figures) == epochs or number == 0:
            return
        is_late = seconds_left is not None and seconds_left() <= 0
        outcome["state"] = (
            "late" if is_late else "stopped" if _is_behind(figures, epochs, earlier_trials, plan) else "done"
        )
        if outcome["state"] != "done":
            raise TrialStoppedError

    start_time = time.perf_counter()
    try:
        model = training.fit(parameters, on_epoch if search.kind.stepwise else None)
        if not search.kind.stepwise:
            figures.append(training.figure(model))
    except TrialStoppedError:
        if outcome["state"] == "late":
            return None
    except (DivergenceError, ModelTooLargeError, MemoryError) as error:
        outcome = {"state": "failed", "reason": str(error) or "there is not enough memory"}
    seconds = round(time.perf_counter() - start_time, 3)
    return Trial(number, place, parameters, epochs, figures, seconds=seconds, **outcome)  # type: ignore[arg-type]


def measure_figure(model: Any, sides: TrainingData, metric: str) -> float:
    """Return the figure on the validation rows of a model that reported none."""
    rows = sides.validation
    if rows is None:
        raise TypeError("trials are judged on validation rows")
    k = int(metric.partition("@")[2] or 1)
    return float(evaluate_model(model, rows, (k,), "").means[metric])


def _is_behind(figures: Sequence[float], epochs: int, earlier_trials: Sequence[Trial], plan: TuningPlan) -> bool:
    return plan.halving and is_behind(figures, epochs, earlier_trials)


def _propose(earlier_trials: Sequence[Trial], plan: TuningPlan, seed: int, number: int) -> dict[str, Any]:
    outcomes = [
        TrialOutcome(
            trial.drawn, trial.figure, 1.0 if trial.state == "done" else len(trial.figures) / max(trial.epochs, 1)
        )
        for trial in earlier_trials
        if trial.drawn is not None
    ]
    return propose_trial(plan.search.space, outcomes, seed, number) if plan.search.space else {}


def count_planned_epochs(search: ParameterSpace, parameters: dict[str, Any], shape: TrainingShape) -> int:
    """Return the number of epochs that a setting trains for; 1 if the model reports none."""
    if not search.kind.stepwise:
        return 1
    values = {**search.kind.defaults(), **parameters}
    return int(search.kind.auto(shape, values)["epochs"] if values["epochs"] == "auto" else values["epochs"])


def fit_setting(
    search: ParameterSpace,
    parameters: dict[str, Any],
    sides: TrainingData,
    metric: str,
    run: Mapping[str, Any],
    on_epoch: Callable[[EpochStats], None] | None = None,
    **options: Any,
) -> Any:
    """Fit a model with these parameters; `run` = its seed and threads, `options` go to its `fit`."""
    model = search.kind.build(**parameters, **run)
    names = sides.training.label_names
    options |= {"validation": sides.validation_arguments, "metric": metric, "on_epoch": on_epoch}
    return model.fit(
        sides.training.X, sides.training.Y, label_names=names, **select_supported_fit_params(model, **options)
    )
