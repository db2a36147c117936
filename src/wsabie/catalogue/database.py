"""A catalogue's database: SQLite in the collection's folder, or PostgreSQL at an address."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from wsabie.base.errors import CatalogueError, InputError
from wsabie.base.machine import available_cores
from wsabie.catalogue import sqlite_file
from wsabie.catalogue.database_errors import DAMAGED, explain_database_errors, restore_hint, shown
from wsabie.catalogue.sqlite_file import Mode, guard_reading
from wsabie.catalogue.tables import metadata

T = TypeVar("T")
HEAD = "0007"
"""The version of the tables that this program works with: the last of `migrations/versions`."""

_POSTGRES = "postgresql+psycopg"
_VERSIONS = "alembic_version"
_COLUMNS = """
    SELECT sqlite_master.name, columns.name FROM sqlite_master JOIN pragma_table_info(sqlite_master.name) AS columns
    WHERE sqlite_master.type = 'table'
"""
_COLUMNS_OF_POSTGRES = """
    SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()
"""
_shared: ContextVar[Connection | None] = ContextVar("shared", default=None)


def open_database(address: str | Path, mode: Mode = "rw") -> Engine:
    """Connect to a SQLite file by its path, or to a database by its address; nothing is read or made yet.

    Parameters
    ----------
    address : str or Path
    mode : {"ro", "rw", "rwc"}
        Of a SQLite file: read alone, read and write, make it where it is missing.

    Raises
    ------
    InputError
        No address of SQLite or PostgreSQL, or its driver is not installed.
    """
    url = URL.create("sqlite", database=str(address)) if isinstance(address, Path) else _parse_address(address)
    kind = url.get_backend_name()
    threads = 2 * available_cores() + 2  # of a service: none of them waits for a connection
    options: dict[str, Any] = {"pool_size": 5, "max_overflow": threads, "pool_pre_ping": kind == "postgresql"}
    if kind == "postgresql":
        options["connect_args"] = {"connect_timeout": 10, "application_name": "wsabie"}
    else:
        path = Path(str(url.database))
        options["creator"] = lambda: sqlite_file.connect_file(path, mode)
        if mode == "ro":  # each connection looks anew whether somebody writes
            options = {"creator": options["creator"], "poolclass": NullPool}
    try:
        engine = create_engine(url, **options)
    except (ImportError, NoSuchModuleError) as error:
        raise InputError(
            "PostgreSQL needs psycopg, which is not installed; run: pip install 'wsabie[postgres]'"
        ) from error
    event.listen(engine, "before_cursor_execute", _refuse_nul, named=True)
    if kind == "sqlite":
        event.listen(engine, "connect", lambda _, record: record.info.update(file=_number_of(path)))
        event.listen(engine, "begin", _begin)
    return engine


def _parse_address(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise InputError(
            f"{address!r} is no address of a database; give one such as postgresql://user@host/name"
        ) from error
    kind = url.get_backend_name()
    if kind in ("postgres", "postgresql"):  # as PostgreSQL's own programs take it too
        return url.set(drivername=_POSTGRES)
    if kind != "sqlite" or not url.database:
        raise InputError(f"{kind} databases are not supported; use PostgreSQL, or leave the address out for SQLite")
    return url


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the catalogue and changes nothing."""
    shared = _shared.get()
    if shared is not None and shared.engine is engine:
        yield shared
        return
    with explain_database_errors(engine), engine.connect().execution_options(kept={}) as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with guard_reading(connection.connection.dbapi_connection):
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
    with (
        explain_database_errors(engine),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":
            wait = f"SET LOCAL lock_timeout = {1000 * sqlite_file.WAIT:.0f}"
            connection.execute(text(f"{wait}; LOCK TABLE journal IN EXCLUSIVE MODE"))  # readers go on
        yield connection


def upgrade(engine: Engine, to: str = HEAD) -> None:
    """Make the tables, or bring those of an older version up to this one.

    Raises
    ------
    InputError
        The catalogue is of a newer version, the database is full, or cannot be reached.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    with (
        explain_database_errors(engine),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(7739)"))  # two that begin at once
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def version(engine: Engine) -> str | None:
    """Version of the tables in the database; None where there are none.

    Raises
    ------
    InputError
        It is newer than this program, not a version at all, or the database cannot be reached.
    """
    with reading(engine) as connection:
        there = set(inspect(connection).get_table_names())
        rows = connection.execute(text("SELECT version_num FROM alembic_version")).all() if _VERSIONS in there else []
    foreign = there if engine.dialect.name == "sqlite" else there & {_VERSIONS, *metadata.tables}
    if not foreign:  # in PostgreSQL, tables of others may lie beside those of a catalogue
        return None
    if len(rows) != 1 or re.fullmatch(r"\d{4}", str(rows[0][0])) is None:
        raise InputError(
            f"{shown(engine)} is no catalogue of wsabie, or is damaged (its tables have no version); "
            f"{restore_hint(engine)}"
        )
    found = str(rows[0][0])
    if found > HEAD:
        raise InputError(f"{shown(engine)} was written by a newer wsabie (tables {found}, here {HEAD}); upgrade wsabie")
    return found


def check_tables(engine: Engine) -> None:
    """Refuse a database that lacks tables or columns of this version.

    Raises
    ------
    InputError
        It does; the sentence names the first.
    """
    query = _COLUMNS if engine.dialect.name == "sqlite" else _COLUMNS_OF_POSTGRES
    with reading(engine) as connection:
        there = {(row[0], row[1]) for row in connection.execute(text(query))}
    for table in metadata.tables.values():
        if missing := [column.name for column in table.columns if (table.name, column.name) not in there]:
            part = f"the table {table.name}" if len(missing) == len(table.columns) else f"{table.name}.{missing[0]}"
            raise CatalogueError(
                f"{shown(engine)} is damaged ({part} is missing); {restore_hint(engine)}", served=DAMAGED
            )


def _refuse_nul(parameters: Any, executemany: bool, **_: object) -> None:
    # PostgreSQL keeps none, and for SQLite a pattern ends there. Many rows at once are the program's own.
    texts = parameters.values() if isinstance(parameters, dict) else parameters
    if not executemany and any(isinstance(text, str) and "\0" in text for text in texts or ()):
        raise InputError("a NUL is in no name and no path; leave out signs that nobody sees")


def _begin(connection: Connection) -> None:
    # One that reads first and writes later could be refused halfway: writers wait at the door.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    path = Path(str(connection.engine.url.database))
    if writes and connection.info["file"] != _number_of(path):  # SQLite would write to a file that nobody finds again
        connection.invalidate()
        moved = "was removed or replaced while it was open"
        raise CatalogueError(
            f"{path} {moved}; put it back and try again", served=f"the catalogue {moved}; nothing is kept"
        )


def _number_of(path: Path) -> tuple[int, int] | None:
    """What tells a file apart from another that has its name later; None where there is none."""
    with suppress(OSError):
        stat = path.stat()
        return stat.st_dev, stat.st_ino
    return None
