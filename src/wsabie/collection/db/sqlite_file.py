"""Connections to a SQLite file by its path: to write, to read only, to copy.

Paths are quoted before they become part of a URL.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from wsabie.core.errors import BusyError, CollectionError
from wsabie.core.input_files import read_stamp

Mode = Literal["ro", "rw", "rwc", "draft"]

WAIT = 30
"""Seconds to wait for other writers."""

_PRAGMAS = ("foreign_keys=ON", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY")
_DRAFT_PRAGMAS = ("foreign_keys=ON", "journal_mode=MEMORY", "synchronous=OFF")  # the caller flushes the whole file
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def connect_file(path: Path, mode: Mode) -> sqlite3.Connection:
    """Connect to a file; the caller begins transactions.

    Parameters
    ----------
    path : Path
    mode : {"ro", "rw", "rwc", "draft"}
        "ro" only reads, "rw" needs an existing file, "rwc" creates a missing one, and "draft" writes to a private
        file without log files.
    """
    connection = _connect_read_only(path) if mode == "ro" else _connect(path, "rw" if mode == "draft" else mode)
    try:
        with _explain_damage():
            for pragma in _DRAFT_PRAGMAS if mode == "draft" else _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            if mode in ("rw", "rwc") and _is_new_or_collection(connection):
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _explain_damage() -> Iterator[None]:
    """Raise a database error for a message of SQLite that holds bytes of a damaged schema."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("malformed database schema") from error


def _is_new_or_collection(connection: sqlite3.Connection) -> bool:
    """Return True if a database is empty or that of a collection, and not of another program."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not tables or "alembic_version" in tables


def copy_file(source: Path, target: Path) -> None:
    """Copy one state of a database, while others may write, into a file without log files."""
    with closing(_connect_read_only(source)) as old, guard_reading(old), closing(connect_file(target, "draft")) as new:
        old.backup(new)
    # mark it as written without a log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
    with target.open("r+b") as file:
        file.seek(18)
        file.write(b"\1\1")


def list_log_files(path: Path) -> tuple[Path, Path]:
    """Return the paths of the write-ahead log and of the rollback journal of a database."""
    return path.with_name(f"{path.name}-wal"), get_rollback_journal(path)


def get_rollback_journal(path: Path) -> Path:
    """Return the path of the rollback journal of a database."""
    return path.with_name(f"{path.name}-journal")


def has_content(file: Path) -> bool:
    """Return True if a file is there and not empty."""
    return file.is_file() and file.stat().st_size > 0


class _Connection(sqlite3.Connection):
    """Connection that, when it reads without locks, remembers the file and its state."""

    path = Path()
    stamp: tuple[int, ...] | None = None


@contextmanager
def guard_reading(connection: object) -> Iterator[None]:
    """Refuse results of reading without locks if another process wrote meanwhile.

    Raises
    ------
    BusyError
        The file changed after the connection was opened.
    """
    try:
        yield
    except Exception as error:
        _refuse_change(connection, error)
        raise
    _refuse_change(connection)


def _refuse_change(connection: object, error: Exception | None = None) -> None:
    if isinstance(connection, _Connection) and connection.stamp not in (None, read_stamp(connection.path)):
        refusal = "is being written by somebody else; try again in a moment"
        raise BusyError(f"{connection.path} {refusal}", web_message=f"the database {refusal}") from error


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Connect without write access; in a read-only folder no other process may be writing."""
    connection = _connect(path, "ro")
    try:
        with _explain_damage():
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE or not os.access(path, os.R_OK):
            raise
        stamp = read_stamp(path)  # before the check for logs, which every writer has
        if log := next((log for log in list_log_files(path) if has_content(log)), None):
            fact = f"{log} holds changes that are not in {path.name} yet, and its folder cannot be written"
            message = f"{fact}; let somebody who may write there run the same command once"
            web_message = "the database holds changes that cannot be read here; the log of the service says what helps"
            raise CollectionError(message, web_message=web_message) from error
        connection = _connect(path, "ro&immutable=1")
        connection.path, connection.stamp = path, stamp
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str) -> _Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    return sqlite3.connect(address, WAIT, isolation_level=None, check_same_thread=False, uri=True, factory=_Connection)
