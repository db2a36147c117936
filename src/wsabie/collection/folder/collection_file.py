"""The file that makes a folder a collection: address, identity and last known state of its database.

    FOLDER/.wsabie/collection.json   {"schema": 1, "database": null or an address, "database_id": ..., "journal": ...}

`journal` is the id of the last journal entry when a writing command ended or a backup was made. It only grows. A
database that ends before it is an older or a new one, and is refused until somebody accepts it.
"""

import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Engine, select

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.errors import format_step, make_damage_error
from wsabie.collection.db.journal import read_last_entry
from wsabie.core.errors import InputError, require
from wsabie.storage.atomic_files import WriteError, explain_read_errors, hold_file, lock_folder, write_text
from wsabie.storage.schema_validation import Count, parse_json

PLACE = ".wsabie"
NAME = "collection.json"
DATABASE_FILE = "catalogue.db"

_LOCK = "catalogue.lock"
_MAX_BYTES = 1 << 20
_REMEDY = 'write {"schema": 1, "database": null} into it, or the database\'s address'


@dataclass(frozen=True)
class CollectionFile:
    """Content of collection.json.

    Attributes
    ----------
    schema : int
    database : str or None
        Address of the database; None: SQLite beside this file.
    database_id : str or None
        Identity of the database; None: unknown.
    journal : int
        The database has at least this many journal entries.
    """

    schema: Literal[1]
    database: str | None
    database_id: str | None = None
    journal: Count = 0


class DatabaseState(NamedTuple):
    """Identity of a database, and the id of its last journal entry (0 before the first)."""

    database_id: str
    journal: int


def read_collection_file(place: Path) -> CollectionFile:
    """Return the content of collection.json.

    Raises
    ------
    InputError
        The file is unreadable, or a field is missing or of another type.
    """
    path = place / NAME
    with explain_read_errors(path):
        content = path.read_bytes()[: _MAX_BYTES + 1]
    return parse_json(CollectionFile, content[:_MAX_BYTES], path, _REMEDY)


def write_collection_file(place: Path, content: CollectionFile) -> None:
    """Replace collection.json."""
    write_text(place / NAME, json.dumps(asdict(content), indent=1) + "\n")


def read_state(engine: Engine) -> DatabaseState:
    """Return the identity and the last journal entry of a database.

    Raises
    ------
    InputError
        The database has no valid identity.
    """
    with begin_read(engine) as connection:
        names: list[object] = list(connection.scalars(select(tables.identity.c.database_id)))
        journal = read_last_entry(connection)
    if len(names) != 1 or not isinstance(names[0], str):
        raise make_damage_error(engine, f"identity: {len(names)} rows")
    return DatabaseState(names[0], journal)


def record_state(place: Path, state: DatabaseState) -> None:
    """Record the state of the database; an entry that another process recorded is never lowered."""
    record = read_collection_file(place)
    if record.database_id == state.database_id and record.journal >= state.journal:
        return
    with lock_folder(place, wait=True):
        record = read_collection_file(place)
        if record.database_id in (None, state.database_id):
            journal = max(record.journal, state.journal)
            write_collection_file(place, replace(record, database_id=state.database_id, journal=journal))


def share_database(place: Path) -> AbstractContextManager[None]:
    """Prevent a restore of the database while this process may write to it.

    Raises
    ------
    BusyError
        A restore is running.
    """
    refusal = f"the database of {place.parent} is being restored; try again in a moment"
    return hold_file(place / _LOCK, refusal, shared=True)


def lock_database(place: Path) -> AbstractContextManager[None]:
    """Keep all other writers away from the database.

    Raises
    ------
    BusyError
        A command, a job or a service has the collection open.
    """
    refusal = f"a command, a job or a service has {place.parent} open; stop it, then run the same command again"
    return hold_file(place / _LOCK, refusal)


def require_collection(folder: Path) -> Path:
    """Return the absolute path of a collection.

    Raises
    ------
    InputError
        There is no collection at this path.
    """
    folder = folder.resolve()
    if not is_collection(folder):
        require(folder.exists(), f"there is no folder {folder}; check its name")
        if (enclosing := find_enclosing_collection(folder)) is not None:
            fact = f"{folder} lies in the collection {enclosing} and is not a collection itself"
            raise InputError(f"{fact}; give {enclosing}")
        raise InputError(f"{folder} is not a collection yet; make it one: {format_step('init', folder)}")
    return folder


def is_collection(folder: Path) -> bool:
    """Return True if a folder is a collection; InputError if it is unreadable."""
    with explain_read_errors(folder):
        return (folder / PLACE / NAME).is_file()


def find_enclosing_collection(folder: Path) -> Path | None:
    """Return the nearest collection that contains a folder."""
    return next((parent for parent in folder.resolve().parents if is_collection(parent)), None)


def refuse_read_only(folder: Path, instead: str = "") -> None:
    """Refuse to change a collection that this user may not write.

    Raises
    ------
    WriteError
        This user may not write; the message suggests a remedy.
    """
    if not can_write(folder):
        remedy = f"check the permissions of {folder / PLACE}"
        fact = f"cannot change the collection {folder}: it is read-only for you, and can only be looked at"
        raise WriteError(f"{fact}; {f'{instead}, or {remedy}' if instead else remedy}")


def can_write(folder: Path) -> bool:
    """Return True if file permissions let this user write the collection's own folder and database."""
    place = folder / PLACE
    return all(os.access(path, os.W_OK) for path in (place, place / DATABASE_FILE) if path.exists())
