"""Write to a temporary name beside the file, flushed, renamed: a reader sees the old file or the new one."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsabie.base.errors import InputError


class UnwritableError(InputError):
    """A file or folder that cannot be written; what was to be replaced is as it was."""


class DiskFullError(UnwritableError):
    """There is no space left; what was to be replaced is as it was."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` when the block ends without an error.

    The file may be read and written by whom the process's umask allows.

    Raises
    ------
    UnwritableError
        The folder is missing or cannot be written, or the disk is full; `path` is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as draft:
    ...         _ = draft.write_text("whole")
    ...     [p.name for p in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    with explained(path):
        draft = _new_draft(path)
        try:
            yield draft
            _flush(draft)
            draft.replace(path)
            _flush(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes atomically."""
    with replacing(path) as draft:
        draft.write_bytes(content)


def try_writing(path: Path, *, within: bool = False) -> None:
    """Refuse a file or folder that could not be written, or a folder within which nothing could be.

    Raises
    ------
    InputError
        As `replacing` would at the end, as far as it can be known before.
    """
    with explained(path):
        _new_draft(path / path.name if within else path).unlink()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into a sentence about `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"cannot write {path}: the disk is full; free some space and run the same command again "
                "(what was there before is untouched)"
            ) from error
        reason = error.strerror or str(error)
        raise UnwritableError(f"cannot write {path}: {reason}; choose a folder that you may write to") from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals to read `path`, or what lies in it, into a sentence."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename or path, error.strerror or str(error)
        raise InputError(f"cannot read {where}: {reason}; check its permissions and those of its folders") from error


def _new_draft(path: Path) -> Path:
    """An empty file beside `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # the kernel takes the umask off
    return draft


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
