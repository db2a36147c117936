"""Commands of a collection: backup, restore."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsabie.faces.cli.collection.group import By, Folder, opened, person, require_database
from wsabie.faces.cli.options import Json
from wsabie.faces.cli.terminal import note, out, plural, show_json, show_table

if TYPE_CHECKING:
    from wsabie.catalogue.backups import Backup

REASONS = {
    "daily": "daily",
    "asked": "asked for",
    "migration": "before new tables",
    "replaced": "before a restore",
    "restored": "after a restore",
}


def backup(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it there (default: into DIR/.wsabie/backups).")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Only list the backups that there are.")] = False,
    json: Json = False,
) -> None:
    """Copy the catalogue while it may be in use; of PostgreSQL, print the command that does it."""
    require_database()
    if listing:
        _list(folder, json)
        return
    with opened(folder, read_only=True) as collection:
        from wsabie.base.errors import InputError, WsabieError
        from wsabie.catalogue.backups import back_up, dump_command, refuse_target
        from wsabie.catalogue.collection_file import read_collection_file, record_state, state_of
        from wsabie.catalogue.connection import refuse_read_only
        from wsabie.storage.outputs import refuse_unwritable

        if to is not None and not to.parent.is_dir():  # the disk that it names may be away
            raise InputError(f"cannot write {to}: there is no folder {to.parent}; make it, or mount its disk, first")
        refuse_unwritable(("backup", to), inputs=collection.roots().values())
        if to is not None:
            refuse_target(to, state_of(collection.engine).catalogue)
        address = read_collection_file(collection.place).database
        if address is None:
            if to is None:
                refuse_read_only(folder, "write the backup elsewhere with --out FILE")
            made = back_up(collection.engine, collection.place, "asked", to)
            command = ""
        else:
            made, command = None, dump_command(address, str(to or "catalogue.dump"))
        with suppress(WsabieError):  # where only FILE can be written
            record_state(collection.place, state_of(collection.engine))
    if json:
        show_json({"schema": 1, "backup": made and made.as_json(), "command": command or None})
    elif made is None:
        note("the catalogue is in PostgreSQL; this makes a backup of it:")
        out.print(command)
    else:
        note(f"{made.path}: the catalogue up to entry {made.journal}, {made.bytes / 1e6:,.1f} MB")


def restore(
    folder: Folder,
    backup: Annotated[
        Path | None,
        typer.Argument(metavar="BACKUP", help="Its name or path (default: the one that holds most entries)."),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Take the catalogue that is there, or BACKUP, though it is older than it was or another one.",
        ),
    ] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Replace the catalogue by a backup; what was there is kept as one more. Of PostgreSQL, print the command."""
    require_database()
    from wsabie.catalogue.backups import load_command
    from wsabie.catalogue.restoration import accept_catalogue, read_record
    from wsabie.catalogue.restoration import restore as put_back

    address = read_record(folder).database
    if address is not None and not accept:
        command = load_command(address, str(backup or "catalogue.dump"))
        if json:
            show_json({"schema": 1, "restored": None, "command": command})
            return
        note("the catalogue is in PostgreSQL; these restore it from a dump:")
        out.print(command)
        out.print(f"wsabie collection restore {quote(str(folder))} --accept")
        return
    if accept and backup is None:
        done = accept_catalogue(folder, by=person(by))
    else:
        done = put_back(folder, backup, by=person(by), accept=accept)
    if json:
        show_json({"schema": 1, "restored": done.as_json(), "command": None})
        return
    lost = (
        f"; {plural(done.lost, 'later entry', 'later entries')} {'is' if done.lost == 1 else 'are'} not in it"
        if done.lost
        else ""
    )
    note(f"{folder} now has the catalogue of {done.source}, up to entry {done.journal} of the history{lost}")
    if done.replaced is not None:
        note(f"what it replaced is kept: {done.replaced}")


def backup_rows(backups: "list[Backup]") -> list[list[str]]:
    """Rows of a table of backups."""
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


def _list(folder: Path, json: bool) -> None:
    from wsabie.catalogue.backups import list_backups
    from wsabie.catalogue.collection import require_collection
    from wsabie.catalogue.collection_file import PLACE

    backups = list_backups(require_collection(folder) / PLACE)
    if json:
        show_json({"schema": 1, "backups": [backup.as_json() for backup in backups]})
    elif backups:
        show_table(f"{folder}: {plural(len(backups), 'backup')}, newest first", BACKUP_COLUMNS, backup_rows(backups))
    else:
        note(f"{folder} has no backups yet; make one: wsabie collection backup {quote(str(folder))}")


COMMANDS: tuple[Callable[..., Any], ...] = (backup, restore)
