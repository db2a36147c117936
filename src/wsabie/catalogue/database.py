"""A catalogue's database: SQLite in the collection's folder, or PostgreSQL at an address."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFreeError

from wsabie.base.errors import BusyError, InputError
from wsabie.base.machine import available_cores
from wsabie.storage.atomic import DiskFullError

T = TypeVar("T")
HEAD = "0006"
"""The version of the tables that this program works with: the last of `migrations/versions`."""

_WAIT = 30  # seconds for others who write
_POSTGRES = "postgresql+psycopg"
_PAGE = 1 << 16  # bytes that SQLite takes at a time, at most
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_WRITTEN = ("55P03", "40P01", "40001")  # somebody else holds the lock of PostgreSQL
_AWAY = ("08", "53", "57")  # the connection is lost, there are too many, or the server stops or starts
_shared: ContextVar[Connection | None] = ContextVar("shared", default=None)


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return f"sqlite:///{path}"


def open_database(url: str) -> Engine:
    """Connect; nothing is read or made yet, but a SQLite file must be in a folder that exists.

    Raises
    ------
    InputError
        No address of SQLite or PostgreSQL, or its driver is not installed.
    """
    try:
        address = make_url(url)
    except ArgumentError as error:
        raise InputError(
            f"{url!r} is no address of a database; give one such as postgresql://user@host/name"
        ) from error
    kind = address.get_backend_name()
    if kind == "postgres":  # as PostgreSQL's own programs take it too
        kind = "postgresql"
    if kind not in ("sqlite", "postgresql"):
        raise InputError(f"{kind} databases are not supported; use PostgreSQL, or leave the address out for SQLite")
    if kind == "postgresql":
        address = address.set(drivername=_POSTGRES)
    threads = 2 * available_cores() + 2  # of a service: none of them waits for a connection
    pool = {"pool_size": 5, "max_overflow": threads, "pool_pre_ping": kind == "postgresql"}
    try:
        engine = create_engine(address, connect_args=_arguments(kind), **pool)
    except (ImportError, NoSuchModuleError) as error:
        raise InputError(
            "PostgreSQL needs psycopg, which is not installed; run: pip install 'wsabie[postgres]'"
        ) from error
    event.listen(engine, "before_cursor_execute", _refuse_nul, named=True)
    if kind == "sqlite":
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the catalogue and changes nothing."""
    shared = _shared.get()
    if shared is not None and shared.engine is engine:
        yield shared
        return
    with explained(engine), engine.connect().execution_options(kept={}) as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        yield connection


@contextmanager
def one_state(engine: Engine) -> Iterator[Connection]:
    """As `reading`, and all that functions called within read for themselves is of this transaction too."""
    with reading(engine) as connection:
        token = _shared.set(connection)
        try:
            yield connection
        finally:
            _shared.reset(token)


def once(connection: Connection, read: Callable[[Connection], T]) -> T:
    """What `read` gave before in the same transaction, where that only reads and cannot see anything else."""
    kept = connection.get_execution_options().get("kept")
    if kept is None:
        return read(connection)
    if read not in kept:
        kept[read] = read(connection)
    found: T = kept[read]
    return found


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that changes the catalogue: all of it or, after an error, nothing.

    One writes at a time: SQLite allows no more, and the order of the journal is then that of the changes.
    """
    with explained(engine), engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            wait = f"SET LOCAL lock_timeout = {1000 * _WAIT:.0f}"
            connection.execute(text(f"{wait}; LOCK TABLE journal IN EXCLUSIVE MODE"))  # readers go on
        yield connection


def upgrade(engine: Engine) -> None:
    """Make the tables, or bring those of an older version up to this one.

    Raises
    ------
    InputError
        The catalogue is of a newer version, the database is full, or cannot be reached.
    """
    if version(engine) == HEAD:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    with explained(engine), engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(7739)"))  # two that begin at once
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)


def version(engine: Engine) -> str | None:
    """Of the tables in the database; None where there are none.

    Raises
    ------
    InputError
        It is newer than this program, or the database cannot be reached.
    """
    with explained(engine), engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found > HEAD:
        raise InputError(f"{shown(engine)} was written by a newer wsabie (tables {found}, here {HEAD}); upgrade wsabie")
    return found


def damage(engine: Engine) -> list[str]:
    """What SQLite finds wrong with its file and with references between tables; PostgreSQL looks after itself."""
    if engine.dialect.name != "sqlite":
        return []
    with reading(engine) as connection:
        found = [row[0] for row in connection.execute(text("PRAGMA integrity_check(20)")) if row[0] != "ok"]
        broken = connection.execute(text("PRAGMA foreign_key_check")).all()
    return found + [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in broken[:20]]


def shown(engine: Engine) -> str:
    """The database for people: a path, or an address without its password."""
    url = engine.url
    return str(url.database) if engine.dialect.name == "sqlite" else url.render_as_string(hide_password=True)


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn what a database refuses into one sentence."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise _explanation(engine, error) from error
    except DataError as error:
        raise InputError(f"the database cannot take this ({error.orig}); leave out signs that nobody sees") from error
    except DBAPIError as error:
        told = "malformed" in str(error.orig) or "not a database" in str(error.orig)
        if told or error.connection_invalidated:
            raise _explanation(engine, error) from error
        raise
    except NoneFreeError as error:
        raise BusyError(f"{shown(engine)} is being asked too much at once; try again in a moment") from error


def _explanation(engine: Engine, error: DBAPIError) -> Exception:
    place, said = shown(engine), " ".join(str(error.orig).split())
    code: Any = getattr(error.orig, "sqlite_errorcode", None)
    state = getattr(error.orig, "sqlstate", None) or ""
    if code == sqlite3.SQLITE_FULL or state == "53100" or (code is not None and _no_room(engine, code)):
        return DiskFullError(
            f"cannot write {place}: the disk is full; free some space (what was saved before is whole)"
        )
    if state in _WRITTEN or (code is not None and code & 0xFF in _BUSY):
        return BusyError(f"{place} is being written by somebody else for more than {_WAIT} seconds; try again")
    if code is not None and code & 0xFF == sqlite3.SQLITE_READONLY:
        return InputError(f"cannot write {place}: it is read-only; check its permissions and those of its folder")
    if code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return InputError(f"{place} is damaged ({said}); restore it from a copy, or save what `sqlite3 .recover` finds")
    told = f"the database {place} does not answer as it should ({said[:200]}); check it and try again"
    return BusyError(told) if code is None and (not state or state[:2] in _AWAY) else InputError(told)


def _no_room(engine: Engine, code: int) -> bool:
    """Whether SQLite failed to write for want of space where it could not say so."""
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return False
    there = os.statvfs(Path(str(engine.url.database)).parent)
    return there.f_bavail * there.f_frsize < _PAGE


def _arguments(kind: str) -> dict[str, Any]:
    if kind == "sqlite":
        return {"timeout": _WAIT, "check_same_thread": False}
    return {"connect_timeout": 10, "application_name": "wsabie"}


def _prepare(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say (`_begin`), not where the driver guesses
    for pragma in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _refuse_nul(parameters: Any, executemany: bool, **_: object) -> None:
    # PostgreSQL keeps none, and for SQLite a pattern ends there. Many rows at once are the program's own.
    texts = parameters.values() if isinstance(parameters, dict) else parameters
    if not executemany and any(isinstance(text, str) and "\0" in text for text in texts or ()):
        raise InputError("a NUL is in no name and no path; leave out signs that nobody sees")


def _begin(connection: Connection) -> None:
    # One that reads first and writes later could be refused halfway: writers wait at the door.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")
