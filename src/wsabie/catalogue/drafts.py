"""Drafts among the user's pictures: a note in the collection says where a command makes them, so that those of a
command that was killed can be named and removed.

    FOLDER/.wsabie/drafts/<token>       the folder of the draft under way, whose name ends in .<token>.tmp

A command holds a lock on its note. A note that nobody holds was left by a kill.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from wsabie.storage.atomic import abandoned_drafts, explained
from wsabie.storage.rejects import Rejects

_NOTES = "drafts"
_TOKEN = re.compile("[0-9a-f]{16}")


@dataclass
class DraftNote:
    """The note of one command.

    Attributes
    ----------
    token : str
        For `storage.atomic.replacing`.
    """

    token: str
    _file: FileIO
    _folder: Path | None = None

    def cover(self, folder: Path) -> None:
        """Write down that the next drafts are made in a folder."""
        if folder != self._folder:
            with explained(folder):
                self._file.truncate(0)
                os.pwrite(self._file.fileno(), os.fsencode(folder), 0)
                os.fsync(self._file.fileno())
            self._folder = folder


@contextmanager
def note_drafts(place: Path) -> Iterator[DraftNote]:
    """Keep a note in the collection's place until the block ends.

    Raises
    ------
    UnwritableError
        The place cannot be written.
    """
    token = secrets.token_hex(8)
    path = place / _NOTES / token
    with explained(path):
        path.parent.mkdir(exist_ok=True)
        file = _lock_note(path)
    with file:
        try:
            yield DraftNote(token, file)
        finally:
            with suppress(OSError):  # without drafts it says nothing
                path.unlink()


def list_drafts(place: Path) -> list[Path]:
    """List what killed commands left among pictures; only the folders that their notes name are looked into."""
    return [draft for _, drafts in _abandoned_notes(place) for draft in drafts]


def remove_drafts(place: Path, rejects: Rejects) -> None:
    """Remove the drafts that killed commands left among pictures; what cannot be removed is listed."""
    for note, drafts in _abandoned_notes(place):
        try:
            for draft in drafts:
                draft.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        except OSError as error:
            rejects.add(str(error.filename), "draft that cannot be removed", error.strerror or "")


def _lock_note(path: Path) -> FileIO:
    """Make a note with a lock on it, before which nobody took it for an abandoned one."""
    while True:
        file = FileIO(path, "w")
        with suppress(OSError):  # where there are no locks, no drafts are removed
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _abandoned_notes(place: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each note that nobody holds with its drafts; that of a folder that is away stays."""
    for note in sorted((place / _NOTES).glob("*")):
        with suppress(OSError), note.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = file.read()
            if _TOKEN.fullmatch(note.name):
                yield note, abandoned_drafts(Path(os.fsdecode(folder)), note.name) if folder else []
