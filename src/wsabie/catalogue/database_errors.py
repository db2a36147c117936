"""Refusals of a database as one sentence."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFreeError

from wsabie.base.errors import BusyError, CatalogueError, InputError
from wsabie.catalogue import sqlite_file
from wsabie.storage.atomic import DiskFullError, UnwritableError

_PAGE = 1 << 16  # bytes that SQLite takes at a time, at most
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_WRITTEN = ("55P03", "40P01", "40001")  # somebody else holds the lock of PostgreSQL
_AWAY = ("08", "53", "57")  # the connection is lost, there are too many, or the server stops or starts
_FORBIDDEN = "42501"  # the user of PostgreSQL may not
_DAMAGE_WORDS = ("malformed", "not a database", "Could not decode to UTF-8", "no such table", "no such column")


DAMAGED = "the catalogue is damaged; who runs the service finds in its log how to restore it"
"""What a service answers: callers see no path of its machine."""


@contextmanager
def explain_database_errors(engine: Engine) -> Iterator[None]:
    """Turn what a database refuses into one sentence."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise _explanation(engine, error.orig) from error
    except sqlite3.Error as error:
        raise _explanation(engine, error) from error
    except DataError as error:
        raise InputError(f"the database cannot take this ({error.orig}); leave out signs that nobody sees") from error
    except DBAPIError as error:
        if _is_damage(error.orig) or error.connection_invalidated or _state_of(error.orig) == _FORBIDDEN:
            raise _explanation(engine, error.orig) from error
        raise
    except NoneFreeError as error:
        fault = "is being asked too much at once; try again in a moment"
        raise BusyError(f"{shown(engine)} {fault}", served=f"the catalogue {fault}") from error


def shown(engine: Engine) -> str:
    """The database for people: a path, or an address without its password."""
    url = engine.url
    if engine.dialect.name == "sqlite":
        return str(url.database)
    return url.difference_update_query(["password"]).render_as_string(hide_password=True)


def _explanation(engine: Engine, error: BaseException | None) -> Exception:
    place, said = shown(engine), " ".join(str(error).split())
    code: Any = getattr(error, "sqlite_errorcode", None)
    kind, state = None if code is None else code & 0xFF, _state_of(error)
    if kind == sqlite3.SQLITE_FULL or state == "53100" or (code is not None and _no_room(engine, code)):
        full = "the disk is full; free some space (what was saved before is whole)"
        return DiskFullError(f"cannot write {place}: {full}", served=f"nothing more is kept: {full}")
    if state in _WRITTEN or kind in _BUSY:
        fault = f"is being written by somebody else for more than {sqlite_file.WAIT} seconds; try again"
        return BusyError(f"{place} {fault}", served=f"the catalogue {fault}")
    if kind == sqlite3.SQLITE_READONLY or state in (_FORBIDDEN, "25006"):
        return UnwritableError(
            f"cannot write {place}: it is read-only; check its permissions and those of its folder",
            served="the catalogue is read-only here: it can only be looked at",
        )
    if _is_damage(error):
        return CatalogueError(f"{place} is damaged ({said[:200]}); {restore_hint(engine)}", served=DAMAGED)
    refusal = BusyError if code is None and (not state or state[:2] in _AWAY) else CatalogueError
    return refusal(
        f"the database {place} does not answer as it should ({said[:200]}); check it and try again",
        served="the catalogue does not answer as it should; try again in a moment",
    )


def restore_hint(engine: Engine) -> str:
    """Say how a catalogue that is damaged is replaced by a backup."""
    if engine.dialect.name != "sqlite":
        return "restore a dump of it (`wsabie collection restore DIR` prints the command)"
    folder = Path(str(engine.url.database)).parent.parent
    return f"restore a backup: {restore_command(folder)}"


def restore_command(folder: Path) -> str:
    """Return the command that restores the catalogue of a folder."""
    return f"wsabie collection restore {quote(str(folder))}"


def _is_damage(error: BaseException | None) -> bool:
    if not isinstance(error, sqlite3.Error):
        return False
    code: Any = getattr(error, "sqlite_errorcode", None)
    return (code is not None and code & 0xFF in _DAMAGED) or any(word in str(error) for word in _DAMAGE_WORDS)


def _state_of(error: BaseException | None) -> str:
    return getattr(error, "sqlstate", None) or ""


def _no_room(engine: Engine, code: int) -> bool:
    """Return whether SQLite failed to write for want of space where it could not say so."""
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return False
    there = os.statvfs(Path(str(engine.url.database)).parent)
    return there.f_bavail * there.f_frsize < _PAGE
