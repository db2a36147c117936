"""Tuning of a model: trials on validation rows; the best setting is refitted and tested."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.errors import InputError
from wsabie.core.executors import Executor
from wsabie.core.progress import Progress
from wsabie.core.validation import require
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.evaluation.splits import check_overlap
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.fingerprints import compute_fingerprint_or_none
from wsabie.io.records import FeatureTable, Source, get_groups
from wsabie.models.base.auto_defaults import TrainingShape
from wsabie.storage.rejects import Rejects
from wsabie.workflows.compare.entrant_fitting import evaluate_model
from wsabie.workflows.train.model_training import TrainingData, TrainingRecipe, extract_more_rows, prepare_training_data
from wsabie.workflows.tune.trial_journal import Trial, TrialJournal, find_best_trial, open_journal, write_trials_csv
from wsabie.workflows.tune.trial_proposals import require_optuna
from wsabie.workflows.tune.trials import TrialTraining, fit_setting, measure_figure, run_trials
from wsabie.workflows.tune.tuning_results import METRICS, TestFigures, TuningPlan, TuningResult


def tune_model(
    source: Source,
    valid: Source | None,
    test: Source | None,
    plan: TuningPlan,
    recipe: TrainingRecipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> TuningResult:
    """Search, refit the best setting and save it; an interrupted search continues.

    Parameters
    ----------
    source : FeatureTable or ItemSource
        Features are extracted once for all trials.
    valid : FeatureTable, ItemSource or None
        Rows that trials are evaluated on; None: `recipe.hold_out` of the rows.
    test : FeatureTable, ItemSource or None
        Evaluated once, after the search.
    plan : TuningPlan
    recipe : TrainingRecipe
        `recipe.model` is the model's folder; trials.jsonl and trials.csv are written beside it.
    executor, progress, rejects
        As in `wsabie.workflows.train.model_training.train_model`; trials that are proposed together run on standing
        workers.

    Raises
    ------
    InputError
        Optuna is missing, the data cannot be used, the folder holds the trials of another search, or no trial finished.

    Notes
    -----
    Memory holds one model at a time; a finished trial leaves its figures only. The same data, seed and number of trials
    (without a limit in minutes) give the same trials, in one run or in several.
    """
    require_optuna()
    kind = plan.search.kind
    require(
        not (plan.all_rows and kind.validated),
        f"{kind.name} needs the validation rows to choose by; leave --all-rows out",
    )
    folder = recipe.model.parent
    with open_journal(folder / "trials.jsonl", _identity(source, valid, plan, recipe)) as log:
        sides = prepare_training_data(source, valid, recipe, executor=executor, progress=progress, rejects=rejects)
        if sides.validation is None:
            raise InputError("no validation row has a label that training rows have; give --valid, or more rows")
        _refuse_constant(plan.metric, len(sides.training.label_names))
        test_table = None if test is None else _align_test_rows(test, sides, plan, executor, progress, rejects)
        shape = measure_tuning_shape(sides.training)
        run = {"seed": recipe.seed, "threads": 1 if executor.standing else recipe.threads}  # a worker is one core
        training = TrialTraining(
            lambda parameters, on_epoch_: fit_setting(plan.search, parameters, sides, plan.metric, run, on_epoch_),
            lambda model: measure_figure(model, sides, plan.metric),
            recipe.seed,
        )
        best = run_trial_search(log, training, shape, plan, folder, executor, progress)
        model, training_data, tested = _refit_best(log.trials[0], best, sides, test_table, plan, recipe, progress)
        facts = {**training_data.facts, "tuning": collect_tuning_facts(best, log.trials, plan)}
        replace(training_data, facts=facts).annotator(model).save(recipe.model)
        return TuningResult(plan, shape, log.trials, best, facts, tested, test_table)


def run_trial_search(
    log: TrialJournal,
    training: TrialTraining,
    shape: TrainingShape,
    plan: TuningPlan,
    folder: Path,
    executor: Executor,
    progress: Progress,
) -> Trial:
    """Run the trials, list them in trials.csv, and return the best one.

    Raises
    ------
    InputError
        No trial finished.
    """
    try:
        run_trials(log, training, shape, plan, executor, progress)
    finally:
        write_trials_csv(folder / "trials.csv", log.trials, list(plan.search.space))
    best = find_best_trial(log.trials)
    if best is None:
        reasons = [trial.reason for trial in log.trials if trial.reason]
        raise InputError(f"no trial came to its end: {reasons[0] if reasons else 'none was begun'}")
    return best


def measure_tuning_shape(rows: FeatureTable) -> TrainingShape:
    """Return the sizes that defaults depend on."""
    return TrainingShape(len(rows), int((rows.Y.data > 0).sum()), len(rows.label_names))


def _refit_best(
    first: Trial,
    best: Trial,
    sides: TrainingData,
    test_table: AlignedTable | None,
    plan: TuningPlan,
    recipe: TrainingRecipe,
    progress: Progress,
) -> tuple[Any, TrainingData, TestFigures | None]:
    """Return the refitted best setting, its training data, and its test figures beside the defaults'."""
    training_data = _with_validation(sides) if plan.all_rows else sides

    def refitted(trial: Trial) -> Any:
        epochs = {"epochs": trial.epoch} if plan.all_rows and plan.search.kind.stepwise else {}
        parameters = {**trial.parameters, **epochs}
        run = {"seed": recipe.seed, "threads": recipe.threads}
        return fit_setting(plan.search, parameters, training_data, plan.metric, run, progress=progress)

    default_evaluation = None
    if test_table is not None and first.state == "done" and first.number != best.number:
        default_evaluation = _evaluate(refitted(first), test_table.rows, plan, "judging defaults", progress)
    model = refitted(best)
    if test_table is None:
        return model, training_data, None
    tuned_evaluation = _evaluate(model, test_table.rows, plan, "judging tuned", progress)
    if first.number == best.number:
        default_evaluation = tuned_evaluation
    return model, training_data, _build_test_figures(default_evaluation, tuned_evaluation, test_table.rows)


