"""What a scan learns from a file itself: a hash of its content, what its header says, the labels inside it.

This runs in worker processes, so it knows nothing of the database.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import IO, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import fault_text
from wsabie.features.decode import RejectedItem, header, opened
from wsabie.sources.build import BadRow
from wsabie.sources.folders import clean_labels
from wsabie.sources.media import DOCUMENTS, MEDIA, PICTURES, Medium
from wsabie.sources.picture_tags import paths_in, paths_inside, sidecar_of

GONE, CHANGING = "file that went away", "file that changes while it is read"
SKIPPED = (GONE, CHANGING)
"""Reasons for which a file is left to the next scan."""
LARGEST = 8 << 30
"""Bytes of a file, at most."""
MOST_LABELS = 1_000
"""Labels of one file, at most."""

_PIECE = 1 << 20
_TRIES = 3


class Stat(NamedTuple):
    """Size in bytes and time of the last change in nanoseconds, which say whether a file may be another.

    Times before the year 1677 and after 2262 are the nearest that 64 bits can hold.
    """

    size: int
    modified: int


class Task(NamedTuple):
    """A file to look at.

    Attributes
    ----------
    path : Path
    things : str
        Of which medium.
    whole : bool
        Whether its content is hashed and its header read.
    inside : bool
        Whether the labels inside it are wanted.
    known : bool
        Whether it had some before, of which some may be gone.
    """

    path: Path
    things: str
    whole: bool = True
    inside: bool = False
    known: bool = False


class Looked(NamedTuple):
    """What was found.

    Attributes
    ----------
    stat : Stat or None
        None where the file could not be opened.
    hash : str or None
        BLAKE2b of the content, 16 bytes, in hex.
    width, height, taken
        Of a picture that can be read.
    labels : tuple of str
        Those inside.
    reason, detail : str
        Why it cannot be read; empty: it can.
    unlabelled : str
        Why labels inside could not be read.
    paths : tuple of tuple of str
        Those of the labels inside that have broader ones, with these, from the broadest.
    underneath : tuple of str
        Labels inside a picture whose sidecar says its labels, where they were asked for.
    partly : bool
        Whether the file says more than these: labels beyond what is taken, or those underneath that cannot be read.
    """

    stat: Stat | None = None
    hash: str | None = None
    width: int | None = None
    height: int | None = None
    taken: str | None = None
    labels: tuple[str, ...] = ()
    reason: str = ""
    detail: str = ""
    unlabelled: str = ""
    paths: tuple[tuple[str, ...], ...] = ()
    underneath: tuple[str, ...] = ()
    partly: bool = False


def medium_called(things: str) -> Medium:
    """The medium of pictures, sounds or documents."""
    return next(one for one in (*MEDIA, DOCUMENTS) if one.things == things)


def look_at_all(tasks: Sequence[Task]) -> list[Looked]:
    """What is found in each file."""
    return [look_at(task) for task in tasks]


def look_at(task: Task) -> Looked:
    """Look at a file until it holds still while it is read.

    Raises
    ------
    InputError
        The machine, and not the file, is at fault: too many files are open.
    """
    for _ in range(_TRIES):
        before = stat_of(task.path)
        if before is None:
            return Looked(reason=GONE)
        found = _look_once(task, before)
        if found.reason != CHANGING and stat_of(task.path) == before:
            return found
    return Looked(reason=CHANGING)


def rescan_error(folder: Path, reason: str) -> InputError:
    """Return the refusal of work on files that are not what the last scan saw."""
    return InputError(
        f"{reason}; run: wsabie collection scan {quote(str(folder))}", served=f"{reason}; press Scan on the page Status"
    )


def stat_of(path: Path) -> Stat | None:
    """Size and time of a file; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - several times as quick over 100,000 files
    except (OSError, ValueError):
        return None
    return Stat(found.st_size, min(max(found.st_mtime_ns, -(1 << 63)), (1 << 63) - 1))


def _look_once(task: Task, stat: Stat) -> Looked:
    found = _content(task, stat) if task.whole else Looked(stat)
    if found.reason or not task.inside:
        return found
    try:
        if task.things == PICTURES.things:
            told = paths_in(task.path)
        else:
            told = tuple((label,) for label in medium_called(task.things).labels_in(task.path))
        paths = told[:MOST_LABELS]
        labels = clean_labels(path[-1] for path in paths)
    except BadRow as bad:
        return found._replace(unlabelled=f"{bad.reason}: {bad.detail}" if bad.detail else bad.reason)
    found = found._replace(labels=labels, paths=tuple(path for path in paths if len(path) > 1))
    return _with_underneath(task, found, partly=len(told) > MOST_LABELS)


def _with_underneath(task: Task, found: Looked, partly: bool) -> Looked:
    if not task.known or task.things != PICTURES.things or sidecar_of(task.path) is None:
        return found._replace(partly=partly)
    try:
        return found._replace(underneath=clean_labels(path[-1] for path in paths_inside(task.path)), partly=partly)
    except BadRow:
        return found._replace(partly=True)


def _content(task: Task, stat: Stat) -> Looked:
    if stat.size > LARGEST:
        return Looked(stat, reason="file that is too large", detail=f"{stat.size:,} bytes, at most {LARGEST:,}")
    try:
        stream = opened(task.path)
    except RejectedItem as bad:
        return Looked(stat, reason=bad.reason, detail=bad.detail)
    with stream:
        try:
            content = _hash(stream, stat.size)
        except OSError as error:
            return Looked(stat, reason="unreadable file", detail=fault_text(error))
        if content is None:
            return Looked(reason=CHANGING)
        if task.things != PICTURES.things:
            return Looked(stat, content)
        try:
            return Looked(stat, content, *header(stream))
        except RejectedItem as bad:
            return Looked(stat, content, reason=bad.reason, detail=bad.detail)


def _hash(stream: IO[bytes], size: int) -> str | None:
    """Of so many bytes; None where there are more or fewer."""
    digest, left = hashlib.blake2b(digest_size=16), size
    while piece := stream.read(min(_PIECE, left + 1)):
        left -= len(piece)
        if left < 0:
            return None
        digest.update(piece)
    return digest.hexdigest() if left == 0 else None
