"""Commands of a collection: tag, annotations."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder
from wsabie.cli.command import command, options
from wsabie.cli.options import OutputOptions
from wsabie.cli.output import format_count, print_note, show_json, show_table
from wsabie.core.errors import InputError


@options
class TagOptions:
    """Options of `wsabie collection tag`."""

    folder: Folder
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items, by path or number.")]
    accept: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that fits; may be new.")] = None
    reject: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that does not fit.")] = None
    clear: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="A label that is to be undecided.")] = None
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()


@command("collection tag photos 1 2 --accept bird", "collection tag photos photos/cat.jpg --accept cat --reject dog")
def tag(options: TagOptions) -> None:
    """Say which labels fit items and which do not; each option may be given several times."""
    accept, reject, clear = options.accept or (), options.reject or (), options.clear or ()
    if not (accept or reject or clear):
        raise InputError("say what fits or does not: --accept LABEL, --reject LABEL, --clear LABEL")
    with open_collection_folder(options.folder) as collection:
        from wsabie.collection.annotations.decisions import find_items, tag_items

        numbers = list(dict.fromkeys(find_items(collection, options.items, Path.cwd())))
        result = tag_items(collection, numbers, accept=accept, reject=reject, clear=clear, by=options.person.resolve())
    if options.output.json:
        show_json({"schema": 1, "items": numbers, **result.decided._asdict(), "new_labels": result.new})
        return
    new_labels = f"; new: {', '.join(result.new)}" if result.new else ""
    changes = result.decided
    print_note(
        f"{format_count(len(numbers), 'item')}: {changes.added:,} added, {changes.changed:,} changed, "
        f"{changes.removed:,} removed{new_labels}"
    )


@options
class AnnotationsOptions:
    """Options of `wsabie collection annotations`."""

    folder: Folder
    label: Annotated[str | None, typer.Option(metavar="LABEL", help="Only this label, or a synonym of it.")] = None
    item: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Only this item, by path or number as `tag` takes it.")
    ] = None
    state: Annotated[Literal["accepted", "rejected"] | None, typer.Option(help="Only what fits, or does not.")] = None
    origin: Annotated[Literal["person", "import", "model"] | None, typer.Option(help="Only decisions of these.")] = None
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Only decisions of this person.")] = None
    model: Annotated[int | None, typer.Option(metavar="N", help="Only suggestions of this model.")] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Changed then or later, such as 2026-05 or 2026-05-01T12:00 (UTC)."),
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Changed before this day or time ended.")] = None
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Annotations, newest first.")] = 20
    cursor: Annotated[str | None, typer.Option(metavar="TEXT", help="Those after a page, by `next` of its --json.")] = (
        None
    )
    output: OutputOptions = OutputOptions()


@command("collection annotations photos --label bird", "collection annotations photos --by eve --since 2026-05")
def annotations(options: AnnotationsOptions) -> None:
    """List the decisions about items, with their authors and times, newest first."""
    with open_collection_folder(options.folder, read_only=True) as collection:
        from wsabie.collection.annotations.annotation_list import AnnotationFilter, read_annotation_page
        from wsabie.collection.annotations.decisions import find_items

        number = None if options.item is None else find_items(collection, [options.item], Path.cwd())[0]
        filters = AnnotationFilter(
            number,
            options.label,
            options.state,
            options.origin,
            options.by,
            options.model,
            options.since,
            options.until,
        )
        page = read_annotation_page(collection, filters, cursor=options.cursor, limit=options.k)
        if options.output.json:
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
        show_table(f"{options.folder}: {format_count(len(rows), 'annotation')}, newest first{more}", columns, rows)


def _format_probability(annotation: Any) -> str:
    return "" if annotation.probability is None else f"{annotation.probability:.2f}"
