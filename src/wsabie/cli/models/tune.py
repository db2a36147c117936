"""`wsabie tune`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from wsabie.cli import inputs
from wsabie.cli import shared_options as shared
from wsabie.cli.estimator_options import parse_assignments
from wsabie.cli.framework import Report, Settings, command, option
from wsabie.cli.output import out, print_note, quote_path, show_table
from wsabie.cli.shared_options import make_work_context
from wsabie.core.errors import InputError
from wsabie.models.estimator_specs import build_estimator
from wsabie.storage.output_checks import refuse_unknown_files

if TYPE_CHECKING:
    from wsabie.evaluation.bootstrap import Interval, PairedDifference
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.workflows.model_training import TrainingRecipe
    from wsabie.workflows.spaces.space_training import SpaceRecipe
    from wsabie.workflows.tune.model_tuning import TuningPlan, TuningResult
    from wsabie.workflows.tune.search_spaces import ParameterSpace

OWN_FILES = r"model|model\.training|trials\.jsonl|trials\.csv|tuning\.html|parallel\.svg"
"""Pattern of the files that a tuning folder holds."""
MAX_SHOWN_TRIALS = 10


class TuneClusterOptions(shared.ClusterRunOptions):
    """Options of the machines; a space is tuned on this one."""

    ray: Annotated[shared.RayAddress, inputs.ONLY_LABELS] = None


class TuneOptions(shared.DataOptions, TuneClusterOptions):
    """Options of `wsabie tune`."""

    data: shared.Data
    out: Path = option("Folder for the trials, the model and the page; a second run goes on.")
    kind: str = option("Kind of model, as in `wsabie train`.", "wsabie", scope=inputs.ONLY_LABELS)
    valid: Path | None = option("Validation data; otherwise --hold-out rows are set aside.", scope=inputs.ONLY_LABELS)
    hold_out: float | None = option(
        "Fraction of rows (whole groups) that judge trials (default: 0.1).", min=0.01, max=0.9
    )
    test: Path | None = option("Test data for the best setting and the defaults.", scope=inputs.ONLY_LABELS)
    allow_overlap: Annotated[shared.AllowOverlap, inputs.ONLY_LABELS] = False
    metric: Literal["MAP", "p@1", "p@10"] = option("MAP, p@1 or p@10.", "MAP", scope=inputs.ONLY_LABELS)
    trials: int | None = option("Trials in all (default: 30, or no limit with --minutes).", min=1)
    minutes: float | None = shared.number_option("Minutes for all trials; the last training comes on top.")
    set_: list[str] | None = option("Fix a parameter, or list values to try.", flag="--set", metavar="NAME=VALUE")
    config: Path | None = option("TOML file with parameters, and with a table [space] of what to try.")
    stop_on: str | None = option(
        "Of a TOML file: the relation that judges trials (default: all).", metavar="RELATION", scope=inputs.ONLY_SPACES
    )
    batch_size: int | None = option("Trials proposed at once (default: 1; with --ray 4).", min=1, max=1000)
    no_pruning: bool = option("Train all trials to their end, also those that fall behind.")
    all_rows: bool = option("Train the model that is saved on the validation rows too.", scope=inputs.ONLY_LABELS)
    min_rows: Annotated[shared.MinRows, inputs.ONLY_LABELS] = 1
    features: Annotated[shared.ExtractionOptions, inputs.ONLY_LABELS]

    def make_plan(self, space: "ParameterSpace", metric: str) -> "TuningPlan":
        """Make the plan of the trials over a space of parameters."""
        from wsabie.workflows.tune.model_tuning import TuningPlan

        trials = 30 if self.trials is None and self.minutes is None else self.trials
        n_proposed = self.batch_size or (1 if self.ray is None else 4)
        is_pruned = not self.no_pruning
        return TuningPlan(space, metric, trials, self.minutes, is_pruned, self.all_rows, self.allow_overlap, n_proposed)


@command(
    "tune photos/ --out tuned --minutes 30",
    "tune rows.parquet --out tuned --set 'dim=[50, 100]' --set similarity=cosine",
)
def tune(options: TuneOptions) -> Report:
    """Search for better parameters of a model.

    Validation rows or held-out pairs decide, and the best setting becomes a model.
    """
    if options.valid is not None and options.hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    return inputs.run_by_data(options, _tune_model, _tune_space)


def _tune_model(options: TuneOptions) -> Report:
    """Open the data, tune, refit the best setting, save it, and report the result."""
    from wsabie.workflows.model_training import WORK_FILES, TrainingRecipe
    from wsabie.workflows.tune.model_tuning import tune_model
    from wsabie.workflows.tune.search_spaces import build_search_space

    kind, paths = options.kind, (options.data, options.valid, options.test)
    plan = options.make_plan(build_search_space(read_changes(options.config, options.set_ or ()), kind), options.metric)
    recipe = TrainingRecipe(
        str(options.data),
        options.out / "model",
        build_estimator(kind, threads=options.threads, seed=options.seed or 0),
        options.features.settings(),
        min_rows=options.min_rows,
        resume=True,
        system=kind,
        holdout_share=0.1 if options.hold_out is None else options.hold_out,
    )
    _check_folders(options, recipe, WORK_FILES, paths)
    with options.collect_rejects() as rejects:
        source = options.open_data(options.data, rejects)
        options.features.refuse_rows(source, options.data)
        width = inputs.find_width(source)
        valid, test = (None if path is None else options.open_data(path, rejects, "auto", width) for path in paths[1:])
        run = make_work_context(rejects, recipe.threads, options.ray, *paths)
        result = tune_model(source, valid, test, plan, recipe, run)
    if result.test_table is not None:
        inputs.report_unknown_labels(result.test_table, options.test)
    inputs.report_bursts(result.facts.get("bursts", 0))
    yield from _report_result(options, result, "validation rows", f"annotate {quote_path(recipe.model)} NEW_DATA")


def _tune_space(options: TuneOptions, declaration: "SpaceDeclaration") -> Report:
    """Tune a space, train the best setting again, save it, write the page, and report the result."""
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.spaces.space_training import WORK_FILES, SpaceRecipe, build_space_search_space, tune_space

    changes, stop_on = read_changes(options.config, options.set_ or ()), options.stop_on
    declared_parameters = {name: value for name, value in declaration.parameters.items() if name in ("seed", "threads")}
    space = Space(**{**declared_parameters, **options.run_settings()})
    space.check_parameters()
    metric = "MAP" if stop_on is None else f"MAP of {stop_on}"
    plan = options.make_plan(build_space_search_space(declaration, changes), metric)
    hold_out = 0.1 if options.hold_out is None else options.hold_out
    recipe = SpaceRecipe(declaration, options.out / "model", space, hold_out, stop_on=stop_on or "mean")
    _check_folders(options, recipe, WORK_FILES, (options.data, *inputs.list_declared_files(declaration)))
    with options.collect_rejects() as rejects:
        result = tune_space(plan, recipe, make_work_context(rejects, space.threads))
    yield from _report_result(options, result, "held-out pairs", f"evaluate {quote_path(recipe.model)} TEST.toml")


def _check_folders(
    options: TuneOptions, recipe: "TrainingRecipe | SpaceRecipe", work_files: str, paths: Sequence[Path | None]
) -> None:
    refuse_unknown_files(options.out, OWN_FILES)
    refuse_unknown_files(recipe.work, work_files)
    options.check_outputs(inputs=(*paths, options.out), folder=recipe.model)


def _report_result(options: TuneOptions, result: "TuningResult", judged_on: str, next_command: str) -> Report:
    """Write the page, and show the best trials and the gain of tuning, or all in JSON."""
    from wsabie.workflows.tune.tuning_page import write_tuning_page

    model = options.out / "model"
    write_tuning_page(options.out, result, options.data.name)
    yield {**result.as_dict(), "model": model}
    _show_trials(result, judged_on)
    _show_test(result)
    out.print(result.verdict())
    out.print(f"{model}: trial {result.best.number}; {model.parent / 'tuning.html'} shows all trials")
    print_note(f"next: wsabie {next_command}")


def _show_trials(result: "TuningResult", judged_on: str) -> None:
    """Show the best trials."""
    from wsabie.workflows.tune.tuning_page import build_trial_table

    finished = [trial for trial in result.trials if trial.figure is not None]
    best = sorted(finished, key=lambda trial: (-(trial.figure or 0.0), trial.number))[:MAX_SHOWN_TRIALS]
    table = build_trial_table(result, best)
    constant = [i for i in range(4, len(table.headers)) if len({row[i] for row in table.rows}) == 1 and len(best) > 1]
    varying = [i for i in range(len(table.headers)) if i not in constant]
    title = f"the best {len(best)} of {len(result.trials)} trials, by {result.plan.metric} on the {judged_on}"
    show_table(title, [table.headers[i] for i in varying], [[row[i] for i in varying] for row in table.rows])
    if constant:
        print_note(f"the same in all of these: {', '.join(f'{table.headers[i]} {table.rows[0][i]}' for i in constant)}")
    if any(trial.state == "stopped" for trial in best):
        print_note("* stopped early, because it fell behind")


def _show_test(result: "TuningResult") -> None:
    if result.test_figures is None:
        return
    rows = []
    for name, tuned in result.test_figures.tuned.items():
        rows.append([name, _format_interval(tuned, ".4f")])
        if name in result.test_figures.defaults:
            rows[-1].append(_format_interval(result.test_figures.defaults[name], ".4f"))
            rows[-1].append(_format_interval(result.test_figures.difference[name], "+.4f"))
    headers = ["metric", "tuned", "defaults", "difference"][: len(rows[0])]
    show_table(f"{result.test_figures.rows:,} test rows, with 95 % intervals", headers, rows)


def _format_interval(interval: "Interval | PairedDifference", form: str) -> str:
    return f"{interval.mean:{form}} ({interval.low:{form}} to {interval.high:{form}})"


def read_changes(config: Path | None, assignments: Sequence[str]) -> Settings:
    """Read fixed and varied parameters from --config and from --set, which has priority.

    At the top of the file, as in that of `wsabie train`, a parameter has a value; in the table [space] it has a value,
    a list of values or {low, high}.

    Raises
    ------
    InputError
        A file that cannot be read, or words that are not NAME=VALUE.
    """
    changes: Settings = {}
    if config is not None:
        from wsabie.io.space_declaration import read_toml_tables

        changes = read_toml_tables(config)
        space = changes.pop("space", {})
        if not isinstance(space, dict):
            raise InputError(f"{config}: space is not a table; write [space] and lines such as dim = [50, 100]")
        changes = {name: [value] if isinstance(value, list) else value for name, value in changes.items()} | space
    return changes | parse_assignments(assignments)
