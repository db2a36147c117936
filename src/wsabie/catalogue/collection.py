"""A collection on disk: a folder with `.wsabie` in it, which holds the catalogue and what is made from it.

    FOLDER/.wsabie/collection.json      where the catalogue is, and how far it had come: `collection_file`
                   catalogue.db         SQLite, unless the database is elsewhere
                   catalogue.lock       held by all who may write to it
                   backups/             copies of it: `backups`
                   models/              a folder for each model
                   features/            rows of items by their content, and what describes them
                   thumbnails/          small pictures by the content of large ones

Nothing else is written to the folder or to any other that belongs to the collection, unless an export asks for it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Self

from sqlalchemy import Engine, insert, select
from sqlalchemy.exc import SQLAlchemyError

from wsabie.base.errors import CatalogueError, InputError, WsabieError
from wsabie.catalogue import tables
from wsabie.catalogue.backups import best_backup
from wsabie.catalogue.collection_file import (
    CATALOGUE,
    NAME,
    PLACE,
    CollectionFile,
    read_collection_file,
    record_state,
    state_of,
    write_collection_file,
)
from wsabie.catalogue.connection import connect, way_back
from wsabie.catalogue.damage import find_damage
from wsabie.catalogue.database import open_database, reading, writing
from wsabie.catalogue.database_errors import DAMAGED
from wsabie.catalogue.sqlite_file import has_content
from wsabie.storage.atomic import DiskFullError, UnwritableError, explained, held, readable

HERE = "."
"""The path of the root that is the collection's own folder."""
WEB = "web"
"""The path of the root whose items are addresses."""

_FROM_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, SQLAlchemyError)
_ROOM = 2 << 20  # bytes that a new catalogue and its log need, and more


@dataclass(frozen=True)
class Collection:
    """An open collection.

    Attributes
    ----------
    folder : Path
        Absolute.
    engine : Engine
        Of its database.
    read_only : bool
    """

    folder: Path
    engine: Engine
    _held: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)
    read_only: bool = False

    @property
    def place(self) -> Path:
        """Where its own files are."""
        return self.folder / PLACE

    @property
    def models(self) -> Path:
        """Where its models are."""
        return self.place / "models"

    @property
    def features(self) -> Path:
        """Where rows of items are kept."""
        return self.place / "features"

    @property
    def thumbnails(self) -> Path:
        """Where small pictures are kept."""
        return self.place / "thumbnails"

    @cached_property
    def scratch(self) -> Path:
        """A folder for what is made from it where its own may not be written; it goes when the collection is closed."""
        return Path(self._held.enter_context(TemporaryDirectory(prefix="wsabie-")))

    def roots(self) -> dict[int, Path]:
        """The folders that are scanned, by number."""
        with reading(self.engine) as connection:
            found = connection.execute(select(tables.roots.c.id, tables.roots.c.path)).all()
        return {number: self.folder if path == HERE else Path(path) for number, path in found if path != WEB}

    def close(self) -> None:
        """Let go of the database; who could write leaves word of how far the catalogue has come."""
        if not self.read_only:
            with suppress(WsabieError, OSError):  # it only serves to notice what is lost later
                record_state(self.place, state_of(self.engine))
        self.engine.dispose()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                refuse_damage(self, error)
        finally:
            self.close()


