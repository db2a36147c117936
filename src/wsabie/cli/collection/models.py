"""`wsabie collection models`."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli import shared_options as shared
from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.collection.reports import FIGURES, format_examples, format_figures, show_figures
from wsabie.cli.framework import Report, Settings, argument, command, option
from wsabie.cli.output import TerminalProgress, format_count, format_time, out, print_note, quote_path, show_table
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.learning.evaluation import ComparedModel, Comparison
    from wsabie.collection.registry.model_registry import ModelRecord, ModelSwitch

_MAX_EPOCHS = 20  # epochs of a curve
_MAX_CHANGES = 5  # labels of a comparison, in each direction


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
            yield from _show_comparison(evaluation.compare_models(collection, options.model_ids or [], **resources))
        elif options.model_ids:
            records = [model_registry.read_model(collection, model_id) for model_id in options.model_ids]
            yield {"models": records}
            for record in records:
                _show_model(record, options.folder / collection.models.relative_to(collection.folder))
        else:
            by = options.resolve_author()
            switch = None if options.use is None else model_registry.use_model(collection, options.use, by=by)
            removed = [] if options.keep is None else model_registry.remove_old_models(collection, options.keep, by=by)
            yield from _show_models(options.folder, collection, switch, removed)


def _show_models(folder: Path, collection: "Collection", switch: "ModelSwitch | None", removed: list[int]) -> Report:
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
        figures, n_items = format_figures(m.figures.get("metrics")), m.figures.get("items", 0)
        rows.append([str(m.id), format_time(m.created_at)[:16], _format_method(m), *figures, n_items, _format_state(m)])
    title = f"{folder}: {format_count(len(rows), 'model')}, judged on items that were held out"
    show_table(title, ["model", "made (UTC)", "how", *FIGURES, "items", ""], rows)
    if rollback is not None:
        print_note(f"back to model {rollback.model}: wsabie collection undo {quote_path(folder)} {rollback.entry}")


def _show_model(model: "ModelRecord", folder: Path) -> None:
    facts, figures = model.facts, model.figures
    summary = f"model {model.id}, {_format_method(model)}, {format_time(model.created_at)[:16]} UTC"
    out.print(f"{summary} {_format_state(model)}".rstrip())
    if "labels" in facts:
        out.print(format_examples(facts, f" by {facts['features']}"))
    if model.is_available:
        out.print(f"other files: wsabie annotate {quote_path(folder / model.folder)} FILES", soft_wrap=True)
    if model.rejection_reason:
        print_note(f"not put into use: {model.rejection_reason}")
    if figures.get("metrics"):
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


def _show_comparison(comparison: "Comparison") -> Report:
    """Show models side by side."""
    yield vars(comparison)
    first, *rivals = comparison.models
    examples = f"{format_count(comparison.tags, 'tag')} of {format_count(comparison.labels, 'label')}"
    title = f"on {format_count(comparison.items, 'item')} held out from all of them: {examples}"
    rows = [[str(entry.model), *format_figures(entry.figures), entry.labels] for entry in comparison.models]
    show_table(title, ["model", *FIGURES, "labels known"], rows)
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
    return "in use" if model.in_use else "not put into use" if model.rejection_reason else ""


def _format_method(model: "ModelRecord") -> str:
    return model.method if model.parent is None or model.method == "full" else f"{model.method} of {model.parent}"
