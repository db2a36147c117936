"""A collection on disk: a folder with `.wsabie` in it, which holds the catalogue and what is made from it.

    FOLDER/.wsabie/collection.json      {"schema": 1, "database": null or an address}
                   catalogue.db         SQLite, unless the database is elsewhere
                   models/              a folder for each model
                   features/            rows of items by their content, and what describes them
                   thumbnails/          small pictures by the content of large ones

Nothing else is written to the folder or to any other that belongs to the collection, unless an export asks for it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Self

from sqlalchemy import Engine, insert, select

from wsabie.base.errors import InputError, WsabieError
from wsabie.catalogue import tables
from wsabie.catalogue.database import damage, open_database, reading, sqlite_url, upgrade, writing
from wsabie.storage.atomic import DiskFullError, UnwritableError, explained, readable, write_text

PLACE = ".wsabie"
HERE = "."
"""The path of the root that is the collection's own folder."""
WEB = "web"
"""The path of the root whose items are addresses."""

_CONFIG = "collection.json"
_LARGEST = 1 << 20
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
    """

    folder: Path
    engine: Engine

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

    def roots(self) -> dict[int, Path]:
        """The folders that are scanned, by number."""
        with reading(self.engine) as connection:
            found = connection.execute(select(tables.roots.c.id, tables.roots.c.path)).all()
        return {number: self.folder if path == HERE else Path(path) for number, path in found if path != WEB}

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
    config = folder / PLACE / _CONFIG
    if is_collection(folder):
        there = open_collection(folder)
        if database is not None and _database_of(config) != database:
            raise InputError(
                f"{folder} is a collection with another database; leave --database out, or choose another folder"
            )
        return there
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder that holds your pictures, or an empty one")
    if database is not None and _has_password(database):
        raise InputError(
            "a password in --database would be written to disk; put it into ~/.pgpass or PGPASSWORD and leave it out"
        )
    with _made(folder), _made(config.parent):
        found = _connected(folder, database)
    with writing(found.engine) as connection:
        if connection.execute(select(tables.roots.c.id).where(tables.roots.c.path == HERE)).first() is None:
            connection.execute(insert(tables.roots).values(path=HERE))
    write_text(config, json.dumps({"schema": 1, "database": database}, indent=1) + "\n")  # last: it is one from now on
    return found


def open_collection(folder: Path) -> Collection:
    """Open a collection; tables of an older version are brought up to this one.

    Raises
    ------
    InputError
        There is none, its database cannot be reached, is damaged, or of a newer version.
    """
    folder = folder.resolve()
    config = folder / PLACE / _CONFIG
    if not is_collection(folder):
        if not folder.exists():
            raise InputError(f"there is no folder {folder}; check its name")
        if (above := collection_above(folder)) is not None:
            raise InputError(f"{folder} lies in the collection {above} and is none of its own; give {above}")
        raise InputError(f"{folder} is not a collection yet; make it one: wsabie collection init {quote(str(folder))}")
    database = _database_of(config)
    if database is None and not (folder / PLACE / "catalogue.db").is_file():
        raise InputError(f"the catalogue of {folder} is gone: {PLACE}/catalogue.db is missing; restore it from a copy")
    return _connected(folder, database)


def is_collection(folder: Path) -> bool:
    """Whether a folder was made a collection; InputError where that cannot be seen."""
    with readable(folder):
        return (folder / PLACE / _CONFIG).is_file()


def collection_above(folder: Path) -> Path | None:
    """The nearest collection in which a folder lies."""
    return next((above for above in folder.resolve().parents if is_collection(above)), None)


def check(collection: Collection) -> None:
    """Look through the database for damage.

    Raises
    ------
    InputError
        There is some.
    """
    found = damage(collection.engine)
    if found:
        raise InputError(
            f"the catalogue of {collection.folder} is damaged ({found[0]}); restore {PLACE}/catalogue.db from a copy"
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
    return engine.url.password is not None


def _connected(folder: Path, database: str | None) -> Collection:
    engine = open_database(database or sqlite_url(folder / PLACE / "catalogue.db"))
    upgrade(engine)
    return Collection(folder, engine)


def _database_of(config: Path) -> str | None:
    with readable(config):
        size, content = config.stat().st_size, config.read_bytes()[:_LARGEST]
    try:
        told = json.loads(content)
        if size > _LARGEST or told["schema"] != 1 or not isinstance(told["database"], str | None):
            raise ValueError
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f'{config} is damaged; write {{"schema": 1, "database": null}} into it, or the database\'s address'
        ) from error
    found: str | None = told["database"]
    return found
