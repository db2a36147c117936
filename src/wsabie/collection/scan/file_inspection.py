"""Inspection of one file in a scan: hash of its content, header fields and embedded labels.

This runs in worker processes, so it does not touch the database.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import UnreadableItemError
from wsabie.core.input_files import format_open_error
from wsabie.features.images.image_decoder import open_image_stream, read_header
from wsabie.io.formats.media_folder import normalise_labels
from wsabie.io.modalities import DOCUMENTS, MEDIA, PICTURES, Modality
from wsabie.io.tags.image_tags import find_sidecar, read_embedded_tag_paths, read_tag_paths
from wsabie.storage.rejects import RowError

VANISHED, CHANGING = "file that went away", "file that changes while it is read"
SKIPPED = (VANISHED, CHANGING)
"""Reasons to leave a file to the next scan."""
MAX_FILE_SIZE = 8 << 30
"""Largest file that is read, in bytes."""
MAX_LABELS = 1_000
"""Largest number of labels taken from one file."""

_MAX_TRIES = 3


class FileStat(NamedTuple):
    """Size of a file in bytes and time of its last change in nanoseconds.

    Times before the year 1677 and after 2262 are clipped to the range of 64 bits.
    """

    size: int
    mtime_ns: int


class InspectionTask(NamedTuple):
    """Request to inspect one file.

    Attributes
    ----------
    path : Path
    modality : str
        Name of the modality: "pictures", "sounds" or "documents".
    reads_content : bool
        Hash the content and read the header.
    reads_tags : bool
        Read the embedded labels.
    """

    path: Path
    modality: str
    reads_content: bool = True
    reads_tags: bool = False


class FileInspection(NamedTuple):
    """Content of one file, as far as a scan needs it.

    Attributes
    ----------
    stat : FileStat or None
        None where the file could not be opened.
    hash : str or None
        BLAKE2b of the content, 16 bytes, in hex.
    width, height, capture_time
        Header fields of a readable picture.
    labels : tuple of str
        Embedded labels.
    reason, detail : str
        Why the file is unreadable; empty if it is readable.
    tag_error : str
        Why the embedded labels are unreadable; empty if they are readable.
    paths : tuple of tuple of str
        Paths of the embedded labels that have broader labels, from the broadest.
    embedded_labels : tuple of str
        Labels inside a picture whose sidecar lists its labels, if they were requested.
    is_partial : bool
        The file has more labels than these: beyond `MAX_LABELS`, or embedded ones that are unreadable.
    """

    stat: FileStat | None = None
    hash: str | None = None
    width: int | None = None
    height: int | None = None
    capture_time: str | None = None
    labels: tuple[str, ...] = ()
    reason: str = ""
    detail: str = ""
    tag_error: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    embedded_labels: tuple[str, ...] = ()
    is_partial: bool = False


def parse_modality(name: str) -> Modality:
    """Return the modality called "pictures", "sounds" or "documents"."""
    return next(modality for modality in (*MEDIA, DOCUMENTS) if modality.name == name)


def inspect_files(tasks: Sequence[InspectionTask]) -> list[FileInspection]:
    """Inspect several files in order."""
    return [inspect_file(task) for task in tasks]


def inspect_file(task: InspectionTask) -> FileInspection:
    """Inspect a file; try again while it changes during the read.

    Raises
    ------
    InputError
        Too many files are open on this machine.
    """
    for _ in range(_MAX_TRIES):
        old_stat = read_file_stat(task.path)
        if old_stat is None:
            return FileInspection(reason=VANISHED)
        inspection = _inspect_once(task, old_stat)
        if inspection.reason != CHANGING and read_file_stat(task.path) == old_stat:
            return inspection
    return FileInspection(reason=CHANGING)


def read_file_stat(path: Path) -> FileStat | None:
    """Return the size and time of a file; None if it does not exist."""
    try:
        result = os.stat(path)  # noqa: PTH116 - several times as quick over 100,000 files
    except (OSError, ValueError):
        return None
    return FileStat(result.st_size, min(max(result.st_mtime_ns, -(1 << 63)), (1 << 63) - 1))


def _inspect_once(task: InspectionTask, stat: FileStat) -> FileInspection:
    inspection = _inspect_content(task, stat) if task.reads_content else FileInspection(stat)
    if inspection.reason or not task.reads_tags:
        return inspection
    try:
        if task.modality == PICTURES.name:
            tag_paths = read_tag_paths(task.path)
        else:
            tag_paths = tuple((label,) for label in parse_modality(task.modality).read_labels(task.path))
        paths = tag_paths[:MAX_LABELS]
        labels = normalise_labels(path[-1] for path in paths)
    except RowError as error:
        return inspection._replace(tag_error=f"{error.reason}: {error.detail}" if error.detail else error.reason)
    broader_paths, is_partial = tuple(path for path in paths if len(path) > 1), len(tag_paths) > MAX_LABELS
    inspection = inspection._replace(labels=labels, paths=broader_paths, is_partial=is_partial)
    if task.modality != PICTURES.name or find_sidecar(task.path) is None:
        return inspection
    try:
        embedded_paths = read_embedded_tag_paths(task.path)
        return inspection._replace(embedded_labels=normalise_labels(path[-1] for path in embedded_paths))
    except RowError:
        return inspection._replace(is_partial=True)


def _inspect_content(task: InspectionTask, stat: FileStat) -> FileInspection:
    if stat.size > MAX_FILE_SIZE:
        size = f"{stat.size:,} bytes, at most {MAX_FILE_SIZE:,}"
        return FileInspection(stat, reason="file that is too large", detail=size)
    digest = None
    try:
        with open_image_stream(task.path) as stream:
            digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
            if stream.tell() != stat.size:
                return FileInspection(reason=CHANGING)
            header = read_header(stream) if task.modality == PICTURES.name else ()
        return FileInspection(stat, digest, *header)
    except UnreadableItemError as refusal:
        return FileInspection(stat, digest, reason=refusal.reason, detail=refusal.detail)
    except OSError as error:
        return FileInspection(stat, reason="unreadable file", detail=format_open_error(error))
