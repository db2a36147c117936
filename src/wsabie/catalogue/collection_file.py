"""The file that makes a folder a collection: where its catalogue is, which one that is, and how far it had come.

    FOLDER/.wsabie/collection.json   {"schema": 1, "database": null or an address, "catalogue": ..., "journal": ...}

`journal` is the number of the last entry when a command that wrote was closed, or a backup made. It only grows: a
catalogue that ends before it is an older one, or a new one, and is refused until somebody accepts it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, func, inspect, select

from wsabie.base.errors import BusyError, CatalogueError
from wsabie.catalogue import tables
from wsabie.catalogue.database import reading
from wsabie.catalogue.database_errors import DAMAGED, restore_hint, shown
from wsabie.storage.atomic import held, readable, write_text
from wsabie.storage.locks import lock_file
from wsabie.storage.schema import Count, parse_json

PLACE = ".wsabie"
NAME = "collection.json"
CATALOGUE = "catalogue.db"

_LOCK = "catalogue.lock"
_LARGEST = 1 << 20
_REMEDY = 'write {"schema": 1, "database": null} into it, or the database\'s address'


@dataclass(frozen=True)
class CollectionFile:
    """Content of collection.json.

    Attributes
    ----------
    schema : int
    database : str or None
        An address; None: SQLite beside this file.
    catalogue : str or None
        Identity of the catalogue; None: not known yet.
    journal : int
        The catalogue had come at least to this entry of its journal.
    """

    schema: Literal[1]
    database: str | None
    catalogue: str | None = None
    journal: Count = 0


@dataclass(frozen=True)
class CatalogueState:
    """Identity of a catalogue, and the number of the last entry of its journal (0 before the first)."""

    catalogue: str
    journal: int


def read_collection_file(place: Path) -> CollectionFile:
    """Return what collection.json holds.

    Raises
    ------
    InputError
        It cannot be read, or a field is missing or has another type.
    """
    path = place / NAME
    with readable(path):
        content = path.read_bytes()[: _LARGEST + 1]
    return parse_json(CollectionFile, content[:_LARGEST], path, _REMEDY)


def write_collection_file(place: Path, content: CollectionFile) -> None:
    """Replace collection.json."""
    write_text(place / NAME, json.dumps(asdict(content), indent=1) + "\n")


def state_of(engine: Engine) -> CatalogueState:
    """Return which catalogue a database holds ("": its tables are older than identities), and how far it has come.

    Raises
    ------
    InputError
        It does not say which it is.
    """
    with reading(engine) as connection:
        names: list[object] = [""]
        if inspect(connection).has_table(tables.identity.name):
            names = list(connection.execute(select(tables.identity.c.catalogue)).scalars())
        journal = last_entry(connection)
    if len(names) != 1 or not isinstance(names[0], str) or not isinstance(journal, int):
        raise CatalogueError(
            f"{shown(engine)} is damaged (identity: {len(names)} rows); {restore_hint(engine)}", served=DAMAGED
        )
    return CatalogueState(names[0], journal)


def last_entry(connection: Connection) -> int:
    """Return the number of the last entry of the journal, 0 before the first."""
    return connection.execute(select(func.max(tables.journal.c.id))).scalar() or 0


def record_state(place: Path, state: CatalogueState) -> None:
    """Write down how far the catalogue has come; what others wrote down meanwhile is never lowered."""
    record = read_collection_file(place)
    if record.catalogue == state.catalogue and record.journal >= state.journal:
        return
    with held(place, wait=True):
        record = read_collection_file(place)
        if record.catalogue in (None, state.catalogue):
            journal = max(record.journal, state.journal)
            write_collection_file(place, replace(record, catalogue=state.catalogue, journal=journal))


@contextmanager
def share_catalogue(place: Path) -> Iterator[None]:
    """Keep the catalogue from being replaced while this process may write to it.

    Raises
    ------
    BusyError
        It is being replaced now.
    """
    with lock_file(place / _LOCK, shared=True) as free:
        if not free:
            raise BusyError(f"the catalogue of {place.parent} is being restored; try again in a moment")
        yield


@contextmanager
def own_catalogue(place: Path) -> Iterator[None]:
    """Keep everybody else who writes away from the catalogue.

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
