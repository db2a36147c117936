"""Backups of a collection in SQLite: whole copies in `.wsabie/backups`, and their restore.

The name of a backup holds its time (UTC) and reason: `20261126T152155.123456Z-daily.db`. A daily backup is made when a
collection is opened for writing, if something changed since the last backup. Seven daily backups stay; all others stay
until somebody deletes them.

A restore prepares the new database beside the old one, and gives it its name in one step, so that a killed process
leaves one of them intact. Its journal gets an entry with an id above all earlier ids, so that cached results of an
earlier id are never used for it.
"""

import logging
import re
import shlex
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, cast

from sqlalchemy import URL, Engine, insert, make_url, text

from wsabie.collection.db import database, tables
from wsabie.collection.db.errors import explain_database_errors, format_step
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.sqlite_file import connect_file, copy_file, get_rollback_journal, has_content, list_log_files
from wsabie.collection.folder import collection_file
from wsabie.core.errors import BusyError, InputError, WsabieError, require
from wsabie.storage import atomic_files

FOLDER_NAME = "backups"
MAX_DAILY = 7
"""Number of daily backups to keep."""
Reason = Literal["daily", "manual", "migration", "replaced", "restored"]
"""Reason of a backup; "replaced" holds the state before a restore, "restored" the state after it."""

_NAME = re.compile(r"(\d{8}T\d{6}\.\d{6}Z)-(daily|manual|migration|replaced|restored)\.db")
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_log = logging.getLogger("wsabie")


class Backup(NamedTuple):
    """Backup of a collection's database.

    Attributes
    ----------
    path : Path
    at : str
        UTC, ISO 8601.
    reason : {"daily", "manual", "migration", "replaced", "restored"}
    journal : int or None
        Id of its last journal entry; None: the backup is damaged.
    bytes : int
    """

    path: Path
    at: str
    reason: Reason
    journal: int | None
    bytes: int


def list_backups(place: Path) -> list[Backup]:
    """Return the backups of a collection, newest first."""
    with atomic_files.explain_read_errors(place / FOLDER_NAME):
        return [_make_backup(path) for path in _list_paths(place)]


def rank_backups(place: Path) -> list[Backup]:
    """Return the backups, those with most journal entries first, then the newest; nothing is verified."""
    return sorted(list_backups(place), key=lambda backup: (backup.journal or 0, backup.at), reverse=True)


def find_best_backup(place: Path) -> Backup | None:
    """Return the first readable backup of `rank_backups`."""
    return next((backup for backup in rank_backups(place) if backup.journal is not None), None)


def make_backup_path(place: Path, reason: Reason) -> Path:
    """Return the path of a backup made now."""
    return place / FOLDER_NAME / f"{datetime.now(UTC).strftime(_STAMP)}-{reason}.db"


def back_up(engine: Engine, place: Path, reason: Reason, path: Path | None = None) -> Backup:
    """Copy a database, while others may write, and verify the copy before it gets its name.

    Parameters
    ----------
    engine : Engine
        Engine of a SQLite database.
    place : Path
        The folder `.wsabie`.
    reason : {"daily", "manual", "migration", "replaced", "restored"}
    path : Path or None
        Target file; None: a new file in the folder of backups.

    Raises
    ------
    InputError
        The database, and so the copy, is damaged, or the copy cannot be written.
    """
    atomic_files.remove_drafts(place / FOLDER_NAME)  # of killed backups, which have other names
    path = path or make_backup_path(place, reason)
    with atomic_files.replace_file(path) as draft:
        with explain_database_errors(engine):
            copy_file(Path(str(engine.url.database)), draft)
        check_backup(draft, f"{engine.url.database} is damaged, and no backup is made of it")
    return _make_backup(path)


def back_up_daily(engine: Engine, place: Path) -> None:
    """Make today's backup if something changed; an obstacle is only logged."""
    if engine.dialect.name != "sqlite" or _has_daily(place):
        return
    try:
        with atomic_files.explain_write_errors(place / FOLDER_NAME):
            (place / FOLDER_NAME).mkdir(exist_ok=True)
        with atomic_files.lock_folder(place / FOLDER_NAME, wait=True):  # one of several processes makes it
            if not _has_daily(place) and _has_changed(engine, place):
                _refuse_little_room(engine, place)
                back_up(engine, place, "daily")
                for path in [path for path in _list_paths(place) if path.match("*-daily.db")][MAX_DAILY:]:
                    path.unlink(missing_ok=True)
    except (WsabieError, OSError) as error:
        _log.warning("no backup of today: %s", error)


