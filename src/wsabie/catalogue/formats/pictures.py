"""Pictures of a collection beside the file that says what they show: copied or linked, under names of their own."""

import errno
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Literal

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import HERE, WEB
from wsabie.catalogue.formats.record import Tag
from wsabie.sources.build import BadRow
from wsabie.sources.folders import relative_name
from wsabie.storage.atomic import explained

How = Literal["copy", "hardlink", "symlink"]


class Names:
    """What items are called in an export: as within the collection's own folder; others lie below their root's name."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def give(self, tag: Tag) -> str:
        """The name of an item, which no other has.

        Raises
        ------
        BadRow
            Its path leads elsewhere.
        """
        name = relative_name(tag.path)
        if tag.root != HERE:
            name = f"{PurePosixPath(tag.root).name or 'root'}/{name}"
        path, number = PurePosixPath(name), 1
        while name in self._used:
            number += 1
            name = str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
        self._used.add(name)
        return name


def original(tag: Tag, folder: Path) -> Path:
    """The file of an item in a collection of this folder.

    Raises
    ------
    BadRow
        It is an address, is not there, or its path leads elsewhere.
    """
    if tag.root == WEB:
        raise BadRow("address, not a file")
    found = (folder if tag.root == HERE else Path(tag.root)) / relative_name(tag.path)
    if not found.is_file():
        raise BadRow("file that is not there")
    return found


def put(picture: Path, place: Path, how: How) -> None:
    """Copy a picture with its time, or link it; folders are made.

    Raises
    ------
    InputError
        It cannot be read, the place cannot be written, or hard links do not lead there.
    """
    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        if how == "symlink":
            place.symlink_to(picture.resolve())
        elif how == "hardlink":
            try:
                os.link(picture.resolve(), place)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
                    raise
                raise InputError(
                    f"hard links cannot lead from {place} to {picture}, such as to another disk; copy the pictures"
                ) from error
        else:
            shutil.copy2(picture, place)
