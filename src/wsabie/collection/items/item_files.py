"""Files of items, opened only if they lie inside the folders of the collection."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from wsabie.collection.db.database import fetch_rows
from wsabie.collection.db.errors import format_step
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection
from wsabie.core.errors import InputError, NotFoundError

_SCAN_STEP = "run: `collection.scan()`"


class ItemFile(NamedTuple):
    """File of an item: path, root folder, content hash, and size and time at the scan."""

    path: Path
    folder: Path
    hash: str
    stat: tuple[int, int]


def find_item_file(collection: Collection, item: int) -> ItemFile:
    """Return the file of an item.

    Raises
    ------
    NotFoundError
        There is no such item, or it is an address.
    InputError
        The file was unreadable, or a link leads out of its folder.
    """
    c = items.c
    query = select(c.root_id, c.path, c.hash, c.size, c.mtime_ns).where(c.id == item)
    row = next(iter(fetch_rows(collection.engine, query)), None) if abs(item) < 2**63 else None
    folder = None if row is None else collection.roots().get(row.root_id)
    if row is None or folder is None:
        raise NotFoundError(f"there is no item with id {item} that has a file; `collection.status()` counts them")
    if row.hash is None:
        raise InputError(f"{row.path} cannot be read; repair it; run: {format_step('scan', collection.folder)}")
    path = folder / row.path
    if not _is_within(path, folder):
        raise _make_link_error(path, folder)
    return ItemFile(path, folder, row.hash, (row.size, row.mtime_ns))


def find_item_by_path(collection: Collection, path: str) -> int:
    """Return the id of the item with this path in its root; the first if there are several.

    Raises
    ------
    NotFoundError
        There is none.
    """
    query = select(items.c.id).where(items.c.path == path).order_by(items.c.root_id, items.c.id).limit(1)
    for (item_id,) in fetch_rows(collection.engine, query):
        return int(item_id)
    raise NotFoundError(f"there is no item {path!r}; give its path in the collection's folder, such as 2024/cat.jpg")


def open_item_file(item_file: ItemFile) -> FileIO:
    """Return the open file of an item; replacing the name by a link during the call has no effect.

    Raises
    ------
    NotFoundError
        The file is gone.
    InputError
        The file is unreadable, no longer a regular file, or was replaced by a link.
    """
    path, folder = item_file.path, item_file.folder
    try:
        stream = FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))  # a pipe would wait for a writer
    except OSError as error:
        raise _make_read_error(path, folder, error) from error
    status, real = os.fstat(stream.fileno()), os.path.realpath(path)
    try:
        inside = _is_within(real, folder) and os.path.samestat(status, os.lstat(real))  # what was opened lies there
    except FileNotFoundError as error:
        stream.close()
        raise _make_read_error(path, folder, error) from error
    except OSError:
        inside = False
    if inside and stat.S_ISREG(status.st_mode):
        return stream
    stream.close()
    if inside:
        web_message = f"{path.relative_to(folder)} is no longer a file; put it back; {_SCAN_STEP}"
        raise InputError(f"{path} is no longer a file; {_SCAN_STEP}", web_message=web_message)
    raise _make_link_error(path, folder)


@contextmanager
def hold_item_file(collection: Collection, item: int) -> Iterator[Path]:
    """Yield a path that stays valid while the file is open, for code that reads by path."""
    with open_item_file(find_item_file(collection, item)) as stream:
        yield get_stream_path(stream)


def get_stream_path(stream: FileIO) -> Path:
    """Return the path of an open file, which stays the same whatever happens to its name."""
    return Path(f"/dev/fd/{stream.fileno()}")


def _is_within(path: Path | str, folder: Path) -> bool:
    """Return True if a path lies in a folder after following all links."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _make_read_error(path: Path, folder: Path, error: OSError) -> InputError:
    message = f"unreadable file ({error.strerror})"
    refusal = NotFoundError if isinstance(error, FileNotFoundError | NotADirectoryError) else InputError
    web_message = f"{path.relative_to(folder)}: {message}; repair it; {_SCAN_STEP}"
    return refusal(f"{path}: {message}; {_SCAN_STEP}", web_message=web_message)


def _make_link_error(path: Path, folder: Path) -> InputError:
    message = f"{path.relative_to(folder)} is a link that leads out of"
    return InputError(
        f"{message} {folder}; it is not followed", web_message=f"{message} its folder; it is not followed"
    )
