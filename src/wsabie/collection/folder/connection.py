"""Connections to the catalogue of a folder, after checks of its integrity, version and identity."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from shlex import quote

from sqlalchemy import Engine

from wsabie.collection.db.database import HEAD, check_tables, open_database, read_version, upgrade_schema
from wsabie.collection.db.errors import format_address, format_restore_command
from wsabie.collection.db.sqlite_file import Mode, get_rollback_journal, has_content
from wsabie.collection.folder.backups import back_up, back_up_daily, find_best_backup
from wsabie.collection.folder.collection_file import (
    CATALOGUE,
    NAME,
    PLACE,
    CatalogueState,
    CollectionFile,
    read_collection_file,
    read_state,
    record_state,
    share_catalogue,
)
from wsabie.core.errors import InputError, WsabieError
from wsabie.storage.atomic_files import WriteError, lock_folder


def connect(folder: Path, record: CollectionFile, mode: Mode) -> tuple[Engine, ExitStack]:
    """Connect to the catalogue of a folder; the exit stack releases all resources.

    Raises
    ------
    InputError
        The catalogue is unreachable, damaged, emptied, older than recorded, another one, or too new.
    """
    place = folder / PLACE
    with ExitStack() as stack:
        engine = open_database(record.database or place / CATALOGUE, mode)
        if mode != "ro" and engine.dialect.name == "sqlite":
            refuse_read_only(folder)
            stack.enter_context(share_catalogue(place))
        elif (
            engine.dialect.name == "sqlite"
            and has_content(get_rollback_journal(place / CATALOGUE))
            and can_write(folder)
        ):
            _open_to_write(folder)  # rolls back the killed write
        stack.callback(engine.dispose)
        tables_version = read_version(engine)
        if tables_version is None and mode != "rwc":
            raise InputError(
                f"the catalogue of {folder} was emptied: {format_address(engine)} has no tables; "
                f"{suggest_recovery(folder)}"
            )
        if tables_version != HEAD:
            if tables_version is not None:  # another catalogue is not upgraded
                _refuse_other(engine, read_state(engine), folder, record)
            _upgrade_old_tables(folder, str(tables_version)) if mode == "ro" else upgrade_tables(engine, place)
        check_tables(engine)
        state = read_state(engine)
        _refuse_other(engine, state, folder, record)
        if mode == "rw":
            with suppress(WsabieError, OSError):  # an earlier writer may have been killed before recording it
                record_state(place, state)
            back_up_daily(engine, place)
        return engine, stack.pop_all()


def upgrade_tables(engine: Engine, place: Path) -> None:
    """Create the tables, or back up and upgrade those of an older version."""
    with lock_folder(place, wait=True):
        tables_version = read_version(engine)  # another process may have been first
        if tables_version not in (None, HEAD) and engine.dialect.name == "sqlite":
            back_up(engine, place, "migration")
        if tables_version != HEAD:
            upgrade_schema(engine)


def _upgrade_old_tables(folder: Path, tables_version: str) -> None:
    """Upgrade the tables of an older version before a read-only connection."""
    if not can_write(folder):
        raise InputError(
            f"the tables of {folder} are of an older version ({tables_version}, here {HEAD}) and cannot be changed "
            f"here; let somebody who may write there run: wsabie collection status {quote(str(folder))}"
        )
    _open_to_write(folder)


def _open_to_write(folder: Path) -> None:
    _, stack = connect(folder, read_collection_file(folder / PLACE), "rw")
    stack.close()


def refuse_read_only(folder: Path, instead: str = "") -> None:
    """Refuse to change a collection that this user may not write.

    Raises
    ------
    WriteError
        This user may not write; the message suggests a remedy.
    """
    if not can_write(folder):
        remedy = f"check the permissions of {folder / PLACE}"
        raise WriteError(
            f"cannot change the collection {folder}: it is read-only for you, and can only be looked at; "
            f"{f'{instead}, or {remedy}' if instead else remedy}"
        )


def _refuse_other(engine: Engine, state: CatalogueState, folder: Path, record: CollectionFile) -> None:
    """Refuse another catalogue than the recorded one, or an older state of it."""
    if record.catalogue not in (None, state.catalogue):
        fault = "is another catalogue than the one that was there"
    elif state.journal < record.journal:
        fault = f"ends at entry {state.journal} of its journal, and the one that was there had {record.journal}"
    else:
        return
    accept = f"or accept it as it is: {format_restore_command(folder)} --accept"
    raise InputError(f"{format_address(engine)} {fault}; {suggest_recovery(folder, can_start_over=False)}, {accept}")


def suggest_recovery(folder: Path, *, can_start_over: bool = True) -> str:
    """Return a hint on how to restore a catalogue, or to start over if there is no backup."""
    if (folder / PLACE / NAME).is_file() and read_collection_file(folder / PLACE).database is not None:
        return f"restore a dump of it, by the command that this prints: {format_restore_command(folder)}"
    backup = find_best_backup(folder / PLACE)
    if backup is None:
        restore_command = f"restore a copy of your own: {format_restore_command(folder)} FILE"
        init_command = f"wsabie collection init {quote(str(folder))}"
        return (
            f"{restore_command}, or begin anew: move {folder / PLACE} away, then {init_command}"
            if can_start_over
            else restore_command
        )
    return f"restore the backup of {backup.at[:16].replace('T', ' ')} UTC: {format_restore_command(folder)}"


def can_write(folder: Path) -> bool:
    """Return whether file permissions let this user write the collection's own folder and catalogue."""
    place = folder / PLACE
    return all(os.access(path, os.W_OK) for path in (place, place / CATALOGUE) if path.exists())
