"""Connections to a SQLite file by its path: to write, to read alone, to copy.

A path never becomes part of a URL as it is: every byte of it that means something there is quoted.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from wsabie.base.errors import BusyError, CatalogueError

Mode = Literal["ro", "rw", "rwc", "draft"]

WAIT = 30
"""Seconds for others who write."""

_PRAGMAS = ("foreign_keys=ON", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY")
_OF_DRAFTS = ("foreign_keys=ON", "journal_mode=MEMORY", "synchronous=OFF")  # who made it flushes the whole file
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def connect_file(path: Path, mode: Mode) -> sqlite3.Connection:
    """Connect to a file; transactions begin where the caller says so.

    Parameters
    ----------
    path : Path
    mode : {"ro", "rw", "rwc", "draft"}
        "ro" reads alone, "rw" finds no file that is missing, "rwc" makes one, and "draft" writes to one that nobody
        else knows of, without a file beside it.
    """
    connection = _read_only(path) if mode == "ro" else _connect(path, "mode=rw" if mode == "draft" else f"mode={mode}")
    try:
        with _explain_damage():
            for pragma in _OF_DRAFTS if mode == "draft" else _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            if mode in ("rw", "rwc") and _may_be_ours(connection):
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _explain_damage() -> Iterator[None]:
    """Turn a message of SQLite that is no text, since it holds bytes of a damaged schema, into an error of its own."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("malformed database schema") from error


def _may_be_ours(connection: sqlite3.Connection) -> bool:
    """Return whether a database is new or a catalogue; that of another program is left as it is."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not tables or "alembic_version" in tables


def copy_file(source: Path, target: Path) -> None:
    """Copy a database as one state of it, while others may write, into a file that needs no other beside it."""
    with closing(_read_only(source)) as old, guard_reading(old), closing(connect_file(target, "draft")) as new:
        old.backup(new)
    with target.open(
        "r+b"
    ) as file:  # written without a log: https://www.sqlite.org/fileformat.html#file_format_version_numbers
        file.seek(18)
        file.write(b"\1\1")


def logs_of(path: Path) -> tuple[Path, Path]:
    """Return the files beside a database that hold what was written last, and what a write began to replace."""
    return path.with_name(f"{path.name}-wal"), journal_of(path)


def journal_of(path: Path) -> Path:
    """Return the file beside a database by which SQLite takes back a write that was killed."""
    return path.with_name(f"{path.name}-journal")


def has_content(file: Path) -> bool:
    """Return whether a file is there and not empty."""
    return file.is_file() and file.stat().st_size > 0


class _Connection(sqlite3.Connection):
    """A connection that knows, where it reads a file without locks, which file, and how that was before."""

    path = Path()
    stamp: tuple[int, ...] | None = None


@contextmanager
def guard_reading(connection: object) -> Iterator[None]:
    """Refuse what is read without locks while somebody writes, whether it gives an error or not.

    Raises
    ------
    BusyError
        The file has changed since the connection was opened.
    """
    try:
        yield
    except Exception as error:
        _refuse_change(connection, error)
        raise
    _refuse_change(connection)


def _refuse_change(connection: object, error: Exception | None = None) -> None:
    if isinstance(connection, _Connection) and connection.stamp not in (None, _stamp_of(connection.path)):
        refusal = "is being written by somebody else; try again in a moment"
        raise BusyError(f"{connection.path} {refusal}", served=f"the catalogue {refusal}") from error


def _stamp_of(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _read_only(path: Path) -> sqlite3.Connection:
    """Connect without write access; where the folder allows no file of locks, nobody else may be writing."""
    connection = _connect(path, "mode=ro")
    try:
        with _explain_damage():
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE or not os.access(path, os.R_OK):
            raise
        stamp = _stamp_of(path)  # before the look at its logs: all who write have one
        if log := next((log for log in logs_of(path) if has_content(log)), None):
            raise CatalogueError(
                f"{log} holds changes that are not in {path.name} yet, and its folder cannot be written; let somebody "
                "who may write there run the same command once",
                served="the catalogue holds changes that cannot be read here; who runs the service can mend that",
            ) from error
        connection = _connect(path, "mode=ro&immutable=1")
        connection.path, connection.stamp = path, stamp
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, query: str) -> _Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?{query}"
    return sqlite3.connect(address, WAIT, isolation_level=None, check_same_thread=False, uri=True, factory=_Connection)
