"""Tables of the models of a collection: all models, one with its curve, or several side by side."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.terminal.output import format_count, out, print_note, show_json, show_table

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.learning.model_comparison import Comparison, ComparisonEntry
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
        [str(m.number), m.made[:16].replace("T", " "), _format_method(m), *_format_figures(m.figures.get("now")),
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
        f"model {model.number}, {_format_method(model)}, {model.made[:16].replace('T', ' ')} UTC "
        f"{_format_state(model)}".rstrip()
    )
    if "labels" in facts:
        out.print(
            f"{format_count(facts['labels'], 'label')} from {format_count(facts['items'], 'item')} by "
            f"{facts['describe']}, "
            f"{facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, {facts['seconds']:.0f} s"
        )
    if model.kept_back:
        print_note(f"not put into use: {model.kept_back}")
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
    from wsabie.collection.learning.model_comparison import serialize_comparison

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
    for note in comparison.told:
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
    if not model.there:
        return "folder is gone"
    return "in use" if model.in_use else "did worse" if model.kept_back else ""


def _format_method(model: "ModelRecord") -> str:
    return model.how if model.parent is None or model.how == "full" else f"{model.how} of {model.parent}"


def _format_figures(figures: dict[str, float] | None) -> list[str]:
    return [f"{figures[name]:.3f}" if figures else "" for name in _FIGURES]


def convert_named_tuples(value: Any) -> Any:
    """Convert nested named tuples to dictionaries."""
    if hasattr(value, "_asdict"):
        return {name: convert_named_tuples(field) for name, field in value._asdict().items()}
    return value
