"""Commands of a collection: backup, restore."""

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder, require_database
from wsabie.cli.command import command, options
from wsabie.cli.options import OutputOptions
from wsabie.cli.output import format_count, out, print_note, show_json, show_table

if TYPE_CHECKING:
    from wsabie.collection.folder.backups import Backup

REASONS = {
    "daily": "daily",
    "asked": "asked for",
    "migration": "before new tables",
    "replaced": "before a restore",
    "restored": "after a restore",
}


@options
class BackupOptions:
    """Options of `wsabie collection backup`."""

    folder: Folder
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there (default: into DIR/.wsabie/backups).")
    ] = None
    listing: Annotated[bool, typer.Option("--list", help="Only list the backups that there are.")] = False
    output: OutputOptions = OutputOptions()


@command("collection backup photos", "collection backup photos --out /mnt/disk/photos.db")
def backup(options: BackupOptions) -> None:
    """Copy the catalogue while it may be in use; of PostgreSQL, print the command that does it."""
    folder, to = options.folder, options.out
    require_database()
    if options.listing:
        _show_backups(folder, options.output.json)
        return
    with open_collection_folder(folder, read_only=True) as collection:
        from wsabie.collection.folder.backups import back_up, format_dump_command, refuse_target
        from wsabie.collection.folder.collection_file import read_collection_file, read_state, record_state
        from wsabie.collection.folder.connection import refuse_read_only
        from wsabie.core.errors import InputError, WsabieError
        from wsabie.storage.output_checks import check_output_paths

        if to is not None and not to.parent.is_dir():  # the disk that it names may be away
            raise InputError(f"cannot write {to}: there is no folder {to.parent}; make it, or mount its disk, first")
        check_output_paths(("backup", to), inputs=collection.roots().values())
        if to is not None:
            refuse_target(to, read_state(collection.engine).catalogue)
        address = read_collection_file(collection.place).database
        if address is None:
            if to is None:
                refuse_read_only(folder, "write the backup elsewhere with --out FILE")
            copy = back_up(collection.engine, collection.place, "asked", to)
            command = ""
        else:
            copy, command = None, format_dump_command(address, str(to or "catalogue.dump"))
        with suppress(WsabieError):  # where only FILE can be written
            record_state(collection.place, read_state(collection.engine))
    if options.output.json:
        show_json({"schema": 1, "backup": copy and copy.as_json(), "command": command or None})
    elif copy is None:
        print_note("the catalogue is in PostgreSQL; this makes a backup of it:")
        out.print(command)
    else:
        print_note(f"{copy.path}: the catalogue up to entry {copy.journal}, {copy.bytes / 1e6:,.1f} MB")


@options
class RestoreOptions:
    """Options of `wsabie collection restore`."""

    folder: Folder
    backup: Annotated[
        Path | None,
        typer.Argument(metavar="BACKUP", help="Its name or path (default: the one that holds most entries)."),
    ] = None
    accept: Annotated[
        bool,
        typer.Option(
            help="Take the catalogue that is there, or BACKUP, though it is older than it was or another one."
        ),
    ] = False
    person: PersonOptions = PersonOptions()
    output: OutputOptions = OutputOptions()


@command("collection restore photos", "collection restore photos --accept")
def restore(options: RestoreOptions) -> None:
    """Replace the catalogue by a backup, and keep the old one; for PostgreSQL, print the command."""
    folder, backup, accept = options.folder, options.backup, options.accept
    require_database()
    from wsabie.collection.folder.backups import format_load_command
    from wsabie.collection.folder.restoration import accept_catalogue, read_record, restore_backup

    address = read_record(folder).database
    if address is not None and not accept:
        command = format_load_command(address, str(backup or "catalogue.dump"))
        if options.output.json:
            show_json({"schema": 1, "restored": None, "command": command})
            return
        print_note("the catalogue is in PostgreSQL; these restore it from a dump:")
        out.print(command)
        out.print(f"wsabie collection restore {quote(str(folder))} --accept")
        return
    if accept and backup is None:
        result = accept_catalogue(folder, by=options.person.resolve())
    else:
        result = restore_backup(folder, backup, by=options.person.resolve(), accept=accept)
    if options.output.json:
        show_json({"schema": 1, "restored": result.as_json(), "command": None})
        return
    lost = (
        f"; {format_count(result.lost, 'later entry', 'later entries')} {'is' if result.lost == 1 else 'are'} not in it"
        if result.lost
        else ""
    )
    print_note(f"{folder} now has the catalogue of {result.source}, up to entry {result.journal} of the history{lost}")
    if result.replaced is not None:
        print_note(f"what it replaced is kept: {result.replaced}")


def make_backup_rows(backups: "list[Backup]") -> list[list[str]]:
    """Build the rows of a table of backups."""
    return [
        [
            backup.path.name,
            backup.at[:19].replace("T", " "),
            REASONS[backup.reason],
            "damaged" if backup.journal is None else f"{backup.journal:,}",
            f"{backup.bytes / 1e6:,.1f} MB",
        ]
        for backup in backups
    ]


BACKUP_COLUMNS = ("backup", "when (UTC)", "why", "up to entry", "size")


def _show_backups(folder: Path, json: bool) -> None:
    from wsabie.collection.folder.backups import list_backups
    from wsabie.collection.folder.collection import require_collection
    from wsabie.collection.folder.collection_file import PLACE

    backups = list_backups(require_collection(folder) / PLACE)
    if json:
        show_json({"schema": 1, "backups": [backup.as_json() for backup in backups]})
    elif backups:
        show_table(
            f"{folder}: {format_count(len(backups), 'backup')}, newest first", BACKUP_COLUMNS, make_backup_rows(backups)
        )
    else:
        print_note(f"{folder} has no backups yet; make one: wsabie collection backup {quote(str(folder))}")
