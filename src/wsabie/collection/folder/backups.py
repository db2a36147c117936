"""Backups of a catalogue in SQLite: whole copies in `.wsabie/backups`, made while others may write.

The name of a backup holds its time (UTC) and reason: `20261126T152155.123456Z-daily.db`. A daily backup is made when a
collection is opened for writing, if something changed since the last backup. Seven daily backups stay; all others stay
until somebody deletes them.
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

from wsabie.collection.db.database import HEAD, begin_read, check_tables, open_database, read_version
from wsabie.collection.db.errors import explain_database_errors
from wsabie.collection.db.sqlite_file import copy_file, has_content, list_log_files
from wsabie.collection.folder.collection_file import PLACE, CatalogueState, read_state
from wsabie.core.errors import InputError, WsabieError
from wsabie.storage.atomic_files import (
    DiskFullError,
    explain_read_errors,
    explain_write_errors,
    lock_folder,
    remove_drafts,
    replace_file,
)

FOLDER = "backups"
MAX_DAILY = 7
"""Number of daily backups to keep."""
Reason = Literal["daily", "asked", "migration", "replaced", "restored"]
"""Reason of a backup; "replaced" holds the state before a restore, "restored" the state after it."""

_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)-(daily|asked|migration|replaced|restored)\.db")
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_log = logging.getLogger("wsabie")


@dataclass(frozen=True)
class Backup:
    """Backup of a catalogue.

    Attributes
    ----------
    path : Path
    at : str
        UTC, ISO 8601.
    reason : {"daily", "asked", "migration", "replaced", "restored"}
    journal : int or None
        Id of its last journal entry; None: the backup is damaged.
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
    with explain_read_errors(place / FOLDER):
        return [_make_backup(path) for path in _list_paths(place)]


def find_best_backup(place: Path) -> Backup | None:
    """Return the backup with most journal entries, the newest of several; nothing is verified."""
    return max(
        (backup for backup in list_backups(place) if backup.journal is not None),
        key=lambda backup: (backup.journal or 0, backup.at),
        default=None,
    )


def make_backup_path(place: Path, reason: Reason) -> Path:
    """Return the path of a backup made now."""
    return place / FOLDER / f"{datetime.now(UTC).strftime(_STAMP)}-{reason}.db"


def back_up(engine: Engine, place: Path, reason: Reason, path: Path | None = None) -> Backup:
    """Copy a catalogue, while others may write, and verify the copy before it gets its name.

    Parameters
    ----------
    engine : Engine
        Engine of a SQLite catalogue.
    place : Path
        The folder `.wsabie`.
    reason : {"daily", "asked", "migration", "replaced", "restored"}
    path : Path or None
        Target file; None: a new file in the folder of backups.

    Raises
    ------
    InputError
        The catalogue, and so the copy, is damaged, or the copy cannot be written.
    """
    remove_drafts(place / FOLDER)  # of killed backups, which have other names
    path = path or make_backup_path(place, reason)
    with replace_file(path) as draft:
        with explain_database_errors(engine):
            copy_file(Path(str(engine.url.database)), draft)
        check_backup(draft, f"{engine.url.database} is damaged, and no backup is made of it")
    return _make_backup(path)


def back_up_daily(engine: Engine, place: Path) -> None:
    """Make today's backup if something changed; an obstacle is only logged."""
    if engine.dialect.name != "sqlite" or _has_daily(_list_paths(place)):
        return
    try:
        with explain_write_errors(place / FOLDER):
            (place / FOLDER).mkdir(exist_ok=True)
        with lock_folder(place / FOLDER, wait=True):  # one of several processes makes it
            paths = _list_paths(place)
            if not _has_daily(paths) and _has_changed(engine, paths):
                _refuse_little_room(engine, place)
                back_up(engine, place, "daily")
                for path in [path for path in _list_paths(place) if _get_reason(path) == "daily"][MAX_DAILY:]:
                    path.unlink(missing_ok=True)
    except (WsabieError, OSError) as error:
        _log.warning("no backup of today: %s", error)


def format_dump_command(address: str, file: str) -> str:
    """Return the command that backs up a catalogue in PostgreSQL, without a password."""
    return shlex.join(["pg_dump", "--format=custom", f"--file={file}", f"--dbname={_without_password(address)}"])


