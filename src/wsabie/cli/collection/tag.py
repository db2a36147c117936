"""`wsabie collection tag`."""

from pathlib import Path

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import format_count, print_note
from wsabie.core.errors import require


class TagOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection tag`."""

    items: list[str] = argument("Items, by path or id.", metavar="ITEM...")
    accept: list[str] | None = option("A label that fits; may be new.", metavar="LABEL")
    reject: list[str] | None = option("A label that does not fit.", metavar="LABEL")
    clear: list[str] | None = option("A label that is to be undecided.", metavar="LABEL")


@command("collection tag photos 1 2 --accept bird", "collection tag photos photos/cat.jpg --accept cat --reject dog")
def tag(options: TagOptions) -> Report:
    """Say which labels fit items and which do not.

    Each option may be given several times.
    """
    accept, reject, clear = options.accept or (), options.reject or (), options.clear or ()
    require(bool(accept or reject or clear), "say what to change: --accept LABEL, --reject LABEL, --clear LABEL")
    with options.open() as collection:
        from wsabie.collection.annotations.decisions import find_items, tag_items

        item_ids = list(dict.fromkeys(find_items(collection, options.items, Path.cwd())))
        result = tag_items(collection, item_ids, accept=accept, reject=reject, clear=clear, by=options.resolve_author())
    yield {"items": item_ids, **result.counts._asdict(), "new_labels": result.new_labels}
    new_labels = f"; new: {', '.join(result.new_labels)}" if result.new_labels else ""
    added, changed, removed, _ = result.counts
    changes = f"{added:,} added, {changed:,} changed, {removed:,} removed"
    print_note(f"{format_count(len(item_ids), 'item')}: {changes}{new_labels}")
