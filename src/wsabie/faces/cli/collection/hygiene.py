"""Commands of a collection: labels, tag."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.group import By, Folder, opened, person
from wsabie.faces.cli.options import Json, Table, refuse_options, stated
from wsabie.faces.cli.terminal import note, plural, show_json

What = Literal["list", "show", "tidy", "merge", "apart", "rename", "parent", "synonym", "edit", "delete", "fill"]


_TAKES: dict[What, tuple[str, ...]] = {
    "list": ("k", "order"),
    "tidy": ("k", "knowledge", "least", "keep", "merge_above"),
    "show": ("k",),
    "synonym": ("language",),
    "edit": ("language", "wordnet", "drop"),
    "delete": ("with_tags",),
    "fill": ("knowledge", "table", "dry_run"),
}


def labels(
    folder: Folder,
    what: Annotated[
        What,
        typer.Argument(
            metavar="WHAT",
            help="list: labels with their counts; show: LABEL, all that is known; tidy: labels that could be one; "
            "merge: A ... B, into B; apart: A B ..., never to be proposed again; rename: OLD NEW; "
            "parent: LABEL PARENT (without PARENT: none); synonym: LABEL OTHER ...; edit: LABEL, its --language, "
            "--wordnet, other names to --drop; delete: LABEL ..., with their names; "
            "fill: meanings, parents and synonyms from --knowledge.",
        ),
    ] = "list",
    names: Annotated[
        list[str] | None, typer.Argument(metavar="LABEL", help="Labels; of list, a part of their names.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="list, tidy: at most so many (default: 20); show: neighbours (10).")
    ] = None,
    order: Annotated[
        Literal["items", "name", "right"] | None,
        typer.Option(help="list: by items (default), by name, or those first of which models are wrong most often."),
    ] = None,
    knowledge: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="tidy, fill: WordNet's folder, translations and their like; several complete each other.",
        ),
    ] = None,
    table: Table = None,
    least: Annotated[
        float | None, typer.Option(min=0, max=1, help="tidy: score from which a pair is proposed (default: 0.7).")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="LANGUAGE", help="tidy: keep labels of this one (default: the most frequent).")
    ] = None,
    merge_above: Annotated[
        float | None, typer.Option(min=0, max=1, help="tidy: merge all proposals of this score, as one entry to undo.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="synonym, edit: language of the names, such as de.")] = None,
    wordnet: Annotated[
        str | None, typer.Option(metavar="ID", help="edit: what it means, such as n02084071; '' for nothing.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="edit: another name that it has no more.")
    ] = None,
    with_tags: Annotated[
        bool, typer.Option("--with-tags", help="delete: also what was decided of them, on all items.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="fill: only list what would be written down.")] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """The labels of a collection: what there is, which could be one, merging, names, parents, deleting."""
    from wsabie.faces.cli.collection.labels_shown import ACTIONS

    given = stated(
        k=k,
        order=order,
        knowledge=knowledge or None,
        table=table,
        least=least,
        keep=keep,
        merge_above=merge_above,
        language=language,
        wordnet=wordnet,
        drop=drop or None,
        with_tags=with_tags or None,
        dry_run=dry_run or None,
    )
    foreign = {option.replace("_", "-"): v for option, v in given.items() if option not in _TAKES.get(what, ())}
    refuse_options(foreign, f"what `labels {what}` does not ask")
    looks = what in ("list", "show") or (what == "tidy" and merge_above is None) or (what == "fill" and dry_run)
    with opened(folder, read_only=looks) as collection:
        ACTIONS[what](collection, names or [], by, json, **given)


def tag(
    folder: Folder,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items, by path or number.")],
    accept: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that fits; may be new.")] = None,
    reject: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that does not fit.")] = None,
    clear: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that is to be undecided.")] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Say which labels fit items and which do not; each option may be given several times."""
    if not (accept or reject or clear):
        raise InputError("say what fits or does not: --accept LABEL, --reject LABEL, --clear LABEL")
    with opened(folder) as collection:
        from wsabie.catalogue.tagging import items_called
        from wsabie.catalogue.tagging import tag as decide

        numbers = list(dict.fromkeys(items_called(collection, items, Path.cwd())))
        done = decide(collection, numbers, accept=accept or (), reject=reject or (), clear=clear or (), by=person(by))
    if json:
        show_json({"schema": 1, "items": numbers, **done.decided._asdict(), "new_labels": done.new})
        return
    new = f"; new: {', '.join(done.new)}" if done.new else ""
    d = done.decided
    note(f"{plural(len(numbers), 'item')}: {d.added:,} added, {d.changed:,} changed, {d.removed:,} removed{new}")


COMMANDS: tuple[Callable[..., Any], ...] = (labels, tag)
