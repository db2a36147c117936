"""Records of temporary files, so that drafts of killed commands can be removed.

A draft is a file that is being written beside the user's pictures and gets its name when it is whole. Each command
notes the folder of its drafts in the collection.

    FOLDER/.wsabie/drafts/<token>       folder of the current draft, whose name ends in .<token>.tmp

A command holds a lock on its note. An unlocked note was left by a killed command.
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

from wsabie.storage.atomic_files import explain_write_errors, list_abandoned_drafts
from wsabie.storage.rejects import Rejects

_NOTES = "drafts"
_TOKEN = re.compile("[0-9a-f]{16}")


@dataclass
class DraftNote:
    """Record of the folder in which one command writes drafts.

    Attributes
    ----------
    token : str
        Token in the names of the drafts.
    """

    token: str
    _file: FileIO
    _folder: Path | None = None

    def record_folder(self, folder: Path) -> None:
        """Record the folder of the next drafts."""
        if folder != self._folder:
            with explain_write_errors(folder):
                self._file.truncate(0)
                os.pwrite(self._file.fileno(), os.fsencode(folder), 0)
                os.fsync(self._file.fileno())
            self._folder = folder


@contextmanager
def note_drafts(place: Path) -> Iterator[DraftNote]:
    """Keep a note in the collection until the block ends.

    Raises
    ------
    WriteError
        The folder is not writable.
    """
    token = secrets.token_hex(8)
    path = place / _NOTES / token
    with explain_write_errors(path):
        path.parent.mkdir(exist_ok=True)
        file = _lock_note(path)
    with file:
        try:
            yield DraftNote(token, file)
        finally:
            with suppress(OSError):  # a note without drafts is harmless
                path.unlink()


def list_drafts(place: Path) -> list[Path]:
    """List the drafts that killed commands left, in the folders that their notes name."""
    return [draft for _, drafts in _abandoned_notes(place) for draft in drafts]


def remove_collection_drafts(place: Path, rejects: Rejects) -> None:
    """Remove the drafts that killed commands left; failures go to `rejects`."""
    for note, drafts in _abandoned_notes(place):
        try:
            for draft in drafts:
                draft.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        except OSError as error:
            rejects.add(str(error.filename), "draft that cannot be removed", error.strerror or "")


def _lock_note(path: Path) -> FileIO:
    """Create a note and lock it, so that no other process takes it for an abandoned one."""
    while True:
        file = FileIO(path, "w")
        with suppress(OSError):  # without file locks no drafts are removed
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _abandoned_notes(place: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each unlocked note with its drafts; notes of unreachable folders stay."""
    for note in sorted((place / _NOTES).glob("*")):
        with suppress(OSError), note.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = file.read()
            if _TOKEN.fullmatch(note.name):
                yield note, list_abandoned_drafts(Path(os.fsdecode(folder)), note.name) if folder else []
