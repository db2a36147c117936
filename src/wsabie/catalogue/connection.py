"""Connections to the catalogue of a folder, after a look at it: it is whole, of this version, and the right one."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from shlex import quote

from sqlalchemy import Engine

from wsabie.base.errors import InputError, WsabieError
from wsabie.catalogue.backups import back_up, back_up_daily, best_backup
from wsabie.catalogue.collection_file import (
    CATALOGUE,
    NAME,
    PLACE,
    CatalogueState,
    CollectionFile,
    read_collection_file,
    record_state,
    share_catalogue,
    state_of,
)
from wsabie.catalogue.database import HEAD, check_tables, open_database, upgrade, version
from wsabie.catalogue.database_errors import restore_command, shown
from wsabie.catalogue.sqlite_file import Mode, has_content, journal_of
from wsabie.storage.atomic import UnwritableError, held


def connect(folder: Path, record: CollectionFile, mode: Mode) -> tuple[Engine, ExitStack]:
    """Connect to the catalogue of a folder; what must be let go of in the end is in the stack.

    Raises
    ------
    InputError
        It cannot be reached, is damaged, emptied, older than it was, another one, or of a newer version.
    """
    place = folder / PLACE
    with ExitStack() as stack:
        engine = open_database(record.database or place / CATALOGUE, mode)
        if mode != "ro" and engine.dialect.name == "sqlite":
            refuse_read_only(folder)
            stack.enter_context(share_catalogue(place))
        elif engine.dialect.name == "sqlite" and has_content(journal_of(place / CATALOGUE)) and may_write(folder):
            _open_to_write(folder)  # takes back the write that was killed
        stack.callback(engine.dispose)
        tables_version = version(engine)
        if tables_version is None and mode != "rwc":
            raise InputError(
                f"the catalogue of {folder} was emptied: {shown(engine)} has no tables; {way_back(folder)}"
            )
        if tables_version != HEAD:
            if tables_version is not None:  # another catalogue stays as it is
                _refuse_other(engine, state_of(engine), folder, record)
            _bring_up(folder, str(tables_version)) if mode == "ro" else upgrade_tables(engine, place)
        check_tables(engine)
        state = state_of(engine)
        _refuse_other(engine, state, folder, record)
        if mode == "rw":
            with suppress(WsabieError, OSError):  # who wrote before may have been killed without leaving word
                record_state(place, state)
            back_up_daily(engine, place)
        return engine, stack.pop_all()


def upgrade_tables(engine: Engine, place: Path) -> None:
    """Make the tables, or change those of an older version, of which a backup is kept."""
    with held(place, wait=True):
        tables_version = version(engine)  # another process may have been first
        if tables_version not in (None, HEAD) and engine.dialect.name == "sqlite":
            back_up(engine, place, "migration")
        if tables_version != HEAD:
            upgrade(engine)


def _bring_up(folder: Path, tables_version: str) -> None:
    """Change tables of an older version before somebody only looks."""
    if not may_write(folder):
        raise InputError(
            f"the tables of {folder} are of an older version ({tables_version}, here {HEAD}) and cannot be changed "
            f"here; let somebody who may write there run: wsabie collection status {quote(str(folder))}"
        )
    _open_to_write(folder)


def _open_to_write(folder: Path) -> None:
    _, stack = connect(folder, read_collection_file(folder / PLACE), "rw")
    stack.close()


def refuse_read_only(folder: Path, instead: str = "") -> None:
    """Refuse to change a collection whose own folder or catalogue this user may not write.

    Raises
    ------
    UnwritableError
        It is so; the sentence says what may be done instead.
    """
    if not may_write(folder):
        remedy = f"check the permissions of {folder / PLACE}"
        raise UnwritableError(
            f"cannot change the collection {folder}: it is read-only for you, and can only be looked at; "
            f"{f'{instead}, or {remedy}' if instead else remedy}"
        )


def _refuse_other(engine: Engine, state: CatalogueState, folder: Path, record: CollectionFile) -> None:
    """Refuse a catalogue that is not the one that was here, or ends before it did."""
    if record.catalogue not in (None, state.catalogue):
        fault = "is another catalogue than the one that was there"
    elif state.journal < record.journal:
        fault = f"ends at entry {state.journal} of its journal, and the one that was there had {record.journal}"
    else:
        return
    accept = f"or accept it as it is: {restore_command(folder)} --accept"
    raise InputError(f"{shown(engine)} {fault}; {way_back(folder, anew=False)}, {accept}")


def way_back(folder: Path, *, anew: bool = True) -> str:
    """Say how a catalogue is brought back, or, where there is no backup and it is of no use, how to begin anew."""
    if (folder / PLACE / NAME).is_file() and read_collection_file(folder / PLACE).database is not None:
        return f"restore a dump of it, by the command that this prints: {restore_command(folder)}"
    backup = best_backup(folder / PLACE)
    if backup is None:
        own = f"restore a copy of your own: {restore_command(folder)} FILE"
        init = f"wsabie collection init {quote(str(folder))}"
        return f"{own}, or begin anew: move {folder / PLACE} away, then {init}" if anew else own
    return f"restore the backup of {backup.at[:16].replace('T', ' ')} UTC: {restore_command(folder)}"


def may_write(folder: Path) -> bool:
    """Return whether this user may write to a collection's own folder and its catalogue, as far as its rights say."""
    place = folder / PLACE
    return all(os.access(path, os.W_OK) for path in (place, place / CATALOGUE) if path.exists())
