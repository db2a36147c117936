"""`wsabie tune`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, listing, opened, refuse_without_effect, tell_unknown, width_of
from wsabie.faces.cli.settings_file import read_toml
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json, show_table
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.scratch import refuse_strangers

if TYPE_CHECKING:
    from wsabie.studies.training import Recipe
    from wsabie.studies.tuned import Plan, Tuned

OURS = r"model|model\.training|trials\.jsonl|trials\.csv|tuning\.html|parallel\.svg"
"""What a folder of a search holds."""
BEST = 10


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    data: Path
    valid: Path | None
    test: Path | None
    out: Path
    plan: "Plan"
    recipe: "Recipe"
    rejects: Path | None
    strict: bool
    json: bool
    ray: str | None = None


def tune_command(asked: Asked) -> None:
    """Open, search, refit, save, tell."""
    from wsabie.studies.training import KEPT
    from wsabie.studies.tuning import tune
    from wsabie.studies.tuning_page import write_page

    inputs = (asked.data, asked.valid, asked.test)
    refuse_strangers(asked.out, OURS)
    refuse_strangers(asked.recipe.work, KEPT)
    refuse_unwritable(("rejects", asked.rejects), inputs=(*inputs, asked.out), folder=asked.recipe.model)
    progress = TerminalProgress()
    with listing(asked.rejects, strict=asked.strict) as rejects:
        source = opened(asked.data, rejects)
        refuse_without_effect(source, asked.data, asked.recipe.description)
        valid, test = (
            None if path is None else opened(path, rejects, n_features=width_of(source)) for path in inputs[1:]
        )
        run = executor(asked.recipe.threads, asked.ray, *inputs)
        found = tune(source, valid, test, asked.plan, asked.recipe, executor=run, progress=progress, rejects=rejects)
    write_page(asked.out, found, asked.data.name)
    if found.unknown is not None:
        tell_unknown(found.unknown, asked.test)
    if asked.json:
        show_json({**found.as_dict(), "model": str(asked.recipe.model)})
        return
    tell(found, asked.recipe.model)
    note(f"next: wsabie annotate {quote(str(asked.recipe.model))} NEW_DATA")


def tell(found: "Tuned", model: Path, judged_on: str = "validation rows") -> None:
    """The best trials, and whether tuning was worth it."""
    from wsabie.studies.tuning_page import trial_table

    best = sorted((t for t in found.trials if t.figure is not None), key=lambda t: (-(t.figure or 0.0), t.number))[
        :BEST
    ]
    table = trial_table(found, best)
    same = [i for i in range(4, len(table.headers)) if len({row[i] for row in table.rows}) == 1 and len(best) > 1]
    kept = [i for i in range(len(table.headers)) if i not in same]
    title = f"the best {len(best)} of {len(found.trials)} trials, by {found.plan.metric} on the {judged_on}"
    show_table(title, [table.headers[i] for i in kept], [[row[i] for i in kept] for row in table.rows])
    if same:
        note(f"the same in all of these: {', '.join(f'{table.headers[i]} {table.rows[0][i]}' for i in same)}")
    if any(trial.state == "stopped" for trial in best):
        note("* stopped early, because it fell behind")
    _tell_test(found)
    out.print(found.verdict())
    out.print(f"{model}: trial {found.best.number}; {model.parent / 'tuning.html'} shows all trials")


def _tell_test(found: "Tuned") -> None:
    if found.tested is None:
        return
    rows = []
    for name, tuned in found.tested.tuned.items():
        row = [name, f"{tuned.mean:.4f} ({tuned.low:.4f} to {tuned.high:.4f})"]
        if name in found.tested.defaults:
            default, gap = found.tested.defaults[name], found.tested.difference[name]
            row += [
                f"{default.mean:.4f} ({default.low:.4f} to {default.high:.4f})",
                f"{gap.mean:+.4f} ({gap.low:+.4f} to {gap.high:+.4f})",
            ]
        rows.append(row)
    heads = ["metric", "tuned", "defaults", "difference"][: len(rows[0])]
    show_table(f"{found.tested.rows:,} test rows, with 95 % intervals", heads, rows)


def read_changes(config: Path | None, fixes: Sequence[str]) -> dict[str, Any]:
    """What is fixed and what is tried, from a TOML file and from the words of --fix, which go before it.

    At the top of the file, as in that of `wsabie train`, a parameter has a value; in the table [space] it has a value,
    a list of values or {low, high}.

    Raises
    ------
    InputError
        A file that cannot be read, or words that are not NAME=VALUE.
    """
    found: dict[str, Any] = {}
    if config is not None:
        found = read_toml(config)
        space = found.pop("space", {})
        if not isinstance(space, dict):
            raise InputError(f"{config}: space is no table; write [space] and below it lines such as dim = [50, 100]")
        found = {name: [value] if isinstance(value, list) else value for name, value in found.items()} | space
    return found | dict(map(_fixed, fixes))


def _fixed(words: str) -> tuple[str, Any]:
    name, equals, value = words.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"--fix {words!r} is not NAME=VALUE; write for instance --fix dim=100")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return name.strip(), value.strip()
