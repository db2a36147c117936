"""Sentences for what the operating system refuses, wherever in a command that comes up."""

import errno
import os
from pathlib import Path

from wsabie.base.errors import InputError, WsabieError, bracket_detail
from wsabie.base.input_files import fault_text

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WRITING_FAILED = (*_FULL, errno.EIO, errno.EBADF)
"""Errors of standard output, which has no file name."""
_AROUND = 20
"""Characters that are shown of a text before and behind what is no Unicode."""


def check_path(path: Path) -> None:
    """Refuse a path that no file can have, or that may not be looked at.

    Raises
    ------
    InputError
        A name is too long or has a zero byte, a link leads back to itself, or a folder above is closed to this user.

    Examples
    --------
    >>> check_path(Path("a\\0b"))
    Traceback (most recent call last):
    wsabie.base.errors.InputError: cannot open ...: the name holds a zero byte; give another name
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except ValueError as error:
        raise InputError(f"cannot open {path}: the name holds a zero byte; give another name") from error
    except OSError as error:
        raise InputError(f"cannot open {_path_fault(path, error)}") from error


def explain_error(error: BaseException) -> str:
    """Return the sentence for an error that is the input's or the machine's fault."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory{bracket_detail(error)}; use fewer rows, features or dimensions"
    if isinstance(error, UnicodeEncodeError):
        part = error.object[max(error.start - _AROUND, 0) : error.end + _AROUND]
        return f"{part!r} is no Unicode text, which is needed here; give the file or the label another name"
    if not isinstance(error, OSError) or isinstance(error, WsabieError):
        return str(error)
    if error.filename is not None and error.errno in _FULL:
        return f"cannot write {os.fsdecode(error.filename)}: {error.strerror}; free some space and try again"
    if error.filename is not None:
        return f"cannot open {_path_fault(Path(os.fsdecode(error.filename)), error)}"
    if error.errno in WRITING_FAILED:
        return f"cannot write the results: {error.strerror}; free some space, or send standard output elsewhere"
    if not _has_folder():
        return "the current folder was removed; change to another one"
    return f"the system refused something: {error}; look at its limits and its log, and try again"


def _path_fault(path: Path, error: OSError) -> str:
    """The path, what is wrong with it, and what to do."""
    if error.errno == errno.ELOOP:
        return f"{path}: it is a link that leads back to itself; name an ordinary file or folder"
    reason = fault_text(error)
    if error.errno == errno.ENAMETOOLONG:
        return f"{_shorten(str(path))}: {reason}; give another name"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"{path}: {reason}; give the path of something that is there"
    return f"{path}: {reason}; check its permissions and those of its folders"


def _shorten(text: str) -> str:
    """The ends of a long text."""
    return text if len(text) <= 200 else f"{text[:80]}...{text[-80:]}"


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib asks for it in the same way
    except OSError:
        return False
    return True
