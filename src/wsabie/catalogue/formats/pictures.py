"""Pictures of a collection beside the file that says what they show: copied or linked, under names of their own."""

import errno
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Literal

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular
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
        It is an address, is not there, may not be read, or its path leads elsewhere.
    """
    if tag.root == WEB:
        raise BadRow("address, not a file")
    found = (folder if tag.root == HERE else Path(tag.root)) / relative_name(tag.path)
    if not is_regular(found):
        raise BadRow("file that is not there")
    if not os.access(found, os.R_OK):
        raise BadRow("unreadable file")
    return found


def put(picture: Path, place: Path, how: How) -> None:
    """Copy a picture with its time, or link it; folders are made.

    Raises
    ------
    InputError
        The place cannot be written, or hard links do not lead there.
    BadRow
        The picture cannot be read any more, or its path is too long there.
    """
    with explained(place):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _put(picture, place, how)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise BadRow("path that is too long", str(place)) from error
            if how == "hardlink" and error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
                raise InputError(
                    f"hard links cannot lead from {place} to {picture}, such as to another disk; copy the pictures"
                ) from error
            if error.filename == str(picture):
                raise BadRow("unreadable file", error.strerror or "") from error
            raise


def _put(picture: Path, place: Path, how: How) -> None:
    if how == "symlink":
        place.symlink_to(os.path.realpath(picture))
    elif how == "hardlink":
        os.link(os.path.realpath(picture), place)
    else:
        shutil.copy2(picture, place)
