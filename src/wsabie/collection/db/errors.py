"""Explanations of database errors in one sentence."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFreeError

from wsabie.collection.db import sqlite_file
from wsabie.core.errors import BusyError, CollectionError, InputError
from wsabie.storage.atomic_files import DiskFullError, WriteError

_PAGE = 1 << 16  # largest step in bytes by which SQLite grows a file
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCK_STATES = ("55P03", "40P01", "40001")  # another transaction of PostgreSQL holds the lock
_UNREACHABLE_STATES = ("08", "53", "57")  # lost or too many connections, or a server in transition
_FORBIDDEN_STATE = "42501"  # missing privilege of the PostgreSQL user
_DAMAGE_WORDS = ("malformed", "not a database", "Could not decode to UTF-8", "no such table", "no such column")


DAMAGED = "the database is damaged; the log of the service says how to restore it"
"""Answer of a service, without paths of its machine."""


@contextmanager
def explain_database_errors(engine: Engine) -> Iterator[None]:
    """Turn a database error into an error whose message is one sentence."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise _make_explanation(engine, error.orig) from error
    except sqlite3.Error as error:
        raise _make_explanation(engine, error) from error
    except DataError as error:
        raise InputError(f"the database cannot take this ({error.orig}); leave out invisible characters") from error
    except DBAPIError as error:
        if _is_damage(error.orig) or error.connection_invalidated or _get_sql_state(error.orig) == _FORBIDDEN_STATE:
            raise _make_explanation(engine, error.orig) from error
        raise
    except NoneFreeError as error:
        fault = "is being asked too much at once; try again in a moment"
        raise BusyError(f"{format_address(engine)} {fault}", web_message=f"the database {fault}") from error


def format_address(engine: Engine) -> str:
    """Return the path of a SQLite file, or the address of a database without its password."""
    url = engine.url
    if engine.dialect.name == "sqlite":
        return str(url.database)
    return url.difference_update_query(["password"]).render_as_string(hide_password=True)


def _make_explanation(engine: Engine, error: BaseException | None) -> Exception:
    address, message = format_address(engine), " ".join(str(error).split())
    code: Any = getattr(error, "sqlite_errorcode", None)
    primary_code, state = None if code is None else code & 0xFF, _get_sql_state(error)
    if primary_code == sqlite3.SQLITE_FULL or state == "53100" or (code is not None and _is_disk_full(engine, code)):
        full = "the disk is full; free some space (what was saved before is whole)"
        return DiskFullError(f"cannot write {address}: {full}", web_message=f"nothing more is kept: {full}")
    if state in _LOCK_STATES or primary_code in _BUSY:
        fault = f"is being written by somebody else for more than {sqlite_file.WAIT} seconds; try again"
        return BusyError(f"{address} {fault}", web_message=f"the database {fault}")
    if primary_code == sqlite3.SQLITE_READONLY or state in (_FORBIDDEN_STATE, "25006"):
        web_message = "the database is read-only here: it can only be looked at"
        return WriteError(
            f"cannot write {address}: it is read-only; check its permissions and those of its folder",
            web_message=web_message,
        )
    if _is_damage(error):
        return make_damage_error(engine, message[:200])
    refusal = BusyError if code is None and (not state or state[:2] in _UNREACHABLE_STATES) else CollectionError
    web_message = "the database does not answer as it should; try again in a moment"
    fact = f"the database {address} does not answer as it should ({message[:200]})"
    return refusal(f"{fact}; check it and try again", web_message=web_message)


def make_damage_error(engine: Engine, fault: str) -> CollectionError:
    """Return the error for a database with this fault."""
    address = format_address(engine)
    return CollectionError(f"{address} is damaged ({fault}); {format_restore_hint(engine)}", web_message=DAMAGED)


def format_restore_hint(engine: Engine) -> str:
    """Return a hint on how to replace a damaged database by a backup."""
    if engine.dialect.name != "sqlite":
        return "restore a dump of it (`collection.restore(DIR)` prints the command)"
    folder = Path(str(engine.url.database)).parent.parent
    return f"restore a backup: {format_step('restore', folder)}"


def format_step(verb: str, *words: str | Path, **options: object) -> str:
    """Return the reference to a next step, as messages have it (`wsabie.core.message_references`).

    Examples
    --------
    >>> format_step("models", "my photos", use=3)
    "`collection.models('my photos', use=3)`"
    """
    arguments = [*(repr(str(word)) for word in words), *(f"{name}={value!r}" for name, value in options.items())]
    return f"`collection.{verb}({', '.join(arguments)})`"


def _is_damage(error: BaseException | None) -> bool:
    if not isinstance(error, sqlite3.Error):
        return False
    code: Any = getattr(error, "sqlite_errorcode", None)
    return (code is not None and code & 0xFF in _DAMAGED) or any(word in str(error) for word in _DAMAGE_WORDS)


def _get_sql_state(error: BaseException | None) -> str:
    return getattr(error, "sqlstate", None) or ""


def _is_disk_full(engine: Engine, code: int) -> bool:
    """Return True if SQLite failed to write because the disk is full, without saying so itself."""
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return False
    file_system = os.statvfs(Path(str(engine.url.database)).parent)
    return file_system.f_bavail * file_system.f_frsize < _PAGE
