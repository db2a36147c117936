"""Commands of a collection: train, apply, models."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wsabie.cli import shared_options as shared
from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import JsonObject, Report, Settings, argument, command, option
from wsabie.cli.output import TerminalProgress, format_count, format_time, out, print_note, quote_path, show_table
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.learning.evaluation import ComparedModel, Comparison
    from wsabie.collection.learning.suggestions import ApplyResult, InferenceResult
    from wsabie.collection.learning.training import TrainingResult
    from wsabie.collection.registry.model_registry import ModelRecord, ModelSwitch


_FIGURES = ("MAP", "p@1", "p@5")
_MAX_EPOCHS = 20  # epochs of a curve
_MAX_CHANGES = 5  # labels of a comparison, in each direction


def show_all_models(folder: Path, collection: "Collection", switch: "ModelSwitch | None", removed: list[int]) -> Report:
    """Show all models and the changes just made; messages name the folder as the user wrote it."""
    from wsabie.collection.registry.model_registry import find_rollback, list_models

    records, rollback = list_models(collection), find_rollback(collection)
    yield {"models": records, "removed": removed, "switch": switch, "rollback": rollback}
    if removed:
        print_note(f"removed: {', '.join(map(str, removed))}")
    if switch is not None and switch.unseen_items:
        command = f"wsabie collection apply {quote_path(folder)}"
        print_note(f"{format_count(switch.unseen_items, 'item')} not seen by model {switch.model} yet; run: {command}")
    if not records:
        command = f"wsabie collection train {quote_path(folder)}"
        print_note(f"{folder} has no models{'' if removed else ' yet'}; run: {command}")
        return
    rows = []
    for m in records:
        figures, n_items = _format_figures(m.figures.get("now")), m.figures.get("items", 0)
        rows.append([str(m.id), format_time(m.created_at)[:16], _format_method(m), *figures, n_items, _format_state(m)])
    title = f"{folder}: {format_count(len(rows), 'model')}, judged on items that were held out"
    show_table(title, ["model", "made (UTC)", "how", *_FIGURES, "items", ""], rows)
    if rollback is not None:
        print_note(f"back to model {rollback.model}: wsabie collection undo {quote_path(folder)} {rollback.entry}")


def _show_model(model: "ModelRecord", folder: Path) -> None:
    facts, figures = model.facts, model.figures
    made = f"model {model.id}, {_format_method(model)}, {format_time(model.created_at)[:16]} UTC"
    out.print(f"{made} {_format_state(model)}".rstrip())
    if "labels" in facts:
        out.print(_format_examples(facts, f" by {facts['features']}"))
    if model.is_available:
        out.print(f"other files: wsabie annotate {quote_path(folder / model.folder)} FILES", soft_wrap=True)
    if model.rejection_reason:
        print_note(f"not put into use: {model.rejection_reason}")
    if figures.get("now"):
        show_figures(figures)
    curve, best = facts.get("curve", []), facts.get("best_epoch")
    if curve:
        step = -(-len(curve) // _MAX_EPOCHS)
        rows = [
            [point["epoch"], f"{point['loss']:.4g}", f"{point['MAP']:.3f}", "kept" if point["epoch"] == best else ""]
            for i, point in enumerate(curve)
            if i % step == 0 or point["epoch"] == best or point is curve[-1]
        ]
        show_table("epochs, with the MAP on held-out items", ["epoch", "loss", "MAP", ""], rows)


def show_figures(figures: JsonObject) -> None:
    """Show the figures of a model and of the previous one, and their difference."""
    rows = [["now", *_format_figures(figures["now"])], ["before", *_format_figures(figures["before"])]]
    difference = figures.get("difference")
    if difference:
        for title, bound in (("difference", "mean"), ("95 % from", "low"), ("95 % to", "high")):
            rows.append([title, *(f"{difference[name][bound]:+.3f}" for name in _FIGURES)])
    show_table(f"on {format_count(figures['items'], 'item')} held out", ["", *_FIGURES], rows)


def show_comparison(comparison: "Comparison") -> Report:
    """Show models side by side."""
    yield vars(comparison)
    first, *rivals = comparison.models
    examples = f"{format_count(comparison.tags, 'tag')} of {format_count(comparison.labels, 'label')}"
    title = f"on {format_count(comparison.items, 'item')} held out from all of them: {examples}"
    rows = [[str(entry.model), *_format_figures(entry.figures), entry.labels] for entry in comparison.models]
    show_table(title, ["model", *_FIGURES, "labels known"], rows)
    for rival in rivals:
        _show_difference(rival, first.model)
    if any(rival.gained or rival.lost for rival in rivals):
        print_note("per label: its mean reciprocal rank on the items that have it, and their number")
    for note in comparison.notes:
        print_note(note)


def _show_difference(entry: "ComparedModel", first: int) -> None:
    if entry.difference is None:
        return
    gap = entry.difference["MAP"]
    verdict = "may be as good as" if entry.verdict == "alike" else f"does {entry.verdict} than"
    out.print(f"model {entry.model} {verdict} model {first}: MAP {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
    for name, label_changes in (("gained", entry.gained), ("lost", entry.lost)):
        changes = ", ".join(
            f"{change.label} {change.reference:.2f} to {change.candidate:.2f} ({change.items:,})"
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


def _format_examples(facts: JsonObject, features: str = "") -> str:
    """Format what a model was trained on, and for how long."""
    tags = f"{facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, {facts['seconds']:.0f} s"
    return f"{format_count(facts['labels'], 'label')} from {format_count(facts['items'], 'item')}{features}, {tags}"


class CollectionTrainOptions(
    CollectionOptions, PersonOptions, shared.SeededThreadOptions, shared.NetworkOptions, shared.FeatureNameOptions
):
    """Options of `wsabie collection train`."""

    full: bool = option("Train a new model, though the model in use could go on.", flag="--from-scratch")
    dim: int = option("Dimensions of a model from scratch.", 100, min=1, max=4096)
    epochs: int | None = option("Most passes; held-out items choose the best (default: by size).", min=1)
    even_if_worse: bool = option("Use the model even if it is worse on held-out items.", flag="--accept-worse")
    person_weight: float = option("Weight of items with a person's tag; imported tags alone weigh 1.", 2.0)


@command("collection train photos", "collection train photos --from-scratch --features colour,hog")
def train(options: CollectionTrainOptions) -> Report:
    """Learn from accepted and rejected tags, and use the new model; `undo` puts the old one back."""
    with options.open() as collection:
        from wsabie.collection.learning.training import train_collection_model

        values = options.pick("full", "features", "dim", "epochs", "even_if_worse", "person_weight", "threads", "seed")
        extraction = {"crop": options.crop, "normalise": options.normalise, "output": options.onnx_output}
        values["feature_options"] = {name: value for name, value in extraction.items() if value is not None}
        result = train_collection_model(collection, by=options.resolve_author(), **values, **options.resources())
    yield result._asdict()
    _show_training(result, options.folder)


class ApplyOptions(CollectionOptions, PersonOptions, shared.ThreadOptions):
    """Options of `wsabie collection apply`."""

    again: bool = option("Suggest for all items, not only for new and changed ones.", flag="--all-items")
    k: int = option("Most suggestions for an item.", 10, flag="-k", min=1, max=1000)
    floor: float = option("Lowest probability of a suggestion.", 0.01, flag="--min-probability")
    min_precision: float | None = option("Count the items with a suggestion of this precision, and those without.")
    accept_above: float | None = option("Accept suggestions with this probability or more.", metavar="P")


@command("collection apply photos", "collection apply photos --accept-above 0.95")
def apply(options: ApplyOptions) -> Report:
    """Let the model in use suggest labels for new items."""
    with options.open() as collection:
        from wsabie.collection.learning.suggestions import apply_model

        settings = options.pick("again", "k", "floor", "min_precision", "accept_above", "threads")
        result = apply_model(collection, by=options.resolve_author(), **settings, **options.resources())
    yield result._asdict()
    _show_suggestions(result, options.folder)


class ModelsOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection models`."""

    model_ids: list[int] | None = argument("Models to show in detail, or to compare.", metavar="[N]...")
    compare: bool = option("Compare each model with the first, on the same held-out items.")
    use: int | None = option("Put model N into use.", metavar="N")
    keep: int | None = option("Remove all but the last N models and the one in use.", metavar="N", min=1)


