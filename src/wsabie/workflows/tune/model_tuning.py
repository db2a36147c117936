"""Tuning of a model: trials on validation rows; the best setting is refitted and tested."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wsabie.core.errors import DivergenceError, InputError, require
from wsabie.core.execution import Progress
from wsabie.core.json_conversion import JsonObject, convert_records, to_json_value
from wsabie.evaluation.bootstrap import Interval, PairedDifference, bootstrap_all, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.evaluation.splits import check_overlap
from wsabie.features.base.sampling import WorkContext
from wsabie.io.alignment import AlignedTable
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.records import FeatureTable, Source, get_groups
from wsabie.io.shards.sharded_table import concatenate_tables
from wsabie.models.base.label_model import LabelModel
from wsabie.models.base.parameter_defaults import TrainingShape
from wsabie.models.one_vs_rest import ModelTooLargeError
from wsabie.training.epoch_stats import EpochStats
from wsabie.workflows.batch_inference import evaluate_model
from wsabie.workflows.model_training import PreparedData, TrainingRecipe, extract_aligned_rows, prepare_training_data
from wsabie.workflows.tune import trial_study
from wsabie.workflows.tune.search_spaces import ParameterSpace
from wsabie.workflows.tune.trial_study import Trial

EpochCallback = Callable[[EpochStats], None]
METRICS = ("MAP", "p@1", "p@10")
"""Metrics that can be tuned for; the test rows report all of them."""


@dataclass(frozen=True)
class TuningPlan:
    """Settings of a search.

    Attributes
    ----------
    search : ParameterSpace
    metric : str
        Metric of the validation rows; chooses the epoch, too.
    trials : int or None
        In all, those of earlier runs included; None has no limit.
    minutes : float or None
        For all trials, those of earlier runs included.
    halving : bool
        Stop trials that fall behind, by successive halving (Li et al. 2020, ASHA).
    all_rows : bool
        Train the saved model on the validation rows too, for as many epochs as were best.
    allow_overlap : bool
        Accept test rows that are training rows too.
    group_size : int
        Trials that are proposed at once, from earlier ones; their results do not depend on where they run.
    """

    search: ParameterSpace
    metric: str = "MAP"
    trials: int | None = 30
    minutes: float | None = None
    halving: bool = True
    all_rows: bool = False
    allow_overlap: bool = False
    group_size: int = 1

    def identity(self, data: Any, seed: int, holdout_share: float | None, **others: Any) -> JsonObject:
        """Return the facts that must agree for trials to be comparable; limits and threads may change."""
        split = {"seed": seed, "hold_out": holdout_share, **others}
        return {"data": data, "metric": self.metric, **self.search.as_dict(), **split, "halving": self.halving}


@dataclass(frozen=True)
class TestFigures:
    """Test figures by metric: the tuned model, the defaults, and tuned minus defaults on the same rows.

    The last two are empty if training with the defaults failed.
    """

    rows: int
    tuned: dict[str, Interval]
    defaults: dict[str, Interval]
    difference: dict[str, PairedDifference]


@dataclass(frozen=True)
class TuningResult:
    """The result of a search.

    Attributes
    ----------
    plan : TuningPlan
    shape : TrainingShape
        Sizes of the training rows, on which defaults depend.
    trials : list of Trial
    best : Trial
    facts : dict
        Facts of the data, as saved with the model.
    test_figures : TestFigures or None
    test_table : AlignedTable or None
        The test data in the model's features and labels.
    """

    plan: TuningPlan
    shape: TrainingShape
    trials: list[Trial]
    best: Trial
    facts: JsonObject
    test_figures: TestFigures | None = None
    test_table: AlignedTable | None = None

    def as_dict(self) -> JsonObject:
        """Return plain values for JSON (schema 1)."""
        values = {
            "schema": 1,
            "metric": self.plan.metric,
            "verdict": self.verdict(),
            "best": self.best.number,
            "search": self.plan.search.as_dict(),
            "trials": [{**vars(trial), "figure": trial.figure, "best_epoch": trial.epoch} for trial in self.trials],
            "data": self.facts,
            "test": self.test_figures,
        }
        return JsonObject(to_json_value(convert_records(values)))

    def verdict(self) -> str:
        """Return a sentence that says if tuning improved on the defaults."""
        if self.best.number == 0:
            return f"the defaults were the best of {len(self.trials)} trials"
        metric, first = self.plan.metric, self.trials[0].figure
        default_figure = "training failed" if first is None else f"{first:.4f}"
        summary = f"validation {metric} {self.best.figure:.4f}, the defaults' {default_figure}"
        if self.test_figures is None or not self.test_figures.defaults:
            return f"{summary}; the best of many is too good by chance, and only test rows tell whether it holds"
        tuned, default = self.test_figures.tuned[metric].mean, self.test_figures.defaults[metric].mean
        gap = self.test_figures.difference[metric]
        outcome = "tuning was worth it" if gap.low > 0 else "the test rows show no difference"
        outcome = "tuning did harm" if gap.high < 0 else outcome
        return (
            f"{outcome}: test {metric} {tuned:.4f}, the defaults' {default:.4f}, {gap.mean:+.4f} "
            f"(95 % interval {gap.low:+.4f} to {gap.high:+.4f})"
        )


class TrialStoppedError(Exception):
    """Raised from `on_epoch` to end a fit: the trial fell behind, or time is up."""


@dataclass(frozen=True)
class TrialTask:
    """Training of the trials of a search, which its workers share.

    Attributes
    ----------
    fit : callable
        (parameters, on_epoch or None) -> the fitted model.
    measure : callable or None
        The figure of a model that reported none in training.
    seed : int
    shape : TrainingShape
        Sizes of the training rows, on which defaults depend.
    plan : TuningPlan
    """

    fit: Callable[[JsonObject, EpochCallback | None], Any]
    measure: Callable[[Any], float] | None
    seed: int
    shape: TrainingShape
    plan: TuningPlan


def tune_model(
    source: Source,
    valid: Source | None,
    test: Source | None,
    plan: TuningPlan,
    recipe: TrainingRecipe,
    context: WorkContext,
) -> TuningResult:
    """Search, refit the best setting and save it; an interrupted search continues.

    Parameters
    ----------
    source : FeatureTable or ItemSource
        Features are extracted once for all trials.
    valid : FeatureTable, ItemSource or None
        Rows that trials are evaluated on; None: `recipe.holdout_share` of the rows.
    test : FeatureTable, ItemSource or None
        Evaluated once, after the search.
    plan : TuningPlan
    recipe : TrainingRecipe
        `recipe.model` is the model's folder; trials.jsonl and trials.csv are written beside it.
    context : WorkContext
        Trials that are proposed together run on persistent workers.

    Raises
    ------
    InputError
        Optuna is missing, the data cannot be used, the folder holds the trials of another search, or no trial finished.

    Notes
    -----
    Memory holds one model at a time; a finished trial leaves its figures only. The same data, seed and number of trials
    (without a limit in minutes) give the same trials, in one run or in several.
    """
    tunable = plan.search.model
    if plan.all_rows and tunable.validated:
        raise InputError(f"{tunable.name} needs the validation rows to choose by; leave `all_rows` out")
    folder = recipe.model.parent
    fingerprints = [None if side is None else compute_fingerprint_or_none(side) for side in (source, valid)]
    holdout_share, others = None if valid is not None else recipe.holdout_share, {"min_rows": recipe.min_rows}
    identity = plan.identity(fingerprints, recipe.seed, holdout_share, **others, pictures=recipe.feature_options)
    with trial_study.open_study(folder / "trials.jsonl", identity) as study:
        data: PreparedData[FeatureTable] = prepare_training_data(source, valid, recipe, context)
        rows, validation = data.training, data.validation
        if validation is None:
            raise InputError("no validation row has a label that training rows have; give `valid`, or more rows")
        n_labels, k = len(rows.label_names), int(plan.metric.partition("@")[2] or 0)
        if k >= n_labels:
            raise InputError(f"with {n_labels} labels {plan.metric} is the same for every model; choose another metric")
        test_table = None if test is None else _align_test_rows(test, data, plan, context)
        shape = TrainingShape(len(rows), int((rows.Y.data > 0).sum()), n_labels, rows.X.shape[1])
        threads = 1 if context.executor.has_persistent_workers else recipe.threads  # a worker is one core

        def fit(parameters: JsonObject, on_epoch: EpochCallback | None) -> Any:
            model = tunable.build(**parameters, seed=recipe.seed, threads=threads)
            return data.fit(model, metric=plan.metric, on_epoch=on_epoch)

        def measure(model: LabelModel) -> float:
            return float(evaluate_model(model, validation, (max(k, 1),), "").means[plan.metric])

        best = run_trial_search(study, TrialTask(fit, measure, recipe.seed, shape, plan), folder, context)
        training_data = _with_validation(data) if plan.all_rows else data

        def refit(trial: Trial) -> Any:
            epochs = {"epochs": trial.epoch} if plan.all_rows and tunable.stepwise else {}
            parameters = {**trial.parameters, **epochs, "seed": recipe.seed, "threads": recipe.threads}
            return training_data.fit(tunable.build(**parameters), metric=plan.metric, progress=context.progress)

        defaults = None
        if test_table is not None and study.trials[0].state == "done" and best.number:
            defaults = _evaluate(refit(study.trials[0]), test_table.rows, plan, "judging defaults", context.progress)
        model, tested = refit(best), None
        if test_table is not None:
            tuned = _evaluate(model, test_table.rows, plan, "judging tuned", context.progress)
            tested = _build_test_figures(defaults if best.number else tuned, tuned, test_table.rows)
        facts = {**training_data.facts, "tuning": collect_tuning_facts(best, study.trials, plan)}
        replace(training_data, facts=facts).annotator(model).save(recipe.model)
        return TuningResult(plan, shape, study.trials, best, facts, tested, test_table)


def run_trial_search(study: trial_study.TrialStudy, task: TrialTask, folder: Path, context: WorkContext) -> Trial:
    """Run the trials, list them in trials.csv, and return the best one.

    Raises
    ------
    InputError
        No trial finished.
    """
    try:
        _run_trials(study, task, context)
    finally:
        trial_study.write_trials_csv(folder / "trials.csv", study.trials, list(task.plan.search.space))
    best = trial_study.find_best_trial(study.trials)
    if best is None:
        reasons = [trial.reason for trial in study.trials if trial.reason]
        raise InputError(f"no trial came to its end: {reasons[0] if reasons else 'none was begun'}")
    return best


def collect_tuning_facts(best: Trial, trials: Sequence[Trial], plan: TuningPlan) -> JsonObject:
    """Return the facts of its tuning that a model is saved with."""
    facts = {"metric": plan.metric, "trials": len(trials), "trial": best.number, "figure": best.figure}
    return {**facts, "epoch": best.epoch, "defaults": trials[0].figure, "all_rows": plan.all_rows}


def _run_trials(study: trial_study.TrialStudy, task: TrialTask, context: WorkContext) -> None:
    """Add trials to the study until a limit is reached; the defaults come first and always finish."""
    # trials that are proposed together run on persistent workers of the executor, or else one after another in
    # this process
    plan = task.plan
    start_time, spent_seconds = time.monotonic(), study.seconds
    limit = math.inf if plan.minutes is None else 60 * plan.minutes
    max_trials = max(1, math.inf if plan.trials is None else plan.trials)

    def seconds_left() -> float:
        return limit - spent_seconds - (time.monotonic() - start_time)

    seconds = max(0, round(seconds_left())) if plan.minutes is not None else None
    n_trials = max(0, plan.trials - len(study.trials)) if plan.trials is not None else None
    size = (n_trials, "trials") if seconds is None else (seconds, "s")
    elapsed = 0
    with context.progress.stage("tuning", *size) as stage:

        def show(figure: float | None, n_finished: int = 0) -> None:
            """Advance by seconds if there is a limit on them, else by trials; show the best figure and this one."""
            nonlocal elapsed
            if seconds is not None:
                now = seconds - max(0, round(seconds_left()))
                n_finished, elapsed = now - elapsed, now
            best = trial_study.find_best_trial(study.trials)
            figures = {} if best is None or best.figure is None else {f"best {plan.metric}": best.figure}
            stage.advance(n_finished, **figures, **({} if figure is None else {"now": figure}))

        while len(study.trials) < max_trials and (seconds_left() > 0 or not study.trials):
            first, end = find_proposal_group(len(study.trials), plan.group_size)
            numbers = range(len(study.trials), int(min(end, max_trials)))
            earlier_trials = study.stored_trials[:first]
            if context.executor.has_persistent_workers:
                shared = task, earlier_trials, seconds_left()
                new_trials = context.executor.map_with(_run_trial, shared, numbers)
            else:
                new_trials = (_run_trial((task, earlier_trials, seconds_left()), number, show) for number in numbers)
            for stored in new_trials:
                if stored is None:
                    return
                show(study.add(stored).figure, 1)


def find_proposal_group(number: int, size: int) -> tuple[int, int]:
    """Return first and end of the numbers proposed together with this one; the defaults are alone.

    Examples
    --------
    >>> [find_proposal_group(number, 3) for number in (0, 1, 3, 4)]
    [(0, 1), (1, 4), (1, 4), (4, 7)]
    """
    start = 0 if number == 0 else 1 + (number - 1) // size * size
    return start, start + (size if number else 1)


def _run_trial(
    shared: tuple[TrialTask, Sequence[trial_study.StoredTrial], float],
    number: int,
    on_figure: Callable[[float], None] = lambda _: None,
) -> trial_study.StoredTrial | None:
    """Run a trial of a task after earlier trials; None if it would take longer than these seconds."""
    task, earlier_trials, seconds_left = shared
    plan, shape, search, start_time = task.plan, task.shape, task.plan.search, time.perf_counter()
    start = search.locate_defaults(shape) if number == 0 else None
    trial = trial_study.RunningTrial(search.space, earlier_trials, task.seed, number, start=start, halving=plan.halving)
    parameters = search.resolve_point(trial.point or {}, shape) if number else search.fixed
    epochs = _count_planned_epochs(search, parameters, shape)
    figures: list[float] = []
    state, reason = "done", ""

    def on_epoch(stats: EpochStats) -> None:
        nonlocal state
        figures.append(float(stats.validation or 0.0))
        on_figure(max(figures))
        is_behind = trial.is_behind(figures, epochs)
        if len(figures) == epochs or number == 0:
            return
        if time.perf_counter() - start_time >= seconds_left:
            state = "late"
        elif is_behind:
            state = "stopped"
        if state != "done":
            raise TrialStoppedError

    try:
        model = task.fit(parameters, on_epoch if search.model.stepwise else None)
        if not search.model.stepwise and task.measure is not None:
            figures.append(task.measure(model))
    except TrialStoppedError:
        if state == "late":
            return None
    except (DivergenceError, ModelTooLargeError, MemoryError) as error:
        state, reason = "failed", str(error) or "there is not enough memory"
    seconds = round(time.perf_counter() - start_time, 3)
    return trial.finish(state, figures, parameters=parameters, epochs=epochs, reason=reason, seconds=seconds)


def _count_planned_epochs(search: ParameterSpace, parameters: JsonObject, shape: TrainingShape) -> int:
    """Return the number of epochs that a setting trains for; 1 if the model reports none."""
    if not search.model.stepwise:
        return 1
    values = {**search.model.defaults(), **parameters}
    return int(search.model.auto(shape, values)["epochs"] if values["epochs"] == "auto" else values["epochs"])


def _with_validation(data: PreparedData[FeatureTable]) -> PreparedData[FeatureTable]:
    """Return the training data with the validation rows among the training rows."""
    parts = [side for side in (data.training, data.validation) if side is not None]
    rows = concatenate_tables([replace(side, groups=None, times=None) for side in parts])
    facts = {**data.facts, "rows": len(rows), "validation_rows": 0}
    return replace(data, training=rows, validation=None, facts=facts)


def _evaluate(model: LabelModel, rows: FeatureTable, plan: TuningPlan, stage: str, progress: Progress) -> Evaluation:
    return evaluate_model(model, rows, [k for k in (1, 10) if k == 1 or k < len(rows.label_names)], stage, progress)


def _build_test_figures(
    default_evaluation: Evaluation | None, tuned_evaluation: Evaluation, rows: FeatureTable
) -> TestFigures:
    groups = get_groups(rows, tuned_evaluation.rows)
    tuned_values = {name: tuned_evaluation.per_row[name] for name in METRICS if name in tuned_evaluation.per_row}
    intervals = bootstrap_all(tuned_values, groups=groups)
    if default_evaluation is None:
        return TestFigures(tuned_evaluation.n_rows, intervals, {}, {})
    default_values = {name: default_evaluation.per_row[name] for name in tuned_values}
    gaps = {name: paired_bootstrap(tuned_values[name], default_values[name], groups=groups) for name in tuned_values}
    return TestFigures(tuned_evaluation.n_rows, intervals, bootstrap_all(default_values, groups=groups), gaps)


def _align_test_rows(
    test: Source, data: PreparedData[FeatureTable], plan: TuningPlan, context: WorkContext
) -> AlignedTable:
    """Return the test rows in the model's features and labels."""
    training = data.training
    test_table = extract_aligned_rows(data.extractor, test, training, context)
    require((test_table.rows.Y.data > 0).any(), "no test row has a label that the training rows have; give others")
    if not plan.allow_overlap:
        for side in (training, data.validation):
            if side is not None:
                check_overlap(side.ids, side.X, test_table.rows.ids, test_table.rows.X)
    return test_table
