"""Pictures of an export, copied or linked under unique names."""

import errno
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Literal

from wsabie.collection.folder.collection import HERE, WEB
from wsabie.collection.interchange.formats.tag_record import Tag
from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.io.formats.media_folder import normalise_relative_path
from wsabie.io.parsers.array_builders import RowError
from wsabie.storage.atomic_files import explain_write_errors

PlacementMode = Literal["copy", "hardlink", "symlink"]


class ExportNames:
    """Names of items in an export: their path in the collection's folder, or below their root's name."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def give(self, tag: Tag) -> str:
        """Return a unique name for an item.

        Raises
        ------
        RowError
            Its path leads out of its root.
        """
        name = normalise_relative_path(tag.path)
        if tag.root != HERE:
            name = f"{PurePosixPath(tag.root).name or 'root'}/{name}"
        path, number = PurePosixPath(name), 1
        while name in self._used:
            number += 1
            name = str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
        self._used.add(name)
        return name


def find_original(tag: Tag, folder: Path) -> Path:
    """Return the file of an item in a collection of this folder.

    Raises
    ------
    RowError
        The item is an address, its file is missing or unreadable, or its path leads out of its root.
    """
    if tag.root == WEB:
        raise RowError("address, not a file")
    path = (folder if tag.root == HERE else Path(tag.root)) / normalise_relative_path(tag.path)
    if not is_regular_file(path):
        raise RowError("file that is not there")
    if not os.access(path, os.R_OK):
        raise RowError("unreadable file")
    return path


def place_picture(picture: Path, place: Path, mode: PlacementMode) -> None:
    """Copy a picture with its time, or link it; missing folders are made.

    Raises
    ------
    InputError
        The place cannot be written, or no hard link can lead there.
    RowError
        The picture is unreadable, or its new path is too long.
    """
    with explain_write_errors(place):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _copy_or_link(picture, place, mode)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise RowError("path that is too long", str(place)) from error
            if mode == "hardlink" and error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
                raise InputError(
                    f"hard links cannot lead from {place} to {picture}, such as to another disk; copy the pictures"
                ) from error
            if error.filename == str(picture):
                raise RowError("unreadable file", error.strerror or "") from error
            raise


def _copy_or_link(picture: Path, place: Path, mode: PlacementMode) -> None:
    if mode == "symlink":
        place.symlink_to(os.path.realpath(picture))
    elif mode == "hardlink":
        os.link(os.path.realpath(picture), place)
    else:
        shutil.copy2(picture, place)
