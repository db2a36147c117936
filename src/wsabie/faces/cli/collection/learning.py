"""Commands of a collection: train, apply, models."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.group import By, Folder, opened, person
from wsabie.faces.cli.options import Describe, Json, Seed, Threads
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json, show_table

if TYPE_CHECKING:
    from wsabie.catalogue.learning import Learnt
    from wsabie.catalogue.suggesting import Applied, Looked

_FIGURES = ("MAP", "p@1", "p@5")


def train(
    folder: Folder,
    full: Annotated[
        bool, typer.Option("--full", help="From scratch (default: on top of the model in use where little changed).")
    ] = False,
    describe: Describe = None,
    dim: Annotated[int, typer.Option(min=1, max=4096, help="Dimensions of a model from scratch.")] = 100,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes at most; held-out items choose the best (default: as is usual).")
    ] = None,
    person_weight: Annotated[
        float, typer.Option(help="How much more an item with a person's tag weighs than one with imported tags alone.")
    ] = 2.0,
    threads: Threads = None,
    seed: Seed = 0,
    by: By = None,
    json: Json = False,
) -> None:
    """Learn from what was accepted and rejected, and put the new model into use; `undo` puts the old one back."""
    with opened(folder) as collection:
        from wsabie.catalogue.learning import train as learn
        from wsabie.faces.cli.common import executor

        learnt = learn(
            collection,
            by=person(by),
            full=full,
            describe=describe,
            dim=dim,
            epochs=epochs,
            person_weight=person_weight,
            threads=threads,
            seed=seed,
            executor=executor(threads),
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **_plain(learnt)})
        return
    _tell_learnt(learnt)


def apply(
    folder: Folder,
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
    by: By = None,
    json: Json = False,
) -> None:
    """Let the model in use suggest labels for new items."""
    with opened(folder) as collection:
        from wsabie.catalogue.suggesting import apply as suggest
        from wsabie.faces.cli.common import executor

        applied = suggest(
            collection,
            by=person(by),
            again=again,
            k=k,
            floor=floor,
            min_precision=min_precision,
            accept_above=accept_above,
            threads=threads,
            executor=executor(threads),
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **_plain(applied)})
        return
    _tell_applied(applied)


def models(
    folder: Folder,
    use: Annotated[int | None, typer.Option(metavar="N", help="Put model N into use.")] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Remove all but the last N models and the one in use.")
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """The models of a collection with their figures; which is in use; switch back, or remove old ones."""
    if use is not None and keep is not None:
        raise InputError("--use and --keep are two things; do one after the other")
    with opened(folder) as collection:
        from wsabie.catalogue import shelf

        used = None if use is None else shelf.use(collection, use, by=person(by))
        removed = [] if keep is None else shelf.keep(collection, keep, by=person(by))
        found = shelf.on_shelf(collection)
    if json:
        show_json({"schema": 1, "models": [_plain(one) for one in found], "removed": removed, "used": _plain(used)})
        return
    if removed:
        note(f"removed: {', '.join(map(str, removed))}")
    if used is not None and used.unseen:
        note(
            f"{plural(used.unseen, 'item')} not seen by model {used.number} yet; run: wsabie collection apply {folder}"
        )
    rows = [
        [str(m.number), m.made[:16].replace("T", " "), _how(m), *_cells(m.figures.get("now")),
         f"{m.figures.get('items', 0):,}", "in use" if m.in_use and m.there else "" if m.there else "folder is gone"]
        for m in found
    ]  # fmt: skip
    title = f"{folder}: {plural(len(rows), 'model')}, judged on items that were held out"
    show_table(title, ["model", "made (UTC)", "how", *_FIGURES, "items", ""], rows)


def _tell_learnt(learnt: "Learnt") -> None:
    if learnt.how == "nothing":
        note(learnt.why)
        return
    facts, figures = learnt.facts, learnt.figures
    how = "from scratch" if learnt.how == "full" else "on top of the one before"
    out.print(
        f"model {learnt.model}, {how} ({learnt.why}): {plural(facts['labels'], 'label')} from "
        f"{plural(facts['items'], 'item')}, {facts['accepted']:,} accepted and {facts['rejected']:,} rejected tags, "
        f"{facts['seconds']:.0f} s"
    )
    rows = [["now", *_cells(figures["now"])], ["before", *_cells(figures["before"])]]
    show_table(f"on {plural(figures['items'], 'item')} held out", ["", *_FIGURES], rows)
    _tell_left_out(learnt.unreadable, learnt.changed)
    if facts["regions_left_out"]:
        note(f"{plural(facts['regions_left_out'], 'tag')} of regions not learnt from")
    if learnt.looked is not None:
        _tell_looked(learnt.looked)


def _tell_applied(applied: "Applied") -> None:
    _tell_looked(applied.looked)
    if applied.fitting is not None:
        fitting = applied.fitting
        if fitting.probability is None:
            note(f"no probability is high enough for a precision of {fitting.precision:g} on the held-out items")
        else:
            out.print(f"from a probability of {fitting.probability:.2f} on, {fitting.precision:.0%} were right")
        out.print(
            f"{plural(fitting.items, 'item')} with such a suggestion; {fitting.none:,} untagged ones that no tag fits"
        )
    if applied.accepted is not None:
        out.print(f"{plural(applied.accepted.added, 'suggestion')} accepted")


def _tell_looked(looked: "Looked") -> None:
    out.print(f"{plural(looked.suggestions, 'suggestion')} for {plural(looked.items, 'item')}")
    _tell_left_out(looked.unreadable, looked.changed)


def _tell_left_out(unreadable: int, changed: int) -> None:
    if unreadable:
        note(f"{plural(unreadable, 'item')} cannot be read; such items are left out from now on")
    if changed:
        note(f"{plural(changed, 'file')} gone or changed since the last scan; scan again")


def _how(model: Any) -> str:
    return model.how if model.parent is None or model.how == "full" else f"{model.how} of {model.parent}"


def _cells(figures: dict[str, float] | None) -> list[str]:
    return [f"{figures[name]:.3f}" if figures else "" for name in _FIGURES]


def _plain(value: Any) -> Any:
    """Named tuples as dictionaries, all the way down."""
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    return value


COMMANDS: tuple[Callable[..., Any], ...] = (train, apply, models)
