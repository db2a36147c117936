"""Export of tags as files beside pictures: ImageFolder of Hugging Face, and XMP for photo programs.

ImageFolder is a folder of pictures with `metadata.jsonl`; labels of regions become labels of the whole picture:

    {"file_name": "2024/a.jpg", "labels": ["gull", "sea"]}

XMP stands in sidecars or inside the pictures. Existing tags that the database does not know stay; rejected ones are
removed. The ancestors of a label become the broader names of its tag.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from wsabie.collection.folder.collection import COLLECTION_ROOT, WEB_ROOT
from wsabie.collection.folder.drafts import DraftNote
from wsabie.collection.interchange.tag_record import PlacementMode, Tag, group_by_item
from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.io.file_matching import normalise_relative_path
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.io.tags.tag_writer import write_embedded
from wsabie.storage.atomic_files import DiskFullError, explain_write_errors, replace_file
from wsabie.storage.rejects import Rejects, RowError

TagPath: TypeAlias = tuple[str, ...]
TagWriter: TypeAlias = Callable[..., Path | bool | None]


class ExportNames:
    """Names of items in an export: their path in the collection's folder, or below their root's name."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def choose_name(self, tag: Tag) -> str:
        """Return a unique name for an item.

        Raises
        ------
        RowError
            Its path leads out of its root.
        """
        name = normalise_relative_path(tag.path)
        if tag.root != COLLECTION_ROOT:
            name = f"{PurePosixPath(tag.root).name or 'root'}/{name}"
        path, suffix_number = PurePosixPath(name), 1
        while name in self._used:
            suffix_number += 1
            name = str(path.with_name(f"{path.stem}-{suffix_number}{path.suffix}"))
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


def place_picture(picture: Path, target: Path, mode: PlacementMode) -> None:
    """Copy a picture with its time, or link it; missing folders are made.

    Raises
    ------
    InputError
        The target cannot be written, or no hard link can lead there.
    RowError
        The picture is unreadable, or its new path is too long.
    """
    with explain_write_errors(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if mode == "symlink":
                target.symlink_to(os.path.realpath(picture))
            elif mode == "hardlink":
                os.link(os.path.realpath(picture), target)
            else:
                shutil.copy2(picture, target)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise RowError("path that is too long", str(target)) from error
            if mode == "hardlink" and error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
                fact = f"hard links cannot lead from {target} to {picture}, such as to another disk"
                raise InputError(f"{fact}; copy the pictures") from error
            if error.filename == str(picture):
                raise RowError("unreadable file", error.strerror or "") from error
            raise


def write_image_folder(
    tags: Iterable[Tag], out: Path, folder: Path, mode: PlacementMode, rejects: Rejects
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
            with rejects.catch(group[0].path):
                picture, name = find_original(group[0], folder), names.choose_name(group[0])
                place_picture(picture, out / name, mode)
                labels = list(dict.fromkeys(tag.label for tag in group))
                stream.write(json.dumps({"file_name": name, "labels": labels}, ensure_ascii=False) + "\n")
                n, n_pictures = n + len(labels), n_pictures + 1
    return n, n_pictures


def write_xmp(
    tags: Iterable[Tag], find: Callable[[Tag], Path], write: TagWriter, rejects: Rejects, note: DraftNote | None = None
) -> tuple[int, int]:
    """Write tags beside or into the picture of each item; return the numbers of tags and of files.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    find : callable
        Returns the path of a tag's picture, which need not exist; raises `RowError` to leave it out.
    write : callable
        `write_sidecar` or `write_embedded` of `io.tags.tag_writer`.
    rejects : Rejects
    note : DraftNote or None
        Record of drafts among the user's pictures.
    """
    n = n_files = 0
    for group in group_by_item(tags):
        try:
            picture = find(group[0])
            existing = list(read_image_tags(picture).tags) if is_regular_file(picture) else []
            paths = merge_tag_paths(existing, group)
            if paths != existing or (paths and write is write_embedded):  # a sidecar may say what the picture lacks
                if note is not None:
                    note.record_folder(picture.parent)
                n_files += bool(write(picture, paths, token=note and note.token))
            n += sum(tag.state != "rejected" for tag in group)
        except DiskFullError:
            raise
        except RowError as row_error:
            rejects.add(group[0].path, row_error.reason, row_error.detail)
        except InputError as error:
            rejects.add(group[0].path, "tags that could not be written", str(error))
    return n, n_files


def merge_tag_paths(existing: Sequence[TagPath], group: Sequence[Tag]) -> list[TagPath]:
    """Return the tags of a picture as paths: its own and those of the database.

    Parameters
    ----------
    existing : sequence of tuple of str
    group : sequence of Tag
        Tags of one item.
    """
    fitting = {tag.label: _make_path(tag) for tag in group if tag.state != "rejected"}
    rejected = {tag.label for tag in group if tag.state == "rejected" and not tag.region} - fitting.keys()
    unchanged = [path for path in existing if path[-1] not in rejected and path[-1] not in fitting]
    broader_paths = {path[-1]: path for path in existing if len(path) > 1}
    return unchanged + [path if len(path) > 1 else broader_paths.get(name, path) for name, path in fitting.items()]


def _make_path(tag: Tag) -> TagPath:
    path = (*tag.parents, tag.label)
    return (tag.label,) if any("|" in name for name in path) else path  # "|" separates the names of a path
