"""ImageFolder of Hugging Face's datasets: pictures, and `metadata.jsonl` with a line for each.

    {"file_name": "2024/a.jpg", "labels": ["gull", "sea"]}

Labels of regions become labels of the whole picture.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Literal

from wsabie.collection.folder.collection import COLLECTION_ROOT, WEB_ROOT
from wsabie.collection.interchange.tag_record import Tag, group_by_item
from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.parsers.array_builders import RowError
from wsabie.storage.atomic_files import explain_write_errors, replace_file
from wsabie.storage.rejects import Rejects

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
        if tag.root != COLLECTION_ROOT:
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
    if tag.root == WEB_ROOT:
        raise RowError("address, not a file")
    path = (folder if tag.root == COLLECTION_ROOT else Path(tag.root)) / normalise_relative_path(tag.path)
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


def write_image_folder(
    tags: Iterable[Tag], out: Path, *, folder: Path, mode: PlacementMode, rejects: Rejects
) -> tuple[int, int]:
    """Write pictures and their labels; return the numbers of tags and of pictures.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    out : Path
        New folder.
    folder : Path
        Folder of the collection.
    mode : {"copy", "hardlink", "symlink"}
    rejects : Rejects
        Collects pictures whose file is missing.
    """
    names, n, n_pictures = ExportNames(), 0, 0
    with replace_file(out / "metadata.jsonl") as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        for group in group_by_item(tags):
            try:
                picture, name = find_original(group[0], folder), names.give(group[0])
                place_picture(picture, out / name, mode)
            except RowError as error:
                rejects.add(group[0].path, error.reason, error.detail)
                continue
            labels = list(dict.fromkeys(tag.label for tag in group))
            stream.write(json.dumps({"file_name": name, "labels": labels}, ensure_ascii=False) + "\n")
            n, n_pictures = n + len(labels), n_pictures + 1
    return n, n_pictures