@command("collection models photos", "collection models photos 2 3 --compare")
def models(options: ModelsOptions) -> Report:
    """Show, compare, switch or remove the models of a collection."""
    if sum((options.use is not None, options.keep is not None, options.compare or bool(options.model_ids))) > 1:
        raise InputError("N, --use and --keep are different things; do one after the other")
    with options.open(read_only=options.use is None and options.keep is None) as collection:
        from wsabie.collection.learning import evaluation
        from wsabie.collection.registry import model_registry

        if options.compare:
            resources: Settings = {"executor": shared.make_executor(None), "progress": TerminalProgress()}
            yield from show_comparison(evaluation.compare_models(collection, options.model_ids or [], **resources))
        elif options.model_ids:
            records = [model_registry.read_model(collection, model_id) for model_id in options.model_ids]
            yield {"models": records}
            for record in records:
                _show_model(record, options.folder / collection.models.relative_to(collection.folder))
        else:
            by = options.resolve_author()
            switch = None if options.use is None else model_registry.use_model(collection, options.use, by=by)
            removed = [] if options.keep is None else model_registry.remove_old_models(collection, options.keep, by=by)
            yield from show_all_models(options.folder, collection, switch, removed)


def _show_training(result: "TrainingResult", folder: Path) -> None:
    if result.method == "nothing":
        print_note(result.reason)
        return
    facts, figures = result.facts, result.figures
    method = "from scratch" if result.method == "full" else "continued from the model before"
    out.print(f"model {result.model}, {method} ({result.reason}): {_format_examples(facts)}")
    if not result.is_in_use:
        out.print(f"not put into use: {facts['rejection_reason']}")
        print_note(f"to use it all the same: wsabie collection models {quote_path(folder)} --use {result.model}")
    show_figures(figures)
    _note_skipped_files(result.unreadable, result.changed, folder)
    if facts["repeats"]:
        pictures = format_count(facts["repeats"], "picture")
        print_note(f"{pictures} repeat earlier ones; each such burst is held out and judged as one")
    if facts["skipped_regions"]:
        print_note(f"{format_count(facts['skipped_regions'], 'tag')} of regions left out of the training")
    if result.inference is not None:
        _show_inference(result.inference, folder)
        print_note(f"next: review the suggestions in a browser: wsabie serve {quote_path(folder)}")


