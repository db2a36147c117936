"""Atomic writes: a temporary file beside the target is flushed, then renamed; locks of files, folders.

atomicwrites replaces files as this does, but no folders, and is no longer maintained
(`docs/decisions/rows-and-files.md`).
"""

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from wsabie.core.errors import BusyError, InputError
from wsabie.core.folder_tree import remove_tree, walk_folder
from wsabie.core.input_files import format_open_error

_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
_MAX_STEM_BYTES = 233  # bytes of the 255 of a name: a draft's has 22 of its own
_DEFAULT_TOKEN = "0" * 16
"""Token of a draft, so that the next writer finds what a killed one left; a concurrent writer gets a random token."""


class WriteError(InputError):
    """File or folder that cannot be written; the old one is unchanged."""


class DiskFullError(WriteError):
    """No space left on the disk; the old file is unchanged."""


@contextmanager
def replace_file(path: str | Path, token: str | None = None) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` when the block ends without an error.

    The file may be read and written by whom the process's umask allows. The draft of a killed process is removed when
    the next one is written. A `token`, 16 hex digits, stands in the name of the draft; `list_abandoned_drafts` finds
    those.

    Raises
    ------
    WriteError
        The folder is missing or cannot be written, the disk is full, or `path` is a device; it is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder) / "a.txt") as draft:
    ...         _ = draft.write_text("whole")
    ...     [p.name for p in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    with explain_write_errors(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise WriteError(f"cannot write {path}: it is a device or a pipe, and would be lost; name an ordinary file")
        draft, lock = _new_draft(path, token=token or _DEFAULT_TOKEN)
        try:
            yield draft
            _flush(draft)
            draft.replace(path)  # from here on its name may be that of another process's draft
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        finally:
            os.close(lock)
        _flush(path.parent)


@contextmanager
def create_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `path` when the block ends without an error.

    There must be nothing at `path` yet, or an empty folder. Drafts of it that killed processes left are
    removed.

    Raises
    ------
    WriteError
        There is something at `path`, it cannot be written, or the disk is full; nothing is left of the draft.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_folder(Path(folder) / "a") as draft:
    ...         _ = (draft / "b.txt").write_text("whole")
    ...     [p.name for p in Path(folder).iterdir()]
    ['a']
    """
    path = Path(path)
    _refuse_undecodable_name(path)
    with explain_write_errors(path), create_draft_folder(path) as draft:
        yield draft
        for folder, _, files in walk_folder(draft, _raise_error):
            for file in (Path(folder, name) for name in files):
                if not file.is_symlink():
                    _flush(file)
            _flush(Path(folder))
        draft.rename(path)
        _flush(path.parent)


@contextmanager
def create_draft_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` and remove it when the block ends.

    Folders that killed processes left are removed first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_draft_folder(Path(folder) / "parts") as draft:
    ...         _ = (draft / "a.txt").write_text("whole")
    ...     list(Path(folder).iterdir())
    []
    """
    _remove_old_drafts(path)
    draft, lock = _new_draft(path, folder=True)
    try:
        yield draft
    finally:
        remove_tree(draft)
        os.close(lock)


@contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other commands out of a folder until the block ends; a missing folder is not locked.

    With `wait` the block begins when nobody else holds the folder.

    Raises
    ------
    InputError
        Another process holds it, or has just removed it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock_folder(Path(folder)):
    ...     with lock_folder(Path(folder)):
    ...         pass
    Traceback (most recent call last):
    wsabie.core.errors.InputError: another command is changing ...; give this one again when it is done
    """
    if not folder.is_dir():
        yield
        return
    with explain_write_errors(folder):
        handle = os.open(folder, os.O_RDONLY)
    with _hold_lock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB) as is_free:
        if not (is_free and (wait or os.fstat(handle).st_nlink)):
            raise InputError(f"another command is changing {folder}; give this one again when it is done")
        yield


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes atomically."""
    with replace_file(path) as draft:
        draft.write_bytes(content)


def check_writable(path: Path, *, within: bool = False) -> None:
    """Refuse a file or folder that cannot be written, or a folder in which nothing can be.

    Drafts of it that killed processes left are removed. No folder is left where there was none.

    Raises
    ------
    InputError
        As `replace_file` would at the end, as far as it can be known before.
    """
    _refuse_undecodable_name(path)
    with explain_write_errors(path):
        folder = path if within else path.parent
        missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
        draft, lock = _new_draft(folder / path.name)
        draft.unlink()
        os.close(lock)
        _remove_old_drafts(folder / path.name)
        with suppress(OSError):  # somebody else put something there
            for ancestor in missing:
                ancestor.rmdir()


def _refuse_undecodable_name(path: Path) -> None:
    """Refuse a name that is not UTF-8: PyArrow opens no such file, and no text can hold the name."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise WriteError(f"cannot write {path}: the name is not UTF-8; give another name") from error


