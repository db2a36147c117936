"""Small pictures of items, made when they are first asked for and kept by their content: WebP of quality 80."""

from pathlib import Path
from shlex import quote

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.files import found_file, opened_file, path_of
from wsabie.catalogue.looking import Task, look_at, stat_of
from wsabie.sources.media import PICTURES
from wsabie.storage.atomic import replacing

SIZES = (256, 1024)
"""Longer sides, in pixels."""
QUALITY = 80

_METHOD = 4  # of 0, quick, to 6, small


def thumbnail(collection: Collection, item: int, size: int = 256) -> Path:
    """A small picture of an item, upright, in RGB; a smaller picture keeps its size.

    Parameters
    ----------
    collection : Collection
    item : int
        Its number.
    size : {256, 1024}

    Returns
    -------
    Path
        thumbnails/ab/<hash>-<size>.webp in the collection's place, where ab begins the hash; of a collection that is
        open to read alone, in a folder that goes when it is closed, unless it was made before.

    Raises
    ------
    InputError
        There is no such item or size, or its file is missing, too large, cannot be read as a picture, or is another
        than when it was scanned.
    """
    if size not in SIZES:
        raise InputError(f"thumbnails have {' or '.join(map(str, SIZES))} pixels, not {size}; choose one of these")
    found = found_file(collection, item)
    file, content = found.path, found.hash
    path = place_of(collection, content, size)
    if collection.read_only and not path.is_file():
        path = collection.scratch / path.relative_to(collection.place)
    if not path.is_file():
        with opened_file(found) as stream:
            held = path_of(stream)
            if stat_of(held) != found.stat and look_at(Task(held, PICTURES.things)).hash != content:
                said = "changed since it was scanned"
                raise InputError(
                    f"{file} {said}; run: wsabie collection scan {quote(str(collection.folder))}",
                    served=f"{file.relative_to(found.folder)} {said}; press Scan on the page Status",
                )
            _make(held, path, size, f"item {item} cannot be shown: {file}")
    return path


def place_of(collection: Collection, content: str, size: int) -> Path:
    """Where the thumbnail of a content lies, whether it is there or not."""
    return collection.thumbnails / content[:2] / f"{content}-{size}.webp"


def _make(file: Path, path: Path, size: int, refused: str) -> None:
    from PIL import Image

    from wsabie.features.decode import RejectedItem, decode

    try:
        pixels = decode(file, size=size)
    except RejectedItem as bad:
        detail = f" ({bad.detail})" if bad.detail else ""
        raise InputError(f"{refused}: {bad.reason}{detail}; mend or replace it") from bad
    with replacing(path) as draft:
        Image.fromarray(pixels).save(draft, "WEBP", quality=QUALITY, method=_METHOD)
