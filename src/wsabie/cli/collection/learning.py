"""Commands of a collection: train, apply, models."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder
from wsabie.cli.command import command, options
from wsabie.cli.options import Features, OutputOptions, RecallTarget, SeededThreadOptions, ThreadOptions
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, show_json, show_table
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.learning.evaluation import Comparison, ComparisonEntry
    from wsabie.collection.learning.suggestions import ApplyResult, InferenceResult
    from wsabie.collection.learning.training import TrainingResult
    from wsabie.collection.registry.model_registry import ModelRecord, ModelSwitch


_FIGURES = ("MAP", "p@1", "p@5")
_MAX_EPOCHS = 20  # epochs of a curve
_MAX_CHANGES = 5  # labels of a comparison, in each direction


def show_all_models(
    collection: "Collection", folder: Path, switch: "ModelSwitch | None", removed: list[int], json: bool
) -> None:
    """Show all models and the changes just made; messages name the folder as the user wrote it."""
    from wsabie.collection.registry.model_registry import find_rollback, list_models

    records, rollback = list_models(collection), find_rollback(collection)
    if json:
        document = {
            "models": [convert_named_tuples(record) for record in records],
            "removed": removed,
            "used": convert_named_tuples(switch),
        }
        show_json({"schema": 1, **document, "back": convert_named_tuples(rollback)})
        return
    if removed:
        print_note(f"removed: {', '.join(map(str, removed))}")
    if switch is not None and switch.unseen:
        print_note(
            f"{format_count(switch.unseen, 'item')} not seen by model {switch.number} yet; "
            f"run: wsabie collection apply {quote(str(folder))}"
        )
    if not records:
        print_note(
            f"{folder} has no models{'' if removed else ' yet'}; run: wsabie collection train {quote(str(folder))}"
        )
        return
    rows = [
        [str(m.number), m.created_at[:16].replace("T", " "), _format_method(m), *_format_figures(m.figures.get("now")),
         f"{m.figures.get('items', 0):,}", _format_state(m)]
        for m in records
    ]  # fmt: skip
    title = f"{folder}: {format_count(len(rows), 'model')}, judged on items that were held out"
    show_table(title, ["model", "made (UTC)", "how", *_FIGURES, "items", ""], rows)
    if rollback is not None:
        print_note(f"back to model {rollback.model}: wsabie collection undo {quote(str(folder))} {rollback.entry}")


def show_models(models: "list[ModelRecord]", json: bool) -> None:
    """Show models with their training."""
    if json:
        show_json({"schema": 1, "models": [convert_named_tuples(record) for record in models]})
        return
    for record in models:
        _show_model(record)


def _show_model(model: "ModelRecord") -> None:
    facts, figures = model.facts, model.figures
    out.print(
        f"model {model.number}, {_format_method(model)}, {model.created_at[:16].replace('T', ' ')} UTC "
        f"{_format_state(model)}".rstrip()
    )
    if "labels" in facts:
        out.print(
            f"{format_count(facts['labels'], 'label')} from {format_count(facts['items'], 'item')} by "
            f"{facts['features']}, "
            f"{facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, {facts['seconds']:.0f} s"
        )
    if model.rejection_reason:
        print_note(f"not put into use: {model.rejection_reason}")
    if figures.get("now"):
        show_figures(figures)
    curve, best = facts.get("curve", []), facts.get("best_epoch")
    if curve:
        step = -(-len(curve) // _MAX_EPOCHS)
        points = [
            point for i, point in enumerate(curve) if i % step == 0 or point["epoch"] == best or point is curve[-1]
        ]
        rows = [
            [f"{p['epoch']:,}", f"{p['loss']:.4g}", f"{p['MAP']:.3f}", "kept" if p["epoch"] == best else ""]
            for p in points
        ]
        show_table("epochs, with the MAP on held-out items", ["epoch", "loss", "MAP", ""], rows)


def show_figures(figures: dict[str, Any]) -> None:
    """Show the figures of a model and of the previous one, and their difference."""
    rows = [["now", *_format_figures(figures["now"])], ["before", *_format_figures(figures["before"])]]
    difference = figures.get("difference")
    if difference:
        rows.append(["difference", *(f"{difference[name]['mean']:+.3f}" for name in _FIGURES)])
        rows.append(["95 % from", *(f"{difference[name]['low']:+.3f}" for name in _FIGURES)])
        rows.append(["95 % to", *(f"{difference[name]['high']:+.3f}" for name in _FIGURES)])
    show_table(f"on {format_count(figures['items'], 'item')} held out", ["", *_FIGURES], rows)


def show_comparison(comparison: "Comparison", json: bool) -> None:
    """Show models side by side."""
    from wsabie.collection.learning.evaluation import serialize_comparison

    if json:
        show_json({"schema": 1, **serialize_comparison(comparison)})
        return
    first, *rivals = comparison.models
    title = (
        f"on {format_count(comparison.items, 'item')} held out from all of them: "
        f"{format_count(comparison.tags, 'tag')} of "
        f"{format_count(comparison.labels, 'label')}"
    )
    rows = [[str(entry.model), *_format_figures(entry.figures), f"{entry.labels:,}"] for entry in comparison.models]
    show_table(title, ["model", *_FIGURES, "labels known"], rows)
    for rival in rivals:
        _show_difference(rival, first.model)
    if any(rival.gained or rival.lost for rival in rivals):
        print_note("of a label the mean of 1 / its place on the items that have it, and the number of these")
    for note in comparison.notes:
        print_note(note)


def _show_difference(entry: "ComparisonEntry", first: int) -> None:
    if entry.difference is None:
        return
    gap = entry.difference["MAP"]
    verdict = "may be as good as" if entry.verdict == "alike" else f"does {entry.verdict} than"
    out.print(f"model {entry.model} {verdict} model {first}: MAP {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
    for name, label_changes in (("gained", entry.gained), ("lost", entry.lost)):
        changes = ", ".join(
            f"{change.label} {change.before:.2f} to {change.after:.2f} ({change.items:,})"
            for change in label_changes[:_MAX_CHANGES]
        )
        if changes:
            out.print(f"  {name}: {changes}", soft_wrap=True)


def _format_state(model: "ModelRecord") -> str:
    if not model.is_available:
        return "folder is gone"
    return "in use" if model.in_use else "did worse" if model.rejection_reason else ""


def _format_method(model: "ModelRecord") -> str:
    return model.method if model.parent is None or model.method == "full" else f"{model.method} of {model.parent}"


def _format_figures(figures: dict[str, float] | None) -> list[str]:
    return [f"{figures[name]:.3f}" if figures else "" for name in _FIGURES]


def convert_named_tuples(value: Any) -> Any:
    """Convert nested named tuples to dictionaries."""
    if hasattr(value, "_asdict"):
        return {name: convert_named_tuples(field) for name, field in value._asdict().items()}
    return value


@options
class CollectionTrainOptions:
    """Options of `wsabie collection train`."""

    folder: Folder
    from_scratch: Annotated[
        bool, typer.Option(help="Not on top of the model in use, as is usual where little changed.")
    ] = False
    features: Features = None
    dim: Annotated[int, typer.Option(min=1, max=4096, help="Dimensions of a model from scratch.")] = 100
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes at most; held-out items choose the best (default: as is usual).")
    ] = None
    accept_worse: Annotated[
        bool,
        typer.Option(help="Put the model into use also where it does worse than the one before on held-out items."),
    ] = False
    person_weight: Annotated[
        float, typer.Option(help="How much more an item with a person's tag weighs than one with imported tags alone.")
    ] = 2.0
    machine: SeededThreadOptions = SeededThreadOptions()
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()


@command("collection train photos", "collection train photos --from-scratch --features colour,hog")
def train(options: CollectionTrainOptions) -> None:
    """Learn from accepted and rejected tags, and use the new model; `undo` puts the old one back."""
    with open_collection_folder(options.folder) as collection:
        from wsabie.collection.learning.training import train_model

        result = train_model(
            collection,
            by=options.person.resolve(),
            full=options.from_scratch,
            features=options.features,
            dim=options.dim,
            epochs=options.epochs,
            even_if_worse=options.accept_worse,
            person_weight=options.person_weight,
            threads=options.machine.threads,
            seed=options.machine.seed,
            executor=options.machine.make_executor(),
            progress=TerminalProgress(),
        )
    if options.output.json:
        show_json({"schema": 1, **convert_named_tuples(result)})
        return
    _show_training(result, options.folder)


@options
class ApplyOptions:
    """Options of `wsabie collection apply`."""

    folder: Folder
    all_items: Annotated[bool, typer.Option(help="Look at all items, not only at new ones.")] = False
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Suggestions of an item, at most.")] = 10
    min_probability: Annotated[float, typer.Option(help="Less probable labels are not suggested.")] = 0.01
    min_precision: Annotated[
        float | None,
        typer.Option(help="Tell which items have a suggestion that is right this often, and which no tag fits."),
    ] = None
    accept_above: Annotated[
        float | None, typer.Option(metavar="P", help="Accept suggestions from this probability on; `undo` works.")
    ] = None
    machine: ThreadOptions = ThreadOptions()
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()


@command("collection apply photos", "collection apply photos --accept-above 0.95")
def apply(options: ApplyOptions) -> None:
    """Let the model in use suggest labels for new items."""
    with open_collection_folder(options.folder) as collection:
        from wsabie.collection.learning.suggestions import apply_model

        result = apply_model(
            collection,
            by=options.person.resolve(),
            again=options.all_items,
            k=options.k,
            floor=options.min_probability,
            min_precision=options.min_precision,
            accept_above=options.accept_above,
            threads=options.machine.threads,
            executor=options.machine.make_executor(),
            progress=TerminalProgress(),
        )
    if options.output.json:
        show_json({"schema": 1, **convert_named_tuples(result)})
        return
    _show_suggestions(result, options.folder)


@options
class ModelsOptions:
    """Options of `wsabie collection models`."""

    folder: Folder
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[N]...", help="Models to tell more of, or to compare.")
    ] = None
    compare: Annotated[
        bool, typer.Option(help="Judge the models by the same held-out items, each beside the first.")
    ] = False
    use: Annotated[int | None, typer.Option(metavar="N", help="Put model N into use.")] = None
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Remove all but the last N models and the one in use.")
    ] = None
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()


@command("collection models photos", "collection models photos 2 3 --compare")
def models(options: ModelsOptions) -> None:
    """Show, compare, switch or remove the models of a collection."""
    folder, numbers, use, keep = options.folder, options.numbers, options.use, options.keep
    json, person = options.output.json, options.person
    if sum((use is not None, keep is not None, options.compare or bool(numbers))) > 1:
        raise InputError("N, --use and --keep are different things; do one after the other")
    with open_collection_folder(folder, read_only=use is None and keep is None) as collection:
        from wsabie.cli.inputs import make_executor
        from wsabie.collection.learning import evaluation
        from wsabie.collection.registry import model_registry

        if options.compare:
            comparison = evaluation.compare_models(
                collection, numbers or [], executor=make_executor(None), progress=TerminalProgress()
            )
            show_comparison(comparison, json)
        elif numbers:
            show_models([model_registry.read_model(collection, number) for number in numbers], json)
        else:
            switch = None if use is None else model_registry.use_model(collection, use, by=person.resolve())
            removed = [] if keep is None else model_registry.remove_old_models(collection, keep, by=person.resolve())
            show_all_models(collection, folder, switch, removed, json)


def _show_training(result: "TrainingResult", folder: Path) -> None:
    if result.method == "nothing":
        print_note(result.reason)
        return
    facts, figures = result.facts, result.figures
    method = "from scratch" if result.method == "full" else "on top of the one before"
    out.print(
        f"model {result.model}, {method} ({result.reason}): {format_count(facts['labels'], 'label')} from "
        f"{format_count(facts['items'], 'item')}, {facts['accepted']:,} accepted and {facts['rejected']:,} rejected "
        "tags, "
        f"{facts['seconds']:.0f} s"
    )
    if not result.is_in_use:
        out.print(f"not put into use: {facts['rejection_reason']}")
        print_note(f"to use it all the same: wsabie collection models {quote(str(folder))} --use {result.model}")
    show_figures(figures)
    _note_skipped_files(result.unreadable, result.changed, folder)
    if facts["skipped_regions"]:
        print_note(f"{format_count(facts['skipped_regions'], 'tag')} of regions not learnt from")
    if result.inference is not None:
        _show_inference(result.inference, folder)


def _show_suggestions(result: "ApplyResult", folder: Path) -> None:
    _show_inference(result.inference, folder)
    if result.coverage is not None:
        coverage = result.coverage
        if coverage.probability is None:
            print_note(
                f"no probability is high enough for a precision of {coverage.precision:g} on the held-out items; tag "
                "more items, and train again"
            )
        else:
            out.print(f"from a probability of {coverage.probability:.2f} on, {coverage.precision:.0%} were right")
        out.print(
            f"{format_count(coverage.items, 'item')} with such a suggestion; "
            f"{format_count(coverage.uncovered, 'untagged one')} that no tag fits"
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


@options
class ItemIndexOptions:
    """Options of `wsabie collection index`."""

    folder: Folder
    kind: Annotated[
        Literal["ivf", "hnsw"],
        typer.Option(help="ivf: small, made in seconds; hnsw: a graph, larger, made in minutes."),
    ] = "ivf"
    recall: RecallTarget = 0.95
    output: OutputOptions = OutputOptions()


@command("collection index photos", "collection index photos --kind hnsw")
def index(options: ItemIndexOptions) -> None:
    """Make an approximate index of the items, for hundreds of thousands and more; `apply` makes it anew."""
    with open_collection_folder(options.folder) as collection:
        from wsabie.collection.registry.item_index import index_items

        indexes = index_items(collection, kind=options.kind, recall=options.recall, progress=TerminalProgress())
    if options.output.json:
        show_json({"schema": 1, **{entry.similarity: entry.facts for entry in indexes}})
        return
    for similarity, facts in indexes:
        out.print(
            f"by {similarity}: recall@10 {facts['recall@10']:.3f}, {facts['milliseconds']:.2f} ms "
            f"(exactly {facts['exact_milliseconds']:.2f}), {facts['bytes'] / 1e6:.1f} MB"
        )