def remove_drafts(folder: Path) -> None:
    """Remove, in a folder and below it, the drafts of `replace_file` whose process was killed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".a.txt.0123456789abcdef.tmp").touch()
    ...     with replace_file(Path(folder) / "b.txt") as draft:
    ...         remove_drafts(Path(folder))
    ...         _ = draft.write_text("still there")
    ...     [p.name for p in Path(folder).iterdir()]
    ['b.txt']
    """
    for draft in folder.rglob(".*.tmp"):
        _remove_abandoned(draft)


def list_abandoned_drafts(folder: Path, token: str) -> list[Path]:
    """List the drafts in a folder, not below it, that `replace_file` made with a token.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / ".a.jpg.0123456789abcdef.tmp").touch()
    ...     [draft.name for draft in list_abandoned_drafts(Path(folder), "0123456789abcdef")]
    ['.a.jpg.0123456789abcdef.tmp']
    """
    return sorted(
        Path(entry) for entry in os.scandir(folder) if entry.name[0] == "." and entry.name.endswith(f".{token}.tmp")
    )


def remove_folder(folder: Path) -> None:
    """Remove a folder so that a kill leaves either all of it or a draft that the next command removes."""
    with suppress(OSError):  # where its own folder cannot be written, it is emptied
        folder = folder.rename(folder.with_name(_make_draft_name(folder)))
    remove_tree(folder)


def _raise_error(error: OSError) -> None:
    raise error


def _remove_old_drafts(path: Path) -> None:
    for draft in path.parent.glob(f".{escape(_cut_name(path))}.*.tmp"):
        _remove_abandoned(draft)


def _make_draft_name(path: Path, token: str | None = None) -> str:
    return f".{_cut_name(path)}.{token or secrets.token_hex(8)}.tmp"


def _cut_name(path: Path) -> str:
    """Return the name of a file, cut so that a draft's name has room for it."""
    content = os.fsencode(path.name)
    return path.name if len(content) <= _MAX_STEM_BYTES else content[:_MAX_STEM_BYTES].decode(errors="ignore")


def _remove_abandoned(draft: Path) -> None:
    if _DRAFT.fullmatch(draft.name):
        with suppress(OSError):
            lock = os.open(draft, os.O_RDONLY | os.O_NONBLOCK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), draft.lstat()):  # its writer did not come to the end meanwhile
                    remove_tree(draft) if draft.is_dir() else draft.unlink()
            finally:
                os.close(lock)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's write errors into a sentence about `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"cannot write {path}: the disk is full; free some space and run the same command again "
                "(what was there before is untouched)"
            ) from error
        remedy = "give another name" if _is_name_error(error) else "choose a folder that you may write to"
        raise WriteError(f"cannot write {path}: {format_open_error(error)}; {remedy}") from error


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors of reading `path`, or anything in it, into a sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"there is no file or folder {error.filename or path}; check the name") from error
    except OSError as error:
        where = error.filename or path
        remedy = "give another name" if _is_name_error(error) else "check its permissions and those of its folders"
        raise InputError(f"cannot read {where}: {format_open_error(error)}; {remedy}") from error


def _is_name_error(error: OSError) -> bool:
    return error.errno in (errno.ENAMETOOLONG, errno.ELOOP)


def _new_draft(path: Path, *, folder: bool = False, token: str | None = None) -> tuple[Path, int]:
    """Create an empty file or folder beside `path`; return it and its lock, which ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        draft = path.parent / _make_draft_name(path, token)
        if token == _DEFAULT_TOKEN:
            _remove_abandoned(draft)
        try:
            if folder:
                draft.mkdir()
            flags = os.O_RDONLY if folder else os.O_CREAT | os.O_EXCL | os.O_WRONLY
            lock = os.open(draft, flags, 0o666)  # the kernel takes the umask off
        except FileExistsError:
            token = None
            continue
        with suppress(OSError):  # where there are no locks, no drafts are removed
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:  # `remove_drafts` did not come between
            return draft, lock
        os.close(lock)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # over NFS a lock needs write access
        except PermissionError:
            handle = os.open(path, os.O_RDONLY)
    with _hold_lock(handle, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX)) as is_free:
        yield is_free


@contextmanager
def hold_file(path: Path, refusal: str, *, shared: bool = False) -> Iterator[None]:
    """Lock a file as `lock_file` does until the block ends.

    Raises
    ------
    BusyError
        Others hold it; `refusal` is the message.
    """
    with lock_file(path, shared=shared) as is_free:
        if not is_free:
            raise BusyError(refusal)
        yield


@contextmanager
def _hold_lock(handle: int, kind: int) -> Iterator[bool]:
    """Lock an open file or folder and close it when the block ends; yield False where others hold it."""
    is_free = True
    try:
        try:
            fcntl.flock(handle, kind)
        except OSError as error:  # any other error: there are no locks on this file system
            is_free = not isinstance(error, BlockingIOError)
        yield is_free
    finally:
        os.close(handle)
