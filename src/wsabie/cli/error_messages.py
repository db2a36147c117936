"""Messages for errors of the operating system, and a standard error that may be full."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from wsabie.core.errors import InputError, WsabieError, bracket_detail
from wsabie.core.input_files import format_open_error

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WRITING_FAILED = (*_DISK_FULL, errno.EIO, errno.EBADF)
"""Errors of standard output, which has no file name."""
_CONTEXT = 20
"""Characters that are shown before and after invalid Unicode."""


def check_path(path: Path) -> None:
    """Refuse a path that is invalid or inaccessible.

    Raises
    ------
    InputError
        A name is too long or has a zero byte, a link leads back to itself, or a folder above is closed to this user.

    Examples
    --------
    >>> check_path(Path("a\\0b"))
    Traceback (most recent call last):
    wsabie.core.errors.InputError: cannot open ...: the name holds a zero byte; give another name
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except ValueError as error:
        raise InputError(f"cannot open {path}: the name holds a zero byte; give another name") from error
    except OSError as error:
        raise InputError(f"cannot open {_describe_path_error(path, error)}") from error


def explain_error(error: BaseException) -> str:
    """Return the message for an error of the input or the machine."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory{bracket_detail(error)}; use fewer rows, features or dimensions"
    if isinstance(error, UnicodeEncodeError):
        part = error.object[max(error.start - _CONTEXT, 0) : error.end + _CONTEXT]
        return f"{part!r} is not Unicode text, which is needed here; give the file or the label another name"
    if not isinstance(error, OSError) or isinstance(error, WsabieError):
        return str(error)
    if error.filename is not None and error.errno in _DISK_FULL:
        return f"cannot write {os.fsdecode(error.filename)}: {error.strerror}; free some space and try again"
    if error.filename is not None:
        return f"cannot open {_describe_path_error(Path(os.fsdecode(error.filename)), error)}"
    if error.errno in WRITING_FAILED:
        return f"cannot write the results: {error.strerror}; free some space, or send standard output elsewhere"
    if not _has_folder():
        return "the current folder was removed; change to another one"
    return f"the system refused an operation: {error}; look at its limits and its log, and try again"


def _describe_path_error(path: Path, error: OSError) -> str:
    """Describe a path, its problem and a remedy."""
    if error.errno == errno.ELOOP:
        return f"{path}: it is a link that leads back to itself; name an ordinary file or folder"
    reason = format_open_error(error)
    if error.errno == errno.ENAMETOOLONG:
        return f"{_shorten(str(path))}: {reason}; give another name"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"{path}: {reason}; give the path of something that is there"
    return f"{path}: {reason}; check its permissions and those of its folders"


def _shorten(text: str) -> str:
    """Shorten a long text to its two ends."""
    return text if len(text) <= 200 else f"{text[:80]}...{text[-80:]}"


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib asks for it in the same way
    except OSError:
        return False
    return True


class LossyStream:
    """Text stream that discards its output after the first failed write, unless its reader left.

    Parameters
    ----------
    stream : TextIO
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if possible; return its length."""
        with self._lossy():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream if possible."""
        with self._lossy():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _lossy(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError:
            discard_output(self._stream)


def discard_output(stream: TextIO) -> None:
    """Discard the buffer of a stream and all later output."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - the stream keeps a handle of its own
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def ignore_full_standard_error() -> Iterator[None]:
    """Ignore a full disk behind standard error inside the block."""
    original: Any = sys.stderr
    if original is not None:
        sys.stderr = LossyStream(original)
    try:
        yield
    finally:
        sys.stderr = original
