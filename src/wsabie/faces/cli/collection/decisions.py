"""The command that lists what was decided in a collection: annotations."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.faces.cli.collection.group import Folder, opened
from wsabie.faces.cli.options import Json
from wsabie.faces.cli.terminal import note, plural, show_json, show_table


def annotations(
    folder: Folder,
    label: Annotated[str | None, typer.Option(metavar="LABEL", help="Only this label, or a synonym of it.")] = None,
    item: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Only this item, by path or number as `tag` takes it.")
    ] = None,
    state: Annotated[Literal["accepted", "rejected"] | None, typer.Option(help="Only what fits, or does not.")] = None,
    origin: Annotated[
        Literal["person", "import", "model"] | None, typer.Option(help="Only what these decided.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this person decided.")] = None,
    model: Annotated[int | None, typer.Option(metavar="N", help="Only what this model had suggested.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Changed then or later, such as 2026-05 or 2026-05-01T12:00 (UTC)."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Changed before this day or time ended.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Annotations, newest first.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Those after a page, by `next` of its --json.")
    ] = None,
    json: Json = False,
) -> None:
    """What was decided of items, by whom and when, newest first."""
    with opened(folder, read_only=True) as collection:
        from wsabie.catalogue.decided import Sought, page
        from wsabie.catalogue.tagging import items_called

        number = None if item is None else items_called(collection, [item], Path.cwd())[0]
        sought = Sought(number, label, state, origin, by, model, since, until)
        found = page(collection, sought, cursor=cursor, limit=k)
        if json:
            told = [one._asdict() for one in found.annotations]
            show_json({"schema": 1, "annotations": told, "next": found.next_cursor})
            return
        if not found.annotations:
            note("nothing of this kind is decided")
            return
        rows = [
            [a.path, a.label + " (a region)" * bool(a.region), a.state, a.at[:19].replace("T", " "), a.by, _chance(a)]
            for a in found.annotations
        ]
        more = "" if found.next_cursor is None else "; -k shows more"
        columns = ["item", "label", "", "when (UTC)", "who", "suggested at"]
        show_table(f"{folder}: {plural(len(rows), 'annotation')}, newest first{more}", columns, rows)


def _chance(one: Any) -> str:
    return "" if one.probability is None else f"{one.probability:.2f}"


COMMANDS: tuple[Callable[..., Any], ...] = (annotations,)