def format_dump_command(address: str, file: str) -> str:
    """Return the command that backs up a database in PostgreSQL, without a password."""
    return shlex.join(["pg_dump", "--format=custom", f"--file={file}", f"--dbname={_without_password(address)}"])


def format_load_command(address: str, file: str) -> str:
    """Return the command that replaces a database in PostgreSQL by a dump."""
    words = ["pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction"]
    return shlex.join([*words, f"--dbname={_without_password(address)}", file])


def _without_password(address: str) -> str:
    url = make_url(address).set(drivername="postgresql")
    name = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    return name.difference_update_query(["password"]).render_as_string(hide_password=False)


def check_backup(path: Path, refusal: str) -> collection_file.DatabaseState:
    """Verify all pages of a backup; return the identity of its database and its last entry.

    Raises
    ------
    InputError
        The file is damaged or not of a collection; the message begins with `refusal`.
    """
    try:
        with database.connect_database(path, "ro") as engine:
            with database.begin_read(engine) as connection:
                faults = [row[0] for row in connection.execute(text("PRAGMA quick_check(1)")) if row[0] != "ok"]
            if faults:
                raise InputError(f"({' '.join(faults[0].split())})")
            tables_version = database.read_version(engine)
            require(tables_version is not None, "it is not the database of a collection")
            if tables_version == database.HEAD:
                database.check_tables(engine)
            return collection_file.read_state(engine)
    except InputError as error:
        reason = re.search(r"\((.*)\)", str(error))
        raise InputError(f"{refusal} ({reason[1] if reason else error})") from error


def refuse_target(path: Path, database_id: str) -> None:
    """Refuse a target file that is not an older backup of the same database.

    Parameters
    ----------
    path : Path
    database_id : str

    Raises
    ------
    InputError
        The file lies in `.wsabie`, or holds another database, a damaged or open one, or none.
    """
    refusal = f"cannot write {path}"
    with atomic_files.explain_write_errors(path):
        if any(folder.name == collection_file.PLACE for folder in (*path.absolute().parents, *path.resolve().parents)):
            raise InputError(f"{refusal}: it lies in a collection's own folder; choose another folder")
        if log := next(filter(has_content, list_log_files(path)), None):
            raise InputError(f"{refusal}: {log.name} beside it holds changes of what was there; give another name")
        if not path.exists():
            return
    backup = check_backup(path, f"{refusal}: it is not a backup of a collection and would be lost")
    if backup.database_id != database_id:
        raise InputError(f"{refusal}: it holds another database and would be lost; give another name, or move it away")


def _has_changed(engine: Engine, place: Path) -> bool:
    """Return True if the journal grew since the newest readable backup."""
    journals = (_make_backup(path).journal for path in _list_paths(place))
    newest = next((journal for journal in journals if journal is not None), 0)
    return collection_file.read_state(engine).journal > newest


def _refuse_little_room(engine: Engine, place: Path) -> None:
    """Refuse an automatic backup that would leave less space than it takes."""
    path = Path(str(engine.url.database))
    size = sum(file.stat().st_size for file in (path, *list_log_files(path)) if file.exists())
    if shutil.disk_usage(place).free < 2 * size:
        raise atomic_files.DiskFullError(f"the disk of {place} has little space left; free some")


