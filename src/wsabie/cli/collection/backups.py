"""Commands of a collection: backup, restore."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.collection import CollectionOptions, PersonOptions, require_database
from wsabie.cli.command import Report, argument, command, option
from wsabie.cli.output import format_count, format_time, out, print_note, quote_path, show_table
from wsabie.core.errors import InputError, WsabieError

if TYPE_CHECKING:
    from wsabie.collection.folder.backups import Backup

REASONS = {
    "daily": "daily",
    "asked": "asked for",
    "migration": "before new tables",
    "replaced": "before a restore",
    "restored": "after a restore",
}


class BackupOptions(CollectionOptions):
    """Options of `wsabie collection backup`."""

    out: Path | None = option("Write it there (default: into DIR/.wsabie/backups).", metavar="FILE")
    listing: bool = option("Only list the backups that there are.", flag="--list")


@command("collection backup photos", "collection backup photos --out /mnt/disk/photos.db")
def backup(options: BackupOptions) -> Report:
    """Copy the catalogue while it may be in use; of PostgreSQL, print the command that does it."""
    folder, to = options.folder, options.out
    require_database()
    if options.listing:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection_file import PLACE, require_collection

        backups = list_backups(require_collection(folder) / PLACE)
        yield {"backups": backups}
        if backups:
            show_backup_table(f"{folder}: {format_count(len(backups), 'backup')}, newest first", backups)
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
            refuse_target(to, collection_file.read_state(collection.engine).catalogue)
        address, copy, command = collection_file.read_collection_file(collection.place).database, None, None
        if address is not None:
            command = format_dump_command(address, str(to or "catalogue.dump"))
        else:
            if to is None:
                collection_file.refuse_read_only(folder, "write the backup elsewhere with --out FILE")
            copy = back_up(collection.engine, collection.place, "asked", to)
        with suppress(WsabieError):  # where only FILE can be written
            collection_file.record_state(collection.place, collection_file.read_state(collection.engine))
    yield {"backup": copy, "command": command}
    if copy is None:
        print_note("the catalogue is in PostgreSQL; this makes a backup of it:")
        out.print(str(command))
    else:
        print_note(f"{copy.path}: the catalogue up to entry {copy.journal}, {copy.bytes / 1e6:,.1f} MB")


class RestoreOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection restore`."""

    backup: Path | None = argument("Its name or path (default: the one that holds most entries).", metavar="BACKUP")
    accept: bool = option("Take the catalogue that is there, or BACKUP, though it is older than it was or another one.")


@command("collection restore photos", "collection restore photos --accept")
def restore(options: RestoreOptions) -> Report:
    """Replace the catalogue by a backup, and keep the old one; for PostgreSQL, print the command."""
    folder, backup, accept = options.folder, options.backup, options.accept
    require_database()
    from wsabie.collection.folder.backups import accept_catalogue, format_load_command, read_record, restore_backup

    address = read_record(folder).database
    if address is not None and not accept:
        command = format_load_command(address, str(backup or "catalogue.dump"))
        yield {"restored": None, "command": command}
        print_note("the catalogue is in PostgreSQL; these restore it from a dump:")
        out.print(command)
        out.print(f"wsabie collection restore {quote_path(folder)} --accept")
        return
    if accept and backup is None:
        result = accept_catalogue(folder, by=options.resolve_author())
    else:
        result = restore_backup(folder, backup, by=options.resolve_author(), accept=accept)
    yield {"restored": result, "command": None}
    lost = f"; {format_count(result.lost, 'later entry is', 'later entries are')} not in it" if result.lost else ""
    print_note(f"{folder} now has the catalogue of {result.source}, up to entry {result.journal} of the history{lost}")
    if result.replaced is not None:
        print_note(f"what it replaced is kept: {result.replaced}")


def show_backup_table(title: str, backups: "list[Backup]") -> None:
    """Show a table of backups."""
    rows = []
    for backup in backups:
        entry, size = "damaged" if backup.journal is None else backup.journal, f"{backup.bytes / 1e6:,.1f} MB"
        rows.append([backup.path.name, format_time(backup.at), REASONS[backup.reason], entry, size])
    show_table(title, ["backup", "when (UTC)", "why", "up to entry", "size"], rows)
