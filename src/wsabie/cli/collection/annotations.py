"""`wsabie collection annotations`."""

from pathlib import Path
from typing import Literal

from wsabie.cli import output
from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import format_count, print_note, show_table


class AnnotationsOptions(CollectionOptions):
    """Options of `wsabie collection annotations`."""

    label: str | None = option("Only this label, or a synonym of it.", metavar="LABEL")
    item: str | None = option("Only this item, by path or id as `tag` takes it.", metavar="ITEM")
    state: Literal["accepted", "rejected"] | None = option("Only accepted or only rejected labels.")
    origin: Literal["person", "import", "model"] | None = option("Only decisions by people, by imports or by models.")
    by: str | None = option("Only decisions of this person.", metavar="NAME")
    model: int | None = option("Only suggestions of this model.", metavar="N")
    since: str | None = option("Changed then or later, such as 2026-05 or 2026-05-01T12:00 (UTC).", metavar="TIME")
    until: str | None = option("Changed before this day or time ended.", metavar="TIME")
    k: int = option("Annotations, newest first.", 20, flag="-k", min=1, max=1000)
    cursor: str | None = option("Continue after a page: its `next_cursor` in --json.", metavar="TEXT")


@command("collection annotations photos --label bird", "collection annotations photos --by eve --since 2026-05")
def annotations(options: AnnotationsOptions) -> Report:
    """List the decisions about items, newest first.

    Each has its author and time.
    """
    with options.open(read_only=True) as collection:
        from wsabie.collection.annotations.annotation_pages import AnnotationFilter, read_annotation_page
        from wsabie.collection.annotations.decisions import find_items

        item_id = None if options.item is None else find_items(collection, [options.item], Path.cwd())[0]
        conditions = options.pick("label", "state", "origin", "by", "model", "since", "until")
        criteria = AnnotationFilter(item_id, **conditions)
        page = read_annotation_page(collection, criteria, cursor=options.cursor, limit=options.k)
        yield {"annotations": page.annotations, "next_cursor": page.next_cursor}
        if not page.annotations:
            print_note("no annotation matches")
            return
        rows = []
        for a in page.annotations:
            label, probability = a.label + " (a region)" * bool(a.region), output.format_figure(a.probability, ".2f")
            rows.append([a.path, label, a.state, output.format_time(a.at), a.by, probability])
        more = "" if page.next_cursor is None else "; -k shows more"
        columns = ["item", "label", "", "when (UTC)", "who", "suggested at"]
        show_table(f"{options.folder}: {format_count(len(rows), 'annotation')}, newest first{more}", columns, rows)
