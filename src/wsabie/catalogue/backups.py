"""Backups of a catalogue in SQLite: whole copies in `.wsabie/backups`, made while others may write.

The name of a backup says when it was made (UTC) and why: `20261126T152155.123456Z-daily.db`. Daily ones are made when
a collection is opened to write, once a day and only where something changed since the last backup; seven of them stay.
All others stay until somebody deletes them.
"""

import logging
import re
import shlex
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

from sqlalchemy import URL, Engine, make_url, text

from wsabie.base.errors import InputError, WsabieError
from wsabie.catalogue.collection_file import PLACE, CatalogueState, state_of
from wsabie.catalogue.database import HEAD, check_tables, open_database, reading, version
from wsabie.catalogue.database_errors import explain_database_errors
from wsabie.catalogue.sqlite_file import copy_file, has_content, logs_of
from wsabie.storage.atomic import DiskFullError, explained, held, readable, remove_drafts, replacing

FOLDER = "backups"
DAILY = 7
"""Daily backups that stay."""
Reason = Literal["daily", "asked", "migration", "replaced", "restored"]
"""Why a backup was made; "replaced" is what was there before a restore, and "restored" what was there after it."""

_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)-(daily|asked|migration|replaced|restored)\.db")
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_log = logging.getLogger("wsabie")


@dataclass(frozen=True)
class Backup:
    """A backup.

    Attributes
    ----------
    path : Path
    at : str
        UTC, ISO 8601.
    reason : {"daily", "asked", "migration", "replaced", "restored"}
    journal : int or None
        The last entry of the journal that it holds; None: it is damaged.
    bytes : int
    """

    path: Path
    at: str
    reason: Reason
    journal: int | None
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return asdict(self) | {"path": str(self.path)}


def list_backups(place: Path) -> list[Backup]:
    """Return the backups of a collection, newest first."""
    with readable(place / FOLDER):
        return [_backup(path) for path in _paths(place)]


def best_backup(place: Path) -> Backup | None:
    """Return the backup that holds most entries of the journal, the newest of several; nothing is looked through."""
    return max(
        (backup for backup in list_backups(place) if backup.journal is not None),
        key=lambda backup: (backup.journal or 0, backup.at),
        default=None,
    )


def new_path(place: Path, reason: Reason) -> Path:
    """Return the path of a backup that is made now."""
    return place / FOLDER / f"{datetime.now(UTC).strftime(_STAMP)}-{reason}.db"


def back_up(engine: Engine, place: Path, reason: Reason, path: Path | None = None) -> Backup:
    """Copy a catalogue, while others may write, and look through the copy before it gets its name.

    Parameters
    ----------
    engine : Engine
        Of SQLite.
    place : Path
        The folder `.wsabie`.
    reason : {"daily", "asked", "migration", "replaced", "restored"}
    path : Path or None
        Where to; None: into the folder of backups.

    Raises
    ------
    InputError
        The copy is damaged, since the catalogue is; or it cannot be written.
    """
    remove_drafts(place / FOLDER)  # of backups that were killed, which have other names
    path = path or new_path(place, reason)
    with replacing(path) as draft:
        with explain_database_errors(engine):
            copy_file(Path(str(engine.url.database)), draft)
        check_backup(draft, f"{engine.url.database} is damaged, and no backup is made of it")
    return _backup(path)


def back_up_daily(engine: Engine, place: Path) -> None:
    """Make the backup of today where there is none and something changed; what hinders it is logged alone."""
    if engine.dialect.name != "sqlite" or _has_daily(_paths(place)):
        return
    try:
        with explained(place / FOLDER):
            (place / FOLDER).mkdir(exist_ok=True)
        with held(place / FOLDER, wait=True):  # of several processes that begin at once, one makes it
            paths = _paths(place)
            if not _has_daily(paths) and _has_changed(engine, paths):
                _refuse_little_room(engine, place)
                back_up(engine, place, "daily")
                for path in [path for path in _paths(place) if _reason_of(path) == "daily"][DAILY:]:
                    path.unlink(missing_ok=True)
    except (WsabieError, OSError) as error:
        _log.warning("no backup of today: %s", error)


