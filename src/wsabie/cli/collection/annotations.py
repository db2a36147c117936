"""Command of a collection: annotations."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.collection.shared_options import FolderArgument, open_collection_folder
from wsabie.cli.inputs.options import Json
from wsabie.cli.terminal.output import format_count, print_note, show_json, show_table


def annotations(
    folder: FolderArgument,
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
    """List the decisions about items, with their authors and times, newest first."""
    with open_collection_folder(folder, read_only=True) as collection:
        from wsabie.collection.annotations.annotation_list import AnnotationFilter, read_annotation_page
        from wsabie.collection.annotations.item_tagging import find_items

        number = None if item is None else find_items(collection, [item], Path.cwd())[0]
        filters = AnnotationFilter(number, label, state, origin, by, model, since, until)
        page = read_annotation_page(collection, filters, cursor=cursor, limit=k)
        if json:
            entries = [annotation._asdict() for annotation in page.annotations]
            show_json({"schema": 1, "annotations": entries, "next": page.next_cursor})
            return
        if not page.annotations:
            print_note("nothing of this kind is decided")
            return
        rows = [
            [
                a.path,
                a.label + " (a region)" * bool(a.region),
                a.state,
                a.at[:19].replace("T", " "),
                a.by,
                _format_probability(a),
            ]
            for a in page.annotations
        ]
        more = "" if page.next_cursor is None else "; -k shows more"
        columns = ["item", "label", "", "when (UTC)", "who", "suggested at"]
        show_table(f"{folder}: {format_count(len(rows), 'annotation')}, newest first{more}", columns, rows)


def _format_probability(annotation: Any) -> str:
    return "" if annotation.probability is None else f"{annotation.probability:.2f}"


COMMANDS: tuple[Callable[..., Any], ...] = (annotations,)
