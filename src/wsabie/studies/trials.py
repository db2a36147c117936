"""Trials: settings are proposed, trained, and stopped when they fall behind or time is up."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wsabie.base.errors import DivergenceError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress, Stage
from wsabie.models.defaults import Shape
from wsabie.models.one_vs_rest import TooLargeError
from wsabie.studies.fitting import evaluated
from wsabie.studies.journal import Journal, Trial, best_of
from wsabie.studies.proposals import Tried, propose
from wsabie.studies.search_spaces import Search
from wsabie.studies.training import Sides, taken_by
from wsabie.studies.tuned import Plan
from wsabie.training.stats import EpochStats

RUNGS = (0.25, 0.5)
"""Shares of a trial's epochs after which it is stopped unless it is in the better half of those that came so far."""


class StoppedError(Exception):
    """Raised from `on_epoch` to end a fit: the trial fell behind, or time is up."""


def falls_behind(figures: Sequence[float], epochs: int, others: Sequence[Trial]) -> bool:
    """Whether a trial has come to a rung and is not in the better half of the trials that came to it.

    Examples
    --------
    >>> rivals = [Trial(0, {}, {}, 8, [0.2, 0.4], "done", "", 1.0)]
    >>> falls_behind([0.3], 4, rivals), falls_behind([0.5], 4, rivals), falls_behind([0.1], 40, rivals)
    (True, False, False)
    """
    for rung in RUNGS:
        if len(figures) != math.ceil(rung * epochs):
            continue
        ends = [(trial.figures, math.ceil(rung * trial.epochs)) for trial in others]
        rivals = [max(theirs[:end]) for theirs, end in ends if len(theirs) >= end]
        if sum(rival > max(figures) for rival in rivals) >= max(1, (len(rivals) + 1) // 2):
            return True
    return False


class Training(NamedTuple):
    """How trials are trained and judged.

    Attributes
    ----------
    fit : callable
        (parameters, on_epoch or None) -> the fitted model.
    figure : callable
        The figure of a model that reported none while it was trained.
    seed : int
    """

    fit: Callable[[dict[str, Any], Callable[[EpochStats], None] | None], Any]
    figure: Callable[[Any], float]
    seed: int


def run_trials(
    log: Journal, training: Training, shape: Shape, plan: Plan, executor: Executor, progress: Progress
) -> None:
    """Add trials to the journal until one of the limits is reached; the defaults come first, and to their end.

    Where workers of the executor stay, trials that are proposed together run on them, and otherwise here in turns.
    """
    started, before = time.monotonic(), log.seconds
    limit = math.inf if plan.minutes is None else 60 * plan.minutes
    most = max(1, math.inf if plan.trials is None else plan.trials)

    def left() -> float:
        return limit - before - (time.monotonic() - started)

    bar = _Bar(plan, len(log.trials), left)
    with progress.stage("tuning", bar.total, bar.unit) as stage:
        while len(log.trials) < most and (left() > 0 or not log.trials):
            first, end = together(len(log.trials), plan.together)
            numbers = range(len(log.trials), int(min(end, most)))
            work = _Work(log.trials[:first], training, shape, plan, left)
            if executor.standing:
                made = executor.map_with(_made_there, (work._replace(left=None), left()), numbers)
            else:
                made = (_made(work, number, lambda now: bar.tell(stage, now, log.trials)) for number in numbers)
            for trial in made:
                if trial is None:
                    return
                log.add(trial)
                bar.tell(stage, trial.figure, log.trials, done=1)


def together(number: int, size: int) -> tuple[int, int]:
    """The first and the last trial but one of those that are proposed at once with this one; the defaults are alone.

    Examples
    --------
    >>> [together(number, 3) for number in (0, 1, 3, 4)]
    [(0, 1), (1, 4), (1, 4), (4, 7)]
    """
    first = 0 if number == 0 else 1 + (number - 1) // size * size
    return first, first + (size if number else 1)


class _Work(NamedTuple):
    """What trials that are proposed together have in common: `known` are those before them."""

    known: Sequence[Trial]
    training: Training
    shape: Shape
    plan: Plan
    left: Callable[[], float] | None


class _Bar:
    """The bar of a search: it counts seconds where there is a limit in minutes, trials otherwise."""

    def __init__(self, plan: Plan, made: int, left: Callable[[], float]) -> None:
        self.plan, self.left, self.told = plan, left, 0
        self.total: int | None = None
        if plan.minutes is not None:
            self.total = max(0, round(left()))
        elif plan.trials is not None:
            self.total = max(0, plan.trials - made)
        self.unit = "trials" if plan.minutes is None else "s"

    def tell(self, stage: Stage, figure: float | None, trials: Sequence[Trial], done: int = 0) -> None:
        """Move on, and show the best figure and that of the running trial."""
        if self.plan.minutes is not None:
            gone = (self.total or 0) - max(0, round(self.left()))
            done, self.told = gone - self.told, gone
        best = best_of(trials)
        figures = {} if best is None or best.figure is None else {f"best {self.plan.metric}": best.figure}
        stage.advance(done, **figures, **({} if figure is None else {"now": figure}))


def _made_there(given: tuple[_Work, float], number: int) -> Trial | None:
    """A trial in a worker, which has its own clock."""
    work, seconds = given
    until = time.monotonic() + seconds
    return _made(work._replace(left=lambda: until - time.monotonic()), number, lambda _: None)


def _made(work: _Work, number: int, tell: Callable[[float], None]) -> Trial | None:
    """A trial; None when time ran out in its midst."""
    known, training, shape, plan, left = work
    search = plan.search
    drawn = search.start(shape) if number == 0 else _proposed(known, plan, training.seed, number)
    parameters = search.fixed if number == 0 else search.parameters(drawn or {}, shape)
    epochs = planned_epochs(search, parameters, shape)
    figures: list[float] = []
    why = {"state": "done", "reason": ""}

    def on_epoch(stats: EpochStats) -> None:
        figures.append(float(stats.validation or 0.0))
        tell(max(figures))
        if len(figures) == epochs or number == 0:
            return
        late = left is not None and left() <= 0
        why["state"] = "late" if late else "stopped" if _behind(figures, epochs, known, plan) else "done"
        if why["state"] != "done":
            raise StoppedError

    started = time.perf_counter()
    try:
        model = training.fit(parameters, on_epoch if search.kind.stepwise else None)
        if not search.kind.stepwise:
            figures.append(training.figure(model))
    except StoppedError:
        if why["state"] == "late":
            return None
    except (DivergenceError, TooLargeError, MemoryError) as error:
        why = {"state": "failed", "reason": str(error) or "there is not enough memory"}
    seconds = round(time.perf_counter() - started, 3)
    return Trial(number, drawn, parameters, epochs, figures, seconds=seconds, **why)  # type: ignore[arg-type]


def figure_of(model: Any, sides: Sides, metric: str) -> float:
    """The figure of a model that reported none, on the validation rows."""
    rows = sides.validation
    if rows is None:
        raise TypeError("trials are judged on validation rows")
    k = int(metric.partition("@")[2] or 1)
    return float(evaluated(model, rows, (k,), "").means[metric])


def _behind(figures: Sequence[float], epochs: int, known: Sequence[Trial], plan: Plan) -> bool:
    return plan.halving and falls_behind(figures, epochs, known)


def _proposed(known: Sequence[Trial], plan: Plan, seed: int, number: int) -> dict[str, Any]:
    tried = [
        Tried(t.drawn, t.figure, 1.0 if t.state == "done" else len(t.figures) / max(t.epochs, 1))
        for t in known
        if t.drawn is not None
    ]
    return propose(plan.search.space, tried, seed, number) if plan.search.space else {}


def planned_epochs(search: Search, parameters: dict[str, Any], shape: Shape) -> int:
    """How many epochs a setting would be trained for; 1 where they tell nothing."""
    if not search.kind.stepwise:
        return 1
    given = {**search.kind.defaults(), **parameters}
    return int(search.kind.auto(shape, given)["epochs"] if given["epochs"] == "auto" else given["epochs"])


def fit_setting(
    search: Search,
    parameters: dict[str, Any],
    sides: Sides,
    metric: str,
    run: Mapping[str, Any],
    on_epoch: Callable[[EpochStats], None] | None = None,
    **options: Any,
) -> Any:
    """A model of these parameters; `run` = its seed and threads, `options` = further ones of its `fit`."""
    model = search.kind.build(**parameters, **run)
    names = sides.learnt.label_names
    options |= {"validation": sides.judge, "metric": metric, "on_epoch": on_epoch}
    return model.fit(sides.learnt.X, sides.learnt.Y, label_names=names, **taken_by(model, **options))