def format_load_command(address: str, file: str) -> str:
    """Return the command that replaces a catalogue in PostgreSQL by a dump."""
    words = ["pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction"]
    return shlex.join([*words, f"--dbname={_without_password(address)}", file])


def _without_password(address: str) -> str:
    url = make_url(address).set(drivername="postgresql")
    name = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    return name.difference_update_query(["password"]).render_as_string(hide_password=False)


def check_backup(path: Path, refusal: str) -> CatalogueState:
    """Verify all pages of a backup; return the identity of its catalogue and its last entry.

    Raises
    ------
    InputError
        The file is damaged or no catalogue; the message begins with `refusal`.
    """
    engine = open_database(path, "ro")
    try:
        with begin_read(engine) as connection:
            faults = [row[0] for row in connection.execute(text("PRAGMA quick_check(1)")) if row[0] != "ok"]
        if faults:
            raise InputError(f"({' '.join(faults[0].split())})")
        tables_version = read_version(engine)
        if tables_version is None:
            raise InputError("it holds no catalogue")
        if tables_version == HEAD:
            check_tables(engine)
        return read_state(engine)
    except InputError as error:
        reason = re.search(r"\((.*)\)", str(error))
        raise InputError(f"{refusal} ({reason[1] if reason else error})") from error
    finally:
        engine.dispose()


def refuse_target(path: Path, catalogue: str) -> None:
    """Refuse a target file that is not an older backup of the same catalogue.

    Parameters
    ----------
    path : Path
    catalogue : str
        Identity of the catalogue.

    Raises
    ------
    InputError
        The file lies in `.wsabie`, or holds another catalogue, a damaged or open one, or none.
    """
    refusal = f"cannot write {path}"
    with explain_write_errors(path):
        if any(folder.name == PLACE for folder in (*path.absolute().parents, *path.resolve().parents)):
            raise InputError(f"{refusal}: it lies in a collection's own folder; choose another folder")
        for log in list_log_files(path):
            if has_content(log):
                raise InputError(f"{refusal}: {log.name} beside it holds changes of what was there; give another name")
        if not path.exists():
            return
    if check_backup(path, f"{refusal}: it is no backup of a catalogue and would be lost").catalogue != catalogue:
        raise InputError(f"{refusal}: it holds another catalogue and would be lost; give another name, or move it away")


def _has_changed(engine: Engine, paths: list[Path]) -> bool:
    """Return whether the journal grew since the newest readable backup."""
    journals = (_make_backup(path).journal for path in paths)
    return read_state(engine).journal > next((journal for journal in journals if journal is not None), 0)


def _refuse_little_room(engine: Engine, place: Path) -> None:
    """Refuse an automatic backup that would leave less space than it takes."""
    path = Path(str(engine.url.database))
    size = sum(file.stat().st_size for file in (path, *list_log_files(path)) if file.exists())
    if shutil.disk_usage(place).free < 2 * size:
        raise DiskFullError(f"the disk of {place} has little space left; free some")


def _list_paths(place: Path) -> list[Path]:
    """Return the files of backups, newest first."""
    if not (place / FOLDER).is_dir():
        return []
    return sorted((path for path in (place / FOLDER).iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _has_daily(paths: list[Path]) -> bool:
    today = f"{datetime.now(UTC):%Y%m%d}"
    return any(path.name.startswith(today) and _get_reason(path) == "daily" for path in paths)


def _get_reason(path: Path) -> Reason | None:
    name = _NAME.fullmatch(path.name)
    return cast("Reason", name[2]) if name else None


def _make_backup(path: Path) -> Backup:
    name, stat = _NAME.fullmatch(path.name), path.stat()
    at = datetime.strptime(f"{name[1]}+0000", f"{_STAMP}%z") if name else datetime.fromtimestamp(stat.st_mtime, UTC)
    stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return Backup(path, stamp, _get_reason(path) or "asked", _read_journal_end(path), stat.st_size)


def _read_journal_end(path: Path) -> int | None:
    engine = open_database(path, "ro")
    try:
        return read_state(engine).journal
    except InputError:
        return None
    finally:
        engine.dispose()
