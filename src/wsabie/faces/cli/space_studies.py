"""Commands that measure, where DATA is a TOML file of kinds and relations: compare, split, tune."""

import shlex
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.base.plain import plain
from wsabie.faces.cli.common import executor, listing
from wsabie.faces.cli.finished_results import KeepOptions, choose_folder, result_store, tell_result
from wsabie.faces.cli.spaces import is_declaration
from wsabie.faces.cli.terminal import TerminalProgress, note, out, show_json, show_table
from wsabie.sources.declaration import ENDING, Declared, read_declaration
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.scratch import refuse_strangers

if TYPE_CHECKING:
    from wsabie.studies.relation_comparison import OneRelation, SpaceComparison


def compare_spaces_command(
    data: Path,
    test: Path | None,
    allow_overlap: bool,
    models: str,
    hold_out: float | None,
    folder: Path | None,
    run: dict[str, Any],
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    keep: KeepOptions = KeepOptions(),  # noqa: B008 - frozen
) -> None:
    """Deal out, compare, print a table for each relation, write the folder of results."""
    from wsabie.models.space import Space
    from wsabie.studies.comparing_relations import POPULARITY, How, StoppedRelations, compare_declared
    from wsabie.studies.entrants import entrants
    from wsabie.studies.relating import with_parameters
    from wsabie.studies.relation_comparison import MADE_BY
    from wsabie.studies.results_folder import refuse_folder

    declared = read_declaration(data)
    if test is not None and not is_declaration(test):
        raise InputError(
            f"{test} is no declaration; give a file such as {data}, with the test data, that ends with {ENDING}"
        )
    tested = None if test is None else read_declaration(test)
    hold_out = hold_out or (0.2 if tested is None else 0.1)
    space = with_parameters(Space(), declared, run)
    space.check_parameters()
    names = [name.strip() for name in models.split(",") if name.strip()]
    taking_part = entrants(names, seed=space.seed, threads=space.threads)
    classifiers = [one for one in taking_part if one.name not in (POPULARITY, "wsabie")]
    inputs = [data, test, *inputs_of(declared), *([] if tested is None else inputs_of(tested)), folder]
    refuse_unwritable(("rejects", rejects_file), inputs=inputs)
    if folder is not None:
        refuse_folder(folder, MADE_BY)
    how = How(POPULARITY in names, classifiers, space.seed, allow_overlap=allow_overlap)
    place = choose_folder(keep, data, (names, test, allow_overlap, hold_out, sorted(run.items())))
    with listing(rejects_file, strict=strict) as rejects, result_store(place, keep, with_models=False) as store:
        try:
            found = compare_declared(
                declared, space, hold_out, how, tested, store=store,
                on_result=lambda relation, result: tell_result(result, relation),
                executor=executor(space.threads), progress=TerminalProgress(), rejects=rejects,
            )  # fmt: skip
        except StoppedRelations as stop:
            _tell_stopped(stop.relations, json)
            raise
        _tell_compared(found, folder, json)
        sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _tell_stopped(relations: "list[OneRelation]", json: bool) -> None:
    """Show what is finished of a comparison that was stopped."""
    if json and relations:
        show_json(plain({"schema": 1, "relations": {one.name: one.as_dict() for one in relations}}))
    elif not json:
        _show_relations(relations)


def _show_relations(relations: "list[OneRelation]") -> None:
    for relation in relations:
        table = relation.table()
        show_table(relation.title, table.headers, table.rows)
        for skipped in relation.skipped:
            out.print(f"{skipped.title}: {skipped.reason}")


def _tell_compared(found: "SpaceComparison", folder: Path | None, json: bool) -> None:
    from wsabie.studies.results_folder import write_results

    files = []
    if folder is not None:
        page = found.page(shlex.join(["wsabie", *sys.argv[1:]]))
        files = write_results(folder, found.table(), found.charts(), page)
    if json:
        show_json({**found.as_dict(), "files": [str(file) for file in files]})
        return
    _show_relations(found.relations)
    if files:
        out.print(f"written: {', '.join(str(file) for file in files)}")


def split_spaces_command(
    data: Path,
    folder: Path,
    shares: tuple[float, float],
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Write lists of things and pairs and a TOML file for each side."""
    from wsabie.studies.splitting_declared import SIDES, refuse_others, split_declared

    declared = read_declaration(data)
    refuse_unwritable(("rejects", rejects_file), inputs=(data, *inputs_of(declared), folder))
    refuse_others(folder)
    with listing(rejects_file, strict=strict) as rejects:
        written = split_declared(declared, folder, *shares, seed, rejects)
    if json:
        files = [str(file) for file in written.files]
        show_json({"schema": 1, "out": str(folder), "things": written.things, "pairs": written.pairs, "files": files})
        return
    counted = [(f"{name} (things)", counts) for name, counts in written.things.items()]
    counted += [(f"{name} (pairs)", counts) for name, counts in written.pairs.items()]
    show_table(
        str(folder), ["", *SIDES], [[name, *(f"{counts[side]:,}" for side in SIDES)] for name, counts in counted]
    )
    note(f"next: wsabie train {quote(str(written.files[0]))} --model DIR")


def tune_spaces_command(
    data: Path,
    folder: Path,
    changes: dict[str, Any],
    limits: dict[str, Any],
    hold_out: float,
    stop_on: str | None,
    run: dict[str, Any],
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Search, train the best setting again, save it, write the page, tell."""
    from wsabie.faces.cli.tuning import OURS, tell
    from wsabie.models.space import Space
    from wsabie.studies.relating import KEPT, SpaceRecipe
    from wsabie.studies.tuned import Plan
    from wsabie.studies.tuning_page import write_page
    from wsabie.studies.tuning_spaces import space_search, tune_space

    declared = read_declaration(data)
    said = {name: value for name, value in declared.parameters.items() if name in ("seed", "threads")}
    space = Space(**{**said, **run})
    space.check_parameters()
    metric = "MAP" if stop_on is None else f"MAP of {stop_on}"
    plan = Plan(space_search(declared, changes), metric, **limits)
    recipe = SpaceRecipe(declared, folder / "model", space, hold_out, stop_on=stop_on or "mean")
    refuse_strangers(folder, OURS)
    refuse_strangers(recipe.work, KEPT)
    inputs = (data, *inputs_of(declared), folder)
    refuse_unwritable(("rejects", rejects_file), inputs=inputs, folder=recipe.model)
    with listing(rejects_file, strict=strict) as rejects:
        found = tune_space(plan, recipe, executor=executor(space.threads), progress=TerminalProgress(), rejects=rejects)
    write_page(folder, found, data.name)
    if json:
        show_json({**found.as_dict(), "model": str(recipe.model)})
        return
    tell(found, recipe.model, "held-out pairs")
    note(f"next: wsabie evaluate {quote(str(recipe.model))} TEST.toml")


def inputs_of(declared: Declared) -> list[Path | None]:
    """What a declaration names."""
    return [kind.data for kind in declared.kinds.values()] + [one.pairs for one in declared.relations]
