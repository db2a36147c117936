"""Workflows for a TOML file of kinds and relations: compare, split, tune."""

import shlex
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import collect_rejects, make_executor
from wsabie.cli.models.spaces import is_declaration
from wsabie.cli.terminal.output import TerminalProgress, out, print_note, show_json, show_table
from wsabie.cli.workflows.comparison_results import KeepOptions, choose_folder, open_result_store, report_result
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import to_json_value
from wsabie.io.space_declaration import ENDING, SpaceDeclaration, read_declaration
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.scratch_folders import refuse_unknown_files

if TYPE_CHECKING:
    from wsabie.workflows.spaces.relation_results import RelationFigures, SpaceComparison


def run_compare_relations(
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
    """Split the pairs, compare models, print a table for each relation, and write the folder of results."""
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.compare.entrants import build_entrants
    from wsabie.workflows.compare.results_folder import require_writable_folder
    from wsabie.workflows.spaces.method_comparison import (
        POPULARITY,
        ComparisonOptions,
        RelationComparisonInterrupt,
        compare_declaration,
    )
    from wsabie.workflows.spaces.relation_results import MADE_BY
    from wsabie.workflows.spaces.space_training import apply_parameters

    declaration = read_declaration(data)
    if test is not None and not is_declaration(test):
        raise InputError(
            f"{test} is no declaration; give a file such as {data}, with the test data, that ends with {ENDING}"
        )
    test_declaration = None if test is None else read_declaration(test)
    hold_out = hold_out or (0.2 if test_declaration is None else 0.1)
    space = apply_parameters(Space(), declaration, run)
    space.check_parameters()
    names = [name.strip() for name in models.split(",") if name.strip()]
    entrants = build_entrants(names, seed=space.seed, threads=space.threads)
    classifiers = [entrant for entrant in entrants if entrant.name not in (POPULARITY, "wsabie")]
    inputs = [
        data,
        test,
        *list_inputs(declaration),
        *([] if test_declaration is None else list_inputs(test_declaration)),
        folder,
    ]
    check_output_paths(("rejects", rejects_file), inputs=inputs)
    if folder is not None:
        require_writable_folder(folder, MADE_BY)
    options = ComparisonOptions(POPULARITY in names, classifiers, space.seed, allow_overlap=allow_overlap)
    work_folder = choose_folder(keep, data, (names, test, allow_overlap, hold_out, sorted(run.items())))
    with (
        collect_rejects(rejects_file, strict=strict) as rejects,
        open_result_store(work_folder, keep, with_models=False) as store,
    ):
        try:
            comparison = compare_declaration(
                declaration, space, hold_out, options, test_declaration, store=store,
                on_result=lambda relation, result: report_result(result, relation),
                executor=make_executor(space.threads), progress=TerminalProgress(), rejects=rejects,
            )  # fmt: skip
        except RelationComparisonInterrupt as interrupt:
            _show_partial_comparison(interrupt.relations, json)
            raise
        _show_comparison(comparison, folder, json)
        sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _show_partial_comparison(relations: "list[RelationFigures]", json: bool) -> None:
    """Show the finished part of an interrupted comparison."""
    if json and relations:
        show_json(
            to_json_value({"schema": 1, "relations": {relation.name: relation.as_dict() for relation in relations}})
        )
    elif not json:
        _show_relations(relations)


def _show_relations(relations: "list[RelationFigures]") -> None:
    for relation in relations:
        table = relation.table()
        show_table(relation.title, table.headers, table.rows)
        for skipped in relation.skipped:
            out.print(f"{skipped.title}: {skipped.reason}")


def _show_comparison(comparison: "SpaceComparison", folder: Path | None, json: bool) -> None:
    from wsabie.workflows.compare.results_folder import write_results

    files = []
    if folder is not None:
        page = comparison.page(shlex.join(["wsabie", *sys.argv[1:]]))
        files = write_results(folder, comparison.table(), comparison.charts(), page)
    if json:
        show_json({**comparison.as_dict(), "files": [str(file) for file in files]})
        return
    _show_relations(comparison.relations)
    if files:
        out.print(f"written: {', '.join(str(file) for file in files)}")


def run_split_declaration(
    data: Path,
    folder: Path,
    shares: tuple[float, float],
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Write lists of things and pairs and a TOML file for each side."""
    from wsabie.workflows.spaces.declaration_split import SIDES, require_free_folder, split_declaration

    declaration = read_declaration(data)
    check_output_paths(("rejects", rejects_file), inputs=(data, *list_inputs(declaration), folder))
    require_free_folder(folder)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        written = split_declaration(declaration, folder, *shares, seed, rejects)
    if json:
        files = [str(file) for file in written.files]
        show_json({"schema": 1, "out": str(folder), "things": written.things, "pairs": written.pairs, "files": files})
        return
    rows = [(f"{name} (things)", counts) for name, counts in written.things.items()]
    rows += [(f"{name} (pairs)", counts) for name, counts in written.pairs.items()]
    show_table(str(folder), ["", *SIDES], [[name, *(f"{counts[side]:,}" for side in SIDES)] for name, counts in rows])
    print_note(f"next: wsabie train {quote(str(written.files[0]))} --model DIR")


def run_tune_spaces(
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
    """Tune a space, train the best setting again, save it, write the page, and report the result."""
    from wsabie.cli.workflows.tune import OWN_FILES, report_trials
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.spaces.space_training import KEPT, SpaceRecipe
    from wsabie.workflows.spaces.space_tuning import build_space_search_space, tune_space
    from wsabie.workflows.tune.tuning_page import write_tuning_page
    from wsabie.workflows.tune.tuning_results import TuningPlan

    declaration = read_declaration(data)
    declared_parameters = {name: value for name, value in declaration.parameters.items() if name in ("seed", "threads")}
    space = Space(**{**declared_parameters, **run})
    space.check_parameters()
    metric = "MAP" if stop_on is None else f"MAP of {stop_on}"
    plan = TuningPlan(build_space_search_space(declaration, changes), metric, **limits)
    recipe = SpaceRecipe(declaration, folder / "model", space, hold_out, stop_on=stop_on or "mean")
    refuse_unknown_files(folder, OWN_FILES)
    refuse_unknown_files(recipe.work, KEPT)
    inputs = (data, *list_inputs(declaration), folder)
    check_output_paths(("rejects", rejects_file), inputs=inputs, folder=recipe.model)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        result = tune_space(
            plan, recipe, executor=make_executor(space.threads), progress=TerminalProgress(), rejects=rejects
        )
    write_tuning_page(folder, result, data.name)
    if json:
        show_json({**result.as_dict(), "model": str(recipe.model)})
        return
    report_trials(result, recipe.model, "held-out pairs")
    print_note(f"next: wsabie evaluate {quote(str(recipe.model))} TEST.toml")


def list_inputs(declaration: SpaceDeclaration) -> list[Path | None]:
    """List the input files of a declaration."""
    return [kind.data for kind in declaration.kinds.values()] + [relation.pairs for relation in declaration.relations]