def create(folder: Path, database: str | None = None) -> Collection:
    """Make a collection of a folder; one that is there already is opened.

    Parameters
    ----------
    folder : Path
        Is made if it is missing.
    database : str or None
        An address such as postgresql://user@host/name; None: SQLite in the folder.

    Raises
    ------
    InputError
        The folder cannot be written, the address is wrong or holds a password, or another collection is there.
    """
    folder = folder.resolve()
    place = folder / PLACE
    if is_collection(folder):
        if database is not None and read_collection_file(place).database != database:
            raise InputError(
                f"{folder} is a collection with another database; leave --database out, or choose another folder"
            )
        return open_collection(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder that holds your pictures, or an empty one")
    if database is None:
        _refuse_lost_catalogue(place)
    elif _has_password(database):
        raise InputError(
            "a password in --database would be written to disk; put it into ~/.pgpass or PGPASSWORD and leave it out"
        )
    with _made(folder), _made(place):
        found = Collection(folder, *connect(folder, CollectionFile(1, database), "rwc"))
    try:
        with writing(found.engine) as connection:
            if connection.execute(select(tables.roots.c.id).where(tables.roots.c.path == HERE)).first() is None:
                connection.execute(insert(tables.roots).values(path=HERE))
        with held(place, wait=True):
            if not is_collection(folder):  # last: it is one from now on
                state = state_of(found.engine)
                write_collection_file(place, CollectionFile(1, database, state.catalogue, state.journal))
    except BaseException:
        found.close()
        raise
    return found


def open_collection(folder: Path, *, read_only: bool = False) -> Collection:
    """Open a collection; tables of an older version are brought up to this one.

    Parameters
    ----------
    folder : Path
    read_only : bool
        Nothing is written, and nobody who writes is hindered; only tables of an older version are brought up first,
        where that is allowed.

    Raises
    ------
    InputError
        There is none, its database cannot be reached, is damaged, emptied, older than it was or of a newer version.
    """
    folder = require_collection(folder)
    record, catalogue = read_collection_file(folder / PLACE), folder / PLACE / CATALOGUE
    if record.database is None and not catalogue.is_file():
        raise InputError(f"the catalogue of {folder} is gone: {PLACE}/{CATALOGUE} is missing; {way_back(folder)}")
    if record.database is None and not catalogue.stat().st_size:
        raise InputError(f"the catalogue of {folder} was emptied: {catalogue} has 0 bytes; {way_back(folder)}")
    return Collection(folder, *connect(folder, record, "ro" if read_only else "rw"), read_only)


def require_collection(folder: Path) -> Path:
    """Return the absolute path of a collection.

    Raises
    ------
    InputError
        There is none at this path.
    """
    folder = folder.resolve()
    if not is_collection(folder):
        if not folder.exists():
            raise InputError(f"there is no folder {folder}; check its name")
        if (above := collection_above(folder)) is not None:
            raise InputError(f"{folder} lies in the collection {above} and is none of its own; give {above}")
        raise InputError(f"{folder} is not a collection yet; make it one: wsabie collection init {quote(str(folder))}")
    return folder


def is_collection(folder: Path) -> bool:
    """Whether a folder was made a collection; InputError where that cannot be seen."""
    with readable(folder):
        return (folder / PLACE / NAME).is_file()


def collection_above(folder: Path) -> Path | None:
    """The nearest collection in which a folder lies."""
    return next((above for above in folder.resolve().parents if is_collection(above)), None)


def check(collection: Collection) -> None:
    """Look through the database for damage.

    Raises
    ------
    InputError
        There is some; the sentence names the first place.
    """
    if found := find_damage(collection.engine):
        raise damage_error(collection, found[0])


def can_come_from_damage(error: BaseException) -> bool:
    """Return whether values of a wrong kind in rows may cause an error."""
    return isinstance(error, _FROM_DAMAGE) and not isinstance(error, WsabieError)


def refuse_damage(collection: Collection, error: BaseException) -> None:
    """Look for damage behind an error that values of a wrong kind cause in code that expects those of sound rows.

    Raises
    ------
    InputError
        There is some, so that the error is no fault of the program.
    """
    if can_come_from_damage(error):
        try:
            check(collection)
        except InputError as damage:
            raise damage from error


def damage_error(collection: Collection, fault: str) -> CatalogueError:
    """Return the refusal of a catalogue in which this fault was found."""
    return CatalogueError(
        f"the catalogue of {collection.folder} is damaged ({fault}); {way_back(collection.folder)}",
        served=DAMAGED,
    )


def refuse_no_room(folder: Path) -> None:
    """Refuse a folder in which no catalogue can be made, before anything is written.

    Raises
    ------
    InputError
        It cannot be written, or the disk is full.
    """
    place = folder / PLACE
    if folder.is_dir() and not os.access(place if place.exists() else folder, os.W_OK | os.X_OK):
        raise UnwritableError(f"cannot write {place}: you may not write there; check its permissions")
    if shutil.disk_usage(folder).free < _ROOM:
        raise DiskFullError(f"cannot write {place}: the disk is full; free some space and run the same command again")


def _refuse_lost_catalogue(place: Path) -> None:
    """Refuse to make a catalogue anew where the one that was there is gone and backups of it are left."""
    if best_backup(place) is not None and not has_content(place / CATALOGUE):
        raise InputError(
            f"{place.parent} was a collection, whose {NAME} and {CATALOGUE} are gone; {way_back(place.parent)}"
        )


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder that is there from now on, but not where what it was made for fails and leaves nothing in it."""
    new = not folder.exists()
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except WsabieError:
        if new:
            with suppress(OSError):  # there is something in it
                folder.rmdir()
        raise


def _has_password(database: str) -> bool:
    engine = open_database(database)
    engine.dispose()
    return engine.url.password is not None or "password" in engine.url.query