def _with_validation(sides: TrainingData) -> TrainingData:
    """Return the training data with the validation rows among the training rows."""
    from scipy.sparse import vstack

    training, validation = sides.training, sides.validation
    if validation is None:
        return sides
    stack = np.vstack if isinstance(training.X, np.ndarray) else lambda parts: vstack(parts, "csr")
    rows = replace(
        training,
        X=stack([training.X, validation.X]),
        Y=vstack([training.Y, validation.Y], "csr"),
        ids=training.ids + validation.ids,
    )
    facts = {**sides.facts, "rows": len(training) + len(validation), "validation_rows": 0}
    return replace(sides, training=replace(rows, groups=None, times=None), validation=None, facts=facts)


def _evaluate(model: Any, rows: FeatureTable, plan: TuningPlan, stage: str, progress: Progress) -> Evaluation:
    return evaluate_model(model, rows, [k for k in (1, 10) if k == 1 or k < len(rows.label_names)], stage, progress)


def _build_test_figures(
    default_evaluation: Evaluation | None, tuned_evaluation: Evaluation, rows: FeatureTable
) -> TestFigures:
    groups = get_groups(rows, tuned_evaluation.rows)
    tuned_values = {name: tuned_evaluation.per_row[name] for name in METRICS if name in tuned_evaluation.per_row}
    intervals = bootstrap_all(tuned_values, groups=groups)
    if default_evaluation is None:
        return TestFigures(intervals, {}, {}, tuned_evaluation.n_rows)
    default_values = {name: default_evaluation.per_row[name] for name in tuned_values}
    gaps = {name: paired_bootstrap(tuned_values[name], default_values[name], groups=groups) for name in tuned_values}
    return TestFigures(intervals, bootstrap_all(default_values, groups=groups), gaps, tuned_evaluation.n_rows)


def _align_test_rows(
    test: Source, sides: TrainingData, plan: TuningPlan, executor: Executor, progress: Progress, rejects: Rejects
) -> AlignedTable:
    """Return the test rows in the model's features and labels."""
    training = sides.training
    rows = extract_more_rows(sides.extractor, test, executor, progress, rejects)
    test_table = align_table(
        rows, training.label_names, training.feature_names, training.X.shape[1], training.dictionary
    )
    require(
        bool((test_table.rows.Y.data > 0).any()), "no test row has a label that the training rows have; give others"
    )
    if not plan.allow_overlap:
        for side in (training, sides.validation):
            if side is not None:
                check_overlap(side.ids, side.X, test_table.rows.ids, test_table.rows.X)
    return test_table


def _identity(source: Source, valid: Source | None, plan: TuningPlan, recipe: TrainingRecipe) -> dict[str, Any]:
    """Return the facts that must agree for trials to be comparable; limits and threads may change."""
    return {
        "data": [compute_fingerprint_or_none(side) if side is not None else None for side in (source, valid)],
        "metric": plan.metric,
        **plan.search.as_dict(),
        "seed": recipe.seed,
        "hold_out": recipe.hold_out if valid is None else None,
        "min_rows": recipe.min_rows,
        "pictures": recipe.description,
        "halving": plan.halving,
    }


def collect_tuning_facts(best: Trial, trials: Sequence[Trial], plan: TuningPlan) -> dict[str, Any]:
    """Return the facts of its tuning that a model is saved with."""
    facts = {"metric": plan.metric, "trials": len(trials), "trial": best.number, "figure": best.figure}
    return {**facts, "epoch": best.epoch, "defaults": trials[0].figure, "all_rows": plan.all_rows}


def _refuse_constant(metric: str, n_labels: int) -> None:
    k = int(metric.partition("@")[2] or 0)
    require(k < n_labels, f"with {n_labels} labels {metric} is the same for every model; choose another metric")
