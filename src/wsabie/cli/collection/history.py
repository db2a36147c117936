"""Commands of a collection: status, history, undo."""

from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.collection.backups import show_backup_table
from wsabie.cli.command import Report, argument, command, option
from wsabie.cli.output import format_count, format_time, print_note, quote_path, show_table

if TYPE_CHECKING:
    from wsabie.collection.db.journal import JournalEntry
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.overview import CollectionStatus


class StatusOptions(CollectionOptions):
    """Options of `wsabie collection status`."""

    check: bool = option("Look through the whole database for damage.")


@command("collection status photos", "collection status photos --check")
def status(options: StatusOptions) -> None:
    """Show the contents of a collection: items, labels, decisions and waiting suggestions."""
    with options.open(read_only=True) as collection:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection import make_damage_error
        from wsabie.collection.overview import read_status

        summary, backups = read_status(collection, check=options.check), list_backups(collection.place)
        if not options.show_json({"collection": collection.folder, **summary._asdict(), "backups": backups}):
            show_table(str(collection.folder), ["", ""], _format_status(summary))
            recent = [[entry.summary or entry.action, format_time(entry.at), entry.by] for entry in summary.last]
            if recent:
                show_table("what was done last", ["what", "when (UTC)", "who"], recent)
            if summary.drafts:
                drafts = format_count(len(summary.drafts), "draft")
                print_note(f"the next export to your pictures removes {drafts} of one that was stopped")
            if backups:
                show_backup_table("backups of the catalogue", backups)
        if summary.damage:
            raise make_damage_error(collection, summary.damage[0])


class HistoryOptions(CollectionOptions):
    """Options of `wsabie collection history`."""

    k: int = option("Entries, last first.", 20, flag="-k", min=1, max=100_000)


@command("collection history photos", "collection history photos -k 100")
def history(options: HistoryOptions) -> Report:
    """List the changes of a collection and their authors, newest first."""
    with options.open(read_only=True) as collection:
        from wsabie.collection.db.journal import read_history

        records = read_history(collection.engine, options.k)
        yield {"entries": records}
        rows = [
            [record.summary or record.action, str(record.id), format_time(record.at), record.by, _format_undo(record)]
            for record in records
        ]
        title = f"{options.folder}: {format_count(len(rows), 'entry', 'entries')}, last first"
        show_table(title, ["what", "entry", "when (UTC)", "who", ""], rows)


class UndoOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection undo`."""

    entry: int | None = argument(
        "Its number in the history (default: the last of yours, here or in the pages).", metavar="ENTRY"
    )


@command("collection undo photos", "collection undo photos 42")
def undo(options: UndoOptions) -> Report:
    """Put back what an entry of the history changed; undoing can be undone too."""
    with options.open() as collection:
        from wsabie.collection.db.journal import LOCAL, undo_entry

        old_sources = _list_tag_sources(collection)
        undone = undo_entry(
            collection.engine, options.entry, by=options.resolve_author(), alias=None if options.by else LOCAL
        )
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
    """List the sources of tags for scans; the first choice is no entry of the history, and stays."""
    from wsabie.collection.scan.roots import list_roots

    sources = (root.options.get("tags", "none") for root in list_roots(collection))
    return sorted({kind for kind in sources if kind != "none"})


def _format_status(summary: "CollectionStatus") -> list[list[str | int]]:
    rows: list[list[str | int]] = [[summary.modality or "items", summary.items["present"]]]
    rows += [[f"  {state}", summary.items[state]] for state in ("missing", "unreadable") if summary.items[state]]
    for root in summary.roots:
        kind = f", tags: {root.tags}" if root.tags else ""
        availability = "" if root.reachable else ", cannot be reached"
        rows.append([f"  in {root.folder}{kind}{availability}", sum(root.items.values())])
    rows.append(["labels", summary.labels])
    rows += [[f"{count.state} by {_ORIGIN_NAMES[count.origin]}", count.annotations] for count in summary.annotations]
    if summary.model is not None:
        rows.append([f"model {summary.model.id}, made {summary.model.created_at[:10]}", ""])
        rows.append(["suggestions that wait", summary.suggestions])
    if summary.damage is not None:
        rows.append(["catalogue", "damaged" if summary.damage else "whole"])
    rows += [[f"draft that a stopped export left: {draft}", ""] for draft in summary.drafts]
    return rows


_ORIGIN_NAMES = {"person": "people", "import": "import", "model": "a model"}


def _format_undo(entry: "JournalEntry") -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""