def _show_suggestions(result: "ApplyResult", folder: Path) -> None:
    _show_inference(result.inference, folder)
    if result.is_zero_shot:
        print_note("the model knows labels by name only, so many are wrong; accept and reject some in the gallery")
        if result.calibrated_on:
            print_note(f"their probabilities follow {result.calibrated_on:,} decisions")
        else:
            print_note("weak: their probabilities follow no decision yet; `apply` again after 20")
        print_note(f"then: wsabie collection train {quote_path(folder)}")
    if result.coverage is not None:
        coverage = result.coverage
        if coverage.probability is None:
            precision = f"a precision of {coverage.precision:g} on the held-out items"
            print_note(f"no probability is high enough for {precision}; tag more items, and train again")
        else:
            precision = f"at least {coverage.precision:.0%} are right"
            out.print(f"with a probability of {coverage.probability:.2f} or more, {precision}")
        uncovered = format_count(coverage.uncovered, "untagged item")
        out.print(f"{format_count(coverage.items, 'item')} with a suggestion above it; {uncovered} that no tag fits")
    if result.accepted is not None:
        out.print(f"{format_count(result.accepted.added, 'suggestion')} accepted")


def _show_inference(inference: "InferenceResult", folder: Path) -> None:
    out.print(f"{format_count(inference.suggestions, 'suggestion')} for {format_count(inference.items, 'item')}")
    _note_skipped_files(inference.unreadable, inference.changed, folder)


def _note_skipped_files(unreadable: int, changed: int, folder: Path) -> None:
    if unreadable:
        print_note(f"{format_count(unreadable, 'item')} cannot be read, and will be left out")
    if changed:
        command = f"wsabie collection scan {quote_path(folder)}"
        print_note(f"{format_count(changed, 'file')} changed or disappeared since the last scan; run: {command}")


class ItemIndexOptions(CollectionOptions):
    """Options of `wsabie collection index`."""

    kind: Literal["ivf", "hnsw"] = option("ivf: small, made in seconds; hnsw: a graph, larger, made in minutes.", "ivf")
    recall: shared.RecallTarget = 0.95


@command("collection index photos", "collection index photos --kind hnsw")
def index(options: ItemIndexOptions) -> Report:
    """Make an approximate index of the items, for hundreds of thousands and more; `apply` makes it again."""
    with options.open() as collection:
        from wsabie.collection.registry.item_index import index_items

        indexes = index_items(collection, kind=options.kind, recall=options.recall, progress=TerminalProgress())
    yield indexes
    for similarity, facts in indexes.items():
        speed = f"{facts['milliseconds']:.2f} ms (exactly {facts['exact_milliseconds']:.2f})"
        out.print(f"by {similarity}: recall@10 {facts['recall@10']:.3f}, {speed}, {facts['bytes'] / 1e6:.1f} MB")
