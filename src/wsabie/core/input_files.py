"""Safe opening of input files: a pipe or a device could block a reader, or feed it for ever."""

import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path

from wsabie.core.errors import require

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_input(path: str | Path, *, pipe: bool = False) -> BufferedReader:
    """Open a file to read its bytes.

    Parameters
    ----------
    path : str or Path
    pipe : bool
        A pipe is read too, because the user has named it and it is read once; without a writer it waits.

    Raises
    ------
    InputError
        A pipe, a device, or a socket.
    OSError
        Missing, a folder, or forbidden.
    """
    if pipe and stat.S_ISFIFO(_read_mode(path)):  # such as /dev/fd/63 of a process substitution
        return Path(path).open("rb")
    handle = os.open(path, _FLAGS)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", str(path))
        require(stat.S_ISREG(mode), f"{path} is a pipe or a device and no regular file; save its content to a file")
        return BufferedReader(FileIO(handle))
    except BaseException:
        os.close(handle)
        raise


def read_input(path: str | Path) -> bytes:
    """Return the bytes of a regular file; errors are those of `open_input`."""
    with open_input(path) as stream:
        return stream.read()


def is_regular_file(path: str | Path) -> bool:
    """Return True if a path leads to a regular file; False if it may not be inspected."""
    return stat.S_ISREG(_read_mode(path))


def read_stamp(path: Path) -> tuple[int, ...]:
    """Return inode, size and time of change of a file, which tell its versions apart; () if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def format_open_error(error: Exception) -> str:
    """Return the system's phrase for an error of `open_input`, or else the error's own sentence.

    Examples
    --------
    >>> (
    ...     format_open_error(FileNotFoundError(2, "No such file or directory", "a.jpg")),
    ...     format_open_error(ValueError("null byte")),
    ... )
    ('No such file or directory', 'null byte')
    """
    return getattr(error, "strerror", None) or str(error)


def _read_mode(path: str | Path) -> int:
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - of text, too
    except (OSError, ValueError):
        return 0
