"""Connections to the database of a collection: SQLite in the collection's folder, or PostgreSQL."""

import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Row, create_engine, event, insert, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from wsabie.collection.db import sqlite_file
from wsabie.collection.db.errors import explain_database_errors, format_address, format_restore_hint, make_damage_error
from wsabie.collection.db.tables import Change, Expression, Query, identity, metadata
from wsabie.core.errors import CollectionError, InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.core.machine import count_available_cores

K = TypeVar("K")
T = TypeVar("T")
HEAD = "0001"
"""Version of the tables that this program works with: the last of `migrations/versions`."""
MIGRATIONS = Path(__file__).parent / "migrations"

_POSTGRES = "postgresql+psycopg"
_MAX_VALUES = 500  # values in one IN
_VERSIONS = "alembic_version"
_SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(7739)"  # two processes may begin at once
_shared: ContextVar[Connection | None] = ContextVar("shared", default=None)


def open_database(address: str | Path, mode: sqlite_file.Mode = "rw") -> Engine:
    """Connect to a SQLite file by its path or to a database by its URL, without reading it.

    Parameters
    ----------
    address : str or Path
    mode : {"ro", "rw", "rwc"}
        Access to a SQLite file: read only, read and write, or also create it.

    Raises
    ------
    InputError
        The address is not one of SQLite or PostgreSQL, or the driver is missing.
    """
    url = URL.create("sqlite", database=str(address)) if isinstance(address, Path) else _parse_address(address)
    backend = url.get_backend_name()
    threads = 2 * count_available_cores() + 2  # threads of a service never wait for a connection
    options: JsonObject = {"pool_size": 5, "max_overflow": threads, "pool_pre_ping": backend == "postgresql"}
    if backend == "postgresql":
        options["connect_args"] = {"connect_timeout": 10, "application_name": "wsabie"}
    else:
        path = Path(str(url.database))
        options["creator"] = lambda: sqlite_file.connect_file(path, mode)
        if mode == "ro":  # each connection checks again for writers
            options = {"creator": options["creator"], "poolclass": NullPool}
    try:
        engine = create_engine(url, **options)
    except (ImportError, NoSuchModuleError) as error:
        fact = "PostgreSQL needs psycopg, which is not installed"
        raise InputError(f"{fact}; run: pip install 'wsabie[postgres]'") from error
    event.listen(engine, "before_cursor_execute", _refuse_nul, named=True)
    if backend == "sqlite":
        event.listen(engine, "connect", lambda _, record: record.info.update(file=_get_file_identity(path)))
        event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def connect_database(address: str | Path, mode: sqlite_file.Mode = "rw") -> Iterator[Engine]:
    """Connect as `open_database` does until the block ends."""
    engine = open_database(address, mode)
    try:
        yield engine
    finally:
        engine.dispose()


