"""`wsabie collection backup`."""

from contextlib import suppress
from pathlib import Path

from wsabie.cli.collection import CollectionOptions, require_database
from wsabie.cli.collection.reports import show_backups
from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import format_bytes, format_count, out, print_note, quote_path
from wsabie.core.errors import InputError, WsabieError


class BackupOptions(CollectionOptions):
    """Options of `wsabie collection backup`."""

    out: Path | None = option("Write it there (default: into DIR/.wsabie/backups).", metavar="FILE")
    listing: bool = option("Only list the backups.", flag="--list")


@command("collection backup photos", "collection backup photos --out /mnt/disk/photos.db")
def backup(options: BackupOptions) -> Report:
    """Copy the database while it may be in use.

    Of PostgreSQL, print the command that does it.
    """
    folder, to = options.folder, options.out
    require_database()
    if options.listing:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection_file import PLACE, require_collection

        backups = list_backups(require_collection(folder) / PLACE)
        yield {"backups": backups}
        if backups:
            show_backups(f"{folder}: {format_count(len(backups), 'backup')}, newest first", backups)
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
            refuse_target(to, collection_file.read_state(collection.engine).database_id)
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
        print_note(f"{copy.path}: the database up to entry {copy.journal}, {format_bytes(copy.bytes)}")
