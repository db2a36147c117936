"""A collection on disk: a folder with `.wsabie` in it, which holds the catalogue and derived files.

    FOLDER/.wsabie/collection.json      address and last known state of the catalogue: `collection_file`
                   catalogue.db         SQLite catalogue, unless the database is elsewhere
                   catalogue.lock       held by all processes that may write to it
                   backups/             copies of it: `backups`
                   models/              a folder for each model
                   features/            features of items by content hash, and their extractor
                   thumbnails/          small pictures by content hash

Nothing else is written to the folders of a collection, except by an export.
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

from wsabie.collection.db import tables
from wsabie.collection.db.damage import find_damage
from wsabie.collection.db.database import begin_read, begin_write, open_database
from wsabie.collection.db.errors import DAMAGED
from wsabie.collection.db.sqlite_file import has_content
from wsabie.collection.folder.backups import find_best_backup
from wsabie.collection.folder.collection_file import (
    CATALOGUE,
    NAME,
    PLACE,
    CollectionFile,
    read_collection_file,
    read_state,
    record_state,
    write_collection_file,
)
from wsabie.collection.folder.connection import connect, suggest_recovery
from wsabie.core.errors import BusyError, CollectionError, InputError, WsabieError
from wsabie.storage.atomic_files import (
    DiskFullError,
    WriteError,
    explain_read_errors,
    explain_write_errors,
    lock_file,
    lock_folder,
)

COLLECTION_ROOT = "."
"""Path of the root that is the collection's own folder."""
WEB_ROOT = "web"
"""Path of the root whose items are URLs."""

_DAMAGE_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, SQLAlchemyError)
_MODELS_LOCK = "learning.lock"
_MIN_FREE_SPACE = 2 << 20  # bytes for a new catalogue and its log, with a reserve


@dataclass(frozen=True)
class Collection:
    """Open collection.

    Attributes
    ----------
    folder : Path
        Absolute path.
    engine : Engine
        Engine of its database.
    read_only : bool
    """

    folder: Path
    engine: Engine
    _resources: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)
    read_only: bool = False

    @property
    def place(self) -> Path:
        """Folder `.wsabie`, which holds the collection's own files."""
        return self.folder / PLACE

    @property
    def models(self) -> Path:
        """Folder of the models."""
        return self.place / "models"

    @property
    def features(self) -> Path:
        """Folder of the item features."""
        return self.place / "features"

    @property
    def thumbnails(self) -> Path:
        """Folder of the thumbnails."""
        return self.place / "thumbnails"

    @cached_property
    def scratch(self) -> Path:
        """Temporary folder for derived files of a read-only collection, removed when it is closed."""
        return Path(self._resources.enter_context(TemporaryDirectory(prefix="wsabie-")))

    def roots(self) -> dict[int, Path]:
        """Return the scanned folders by id."""
        with begin_read(self.engine) as connection:
            rows = connection.execute(select(tables.roots.c.id, tables.roots.c.path)).all()
        return {
            number: self.folder if path == COLLECTION_ROOT else Path(path) for number, path in rows if path != WEB_ROOT
        }

    def close(self) -> None:
        """Close the database; a writer records the state of the catalogue."""
        if not self.read_only:
            with suppress(WsabieError, OSError):  # the record only helps to detect later losses
                record_state(self.place, read_state(self.engine))
        self.engine.dispose()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                refuse_damage(self, error)
        finally:
            self.close()


