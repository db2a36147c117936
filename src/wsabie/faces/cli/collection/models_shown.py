"""What is shown of the models of a collection: all of them, one with its curve, several side by side."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.faces.cli.terminal import note, out, plural, show_json, show_table

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.comparing import Beside, Comparison
    from wsabie.catalogue.shelf import Shelved, Used

_FIGURES = ("MAP", "p@1", "p@5")
_SHOWN = 20  # epochs of a curve
_MOVED = 5  # labels of a comparison, in each direction


def show_all(collection: "Collection", folder: Path, used: "Used | None", removed: list[int], json: bool) -> None:
    """All models, and what was done to them; the folder is shown as it was given."""
    from wsabie.catalogue.shelf import on_shelf, way_back

    found, back = on_shelf(collection), way_back(collection)
    if json:
        told = {"models": [as_plain(one) for one in found], "removed": removed, "used": as_plain(used)}
        show_json({"schema": 1, **told, "back": as_plain(back)})
        return
    if removed:
        note(f"removed: {', '.join(map(str, removed))}")
    if used is not None and used.unseen:
        note(
            f"{plural(used.unseen, 'item')} not seen by model {used.number} yet; "
            f"run: wsabie collection apply {quote(str(folder))}"
        )
    if not found:
        note(f"{folder} has no models{'' if removed else ' yet'}; run: wsabie collection train {quote(str(folder))}")
        return
    rows = [
        [str(m.number), m.made[:16].replace("T", " "), _how(m), *_cells(m.figures.get("now")),
         f"{m.figures.get('items', 0):,}", _state(m)]
        for m in found
    ]  # fmt: skip
    title = f"{folder}: {plural(len(rows), 'model')}, judged on items that were held out"
    show_table(title, ["model", "made (UTC)", "how", *_FIGURES, "items", ""], rows)
    if back is not None:
        note(f"back to model {back.model}: wsabie collection undo {quote(str(folder))} {back.entry}")


def show_some(models: "list[Shelved]", json: bool) -> None:
    """How models were made."""
    if json:
        show_json({"schema": 1, "models": [as_plain(one) for one in models]})
        return
    for one in models:
        _tell_model(one)


def _tell_model(model: "Shelved") -> None:
    facts, figures = model.facts, model.figures
    out.print(f"model {model.number}, {_how(model)}, {model.made[:16].replace('T', ' ')} UTC {_state(model)}".rstrip())
    if "labels" in facts:
        out.print(
            f"{plural(facts['labels'], 'label')} from {plural(facts['items'], 'item')} by {facts['describe']}, "
            f"{facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, {facts['seconds']:.0f} s"
        )
    if model.kept_back:
        note(f"not put into use: {model.kept_back}")
    if figures.get("now"):
        show_figures(figures)
    curve, best = facts.get("curve", []), facts.get("best_epoch")
    if curve:
        step = -(-len(curve) // _SHOWN)
        some = [point for i, point in enumerate(curve) if i % step == 0 or point["epoch"] == best or point is curve[-1]]
        rows = [
            [f"{p['epoch']:,}", f"{p['loss']:.4g}", f"{p['MAP']:.3f}", "kept" if p["epoch"] == best else ""]
            for p in some
        ]
        show_table("epochs, with the MAP on held-out items", ["epoch", "loss", "MAP", ""], rows)


def show_figures(figures: dict[str, Any]) -> None:
    """Figures of a model and of the one before it, and the difference."""
    rows = [["now", *_cells(figures["now"])], ["before", *_cells(figures["before"])]]
    gap = figures.get("difference")
    if gap:
        rows.append(["difference", *(f"{gap[name]['mean']:+.3f}" for name in _FIGURES)])
        rows.append(["95 % from", *(f"{gap[name]['low']:+.3f}" for name in _FIGURES)])
        rows.append(["95 % to", *(f"{gap[name]['high']:+.3f}" for name in _FIGURES)])
    show_table(f"on {plural(figures['items'], 'item')} held out", ["", *_FIGURES], rows)


def show_comparison(found: "Comparison", json: bool) -> None:
    """Models side by side."""
    from wsabie.catalogue.comparing import as_json

    if json:
        show_json({"schema": 1, **as_json(found)})
        return
    first, *others = found.models
    title = (
        f"on {plural(found.items, 'item')} held out from all of them: {plural(found.tags, 'tag')} of "
        f"{plural(found.labels, 'label')}"
    )
    rows = [[str(m.model), *_cells(m.figures), f"{m.labels:,}"] for m in found.models]
    show_table(title, ["model", *_FIGURES, "labels known"], rows)
    for one in others:
        _tell_difference(one, first.model)
    if any(one.gained or one.lost for one in others):
        note("of a label the mean of 1 / its place on the items that have it, and the number of these")
    for told in found.told:
        note(told)


def _tell_difference(one: "Beside", first: int) -> None:
    if one.difference is None:
        return
    gap = one.difference["MAP"]
    verdict = "may be as good as" if one.verdict == "alike" else f"does {one.verdict} than"
    out.print(f"model {one.model} {verdict} model {first}: MAP {gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]")
    for name, moved in (("gained", one.gained), ("lost", one.lost)):
        told = ", ".join(f"{m.label} {m.before:.2f} to {m.after:.2f} ({m.items:,})" for m in moved[:_MOVED])
        if told:
            out.print(f"  {name}: {told}", soft_wrap=True)


def _state(model: "Shelved") -> str:
    if not model.there:
        return "folder is gone"
    return "in use" if model.in_use else "did worse" if model.kept_back else ""


def _how(model: "Shelved") -> str:
    return model.how if model.parent is None or model.how == "full" else f"{model.how} of {model.parent}"


def _cells(figures: dict[str, float] | None) -> list[str]:
    return [f"{figures[name]:.3f}" if figures else "" for name in _FIGURES]


def as_plain(value: Any) -> Any:
    """Named tuples as dictionaries, all the way down."""
    if hasattr(value, "_asdict"):
        return {name: as_plain(one) for name, one in value._asdict().items()}
    return value