def dump_command(address: str, file: str) -> str:
    """Return the command that backs up a catalogue in PostgreSQL; a password is in none."""
    return shlex.join(["pg_dump", "--format=custom", f"--file={file}", f"--dbname={_without_password(address)}"])


def load_command(address: str, file: str) -> str:
    """Return the command that replaces a catalogue in PostgreSQL by a dump."""
    words = ["pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction"]
    return shlex.join([*words, f"--dbname={_without_password(address)}", file])


def _without_password(address: str) -> str:
    url = make_url(address).set(drivername="postgresql")
    name = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    return name.difference_update_query(["password"]).render_as_string(hide_password=False)


def check_backup(path: Path, refusal: str) -> CatalogueState:
    """Return which catalogue a file holds, and how far it goes, after a look through all of its pages.

    Raises
    ------
    InputError
        It is damaged, or no catalogue; the sentence begins with `refusal`.
    """
    engine = open_database(path, "ro")
    try:
        with reading(engine) as connection:
            faults = [row[0] for row in connection.execute(text("PRAGMA quick_check(1)")) if row[0] != "ok"]
        if faults:
            raise InputError(f"({' '.join(faults[0].split())})")
        tables_version = version(engine)
        if tables_version is None:
            raise InputError("it holds no catalogue")
        if tables_version == HEAD:
            check_tables(engine)
        return state_of(engine)
    except InputError as error:
        reason = re.search(r"\((.*)\)", str(error))
        raise InputError(f"{refusal} ({reason[1] if reason else error})") from error
    finally:
        engine.dispose()


def refuse_target(path: Path, catalogue: str) -> None:
    """Refuse a file for a backup where something would be lost that is no older backup of the same catalogue.

    Parameters
    ----------
    path : Path
    catalogue : str
        Identity of the catalogue.

    Raises
    ------
    InputError
        It lies in the own folder of a collection, or holds another catalogue, a damaged or an open one, or none.
    """
    refusal = f"cannot write {path}"
    with explained(path):
        if any(folder.name == PLACE for folder in (*path.absolute().parents, *path.resolve().parents)):
            raise InputError(f"{refusal}: it lies in a collection's own folder; choose another folder")
        for log in logs_of(path):
            if has_content(log):
                raise InputError(f"{refusal}: {log.name} beside it holds changes of what was there; give another name")
        if not path.exists():
            return
    if check_backup(path, f"{refusal}: it is no backup of a catalogue and would be lost").catalogue != catalogue:
        raise InputError(f"{refusal}: it holds another catalogue and would be lost; give another name, or move it away")


def _has_changed(engine: Engine, paths: list[Path]) -> bool:
    """Return whether the journal grew since the newest backup that can be read."""
    journals = (_backup(path).journal for path in paths)
    return state_of(engine).journal > next((journal for journal in journals if journal is not None), 0)


def _refuse_little_room(engine: Engine, place: Path) -> None:
    """A backup that nobody asked for leaves as much space as it takes."""
    path = Path(str(engine.url.database))
    size = sum(file.stat().st_size for file in (path, *logs_of(path)) if file.exists())
    if shutil.disk_usage(place).free < 2 * size:
        raise DiskFullError(f"the disk of {place} has little space left; free some")


def _paths(place: Path) -> list[Path]:
    """Return the files of backups, newest first."""
    if not (place / FOLDER).is_dir():
        return []
    return sorted((path for path in (place / FOLDER).iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _has_daily(paths: list[Path]) -> bool:
    today = f"{datetime.now(UTC):%Y%m%d}"
    return any(path.name.startswith(today) and _reason_of(path) == "daily" for path in paths)


def _reason_of(path: Path) -> Reason | None:
    name = _NAME.fullmatch(path.name)
    return cast("Reason", name[2]) if name else None


def _backup(path: Path) -> Backup:
    name, stat = _NAME.fullmatch(path.name), path.stat()
    at = datetime.strptime(f"{name[1]}+0000", f"{_STAMP}%z") if name else datetime.fromtimestamp(stat.st_mtime, UTC)
    stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return Backup(path, stamp, _reason_of(path) or "asked", _journal_of(path), stat.st_size)


def _journal_of(path: Path) -> int | None:
    engine = open_database(path, "ro")
    try:
        return state_of(engine).journal
    except InputError:
        return None
    finally:
        engine.dispose()
