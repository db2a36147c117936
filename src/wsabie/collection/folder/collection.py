"""A collection on disk: a folder with `.wsabie` in it, which holds the database and derived files.

    FOLDER/.wsabie/collection.json      address and last known state of the database: `collection_file`
                   catalogue.db         SQLite database, unless it is elsewhere
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
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from sqlalchemy import Engine, insert, select
from sqlalchemy.exc import SQLAlchemyError

from wsabie.collection.db import tables
from wsabie.collection.db.damage import find_damage
from wsabie.collection.db.database import (
    HEAD,
    begin_write,
    check_tables,
    connect_database,
    fetch_rows,
    open_database,
    read_version,
)
from wsabie.collection.db.errors import DAMAGED, format_address, format_step
from wsabie.collection.db.sqlite_file import Mode, get_rollback_journal, has_content
from wsabie.collection.folder.backups import back_up_daily, find_best_backup, upgrade_tables
from wsabie.collection.folder.collection_file import (
    DATABASE_FILE,
    NAME,
    PLACE,
    CollectionFile,
    DatabaseState,
    can_write,
    is_collection,
    read_collection_file,
    read_state,
    record_state,
    refuse_read_only,
    require_collection,
    share_database,
    write_collection_file,
)
from wsabie.core.errors import CollectionError, InputError, WsabieError
from wsabie.storage.atomic_files import DiskFullError, WriteError, explain_write_errors, hold_file, lock_folder

COLLECTION_ROOT = "."
"""Path of the root that is the collection's own folder."""
WEB_ROOT = "web"
"""Path of the root whose items are URLs."""
_DAMAGE_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, SQLAlchemyError)
_MODELS_LOCK = "learning.lock"
_MIN_FREE_SPACE = 2 << 20  # bytes for a new database and its log, with a reserve


def connect(folder: Path, record: CollectionFile, mode: Mode) -> tuple[Engine, ExitStack]:
    """Connect to the database of a folder; the exit stack releases all resources.

    Raises
    ------
    InputError
        The database is unreachable, damaged, emptied, older than recorded, another one, or too new.
    """
    place = folder / PLACE
    with ExitStack() as stack:
        engine = open_database(record.database or place / DATABASE_FILE, mode)
        is_sqlite = engine.dialect.name == "sqlite"
        if mode != "ro" and is_sqlite:
            refuse_read_only(folder)
            stack.enter_context(share_database(place))
        elif is_sqlite and has_content(get_rollback_journal(place / DATABASE_FILE)) and can_write(folder):
            _open_to_write(folder)  # rolls back the killed write
        stack.callback(engine.dispose)
        tables_version = read_version(engine)
        if tables_version is None and mode != "rwc":
            fact = f"the database of {folder} was emptied: {format_address(engine)} has no tables"
            raise InputError(f"{fact}; {suggest_recovery(folder)}")
        if tables_version != HEAD:
            if tables_version is not None:  # another database is not upgraded
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


def _upgrade_old_tables(folder: Path, tables_version: str) -> None:
    """Upgrade the tables of an older version before a read-only connection."""
    if not can_write(folder):
        fact = f"the tables of {folder} are of an older version ({tables_version}, here {HEAD})"
        remedy = f"let somebody who may write there run: {format_step('status', folder)}"
        raise InputError(f"{fact} and cannot be changed here; {remedy}")
    _open_to_write(folder)


def _open_to_write(folder: Path) -> None:
    _, stack = connect(folder, read_collection_file(folder / PLACE), "rw")
    stack.close()


def _refuse_other(engine: Engine, state: DatabaseState, folder: Path, record: CollectionFile) -> None:
    """Refuse another database than the recorded one, or an older state of it."""
    if record.database_id not in (None, state.database_id):
        fault = "is another database than the one that was there"
    elif state.journal < record.journal:
        fault = f"ends at entry {state.journal} of its journal, and the one that was there had {record.journal}"
    else:
        return
    accept = f"or accept it as it is: {format_step('restore', folder, accept=True)}"
    raise InputError(f"{format_address(engine)} {fault}; {suggest_recovery(folder, can_start_over=False)}, {accept}")


