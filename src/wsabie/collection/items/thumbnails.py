"""Thumbnails of items: WebP, made on the first request and stored by content."""

from pathlib import Path

from PIL import Image

from wsabie.collection.folder.collection import Collection, make_rescan_error
from wsabie.collection.items.item_files import find_item_file, get_stream_path, open_item_file
from wsabie.collection.scan.file_inspection import InspectionTask, inspect_file, read_file_stat
from wsabie.core.errors import InputError, UnreadableItemError, require
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.modalities import PICTURES
from wsabie.storage.atomic_files import replace_file

SIZES = (256, 1024)
"""Lengths of the longer side, in pixels."""
QUALITY = 80

_METHOD = 4  # from 0 (fast) to 6 (small files)


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
                raise make_rescan_error(collection.folder, *names)
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