def create_collection(folder: Path, database: str | None = None) -> Collection:
    """Make a collection of a folder; an existing collection is opened.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    database : str or None
        Address such as postgresql://user@host/name; None: SQLite in the folder.

    Raises
    ------
    InputError
        The folder cannot be written, the address is wrong or holds a password, or another collection is there.
    """
    folder = folder.resolve()
    data_folder = folder / PLACE
    if is_collection(folder):
        if database is not None and read_collection_file(data_folder).database != database:
            raise InputError(
                f"{folder} is a collection with another database; leave --database out, or choose another folder"
            )
        return open_collection(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder that holds your pictures, or an empty one")
    if database is None:
        _refuse_lost_catalogue(data_folder)
    elif _has_password(database):
        raise InputError(
            "a password in --database would be written to disk; put it into ~/.pgpass or PGPASSWORD and leave it out"
        )
    with _create_folder(folder), _create_folder(data_folder):
        collection = Collection(folder, *connect(folder, CollectionFile(1, database), "rwc"))
    try:
        with begin_write(collection.engine) as connection:
            if (
                connection.execute(select(tables.roots.c.id).where(tables.roots.c.path == COLLECTION_ROOT)).first()
                is None
            ):
                connection.execute(insert(tables.roots).values(path=COLLECTION_ROOT))
        with lock_folder(data_folder, wait=True):
            if not is_collection(folder):  # last: this makes it a collection
                state = read_state(collection.engine)
                write_collection_file(data_folder, CollectionFile(1, database, state.catalogue, state.journal))
    except BaseException:
        collection.close()
        raise
    return collection


def open_collection(folder: Path, *, read_only: bool = False) -> Collection:
    """Open a collection; tables of an older version are upgraded.

    Parameters
    ----------
    folder : Path
    read_only : bool
        Write nothing and block no writer; only tables of an older version are upgraded first, if permitted.

    Raises
    ------
    InputError
        There is no collection, or its database is unreachable, damaged, emptied, older than recorded or too new.
    """
    folder = require_collection(folder)
    record, catalogue = read_collection_file(folder / PLACE), folder / PLACE / CATALOGUE
    if record.database is None and not catalogue.is_file():
        raise InputError(
            f"the catalogue of {folder} is gone: {PLACE}/{CATALOGUE} is missing; {suggest_recovery(folder)}"
        )
    if record.database is None and not catalogue.stat().st_size:
        raise InputError(f"the catalogue of {folder} was emptied: {catalogue} has 0 bytes; {suggest_recovery(folder)}")
    return Collection(folder, *connect(folder, record, "ro" if read_only else "rw"), read_only)


def require_collection(folder: Path) -> Path:
    """Return the absolute path of a collection.

    Raises
    ------
    InputError
        There is no collection at this path.
    """
    folder = folder.resolve()
    if not is_collection(folder):
        if not folder.exists():
            raise InputError(f"there is no folder {folder}; check its name")
        if (enclosing := find_enclosing_collection(folder)) is not None:
            raise InputError(f"{folder} lies in the collection {enclosing} and is none of its own; give {enclosing}")
        raise InputError(f"{folder} is not a collection yet; make it one: wsabie collection init {quote(str(folder))}")
    return folder


def is_collection(folder: Path) -> bool:
    """Return whether a folder is a collection; InputError if it is unreadable."""
    with explain_read_errors(folder):
        return (folder / PLACE / NAME).is_file()


def find_enclosing_collection(folder: Path) -> Path | None:
    """Return the nearest collection that contains a folder."""
    return next((parent for parent in folder.resolve().parents if is_collection(parent)), None)


def check_database(collection: Collection) -> None:
    """Search the database for damage.

    Raises
    ------
    InputError
        The database is damaged; the message names the first place.
    """
    if faults := find_damage(collection.engine):
        raise make_damage_error(collection, faults[0])


def can_result_from_damage(error: BaseException) -> bool:
    """Return whether an error may come from values of a wrong type in rows."""
    return isinstance(error, _DAMAGE_ERRORS) and not isinstance(error, WsabieError)


def refuse_damage(collection: Collection, error: BaseException) -> None:
    """Search for damage that explains an error from values of a wrong type in rows.

    Raises
    ------
    InputError
        The database is damaged, which explains the error.
    """
    if can_result_from_damage(error):
        try:
            check_database(collection)
        except InputError as damage:
            raise damage from error


def make_damage_error(collection: Collection, fault: str) -> CollectionError:
    """Return the error for a catalogue with this fault."""
    return CollectionError(
        f"the catalogue of {collection.folder} is damaged ({fault}); {suggest_recovery(collection.folder)}",
        served=DAMAGED,
    )


def refuse_no_room(folder: Path) -> None:
    """Refuse a folder that cannot hold a catalogue, before anything is written.

    Raises
    ------
    InputError
        The folder is not writable, or the disk is full.
    """
    place = folder / PLACE
    if folder.is_dir() and not os.access(place if place.exists() else folder, os.W_OK | os.X_OK):
        raise WriteError(f"cannot write {place}: you may not write there; check its permissions")
    if shutil.disk_usage(folder).free < _MIN_FREE_SPACE:
        raise DiskFullError(f"cannot write {place}: the disk is full; free some space and run the same command again")


def _refuse_lost_catalogue(place: Path) -> None:
    """Refuse to create a catalogue where one is lost and backups of it exist."""
    if find_best_backup(place) is not None and not has_content(place / CATALOGUE):
        raise InputError(
            f"{place.parent} was a collection, whose {NAME} and {CATALOGUE} are gone; {suggest_recovery(place.parent)}"
        )


@contextmanager
def _create_folder(folder: Path) -> Iterator[None]:
    """Create a folder; remove it again if the block fails and leaves it empty."""
    is_new = not folder.exists()
    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except WsabieError:
        if is_new:
            with suppress(OSError):  # the folder is not empty
                folder.rmdir()
        raise


def _has_password(database: str) -> bool:
    engine = open_database(database)
    engine.dispose()
    return engine.url.password is not None or "password" in engine.url.query


@contextmanager
def lock_models(collection: Collection) -> Iterator[None]:
    """Hold the lock of a collection's models.

    Raises
    ------
    BusyError
        Another process trains or applies a model of this collection.
    InputError
        The folder cannot be written.
    """
    with lock_file(collection.place / _MODELS_LOCK) as free:
        if not free:
            raise BusyError(
                f"a model of {collection.folder} is being trained or applied by somebody else; wait until that is done"
            )
        yield
