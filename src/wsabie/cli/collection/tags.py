"""Commands of a collection: tag, annotations."""

from pathlib import Path
from typing import Literal

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import format_count, format_figure, format_time, print_note, show_table
from wsabie.core.errors import InputError


class TagOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection tag`."""

    items: list[str] = argument("Items, by path or id.", metavar="ITEM...")
    accept: list[str] | None = option("A label that fits; may be new.", metavar="LABEL")
    reject: list[str] | None = option("A label that does not fit.", metavar="LABEL")
    clear: list[str] | None = option("A label that is to be undecided.", metavar="LABEL")


@command("collection tag photos 1 2 --accept bird", "collection tag photos photos/cat.jpg --accept cat --reject dog")
def tag(options: TagOptions) -> Report:
    """Say which labels fit items and which do not; each option may be given several times."""
    accept, reject, clear = options.accept or (), options.reject or (), options.clear or ()
    if not (accept or reject or clear):
        raise InputError("say what fits or does not: --accept LABEL, --reject LABEL, --clear LABEL")
    with options.open() as collection:
        from wsabie.collection.annotations.decisions import find_items, tag_items

        item_ids = list(dict.fromkeys(find_items(collection, options.items, Path.cwd())))
        result = tag_items(collection, item_ids, accept=accept, reject=reject, clear=clear, by=options.resolve_author())
    yield {"items": item_ids, **result.counts._asdict(), "new_labels": result.new_labels}
    new_labels = f"; new: {', '.join(result.new_labels)}" if result.new_labels else ""
    added, changed, removed, _ = result.counts
    changes = f"{added:,} added, {changed:,} changed, {removed:,} removed"
    print_note(f"{format_count(len(item_ids), 'item')}: {changes}{new_labels}")


class AnnotationsOptions(CollectionOptions):
    """Options of `wsabie collection annotations`."""

    label: str | None = option("Only this label, or a synonym of it.", metavar="LABEL")
    item: str | None = option("Only this item, by path or id as `tag` takes it.", metavar="ITEM")
    state: Literal["accepted", "rejected"] | None = option("Only what fits, or does not.")
    origin: Literal["person", "import", "model"] | None = option("Only decisions of these.")
    by: str | None = option("Only decisions of this person.", metavar="NAME")
    model: int | None = option("Only suggestions of this model.", metavar="N")
    since: str | None = option("Changed then or later, such as 2026-05 or 2026-05-01T12:00 (UTC).", metavar="TIME")
    until: str | None = option("Changed before this day or time ended.", metavar="TIME")
    k: int = option("Annotations, newest first.", 20, flag="-k", min=1, max=1000)
    cursor: str | None = option("Those after a page, by `next_cursor` of its --json.", metavar="TEXT")


@command("collection annotations photos --label bird", "collection annotations photos --by eve --since 2026-05")
def annotations(options: AnnotationsOptions) -> Report:
    """List the decisions about items, with their authors and times, newest first."""
    with options.open(read_only=True) as collection:
        from wsabie.collection.annotations.decisions import AnnotationFilter, find_items, read_annotation_page

        item_id = None if options.item is None else find_items(collection, [options.item], Path.cwd())[0]
        conditions = options.pick("label", "state", "origin", "by", "model", "since", "until")
        criteria = AnnotationFilter(item_id, **conditions)
        page = read_annotation_page(collection, criteria, cursor=options.cursor, limit=options.k)
        yield {"annotations": page.annotations, "next_cursor": page.next_cursor}
        if not page.annotations:
            print_note("nothing of this kind is decided")
            return
        rows = []
        for a in page.annotations:
            label, probability = a.label + " (a region)" * bool(a.region), format_figure(a.probability, ".2f")
            rows.append([a.path, label, a.state, format_time(a.at), a.by, probability])
        more = "" if page.next_cursor is None else "; -k shows more"
        columns = ["item", "label", "", "when (UTC)", "who", "suggested at"]
        show_table(f"{options.folder}: {format_count(len(rows), 'annotation')}, newest first{more}", columns, rows)
