"""`wsabie train FILE.toml`: a space of several kinds of items."""

from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs import make_executor
from wsabie.cli.models.resumption import (
    open_epoch_log,
    refuse_discard,
    refuse_other_model,
    refuse_other_space,
    report_resumable_work,
    report_trained_model,
)
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.cli.target import list_declared_files, load_space
from wsabie.storage.output_checks import check_output_paths, refuse_unknown_files
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.cli.models.train import TrainOptions


def train_space_model(options: "TrainOptions") -> None:
    """Train a space by a declaration, save it, and report the result."""
    from wsabie.io.space_declaration import read_declaration
    from wsabie.models.entity_space.space import Space
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.workflows.spaces.space_training import WORK_FILES, SpaceRecipe, apply_parameters, train_space

    declaration, model, work, json = read_declaration(options.data), options.model, options.work, options.output.json
    space = apply_parameters(Space(), declaration, options.shape.settings() | options.machine.settings())
    relations = tuple(options.space.only or ()), options.space.stop_on or "mean"
    hold_out = 0.1 if options.hold_out is None else options.hold_out
    recipe = SpaceRecipe(declaration, model, space, hold_out, *relations, work.resume)
    space.check_parameters()
    refuse_foreign_files(model)
    refuse_unknown_files(recipe.work, WORK_FILES)
    inputs = options.data, *list_declared_files(declaration), model, recipe.work
    rejects_file, log = options.output.rejects, work.log
    check_output_paths(("rejects", rejects_file), ("log", log), inputs=inputs, folder=model)
    finished = refuse_discard(model, recipe.work, resume=work.resume, restart=work.restart)
    with report_resumable_work(recipe.work, work.resume), options.output.collect() as rejects:
        if finished:
            _report_finished(recipe, rejects, json)
            return
        result = train_space(
            recipe,
            executor=make_executor(space.threads),
            progress=TerminalProgress(),
            rejects=rejects,
            on_epoch=open_epoch_log(work.log, work.resume),
        )
    _report_training(recipe, result, json)


def _report_finished(recipe: Any, rejects: Rejects, json: bool) -> None:
    """Keep the finished space of this declaration, and report it."""
    from wsabie.workflows.model_training import SavedModel

    annotator = load_space(recipe.model)
    if annotator is None:
        refuse_other_model(recipe.model, "kind")
    refuse_other_space(recipe, annotator, rejects)
    report_trained_model(recipe.model)
    _report_training(
        replace(recipe, space=annotator.space), SavedModel(annotator.facts, annotator.space.history_), json
    )


def _report_training(recipe: Any, result: Any, json: bool) -> None:
    from wsabie.storage.model_folder import measure_folder_bytes

    facts, n_bytes = recipe.space.facts(), measure_folder_bytes(recipe.model)
    if json:
        history = [stats.as_dict() for stats in result.history]
        show_json(
            {"schema": 1, "model": str(recipe.model), "bytes": n_bytes, **facts, **result.facts, "history": history}
        )
        return
    held_out, figures = result.facts["held_out_pairs"], facts["validation"]
    show_table(
        f"{recipe.model}: {format_count(facts['epochs'], 'epoch')}, {n_bytes / 1e6:.1f} MB",
        ["relation", "pairs", "held out", "MAP of these"],
        [
            [name, f"{pairs:,}", f"{held_out.get(name, 0):,}", f"{figures[name]:.3f}" if name in figures else ""]
            for name, pairs in result.facts["pairs"].items()
        ],
    )
    out.print("things: " + ", ".join(f"{name} {n:,}" for name, n in facts["kinds"].items()))
    first = recipe.space.relations_[0][1]
    query = "NEW_DATA" if recipe.space.find_entities(first).n_features else f"the name of a thing of the kind {first!r}"
    print_note(f"next: wsabie annotate {quote(str(recipe.model))} with {query}, or wsabie neighbours with a name")