def suggest_recovery(folder: Path, *, can_start_over: bool = True) -> str:
    """Return a hint on how to restore a database, or to start over if there is no backup."""
    if (folder / PLACE / NAME).is_file() and read_collection_file(folder / PLACE).database is not None:
        return f"restore a dump of it, by the command that this prints: {format_step('restore', folder)}"
    backup = find_best_backup(folder / PLACE)
    if backup is None:
        start_over = f", or start over: move {folder / PLACE} away, then {format_step('init', folder)}"
        copy = f"restore a copy of your own: {format_step('restore', folder, 'FILE')}"
        return f"{copy}{start_over if can_start_over else ''}"
    return f"restore the backup of {backup.at[:16].replace('T', ' ')} UTC: {format_step('restore', folder)}"


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
        rows = fetch_rows(self.engine, select(tables.roots.c.id, tables.roots.c.path))
        return {root_id: self.folder / path for root_id, path in rows if path != WEB_ROOT}

    def close(self) -> None:
        """Close the database; a writer records the state of the database."""
        if not self.read_only:
            with suppress(WsabieError, OSError):  # the record only helps to detect later losses
                record_state(self.place, read_state(self.engine))
        self.engine.dispose()
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None and can_result_from_damage(error):
                check_database(self)
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
            fact = f"{folder} is a collection with another database"
            raise InputError(f"{fact}; leave `database` out, or choose another folder")
        return open_collection(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder that holds your pictures, or an empty one")
    if database is None:
        _refuse_lost_database(data_folder)
    elif _has_password(database):
        remedy = "put it into ~/.pgpass or PGPASSWORD and leave it out"
        raise InputError(f"a password in `database` would be written to disk; {remedy}")
    with _create_folder(folder), _create_folder(data_folder):
        collection = Collection(folder, *connect(folder, CollectionFile(1, database), "rwc"))
    try:
        with begin_write(collection.engine) as connection:
            own_root = select(tables.roots.c.id).where(tables.roots.c.path == COLLECTION_ROOT)
            if connection.execute(own_root).first() is None:
                connection.execute(insert(tables.roots).values(path=COLLECTION_ROOT))
        with lock_folder(data_folder, wait=True):
            if not is_collection(folder):  # last: this makes it a collection
                state = read_state(collection.engine)
                write_collection_file(data_folder, CollectionFile(1, database, state.database_id, state.journal))
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
    record, path = read_collection_file(folder / PLACE), folder / PLACE / DATABASE_FILE
    if record.database is None and not has_content(path):
        fault = f"is gone: {PLACE}/{DATABASE_FILE} is missing"
        if path.is_file():
            fault = f"was emptied: {path} has 0 bytes"
        raise InputError(f"the database of {folder} {fault}; {suggest_recovery(folder)}")
    return Collection(folder, *connect(folder, record, "ro" if read_only else "rw"), read_only)


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
    """Return True if an error may come from values of a wrong type in rows."""
    return isinstance(error, _DAMAGE_ERRORS) and not isinstance(error, WsabieError)


def make_rescan_error(folder: Path, reason: str, web_reason: str = "") -> InputError:
    """Return the error for files that changed since the last scan."""
    step = f"run: {format_step('scan', folder)}"
    return InputError(f"{reason}; {step}", web_message=f"{web_reason or reason}; {step}")


def make_damage_error(collection: Collection, fault: str) -> CollectionError:
    """Return the error for a database with this fault."""
    fact = f"the database of {collection.folder} is damaged ({fault})"
    return CollectionError(f"{fact}; {suggest_recovery(collection.folder)}", web_message=DAMAGED)


def refuse_no_room(folder: Path) -> None:
    """Refuse a folder that cannot hold a database, before anything is written.

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


def _refuse_lost_database(place: Path) -> None:
    """Refuse to create a database where one is lost and backups of it exist."""
    if find_best_backup(place) is not None and not has_content(place / DATABASE_FILE):
        fact = f"{place.parent} was a collection, whose {NAME} and {DATABASE_FILE} are gone"
        raise InputError(f"{fact}; {suggest_recovery(place.parent)}")


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
    with connect_database(database) as engine:
        return engine.url.password is not None or "password" in engine.url.query


def lock_models(collection: Collection) -> AbstractContextManager[None]:
    """Hold the lock of a collection's models.

    Raises
    ------
    BusyError
        Another process trains or applies a model of this collection.
    InputError
        The folder cannot be written.
    """
    refusal = f"a model of {collection.folder} is being trained or applied by somebody else; wait until that is done"
    return hold_file(collection.place / _MODELS_LOCK, refusal)
