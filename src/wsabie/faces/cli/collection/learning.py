"""Commands of a collection: train, apply, models."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection import models_shown
from wsabie.faces.cli.collection.group import By, Folder, opened, person
from wsabie.faces.cli.collection.models_shown import as_plain, show_figures
from wsabie.faces.cli.options import Describe, IndexKind, Json, Seed, Threads, WantedRecall
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json

if TYPE_CHECKING:
    from wsabie.catalogue.learning import Learnt
    from wsabie.catalogue.suggesting import Applied, Looked


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
            even_if_worse=even_if_worse,
            person_weight=person_weight,
            threads=threads,
            seed=seed,
            executor=executor(threads),
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **as_plain(learnt)})
        return
    _tell_learnt(learnt, folder)


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
        show_json({"schema": 1, **as_plain(applied)})
        return
    _tell_applied(applied, folder)


def models(
    folder: Folder,
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
    by: By = None,
    json: Json = False,
) -> None:
    """The models of a collection: their figures, how one was made, which is better; switch, or remove old ones."""
    if sum((use is not None, keep is not None, compare or bool(numbers))) > 1:
        raise InputError("N, --use and --keep are different things; do one after the other")
    with opened(folder, read_only=use is None and keep is None) as collection:
        from wsabie.catalogue import comparing, shelf, shelving
        from wsabie.faces.cli.common import executor

        if compare:
            found = comparing.compare(collection, numbers or [], executor=executor(None), progress=TerminalProgress())
            models_shown.show_comparison(found, json)
        elif numbers:
            models_shown.show_some([shelf.shelved(collection, number) for number in numbers], json)
        else:
            used = None if use is None else shelf.use(collection, use, by=person(by))
            removed = [] if keep is None else shelving.keep(collection, keep, by=person(by))
            models_shown.show_all(collection, folder, used, removed, json)


def _tell_learnt(learnt: "Learnt", folder: Path) -> None:
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
    if not learnt.used:
        out.print(f"not put into use: {facts['kept_back']}")
        note(f"to use it all the same: wsabie collection models {quote(str(folder))} --use {learnt.model}")
    show_figures(figures)
    _tell_left_out(learnt.unreadable, learnt.changed, folder)
    if facts["regions_left_out"]:
        note(f"{plural(facts['regions_left_out'], 'tag')} of regions not learnt from")
    if learnt.looked is not None:
        _tell_looked(learnt.looked, folder)


def _tell_applied(applied: "Applied", folder: Path) -> None:
    _tell_looked(applied.looked, folder)
    if applied.fitting is not None:
        fitting = applied.fitting
        if fitting.probability is None:
            note(
                f"no probability is high enough for a precision of {fitting.precision:g} on the held-out items; tag "
                "more items, and train again"
            )
        else:
            out.print(f"from a probability of {fitting.probability:.2f} on, {fitting.precision:.0%} were right")
        out.print(
            f"{plural(fitting.items, 'item')} with such a suggestion; "
            f"{plural(fitting.none, 'untagged one')} that no tag fits"
        )
    if applied.accepted is not None:
        out.print(f"{plural(applied.accepted.added, 'suggestion')} accepted")


def _tell_looked(looked: "Looked", folder: Path) -> None:
    out.print(f"{plural(looked.suggestions, 'suggestion')} for {plural(looked.items, 'item')}")
    _tell_left_out(looked.unreadable, looked.changed, folder)


def _tell_left_out(unreadable: int, changed: int, folder: Path) -> None:
    if unreadable:
        note(f"{plural(unreadable, 'item')} cannot be read; such items are left out from now on")
    if changed:
        note(
            f"{plural(changed, 'file')} changed since the last scan, or went away; run: wsabie collection scan "
            f"{quote(str(folder))}"
        )


def index(
    folder: Folder,
    kind: IndexKind = "ivf",
    recall: WantedRecall = 0.95,
    json: Json = False,
) -> None:
    """Make an approximate index of the items, for hundreds of thousands and more; `apply` makes it anew."""
    with opened(folder) as collection:
        from wsabie.catalogue.item_index import index_items

        made = index_items(collection, kind=kind, recall=recall, progress=TerminalProgress())
    if json:
        show_json({"schema": 1, **{one.similarity: one.facts for one in made}})
        return
    for similarity, facts in made:
        out.print(
            f"by {similarity}: recall@10 {facts['recall@10']:.3f}, {facts['milliseconds']:.2f} ms "
            f"(exactly {facts['exact_milliseconds']:.2f}), {facts['bytes'] / 1e6:.1f} MB"
        )


COMMANDS: tuple[Callable[..., Any], ...] = (train, apply, models, index)
