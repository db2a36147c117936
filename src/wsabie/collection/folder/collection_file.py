"""The file that makes a folder a collection: address, identity and last known state of its catalogue.

    FOLDER/.wsabie/collection.json   {"schema": 1, "database": null or an address, "catalogue": ..., "journal": ...}

`journal` is the id of the last journal entry when a writing command ended or a backup was made. It only grows. A
catalogue that ends before it is an older or a new one, and is refused until somebody accepts it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, func, select

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.errors import DAMAGED, format_address, format_restore_hint
from wsabie.core.errors import BusyError, CollectionError
from wsabie.storage.atomic_files import explain_read_errors, lock_file, lock_folder, write_text
from wsabie.storage.schema_validation import Count, parse_json

PLACE = ".wsabie"
NAME = "collection.json"
CATALOGUE = "catalogue.db"

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
    catalogue : str or None
        Identity of the catalogue; None: unknown.
    journal : int
        The catalogue has at least this many journal entries.
    """

    schema: Literal[1]
    database: str | None
    catalogue: str | None = None
    journal: Count = 0


@dataclass(frozen=True)
class CatalogueState:
    """Identity of a catalogue, and the id of its last journal entry (0 before the first)."""

    catalogue: str
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


def read_state(engine: Engine) -> CatalogueState:
    """Return the identity and the last journal entry of a catalogue.

    Raises
    ------
    InputError
        The catalogue has no valid identity.
    """
    with begin_read(engine) as connection:
        names: list[object] = list(connection.execute(select(tables.identity.c.catalogue)).scalars())
        journal = read_last_entry(connection)
    if len(names) != 1 or not isinstance(names[0], str) or not isinstance(journal, int):
        raise CollectionError(
            f"{format_address(engine)} is damaged (identity: {len(names)} rows); {format_restore_hint(engine)}",
            served=DAMAGED,
        )
    return CatalogueState(names[0], journal)


def read_last_entry(connection: Connection) -> int:
    """Return the id of the last journal entry, 0 before the first."""
    return connection.execute(select(func.max(tables.journal.c.id))).scalar() or 0


def record_state(place: Path, state: CatalogueState) -> None:
    """Record the state of the catalogue; an entry that another process recorded is never lowered."""
    record = read_collection_file(place)
    if record.catalogue == state.catalogue and record.journal >= state.journal:
        return
    with lock_folder(place, wait=True):
        record = read_collection_file(place)
        if record.catalogue in (None, state.catalogue):
            journal = max(record.journal, state.journal)
            write_collection_file(place, replace(record, catalogue=state.catalogue, journal=journal))


@contextmanager
def share_catalogue(place: Path) -> Iterator[None]:
    """Prevent a restore of the catalogue while this process may write to it.

    Raises
    ------
    BusyError
        A restore is running.
    """
    with lock_file(place / _LOCK, shared=True) as free:
        if not free:
            raise BusyError(f"the catalogue of {place.parent} is being restored; try again in a moment")
        yield


@contextmanager
def lock_catalogue(place: Path) -> Iterator[None]:
    """Keep all other writers away from the catalogue.

    Raises
    ------
    BusyError
        A command, a job or a service has the collection open.
    """
    with lock_file(place / _LOCK) as free:
        if not free:
            raise BusyError(
                f"a command, a job or a service has {place.parent} open; stop it, then run the same command again"
            )
        yield
