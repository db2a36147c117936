"""`wsabie tune`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    find_width,
    make_executor,
    open_data,
    refuse_without_effect,
    report_unknown_labels,
)
from wsabie.cli.inputs.parameter_file import read_toml
from wsabie.cli.terminal.output import TerminalProgress, out, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.scratch_folders import refuse_unknown_files

if TYPE_CHECKING:
    from wsabie.workflows.train.model_training import TrainingRecipe
    from wsabie.workflows.tune.tuning_results import TuningPlan, TuningResult

OWN_FILES = r"model|model\.training|trials\.jsonl|trials\.csv|tuning\.html|parallel\.svg"
"""Pattern of the files that a tuning folder holds."""
MAX_SHOWN_TRIALS = 10


@dataclass(frozen=True)
class TuneRequest:
    """Request of the command line."""

    data: Path
    valid: Path | None
    test: Path | None
    out: Path
    plan: "TuningPlan"
    recipe: "TrainingRecipe"
    rejects: Path | None
    strict: bool
    json: bool
    ray: str | None = None


def run_tune(request: TuneRequest) -> None:
    """Open the data, tune, refit the best setting, save it, and report the result."""
    from wsabie.workflows.train.model_training import KEPT
    from wsabie.workflows.tune.model_tuning import tune_model
    from wsabie.workflows.tune.tuning_page import write_tuning_page

    inputs = (request.data, request.valid, request.test)
    refuse_unknown_files(request.out, OWN_FILES)
    refuse_unknown_files(request.recipe.work, KEPT)
    check_output_paths(("rejects", request.rejects), inputs=(*inputs, request.out), folder=request.recipe.model)
    progress = TerminalProgress()
    with collect_rejects(request.rejects, strict=request.strict) as rejects:
        source = open_data(request.data, rejects)
        refuse_without_effect(source, request.data, request.recipe.description)
        valid, test = (
            None if path is None else open_data(path, rejects, n_features=find_width(source)) for path in inputs[1:]
        )
        executor = make_executor(request.recipe.threads, request.ray, *inputs)
        result = tune_model(
            source, valid, test, request.plan, request.recipe, executor=executor, progress=progress, rejects=rejects
        )
    write_tuning_page(request.out, result, request.data.name)
    if result.unknown is not None:
        report_unknown_labels(result.unknown, request.test)
    if request.json:
        show_json({**result.as_dict(), "model": str(request.recipe.model)})
        return
    report_trials(result, request.recipe.model)
    print_note(f"next: wsabie annotate {quote(str(request.recipe.model))} NEW_DATA")


def report_trials(result: "TuningResult", model: Path, judged_on: str = "validation rows") -> None:
    """Show the best trials, and the gain of tuning."""
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
    _show_test(result)
    out.print(result.verdict())
    out.print(f"{model}: trial {result.best.number}; {model.parent / 'tuning.html'} shows all trials")


def _show_test(result: "TuningResult") -> None:
    if result.tested is None:
        return
    rows = []
    for name, tuned in result.tested.tuned.items():
        row = [name, f"{tuned.mean:.4f} ({tuned.low:.4f} to {tuned.high:.4f})"]
        if name in result.tested.defaults:
            default, difference = result.tested.defaults[name], result.tested.difference[name]
            row += [
                f"{default.mean:.4f} ({default.low:.4f} to {default.high:.4f})",
                f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})",
            ]
        rows.append(row)
    headers = ["metric", "tuned", "defaults", "difference"][: len(rows[0])]
    show_table(f"{result.tested.rows:,} test rows, with 95 % intervals", headers, rows)


def read_changes(config: Path | None, fixes: Sequence[str]) -> dict[str, Any]:
    """Read fixed and varied parameters from a TOML file and from --fix, which has priority.

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
    return changes | dict(map(_parse_fix, fixes))


def _parse_fix(words: str) -> tuple[str, Any]:
    name, equals, value = words.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"--fix {words!r} is not NAME=VALUE; write for instance --fix dim=100")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return name.strip(), value.strip()
