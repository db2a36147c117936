"""File locks that end with the process that holds them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

from wsabie.storage.atomic_files import explain_write_errors


@contextmanager
def lock_file(path: Path, *, shared: bool = False) -> Iterator[bool]:
    """Lock a file until the block ends, and yield False where others hold it.

    Parameters
    ----------
    path : Path
        Is made where it is missing. Another user's, which may only be read, can be locked too.
    shared : bool
        Several may hold it at once, but nobody who wants it alone.

    Raises
    ------
    WriteError
        It cannot be made or opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with lock_file(Path(folder) / "a.lock") as first, lock_file(Path(folder) / "a.lock") as second:
    ...         (first, second)
    (True, False)
    """
    with explain_write_errors(path):
        handle = _open(path)
    try:
        yield _lock(handle, LOCK_SH if shared else LOCK_EX)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # over NFS a lock needs write access
    except PermissionError:
        return os.open(path, os.O_RDONLY)


def _lock(handle: int, kind: int) -> bool:
    try:
        flock(handle, kind | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # there are no locks on this file system
        pass
    return True
