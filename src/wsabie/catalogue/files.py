"""The file of an item, which never lies outside of the folders that belong to the collection."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from sqlalchemy import select

from wsabie.base.errors import InputError, MissingError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.tables import items

_AGAIN = "and press Scan on the page Status"


class FoundFile(NamedTuple):
    """A file, the root that it lies in, its content as it was scanned, and the size and time that it had."""

    path: Path
    folder: Path
    hash: str
    stat: tuple[int, int]


def found_file(collection: Collection, item: int) -> FoundFile:
    """The file of an item.

    Raises
    ------
    MissingError
        There is no such item, or it is an address.
    InputError
        It could not be read, or a link leads out of its folder.
    """
    c = items.c
    with reading(collection.engine) as connection:
        query = select(c.root_id, c.path, c.hash, c.size, c.modified).where(c.id == item)
        row = connection.execute(query).first() if abs(item) < 2**63 else None
    folder = None if row is None else collection.roots().get(row.root_id)
    if row is None or folder is None:
        said = f"there is no item number {item} with a file"
        raise MissingError(f"{said}; `wsabie collection status` says what there is", served=said)
    if row.hash is None:
        said = f"{row.path} cannot be read; mend it"
        raise InputError(
            f"{said}, and run: wsabie collection scan {quote(str(collection.folder))}", served=f"{said}, {_AGAIN}"
        )
    path = folder / row.path
    if not _within(path, folder):
        raise _leads_out(path, folder)
    return FoundFile(path, folder, row.hash, (row.size, row.modified))


def item_at(collection: Collection, path: str) -> int:
    """The number of the item with a path in its folder; of several the first.

    Raises
    ------
    MissingError
        There is none.
    """
    query = select(items.c.id).where(items.c.path == path).order_by(items.c.root_id, items.c.id).limit(1)
    with reading(collection.engine) as connection:
        number = connection.execute(query).scalar()
    if number is None:
        raise MissingError(f"there is no item {path!r}; give its path in the collection's folder, such as 2024/cat.jpg")
    return int(number)


def opened_file(found: FoundFile) -> FileIO:
    """The file, open. Whoever replaces its name by a link while it is opened gains nothing.

    Raises
    ------
    MissingError
        It is gone.
    InputError
        It cannot be read, is no file any more, or was replaced so.
    """
    path, folder = found.path, found.folder
    try:
        stream = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # a pipe would wait for a writer
    except OSError as error:
        raise _unreadable(path, folder, error) from error
    held, real = os.fstat(stream.fileno()), os.path.realpath(path)
    try:
        inside = _within(real, folder) and os.path.samestat(held, os.lstat(real))  # what was opened lies there
    except FileNotFoundError as error:
        stream.close()
        raise _unreadable(path, folder, error) from error
    except OSError:
        inside = False
    if inside and stat.S_ISREG(held.st_mode):
        return stream
    stream.close()
    if inside:
        said = "is no file any more"
        name = path.relative_to(folder)
        raise InputError(f"{path} {said}; run: wsabie collection scan", served=f"{name} {said}; mend it, {_AGAIN}")
    raise _leads_out(path, folder)


@contextmanager
def held_file(collection: Collection, item: int) -> Iterator[Path]:
    """A path of the file of an item while it is open, for what reads files by their paths."""
    with opened_file(found_file(collection, item)) as stream:
        yield path_of(stream)


def path_of(stream: FileIO) -> Path:
    """The path of an open file, which stays the same whatever becomes of its name."""
    return Path(f"/dev/fd/{stream.fileno()}")


def _within(path: Path | str, folder: Path) -> bool:
    """Say whether a path, with all links followed, lies in a folder; a link to itself lies where it is."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _unreadable(path: Path, folder: Path, error: OSError) -> InputError:
    said = f"unreadable file ({error.strerror})"
    refusal = MissingError if isinstance(error, FileNotFoundError | NotADirectoryError) else InputError
    served = f"{path.relative_to(folder)}: {said}; mend it, {_AGAIN}"
    return refusal(f"{path}: {said}; run: wsabie collection scan", served=served)


def _leads_out(path: Path, folder: Path) -> InputError:
    said = f"{path.relative_to(folder)} is a link that leads out of"
    return InputError(f"{said} {folder}; it is not followed", served=f"{said} its folder; it is not followed")
