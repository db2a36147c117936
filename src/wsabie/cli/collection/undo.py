"""`wsabie collection undo`."""

from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, argument, command
from wsabie.cli.output import format_count, print_note, quote_path

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection


class UndoOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection undo`."""

    entry: int | None = argument("Id in the history (default: your last entry).", metavar="ENTRY")


@command("collection undo photos", "collection undo photos 42")
def undo(options: UndoOptions) -> Report:
    """Put back what an entry of the history changed.

    An undo can be undone too.
    """
    with options.open() as collection:
        from wsabie.collection.db.journal import LOCAL, undo_entry

        old_sources = _list_tag_sources(collection)
        alias = None if options.by else LOCAL
        undone = undo_entry(collection.engine, options.entry, by=options.resolve_author(), alias=alias)
        sources = _list_tag_sources(collection)
        yield {"undone": undone}
        changes = format_count(undone.changes, "change")
        print_note(f"undone: entry {undone.id} of {undone.by}, {undone.summary or undone.action} ({changes})")
        if sources != old_sources:
            print_note(f"scans take tags from {' and '.join(sources) or 'nowhere'} again")
        elif sources and undone.action == "scan":
            stop = f"wsabie collection scan {quote_path(options.folder)} --tags none"
            print_note(f"later scans still take tags from {' and '.join(sources)}; to stop it: {stop}")


def _list_tag_sources(collection: "Collection") -> list[str]:
    """List the sources of tags for scans; the first choice is not an entry of the history, and stays."""
    from wsabie.collection.scan.roots import list_roots

    sources = (root.options.get("tags", "none") for root in list_roots(collection))
    return sorted({source for source in sources if source != "none"})
