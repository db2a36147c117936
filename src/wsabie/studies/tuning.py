"""Tuning: trials on the validation rows, the best setting refitted and judged on test rows."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import Progress
from wsabie.base.validation import require
from wsabie.evaluation.bootstrap import bootstrap_all, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation
from wsabie.evaluation.splits import check_overlap
from wsabie.models.defaults import Shape
from wsabie.sources.align import Aligned, align
from wsabie.sources.fingerprint import fingerprint_or_none
from wsabie.sources.records import Rows, Source, groups_of
from wsabie.storage.rejects import Rejects
from wsabie.studies.fitting import evaluated
from wsabie.studies.journal import Journal, Trial, best_of, journal, write_csv
from wsabie.studies.proposals import require_optuna
from wsabie.studies.training import Recipe, Sides, prepare, transformed
from wsabie.studies.trials import Training, figure_of, fit_setting, run_trials
from wsabie.studies.tuned import METRICS, Plan, Tested, Tuned


def tune(
    source: Source,
    valid: Source | None,
    test: Source | None,
    plan: Plan,
    recipe: Recipe,
    *,
    executor: Executor,
    progress: Progress,
    rejects: Rejects,
) -> Tuned:
    """Search, refit the best setting, save it; a search that was stopped goes on.

    Parameters
    ----------
    source : Rows or ItemSource
        Pictures are described once, whatever is tried.
    valid : Rows, ItemSource or None
        Where trials are judged; None: `recipe.hold_out` of the rows.
    test : Rows, ItemSource or None
        Read once, after everything is chosen.
    plan : Plan
    recipe : Recipe
        `recipe.model` is the model's folder; trials.jsonl and trials.csv are written beside it.
    executor, progress, rejects
        As in `wsabie.studies.training.train`; trials that are proposed together run on workers that stay.

    Raises
    ------
    InputError
        Optuna is missing, the data cannot be trained on or judged, the folder holds the trials of another search, or
        no trial came to its end.

    Notes
    -----
    One model is held at a time, and of a finished trial its figures alone. The same data, seed and number of trials
    (without a limit in minutes) give the same trials, whether in one run or in several.
    """
    require_optuna()
    kind = plan.search.kind
    require(
        not (plan.all_rows and kind.validated),
        f"{kind.name} needs the validation rows to choose by; leave --all-rows out",
    )
    folder = recipe.model.parent
    with journal(folder / "trials.jsonl", _identity(source, valid, plan, recipe)) as log:
        sides = prepare(source, valid, recipe, executor=executor, progress=progress, rejects=rejects)
        if sides.validation is None:
            raise InputError("no validation row has a label that training rows have; give --valid, or more rows")
        _refuse_constant(plan.metric, len(sides.learnt.label_names))
        judged = None if test is None else _judged(test, sides, plan, executor, progress, rejects)
        shape = shape_of(sides.learnt)
        run = {"seed": recipe.seed, "threads": 1 if executor.standing else recipe.threads}  # a worker is one core
        training = Training(
            lambda parameters, told: fit_setting(plan.search, parameters, sides, plan.metric, run, told),
            lambda model: figure_of(model, sides, plan.metric),
            recipe.seed,
        )
        best = searched(log, training, shape, plan, folder, executor, progress)
        model, own, tested = _final(log.trials[0], best, sides, judged, plan, recipe, progress)
        facts = {**own.facts, "tuning": remembered(best, log.trials, plan)}
        replace(own, facts=facts).annotator(model).save(recipe.model)
        return Tuned(plan, shape, log.trials, best, facts, tested, judged)


def searched(
    log: Journal, training: Training, shape: Shape, plan: Plan, folder: Path, executor: Executor, progress: Progress
) -> Trial:
    """Make the trials, list them in trials.csv; the best one.

    Raises
    ------
    InputError
        None came to its end.
    """
    try:
        run_trials(log, training, shape, plan, executor, progress)
    finally:
        write_csv(folder / "trials.csv", log.trials, list(plan.search.space))
    best = best_of(log.trials)
    if best is None:
        reasons = [trial.reason for trial in log.trials if trial.reason]
        raise InputError(f"no trial came to its end: {reasons[0] if reasons else 'none was begun'}")
    return best


def shape_of(rows: Rows) -> Shape:
    """What the defaults are functions of."""
    return Shape(len(rows), int((rows.Y.data > 0).sum()), len(rows.label_names))


def _final(
    first: Trial, best: Trial, sides: Sides, judged: Aligned | None, plan: Plan, recipe: Recipe, progress: Progress
) -> tuple[Any, Sides, Tested | None]:
    """The best setting trained again, what it was trained on, and the test figures beside those of the defaults."""
    own = _with_validation(sides) if plan.all_rows else sides

    def refitted(trial: Trial) -> Any:
        kept = {"epochs": trial.epoch} if plan.all_rows and plan.search.kind.stepwise else {}
        parameters = {**trial.parameters, **kept}
        run = {"seed": recipe.seed, "threads": recipe.threads}
        return fit_setting(plan.search, parameters, own, plan.metric, run, progress=progress)

    before = None
    if judged is not None and first.state == "done" and first.number != best.number:
        before = _evaluation(refitted(first), judged.rows, plan, "judging defaults", progress)
    model = refitted(best)
    if judged is None:
        return model, own, None
    after = _evaluation(model, judged.rows, plan, "judging tuned", progress)
    if first.number == best.number:
        before = after
    return model, own, _tested(before, after, judged.rows)


def _with_validation(sides: Sides) -> Sides:
    """The same with the validation rows among those that are learnt."""
    from scipy.sparse import vstack

    one, two = sides.learnt, sides.validation
    if two is None:
        return sides
    stack = np.vstack if isinstance(one.X, np.ndarray) else lambda parts: vstack(parts, "csr")
    rows = replace(one, X=stack([one.X, two.X]), Y=vstack([one.Y, two.Y], "csr"), ids=one.ids + two.ids)
    facts = {**sides.facts, "rows": len(one) + len(two), "validation_rows": 0}
    return replace(sides, learnt=replace(rows, groups=None, times=None), validation=None, facts=facts)


def _evaluation(model: Any, rows: Rows, plan: Plan, stage: str, progress: Progress) -> Evaluation:
    return evaluated(model, rows, [k for k in (1, 10) if k == 1 or k < len(rows.label_names)], stage, progress)


def _tested(before: Evaluation | None, after: Evaluation, rows: Rows) -> Tested:
    groups = groups_of(rows, after.rows)
    tuned = {name: after.per_row[name] for name in METRICS if name in after.per_row}
    intervals = bootstrap_all(tuned, groups=groups)
    if before is None:
        return Tested(intervals, {}, {}, after.n_rows)
    default = {name: before.per_row[name] for name in tuned}
    gaps = {name: paired_bootstrap(tuned[name], default[name], groups=groups) for name in tuned}
    return Tested(intervals, bootstrap_all(default, groups=groups), gaps, after.n_rows)


def _judged(
    test: Source, sides: Sides, plan: Plan, executor: Executor, progress: Progress, rejects: Rejects
) -> Aligned:
    """The test rows in the model's terms."""
    learnt = sides.learnt
    rows = transformed(sides.terms, test, executor, progress, rejects)
    found = align(rows, learnt.label_names, learnt.feature_names, learnt.X.shape[1], learnt.dictionary)
    require(bool((found.rows.Y.data > 0).any()), "no test row has a label that the training rows have; give others")
    if not plan.allow_overlap:
        for side in (learnt, sides.validation):
            if side is not None:
                check_overlap(side.ids, side.X, found.rows.ids, found.rows.X)
    return found


def _identity(source: Source, valid: Source | None, plan: Plan, recipe: Recipe) -> dict[str, Any]:
    """What must agree for trials to be comparable; the limits may grow, and threads change nothing."""
    return {
        "data": [fingerprint_or_none(side) if side is not None else None for side in (source, valid)],
        "metric": plan.metric,
        **plan.search.as_dict(),
        "seed": recipe.seed,
        "hold_out": recipe.hold_out if valid is None else None,
        "min_rows": recipe.min_rows,
        "pictures": recipe.description,
        "halving": plan.halving,
    }


def remembered(best: Trial, trials: Sequence[Trial], plan: Plan) -> dict[str, Any]:
    """What the model remembers of its tuning."""
    told = {"metric": plan.metric, "trials": len(trials), "trial": best.number, "figure": best.figure}
    return {**told, "epoch": best.epoch, "defaults": trials[0].figure, "all_rows": plan.all_rows}


def _refuse_constant(metric: str, n_labels: int) -> None:
    k = int(metric.partition("@")[2] or 0)
    require(k < n_labels, f"with {n_labels} labels {metric} is the same for every model; choose another metric")