def _list_paths(place: Path) -> list[Path]:
    """Return the files of backups, newest first."""
    if not (place / FOLDER_NAME).is_dir():
        return []
    return sorted((path for path in (place / FOLDER_NAME).iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _has_daily(place: Path) -> bool:
    return any(path.match(f"{datetime.now(UTC):%Y%m%d}T*-daily.db") for path in _list_paths(place))


def _make_backup(path: Path) -> Backup:
    name, stat, journal = _NAME.fullmatch(path.name), path.stat(), None
    at, reason = datetime.fromtimestamp(stat.st_mtime, UTC), "manual"
    if name is not None:
        at, reason = datetime.strptime(f"{name[1]}+0000", f"{_STAMP}%z"), name[2]
    with suppress(InputError), database.connect_database(path, "ro") as engine:
        journal = collection_file.read_state(engine).journal
    stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return Backup(path, stamp, cast("Reason", reason), journal, stat.st_size)


def upgrade_tables(engine: Engine, place: Path) -> None:
    """Create the tables, or back up and upgrade those of an older version."""
    with atomic_files.lock_folder(place, wait=True):
        tables_version = database.read_version(engine)  # another process may have been first
        if tables_version not in (None, database.HEAD) and engine.dialect.name == "sqlite":
            back_up(engine, place, "migration")
        if tables_version != database.HEAD:
            database.upgrade_schema(engine)


class RestoreResult(NamedTuple):
    """Outcome of a restore.

    Attributes
    ----------
    source : str
        Path of the backup, or of the database that was accepted.
    journal : int
        Id of the last entry in the backup.
    lost : int
        Number of later entries, which only `replaced` holds.
    replaced : str or None
        Backup of the old database; None if there was none.
    """

    source: str
    journal: int
    lost: int
    replaced: str | None


def restore_backup(folder: Path, source: Path | None = None, *, by: str, accept: bool = False) -> RestoreResult:
    """Replace the database of a collection by a backup; the old database is backed up too.

    Parameters
    ----------
    folder : Path
    source : Path or None
        Path or name of a backup; None: the newest intact one.
    by : str
        Author of the journal entry.
    accept : bool
        Accept a backup of another database.

    Raises
    ------
    InputError
        The backup is missing, damaged or of another collection, or the collection is open elsewhere.
    """
    place, record = folder.resolve() / collection_file.PLACE, read_record(folder)
    collection_file.refuse_read_only(folder)
    path, state = _choose_backup(place, source)
    if state.database_id and record.database_id not in (None, state.database_id) and not accept:
        raise InputError(f"{path} is a backup of another collection; choose another, or accept it: `accept`")
    with collection_file.lock_database(place):
        database_path = place / collection_file.DATABASE_FILE
        replaced, end = _keep_replaced(place, database_path)
        last = max(record.journal, state.journal, end)
        with atomic_files.replace_file(database_path) as draft:
            message = f"restored the backup {path.name}, which ends at entry {state.journal}"
            new = _prepare_database(path, draft, last, by, message)
            if new.database_id != record.database_id:  # both databases are accepted until the new one is in place
                collection_file.write_collection_file(place, replace(record, database_id=None))
            _close_logs(database_path)
        collection_file.record_state(place, new)
        _keep_restored(place, database_path)
    return RestoreResult(str(path), state.journal, last - state.journal, replaced)


def accept_database(folder: Path, *, by: str) -> RestoreResult:
    """Accept the present database, although it is older than the recorded one or another one.

    Raises
    ------
    InputError
        The database is damaged, or the collection is open elsewhere.
    """
    folder = collection_file.require_collection(folder)
    collection_file.refuse_read_only(folder)
    place, record = folder / collection_file.PLACE, collection_file.read_collection_file(folder / collection_file.PLACE)
    address = record.database or place / collection_file.DATABASE_FILE
    with collection_file.lock_database(place), database.connect_database(address) as engine:
        is_empty = record.database is None and not has_content(place / collection_file.DATABASE_FILE)
        if is_empty or database.read_version(engine) is None:
            raise InputError(f"there is no database to accept; restore a backup: {format_step('restore', folder)}")
        upgrade_tables(engine, place)
        database.check_tables(engine)
        old = collection_file.read_state(engine)
        last = max(record.journal, old.journal)
        new = _add_line(engine, last, by, f"accepted the database, which ended at entry {old.journal}")
        collection_file.write_collection_file(place, replace(record, database_id=new.database_id, journal=new.journal))
    return RestoreResult(str(address), old.journal, last - old.journal, None)


def read_record(folder: Path) -> collection_file.CollectionFile:
    """Return the content of collection.json; its defaults if it is lost and backups exist.

    Raises
    ------
    InputError
        The folder was never a collection, or the file is unreadable.
    """
    place = folder.resolve() / collection_file.PLACE
    if not collection_file.is_collection(folder) and find_best_backup(place) is not None:
        return collection_file.CollectionFile(1, None)
    return collection_file.read_collection_file(collection_file.require_collection(folder) / collection_file.PLACE)


def _choose_backup(place: Path, source: Path | None) -> tuple[Path, collection_file.DatabaseState]:
    """Return an intact backup: `source`, or the one with most journal entries."""
    if source is not None:
        path = next((path for path in (source, place / FOLDER_NAME / source.name) if path.is_file()), None)
        if path is None:
            listing = ", ".join(backup.path.name for backup in list_backups(place)) or "none"
            raise InputError(f"there is no backup {source}; those of this collection are: {listing}")
        return path, check_backup(path, f"choose another backup: {path} cannot be restored")
    for backup in rank_backups(place):
        try:
            return backup.path, check_backup(backup.path, f"{backup.path} is left out")
        except InputError as error:
            _log.warning("%s", error)
    raise InputError(f"{place.parent} has no intact backup; give the path of one, or of a copy of the database")


def _keep_replaced(place: Path, path: Path) -> tuple[str | None, int]:
    """Back up the old database, byte for byte if it is damaged; return the copy and its last entry."""
    files = [file for file in (path, *list_log_files(path)) if has_content(file)]
    # with a rollback journal, or without its database, an opened file would change or remove the others
    if path not in files or get_rollback_journal(path) in files:
        return (_copy_files(place, *files) if files else None), 0
    try:
        with database.connect_database(path, "ro") as engine:
            backup = back_up(engine, place, "replaced")
        return str(backup.path), backup.journal or 0
    except (atomic_files.WriteError, BusyError):
        raise
    except InputError:
        return _copy_files(place, *files), 0


def _copy_files(place: Path, *files: Path) -> str:
    """Copy files of a database byte for byte among the backups; return the first copy."""
    name = make_backup_path(place, "replaced").name
    copies = [place / FOLDER_NAME / file.name.replace(collection_file.DATABASE_FILE, name) for file in files]
    for file, copy in zip(files, copies, strict=True):
        with atomic_files.explain_write_errors(copy), atomic_files.replace_file(copy) as draft:
            shutil.copyfile(file, draft)
    return str(copies[0])


def _keep_restored(place: Path, path: Path) -> None:
    """Back up the restored database, so that a later restore takes it instead of the replaced one."""
    try:
        with database.connect_database(path, "ro") as engine:
            back_up(engine, place, "restored")
    except (WsabieError, OSError) as error:
        _log.warning("no backup of what was restored: %s", error)


def _prepare_database(source: Path, draft: Path, last: int, by: str, message: str) -> collection_file.DatabaseState:
    """Make the new database: a backup with tables of this version and a new journal entry."""
    with database.connect_database(draft, "draft") as engine:
        with explain_database_errors(engine):
            copy_file(source, draft)
        database.upgrade_schema(engine)
        return _add_line(engine, last, by, message)


def _add_line(engine: Engine, last: int, by: str, message: str) -> collection_file.DatabaseState:
    """Add a journal entry with an id above `last`, as all later entries have."""
    line = {"id": last + 1, "at": format_current_time(), "by": by, "action": "restore", "summary": message}
    with database.begin_write(engine) as connection:
        connection.execute(insert(tables.journal).values(line))
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('journal', 'id'), {last + 1})"))
    return collection_file.read_state(engine)


def _close_logs(path: Path) -> None:
    """Merge the log files of the old database into it, so that none is left for the new one."""
    try:
        if has_content(path):
            with (
                database.connect_database(path) as engine,
                explain_database_errors(engine),
                closing(connect_file(path, "rw")) as old,
            ):
                old.execute("PRAGMA journal_mode=DELETE").fetchall()
    except (atomic_files.WriteError, BusyError):
        raise
    except InputError:  # the old database is damaged, and all its files are backed up
        pass
    for log_file in (*list_log_files(path), path.with_name(f"{collection_file.DATABASE_FILE}-shm")):
        log_file.unlink(missing_ok=True)
