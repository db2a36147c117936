"""Commands of a collection: status, history, undo, backup, restore."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions, PersonOptions, require_database
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import format_count, format_time, out, print_note, quote_path, show_table
from wsabie.core.errors import InputError, WsabieError

if TYPE_CHECKING:
    from wsabie.collection.db.journal import JournalEntry
    from wsabie.collection.folder.backups import Backup
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.overview import CollectionStatus


_REASONS = {
    "daily": "daily",
    "manual": "asked for",
    "migration": "before new tables",
    "replaced": "before a restore",
    "restored": "after a restore",
}
_ORIGIN_NAMES = {"person": "people", "import": "import", "model": "a model"}


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
                show_table("last changes", ["what", "when (UTC)", "who"], recent)
            if summary.drafts:
                drafts = format_count(len(summary.drafts), "draft")
                print_note(f"the next export into your pictures removes {drafts} of a stopped export")
            if backups:
                _show_backups("backups of the database", backups)
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

    entry: int | None = argument("Id in the history (default: your last entry).", metavar="ENTRY")


@command("collection undo photos", "collection undo photos 42")
def undo(options: UndoOptions) -> Report:
    """Put back what an entry of the history changed; undoing can be undone too."""
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


def _format_status(summary: "CollectionStatus") -> list[list[str | int]]:
    rows: list[list[str | int]] = [[summary.modality or "items", summary.items["present"]]]
    rows += [[f"  {state}", summary.items[state]] for state in ("missing", "unreadable") if summary.items[state]]
    for root in summary.roots:
        tags = f", tags: {root.tags}" if root.tags else ""
        availability = "" if root.reachable else ", cannot be reached"
        rows.append([f"  in {root.folder}{tags}{availability}", sum(root.items.values())])
    rows.append(["labels", summary.labels])
    rows += [[f"{count.state} by {_ORIGIN_NAMES[count.origin]}", count.annotations] for count in summary.annotations]
    if summary.model is not None:
        rows.append([f"model {summary.model.id}, made {summary.model.created_at[:10]}", ""])
        rows.append(["open suggestions", summary.suggestions])
    if summary.damage is not None:
        rows.append(["database", "damaged" if summary.damage else "whole"])
    rows += [[f"draft that a stopped export left: {draft}", ""] for draft in summary.drafts]
    return rows


def _format_undo(entry: "JournalEntry") -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""


class BackupOptions(CollectionOptions):
    """Options of `wsabie collection backup`."""

    out: Path | None = option("Write it there (default: into DIR/.wsabie/backups).", metavar="FILE")
    listing: bool = option("Only list the backups.", flag="--list")


@command("collection backup photos", "collection backup photos --out /mnt/disk/photos.db")
def backup(options: BackupOptions) -> Report:
    """Copy the database while it may be in use; of PostgreSQL, print the command that does it."""
    folder, to = options.folder, options.out
    require_database()
    if options.listing:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection_file import PLACE, require_collection

        backups = list_backups(require_collection(folder) / PLACE)
        yield {"backups": backups}
        if backups:
            _show_backups(f"{folder}: {format_count(len(backups), 'backup')}, newest first", backups)
        else:
            print_note(f"{folder} has no backups yet; make one: wsabie collection backup {quote_path(folder)}")
        return
    with options.open(read_only=True) as collection:
        from wsabie.collection.folder import collection_file
        from wsabie.collection.folder.backups import back_up, format_dump_command, refuse_target

        if to is not None and not to.parent.is_dir():  # the disk that it names may be away
            raise InputError(f"cannot write {to}: there is no folder {to.parent}; make it, or mount its disk, first")
        options.check_outputs(("backup", to), inputs=collection.roots().values())
        if to is not None:
            refuse_target(to, collection_file.read_state(collection.engine).identity)
        address, copy, command = collection_file.read_collection_file(collection.place).database, None, None
        if address is not None:
            command = format_dump_command(address, str(to or "collection.dump"))
        else:
            if to is None:
                collection_file.refuse_read_only(folder, "write the backup elsewhere with --out FILE")
            copy = back_up(collection.engine, collection.place, "manual", to)
        with suppress(WsabieError):  # where only FILE can be written
            collection_file.record_state(collection.place, collection_file.read_state(collection.engine))
    yield {"backup": copy, "command": command}
    if copy is None:
        print_note("the database is in PostgreSQL; this makes a backup of it:")
        out.print(str(command))
    else:
        print_note(f"{copy.path}: the database up to entry {copy.journal}, {copy.bytes / 1e6:,.1f} MB")


class RestoreOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection restore`."""

    backup: Path | None = argument("Name or path of a backup (default: that with most entries).", metavar="BACKUP")
    accept: bool = option("Accept the present database, or BACKUP, even if it is older or another one.")


@command("collection restore photos", "collection restore photos --accept")
def restore(options: RestoreOptions) -> Report:
    """Replace the database by a backup, and keep the old one; for PostgreSQL, print the command."""
    folder, backup, accept = options.folder, options.backup, options.accept
    require_database()
    from wsabie.collection.folder.backups import accept_database, format_load_command, read_record, restore_backup

    address = read_record(folder).database
    if address is not None and not accept:
        command = format_load_command(address, str(backup or "collection.dump"))
        yield {"restored": None, "command": command}
        print_note("the database is in PostgreSQL; these restore it from a dump:")
        out.print(command)
        out.print(f"wsabie collection restore {quote_path(folder)} --accept")
        return
    if accept and backup is None:
        result = accept_database(folder, by=options.resolve_author())
    else:
        result = restore_backup(folder, backup, by=options.resolve_author(), accept=accept)
    yield {"restored": result, "command": None}
    lost = f"; {format_count(result.lost, 'later entry is', 'later entries are')} not in it" if result.lost else ""
    print_note(f"{folder} now has the database of {result.source}, up to entry {result.journal} of the history{lost}")
    if result.replaced is not None:
        print_note(f"the replaced database is kept: {result.replaced}")


def _show_backups(title: str, backups: "list[Backup]") -> None:
    """Show a table of backups."""
    rows = []
    for backup in backups:
        entry, size = "damaged" if backup.journal is None else backup.journal, f"{backup.bytes / 1e6:,.1f} MB"
        rows.append([backup.path.name, format_time(backup.at), _REASONS[backup.reason], entry, size])
    show_table(title, ["backup", "when (UTC)", "why", "up to entry", "size"], rows)
