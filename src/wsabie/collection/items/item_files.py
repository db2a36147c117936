"""Files of items, opened only if they lie inside the folders of the collection, and their thumbnails.

A thumbnail is WebP, made on the first request and stored by content.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from sqlalchemy import select

from wsabie.collection.db.database import fetch_rows
from wsabie.collection.db.errors import format_command
from wsabie.collection.db.tables import items
from wsabie.collection.folder.collection import Collection
from wsabie.collection.scan.file_inspection import InspectionTask, inspect_file, read_file_stat, rescan_error
from wsabie.core.errors import InputError, NotFoundError, UnreadableItemError, require
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.modalities import PICTURES
from wsabie.storage.atomic_files import replace_file

SIZES = (256, 1024)
"""Lengths of the longer side, in pixels."""
QUALITY = 80

_METHOD = 4  # from 0 (fast) to 6 (small files)
_SCAN_HINT = "and press Scan on the page Status"


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
        message = f"there is no item with id {item} that has a file"
        raise NotFoundError(f"{message}; `wsabie collection status` counts them", served=message)
    if row.hash is None:
        message, command = f"{row.path} cannot be read; repair it", format_command("scan", collection.folder)
        raise InputError(f"{message}, and run: {command}", served=f"{message}, {_SCAN_HINT}")
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
        served = f"{path.relative_to(folder)} is no longer a file; put it back, {_SCAN_HINT}"
        raise InputError(f"{path} is no longer a file; run: wsabie collection scan", served=served)
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
    served = f"{path.relative_to(folder)}: {message}; repair it, {_SCAN_HINT}"
    return refusal(f"{path}: {message}; run: wsabie collection scan", served=served)


def _make_link_error(path: Path, folder: Path) -> InputError:
    message = f"{path.relative_to(folder)} is a link that leads out of"
    return InputError(f"{message} {folder}; it is not followed", served=f"{message} its folder; it is not followed")


def make_thumbnail(collection: Collection, item: int, size: int = 256) -> Path:
    """Return the path of a small upright RGB picture of an item; smaller pictures keep their size.

    Parameters
    ----------
    collection : Collection
    item : int
        Item id.
    size : {256, 1024}

    Returns
    -------
    Path
        thumbnails/ab/<hash>-<size>.webp in the collection's place, where ab begins the hash. A read-only collection
        puts new thumbnails into a folder that is removed when it is closed.

    Raises
    ------
    InputError
        The item or size is unknown, or the file is missing, too large, no readable picture, or changed since the scan.
    """
    require(size in SIZES, f"thumbnails have {' or '.join(map(str, SIZES))} pixels, not {size}; choose one of these")
    item_file = find_item_file(collection, item)
    file, content = item_file.path, item_file.hash
    path = get_thumbnail_path(collection, content, size)
    if collection.read_only and not path.is_file():
        path = collection.scratch / path.relative_to(collection.place)
    if not path.is_file():
        with open_item_file(item_file) as stream:
            stream_path = get_stream_path(stream)
            is_suspect = read_file_stat(stream_path) != item_file.stat
            if is_suspect and inspect_file(InspectionTask(stream_path, PICTURES.name)).hash != content:
                names = (f"{name} changed since it was scanned" for name in (file, file.relative_to(item_file.folder)))
                raise rescan_error(collection.folder, *names)
            _write_thumbnail(stream_path, path, size, f"item {item} cannot be shown: {file}")
    return path


def get_thumbnail_path(collection: Collection, content: str, size: int) -> Path:
    """Return the path of the thumbnail of a content, which need not exist."""
    return collection.thumbnails / content[:2] / f"{content}-{size}.webp"


def _write_thumbnail(file: Path, path: Path, size: int, message: str) -> None:
    try:
        pixels = decode_image(file, size=size)
    except UnreadableItemError as error:
        detail = f" ({error.detail})" if error.detail else ""
        raise InputError(f"{message}: {error.reason}{detail}; repair or replace it") from error
    with replace_file(path) as draft:
        Image.fromarray(pixels).save(draft, "WEBP", quality=QUALITY, method=_METHOD)
