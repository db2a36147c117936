"""`wsabie tune`."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.command import NotFor, command, options
from wsabie.cli.estimator_options import parse_assignments, read_toml
from wsabie.cli.inputs import find_width, make_executor, open_data, refuse_without_effect, report_unknown_labels
from wsabie.cli.options import (
    AllowOverlap,
    ClusterRunOptions,
    Data,
    ExtractionOptions,
    MinRows,
    RayAddress,
    RejectOptions,
    parse_positive,
)
from wsabie.cli.output import TerminalProgress, out, print_note, show_json, show_table
from wsabie.cli.target import list_declared_files, run_by_data
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths, refuse_unknown_files

if TYPE_CHECKING:
    from wsabie.workflows.tune.tuning_results import TuningPlan, TuningResult

OWN_FILES = r"model|model\.training|trials\.jsonl|trials\.csv|tuning\.html|parallel\.svg"
"""Pattern of the files that a tuning folder holds."""
MAX_SHOWN_TRIALS = 10
_NOT_TUNED = NotFor(space="what a space is not tuned with")


@options
class TuneClusterOptions(ClusterRunOptions):
    """Options of the machines; a space is tuned on this one."""

    ray: Annotated[RayAddress, _NOT_TUNED] = None


@options
class TuneOptions:
    """Options of `wsabie tune`."""

    data: Data
    out: Annotated[Path, typer.Option(help="Folder for the trials, the model and the page; a second run goes on.")]
    kind: Annotated[str, typer.Option(help="Kind of model, as in `wsabie train`."), _NOT_TUNED] = "wsabie"
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside."), _NOT_TUNED
    ] = None
    hold_out: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.9, help="Fraction of rows (whole groups) that judge trials (default: 0.1)."),
    ] = None
    test: Annotated[
        Path | None,
        typer.Option(help="Test data: the best setting and the defaults are judged on them at the end."),
        _NOT_TUNED,
    ] = None
    allow_overlap: Annotated[AllowOverlap, _NOT_TUNED] = False
    metric: Annotated[Literal["MAP", "p@1", "p@10"], typer.Option(help="MAP, p@1 or p@10."), _NOT_TUNED] = "MAP"
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in all (default: 30, or no limit with --minutes).")
    ] = None
    minutes: Annotated[
        float | None,
        typer.Option(
            parser=parse_positive, metavar="NUMBER", help="Minutes for all trials; the last training comes on top."
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Give a parameter this value, or one of a list, in all trials."
        ),
    ] = None
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters, and with a table [space] of what to try.")
    ] = None
    stop_on: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: the relation that judges trials (default: all)."),
        NotFor(labels="which relation of a TOML file counts"),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Trials proposed at once, from those before (default: 1; with --ray 4)."),
    ] = None
    no_pruning: Annotated[bool, typer.Option(help="Train all trials to their end, also those that fall behind.")] = (
        False
    )
    all_rows: Annotated[
        bool, typer.Option(help="Train the model that is saved on the validation rows too."), _NOT_TUNED
    ] = False
    min_rows: Annotated[MinRows, _NOT_TUNED] = 1
    features: Annotated[ExtractionOptions, _NOT_TUNED] = ExtractionOptions()
    machine: TuneClusterOptions = TuneClusterOptions()
    output: RejectOptions = RejectOptions()

    def make_plan(self, space: Any, metric: str) -> "TuningPlan":
        """Make the plan of the trials over a space of parameters."""
        from wsabie.workflows.tune.tuning_results import TuningPlan

        trials = 30 if self.trials is None and self.minutes is None else self.trials
        n_proposed = self.batch_size or (1 if self.machine.ray is None else 4)
        is_pruned = not self.no_pruning
        return TuningPlan(space, metric, trials, self.minutes, is_pruned, self.all_rows, self.allow_overlap, n_proposed)


@command(
    "tune photos/ --out tuned --minutes 30",
    "tune rows.parquet --out tuned --set 'dim=[50, 100]' --set similarity=cosine",
)
def tune(options: TuneOptions) -> None:
    """Search for better parameters on validation rows or held-out pairs; the best setting becomes a model."""
    if options.valid is not None and options.hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    run_by_data(options, _tune_model, _tune_space)


def _tune_model(options: TuneOptions) -> None:
    """Open the data, tune, refit the best setting, save it, and report the result."""
    from wsabie.models.estimator_specs import build_estimator
    from wsabie.workflows.model_training import WORK_FILES, TrainingRecipe
    from wsabie.workflows.tune.model_tuning import tune_model
    from wsabie.workflows.tune.search_spaces import build_search_space
    from wsabie.workflows.tune.tuning_page import write_tuning_page

    kind, machine, inputs = options.kind, options.machine, (options.data, options.valid, options.test)
    plan = options.make_plan(build_search_space(read_changes(options.config, options.set_ or ()), kind), options.metric)
    recipe = TrainingRecipe(
        str(options.data),
        options.out / "model",
        build_estimator(kind, threads=machine.threads, seed=machine.seed or 0),
        options.features.settings(),
        min_rows=options.min_rows,
        resume=True,
        system=kind,
        hold_out=0.1 if options.hold_out is None else options.hold_out,
    )
    refuse_unknown_files(options.out, OWN_FILES)
    refuse_unknown_files(recipe.work, WORK_FILES)
    check_output_paths(("rejects", options.output.rejects), inputs=(*inputs, options.out), folder=recipe.model)
    with options.output.collect() as rejects:
        source = open_data(options.data, rejects)
        refuse_without_effect(source, options.data, recipe.description)
        valid, test = (
            None if path is None else open_data(path, rejects, n_features=find_width(source)) for path in inputs[1:]
        )
        executor = make_executor(recipe.threads, machine.ray, *inputs)
        result = tune_model(
            source, valid, test, plan, recipe, executor=executor, progress=TerminalProgress(), rejects=rejects
        )
    write_tuning_page(options.out, result, options.data.name)
    if result.test_table is not None:
        report_unknown_labels(result.test_table, options.test)
    _report_result(options, result, recipe.model, "validation rows", f"annotate {quote(str(recipe.model))} NEW_DATA")


def _tune_space(options: TuneOptions) -> None:
    """Tune a space, train the best setting again, save it, write the page, and report the result."""
    from wsabie.io.space_declaration import read_declaration
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.spaces.space_training import WORK_FILES, SpaceRecipe
    from wsabie.workflows.spaces.space_tuning import build_space_search_space, tune_space
    from wsabie.workflows.tune.tuning_page import write_tuning_page

    changes, declaration, folder, stop_on = (
        read_changes(options.config, options.set_ or ()),
        read_declaration(options.data),
        options.out,
        options.stop_on,
    )
    declared_parameters = {name: value for name, value in declaration.parameters.items() if name in ("seed", "threads")}
    space = Space(**{**declared_parameters, **options.machine.settings()})
    space.check_parameters()
    metric = "MAP" if stop_on is None else f"MAP of {stop_on}"
    plan = options.make_plan(build_space_search_space(declaration, changes), metric)
    hold_out = 0.1 if options.hold_out is None else options.hold_out
    recipe = SpaceRecipe(declaration, folder / "model", space, hold_out, stop_on=stop_on or "mean")
    refuse_unknown_files(folder, OWN_FILES)
    refuse_unknown_files(recipe.work, WORK_FILES)
    inputs = options.data, *list_declared_files(declaration), folder
    check_output_paths(("rejects", options.output.rejects), inputs=inputs, folder=recipe.model)
    with options.output.collect() as rejects:
        executor = make_executor(space.threads)
        result = tune_space(plan, recipe, executor=executor, progress=TerminalProgress(), rejects=rejects)
    write_tuning_page(folder, result, options.data.name)
    _report_result(options, result, recipe.model, "held-out pairs", f"evaluate {quote(str(recipe.model))} TEST.toml")


def _report_result(
    options: TuneOptions, result: "TuningResult", model: Path, judged_on: str, next_command: str
) -> None:
    """Show the best trials and the gain of tuning, or all in JSON."""
    if options.output.json:
        show_json({**result.as_dict(), "model": str(model)})
        return
    _show_trials(result, judged_on)
    _show_test(result)
    out.print(result.verdict())
    out.print(f"{model}: trial {result.best.number}; {model.parent / 'tuning.html'} shows all trials")
    print_note(f"next: wsabie {next_command}")


def _show_trials(result: "TuningResult", judged_on: str) -> None:
    """Show the best trials."""
    from wsabie.workflows.tune.tuning_page import build_trial_table

    best = sorted((t for t in result.trials if t.figure is not None), key=lambda t: (-(t.figure or 0.0), t.number))[
        :MAX_SHOWN_TRIALS
    ]
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
        row = [name, f"{tuned.mean:.4f} ({tuned.low:.4f} to {tuned.high:.4f})"]
        if name in result.test_figures.defaults:
            default, difference = result.test_figures.defaults[name], result.test_figures.difference[name]
            row += [
                f"{default.mean:.4f} ({default.low:.4f} to {default.high:.4f})",
                f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})",
            ]
        rows.append(row)
    headers = ["metric", "tuned", "defaults", "difference"][: len(rows[0])]
    show_table(f"{result.test_figures.rows:,} test rows, with 95 % intervals", headers, rows)


def read_changes(config: Path | None, assignments: Sequence[str]) -> dict[str, Any]:
    """Read fixed and varied parameters from --config and from --set, which has priority.

    At the top of the file, as in that of `wsabie train`, a parameter has a value; in the table [space] it has a value,
    a list of values or {low, high}.

    Raises
    ------
    InputError
        A file that cannot be read, or words that are not NAME=VALUE.
    """
    changes: dict[str, Any] = {}
    if config is not None:
        changes = read_toml(config)
        space = changes.pop("space", {})
        if not isinstance(space, dict):
            raise InputError(f"{config}: space is no table; write [space] and below it lines such as dim = [50, 100]")
        changes = {name: [value] if isinstance(value, list) else value for name, value in changes.items()} | space
    return changes | parse_assignments(assignments)
