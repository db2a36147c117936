"""Commands of a collection: train, apply, models."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.cli.collection import model_tables
from wsabie.cli.collection.model_tables import convert_named_tuples, show_figures
from wsabie.cli.collection.shared_options import ByOption, FolderArgument, open_collection_folder, resolve_person
from wsabie.cli.inputs.options import Describe, IndexKind, Json, RecallTarget, Seed, Threads
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.learning.suggestions import ApplyResult, InferenceResult
    from wsabie.collection.learning.training import TrainingResult


def train(
    folder: FolderArgument,
    full: Annotated[
        bool, typer.Option("--full", help="From scratch (default: on top of the model in use where little changed).")
    ] = False,
    describe: Describe = None,
    dim: Annotated[int, typer.Option(min=1, max=4096, help="Dimensions of a model from scratch.")] = 100,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes at most; held-out items choose the best (default: as is usual).")
    ] = None,
    even_if_worse: Annotated[
        bool,
        typer.Option(
            "--even-if-worse",
            help="Put the model into use also where it does worse than the one before on held-out items.",
        ),
    ] = False,
    person_weight: Annotated[
        float, typer.Option(help="How much more an item with a person's tag weighs than one with imported tags alone.")
    ] = 2.0,
    threads: Threads = None,
    seed: Seed = 0,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Learn from accepted and rejected tags, and use the new model; `undo` puts the old one back."""
    with open_collection_folder(folder) as collection:
        from wsabie.cli.inputs.command_inputs import make_executor
        from wsabie.collection.learning.training import train_model

        result = train_model(
            collection,
            by=resolve_person(by),
            full=full,
            describe=describe,
            dim=dim,
            epochs=epochs,
            even_if_worse=even_if_worse,
            person_weight=person_weight,
            threads=threads,
            seed=seed,
            executor=make_executor(threads),
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **convert_named_tuples(result)})
        return
    _show_training(result, folder)