def _parse_address(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        fact = f"{address!r} is not the address of a database"
        raise InputError(f"{fact}; give one such as postgresql://user@host/name") from error
    backend = url.get_backend_name()
    if backend in ("postgres", "postgresql"):  # PostgreSQL's own programs accept both
        return url.set(drivername=_POSTGRES)
    if backend != "sqlite" or not url.database:
        raise InputError(f"{backend} databases are not supported; use PostgreSQL, or leave the address out for SQLite")
    return url


@contextmanager
def begin_read(engine: Engine) -> Iterator[Connection]:
    """Open a read-only transaction on one state of the database."""
    shared = _shared.get()
    if shared is not None and shared.engine is engine:
        yield shared
        return
    with explain_database_errors(engine), engine.connect().execution_options(cache={}) as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with sqlite_file.guard_reading(connection.connection.dbapi_connection):
            yield connection


def fetch_rows(engine: Engine, query: Query) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of one query in a transaction of its own."""
    with begin_read(engine) as connection:
        return connection.execute(query).all()


@contextmanager
def begin_snapshot(engine: Engine) -> Iterator[Connection]:
    """Open a read-only transaction that `begin_read` inside the block shares."""
    with begin_read(engine) as connection:
        token = _shared.set(connection)
        try:
            yield connection
        finally:
            _shared.reset(token)


@contextmanager
def begin_write(engine: Engine, postgres_lock: str | None = None) -> Iterator[Connection]:
    """Open a transaction that changes the database; an error rolls all of it back.

    Only one process writes at a time: SQLite requires it, and it keeps the journal in the order of the changes.
    """
    with (
        explain_database_errors(engine),
        engine.connect().execution_options(writes=True) as connection,
        connection.begin(),
    ):
        if engine.dialect.name == "postgresql":
            # waits as long for other writers as SQLite does
            lock = f"SET LOCAL lock_timeout = {1000 * sqlite_file.WAIT:.0f}; LOCK TABLE journal IN EXCLUSIVE MODE"
            connection.execute(text(postgres_lock or lock))
        yield connection


def upgrade_schema(engine: Engine) -> None:
    """Create the tables of this version, or upgrade those of an older one.

    Raises
    ------
    InputError
        The database is of a newer version, full or unreachable.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with begin_write(engine, _SCHEMA_LOCK) as connection:
        config.attributes["connection"] = connection
        if inspect(connection).has_table(_VERSIONS):
            command.upgrade(config, "head")
        else:
            metadata.create_all(connection)
            connection.execute(insert(identity).values(database_id=secrets.token_hex(16)))
            command.stamp(config, "head")


def read_version(engine: Engine) -> str | None:
    """Return the version of the tables in the database; None if there are no tables.

    Raises
    ------
    InputError
        The version is newer than this program or no version at all, or the database is unreachable.
    """
    with begin_read(engine) as connection:
        table_names = set(inspect(connection).get_table_names())
        versions = text("SELECT version_num FROM alembic_version")
        rows = connection.execute(versions).all() if _VERSIONS in table_names else []
    collection_tables = table_names if engine.dialect.name == "sqlite" else table_names & {_VERSIONS, *metadata.tables}
    if not collection_tables:  # PostgreSQL may hold tables of other programs too
        return None
    if len(rows) != 1 or re.fullmatch(r"(?!0000)\d{4}", str(rows[0][0])) is None:
        fact = f"{format_address(engine)} is not a database of wsabie, or is damaged (its tables have no version)"
        raise InputError(f"{fact}; {format_restore_hint(engine)}")
    version = str(rows[0][0])
    if version > HEAD:
        fact = f"{format_address(engine)} was written by a newer wsabie (tables {version}, here {HEAD})"
        raise InputError(f"{fact}; upgrade wsabie")
    return version


def check_tables(engine: Engine) -> None:
    """Refuse a database that lacks tables or columns of this version.

    Raises
    ------
    InputError
        A table or column is missing; the message names the first.
    """
    with begin_read(engine) as connection:
        existing = {name: columns for (_, name), columns in inspect(connection).get_multi_columns().items()}
    for table in metadata.tables.values():
        names = {column["name"] for column in existing.get(table.name, ())}
        if missing := [column.name for column in table.columns if column.name not in names]:
            fault = f"the table {table.name}" if len(missing) == len(table.columns) else f"{table.name}.{missing[0]}"
            raise make_damage_error(engine, f"{fault} is missing")


def _refuse_nul(parameters: JsonObject | tuple[object, ...], executemany: bool, **_: object) -> None:
    # PostgreSQL rejects NUL, and SQLite ends a pattern there. Batches of rows come from the program itself.
    texts = parameters.values() if isinstance(parameters, dict) else parameters
    if not executemany and any(isinstance(text, str) and "\0" in text for text in texts or ()):
        raise InputError("names and paths hold no NUL; leave out invisible characters")


def _begin(connection: Connection) -> None:
    # A transaction that reads first could fail to write later, so a writer takes the lock at its beginning.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    path = Path(str(connection.engine.url.database))
    # SQLite would go on writing to a file that was removed or replaced
    if writes and connection.info["file"] != _get_file_identity(path):
        connection.invalidate()
        moved = "was removed or replaced while it was open"
        web_message = f"the database {moved}; nothing is kept"
        raise CollectionError(f"{path} {moved}; put it back and try again", web_message=web_message)


def _get_file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file, which a replaced file does not share; None if it is missing."""
    with suppress(OSError):
        stat = path.stat()
        return stat.st_dev, stat.st_ino
    return None


def select_in(
    connection: Connection, query: Query, column: Expression, values: Iterable[object]
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Yield the rows of a query whose column has one of many values, a few hundred values at a time."""
    for part in iterate_chunks(list(values), _MAX_VALUES):
        yield from connection.execute(query.where(column.in_(part)))


def execute_in(connection: Connection, statement: Change, column: Expression, values: Sequence[object]) -> None:
    """Update or delete the rows whose column has one of many values, a few hundred values at a time."""
    for part in iterate_chunks(values, _MAX_VALUES):
        connection.execute(statement.where(column.in_(part)))


def group_pairs(pairs: Iterable[tuple[K, T]]) -> defaultdict[K, list[T]]:
    """Return the values of each key, in their order.

    Examples
    --------
    >>> dict(group_pairs([("a", 1), ("b", 2), ("a", 3)]))
    {'a': [1, 3], 'b': [2]}
    """
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def iterate_chunks(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield `size` rows at a time."""
    return (rows[lo : lo + size] for lo in range(0, len(rows), size))