def apply(
    folder: FolderArgument,
    again: Annotated[bool, typer.Option("--again", help="Look at all items, not only at new ones.")] = False,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Suggestions of an item, at most.")] = 10,
    floor: Annotated[float, typer.Option(help="Less probable labels are not suggested.")] = 0.01,
    min_precision: Annotated[
        float | None,
        typer.Option(help="Tell which items have a suggestion that is right this often, and which no tag fits."),
    ] = None,
    accept_above: Annotated[
        float | None, typer.Option(metavar="P", help="Accept suggestions from this probability on; `undo` works.")
    ] = None,
    threads: Threads = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Let the model in use suggest labels for new items."""
    with open_collection_folder(folder) as collection:
        from wsabie.cli.inputs.command_inputs import make_executor
        from wsabie.collection.learning.suggestions import apply_model

        result = apply_model(
            collection,
            by=resolve_person(by),
            again=again,
            k=k,
            floor=floor,
            min_precision=min_precision,
            accept_above=accept_above,
            threads=threads,
            executor=make_executor(threads),
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **convert_named_tuples(result)})
        return
    _show_suggestions(result, folder)


def models(
    folder: FolderArgument,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[N]...", help="Models to tell more of, or to compare.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Judge the models by the same held-out items, each beside the first."),
    ] = False,
    use: Annotated[int | None, typer.Option(metavar="N", help="Put model N into use.")] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Remove all but the last N models and the one in use.")
    ] = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Show, compare, switch or remove the models of a collection."""
    if sum((use is not None, keep is not None, compare or bool(numbers))) > 1:
        raise InputError("N, --use and --keep are different things; do one after the other")
    with open_collection_folder(folder, read_only=use is None and keep is None) as collection:
        from wsabie.cli.inputs.command_inputs import make_executor
        from wsabie.collection.learning import model_comparison
        from wsabie.collection.registry import model_lifecycle, model_registry

        if compare:
            comparison = model_comparison.compare_models(
                collection, numbers or [], executor=make_executor(None), progress=TerminalProgress()
            )
            model_tables.show_comparison(comparison, json)
        elif numbers:
            model_tables.show_models([model_registry.read_model(collection, number) for number in numbers], json)
        else:
            switch = None if use is None else model_registry.use_model(collection, use, by=resolve_person(by))
            removed = [] if keep is None else model_lifecycle.remove_old_models(collection, keep, by=resolve_person(by))
            model_tables.show_all_models(collection, folder, switch, removed, json)


def _show_training(result: "TrainingResult", folder: Path) -> None:
    if result.how == "nothing":
        print_note(result.why)
        return
    facts, figures = result.facts, result.figures
    method = "from scratch" if result.how == "full" else "on top of the one before"
    out.print(
        f"model {result.model}, {method} ({result.why}): {format_count(facts['labels'], 'label')} from "
        f"{format_count(facts['items'], 'item')}, {facts['accepted']:,} accepted and {facts['rejected']:,} rejected "
        "tags, "
        f"{facts['seconds']:.0f} s"
    )
    if not result.used:
        out.print(f"not put into use: {facts['kept_back']}")
        print_note(f"to use it all the same: wsabie collection models {quote(str(folder))} --use {result.model}")
    show_figures(figures)
    _note_skipped_files(result.unreadable, result.changed, folder)
    if facts["regions_left_out"]:
        print_note(f"{format_count(facts['regions_left_out'], 'tag')} of regions not learnt from")
    if result.looked is not None:
        _show_inference(result.looked, folder)


def _show_suggestions(result: "ApplyResult", folder: Path) -> None:
    _show_inference(result.looked, folder)
    if result.fitting is not None:
        fitting = result.fitting
        if fitting.probability is None:
            print_note(
                f"no probability is high enough for a precision of {fitting.precision:g} on the held-out items; tag "
                "more items, and train again"
            )
        else:
            out.print(f"from a probability of {fitting.probability:.2f} on, {fitting.precision:.0%} were right")
        out.print(
            f"{format_count(fitting.items, 'item')} with such a suggestion; "
            f"{format_count(fitting.none, 'untagged one')} that no tag fits"
        )
    if result.accepted is not None:
        out.print(f"{format_count(result.accepted.added, 'suggestion')} accepted")


def _show_inference(inference: "InferenceResult", folder: Path) -> None:
    out.print(f"{format_count(inference.suggestions, 'suggestion')} for {format_count(inference.items, 'item')}")
    _note_skipped_files(inference.unreadable, inference.changed, folder)


def _note_skipped_files(unreadable: int, changed: int, folder: Path) -> None:
    if unreadable:
        print_note(f"{format_count(unreadable, 'item')} cannot be read; such items are left out from now on")
    if changed:
        print_note(
            f"{format_count(changed, 'file')} changed since the last scan, or went away; run: wsabie collection scan "
            f"{quote(str(folder))}"
        )


def index(
    folder: FolderArgument,
    kind: IndexKind = "ivf",
    recall: RecallTarget = 0.95,
    json: Json = False,
) -> None:
    """Make an approximate index of the items, for hundreds of thousands and more; `apply` makes it anew."""
    with open_collection_folder(folder) as collection:
        from wsabie.collection.registry.item_index import index_items

        indexes = index_items(collection, kind=kind, recall=recall, progress=TerminalProgress())
    if json:
        show_json({"schema": 1, **{entry.similarity: entry.facts for entry in indexes}})
        return
    for similarity, facts in indexes:
        out.print(
            f"by {similarity}: recall@10 {facts['recall@10']:.3f}, {facts['milliseconds']:.2f} ms "
            f"(exactly {facts['exact_milliseconds']:.2f}), {facts['bytes'] / 1e6:.1f} MB"
        )


COMMANDS: tuple[Callable[..., Any], ...] = (train, apply, models, index)
