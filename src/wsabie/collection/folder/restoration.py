"""Replace a catalogue by a backup, or accept an older or foreign one.

The new catalogue is prepared beside the old one and takes its name in one step, so that a killed process leaves one of
them intact. Its journal gets an entry with an id above all earlier ids, so that cached results of an earlier id are
never used for it.
"""

import logging
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, insert, text

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write, check_tables, open_database, read_version, upgrade_schema
from wsabie.collection.db.errors import explain_database_errors, format_restore_command
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.db.sqlite_file import connect_file, copy_file, get_rollback_journal, has_content, list_log_files
from wsabie.collection.folder.backups import (
    FOLDER,
    back_up,
    check_backup,
    find_best_backup,
    list_backups,
    make_backup_path,
)
from wsabie.collection.folder.collection import is_collection, require_collection
from wsabie.collection.folder.collection_file import (
    CATALOGUE,
    PLACE,
    CatalogueState,
    CollectionFile,
    lock_catalogue,
    read_collection_file,
    read_state,
    record_state,
    write_collection_file,
)
from wsabie.collection.folder.connection import refuse_read_only, upgrade_tables
from wsabie.core.errors import BusyError, InputError, WsabieError
from wsabie.storage.atomic_files import WriteError, explain_write_errors, replace_file

_log = logging.getLogger("wsabie")


@dataclass(frozen=True)
class RestoreResult:
    """Outcome of a restore.

    Attributes
    ----------
    source : str
        Path of the backup, or of the catalogue that was accepted.
    journal : int
        Id of the last entry in the backup.
    lost : int
        Number of later entries, which only `replaced` holds.
    replaced : str or None
        Backup of the old catalogue; None if there was none.
    """

    source: str
    journal: int
    lost: int
    replaced: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return asdict(self)


def restore_backup(folder: Path, source: Path | None = None, *, by: str, accept: bool = False) -> RestoreResult:
    """Replace the catalogue of a collection by a backup; the old catalogue is backed up too.

    Parameters
    ----------
    folder : Path
    source : Path or None
        Path or name of a backup; None: the newest intact one.
    by : str
        Author of the journal entry.
    accept : bool
        Accept a backup of another catalogue.

    Raises
    ------
    InputError
        The backup is missing, damaged or of another collection, or the collection is open elsewhere.
    """
    place, record = folder.resolve() / PLACE, read_record(folder)
    refuse_read_only(folder)
    path, state = _choose_backup(place, source)
    if state.catalogue and record.catalogue not in (None, state.catalogue) and not accept:
        raise InputError(f"{path} is a backup of another collection; choose another, or take it all the same: --accept")
    with lock_catalogue(place):
        catalogue = place / CATALOGUE
        replaced, end = _keep_replaced(place, catalogue)
        last = max(record.journal, state.journal, end)
        with replace_file(catalogue) as draft:
            message = f"restored the backup {path.name}, which ends at entry {state.journal}"
            new = _prepare_catalogue(path, draft, last, by, message)
            if new.catalogue != record.catalogue:  # both catalogues are accepted until the new one is in place
                write_collection_file(place, replace(record, catalogue=None))
            _close_logs(catalogue)
        record_state(place, new)
        _keep_restored(place, catalogue)
    return RestoreResult(str(path), state.journal, last - state.journal, replaced)


def accept_catalogue(folder: Path, *, by: str) -> RestoreResult:
    """Accept the present catalogue, although it is older than the recorded one or another one.

    Raises
    ------
    InputError
        The catalogue is damaged, or the collection is open elsewhere.
    """
    folder = require_collection(folder)
    refuse_read_only(folder)
    place, record = folder / PLACE, read_collection_file(folder / PLACE)
    with lock_catalogue(place):
        engine = open_database(record.database or place / CATALOGUE)
        try:
            if (record.database is None and not has_content(place / CATALOGUE)) or read_version(engine) is None:
                raise InputError(f"there is no catalogue to accept; restore a backup: {format_restore_command(folder)}")
            upgrade_tables(engine, place)
            check_tables(engine)
            old = read_state(engine)
            last = max(record.journal, old.journal)
            new = _add_line(engine, last, by, f"accepted the catalogue, which ended at entry {old.journal}")
        finally:
            engine.dispose()
        write_collection_file(place, replace(record, catalogue=new.catalogue, journal=new.journal))
    return RestoreResult(record.database or str(place / CATALOGUE), old.journal, last - old.journal, None)


def read_record(folder: Path) -> CollectionFile:
    """Return the content of collection.json; its defaults if it is lost and backups exist.

    Raises
    ------
    InputError
        The folder was never a collection, or the file is unreadable.
    """
    place = folder.resolve() / PLACE
    if not is_collection(folder) and find_best_backup(place) is not None:
        return CollectionFile(1, None)
    return read_collection_file(require_collection(folder) / PLACE)


def _choose_backup(place: Path, source: Path | None) -> tuple[Path, CatalogueState]:
    """Return an intact backup: `source`, or the one with most journal entries."""
    if source is not None:
        path = next((path for path in (source, place / FOLDER / source.name) if path.is_file()), None)
        if path is None:
            listing = ", ".join(backup.path.name for backup in list_backups(place)) or "none"
            raise InputError(f"there is no backup {source}; those of this collection are: {listing}")
        return path, check_backup(path, f"choose another backup: {path} cannot be restored")
    for backup in sorted(list_backups(place), key=lambda backup: (backup.journal or 0, backup.at), reverse=True):
        try:
            return backup.path, check_backup(backup.path, f"{backup.path} is left out")
        except InputError as error:
            _log.warning("%s", error)
    raise InputError(f"{place.parent} has no backup that is whole; give the path of one, or of a copy of the catalogue")


def _keep_replaced(place: Path, catalogue: Path) -> tuple[str | None, int]:
    """Back up the old catalogue, byte for byte if it is damaged; return the copy and its last entry."""
    files = [file for file in (catalogue, *list_log_files(catalogue)) if has_content(file)]
    # with a rollback journal, or without its catalogue, an opened file would change or remove the others
    if catalogue not in files or get_rollback_journal(catalogue) in files:
        return (_copy_files(place, *files) if files else None), 0
    engine = open_database(catalogue, "ro")
    try:
        backup = back_up(engine, place, "replaced")
        return str(backup.path), backup.journal or 0
    except (WriteError, BusyError):
        raise
    except InputError:
        return _copy_files(place, *files), 0
    finally:
        engine.dispose()


def _copy_files(place: Path, *files: Path) -> str:
    """Copy files of a catalogue byte for byte among the backups; return the first copy."""
    name = make_backup_path(place, "replaced").name
    copies = [place / FOLDER / file.name.replace(CATALOGUE, name) for file in files]
    for file, copy in zip(files, copies, strict=True):
        with explain_write_errors(copy), replace_file(copy) as draft:
            shutil.copyfile(file, draft)
    return str(copies[0])


def _keep_restored(place: Path, catalogue: Path) -> None:
    """Back up the restored catalogue, so that a later restore takes it instead of the replaced one."""
    engine = open_database(catalogue, "ro")
    try:
        back_up(engine, place, "restored")
    except (WsabieError, OSError) as error:
        _log.warning("no backup of what was restored: %s", error)
    finally:
        engine.dispose()


def _prepare_catalogue(source: Path, draft: Path, last: int, by: str, message: str) -> CatalogueState:
    """Make the new catalogue: a backup with tables of this version and a new journal entry."""
    engine = open_database(draft, "draft")
    try:
        with explain_database_errors(engine):
            copy_file(source, draft)
        upgrade_schema(engine)
        return _add_line(engine, last, by, message)
    finally:
        engine.dispose()


def _add_line(engine: Engine, last: int, by: str, message: str) -> CatalogueState:
    """Add a journal entry with an id above `last`, as all later entries have."""
    line = {"id": last + 1, "at": format_current_time(), "by": by, "action": "restore", "summary": message}
    with begin_write(engine) as connection:
        connection.execute(insert(tables.journal).values(line))
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('journal', 'id'), {last + 1})"))
    return read_state(engine)


def _close_logs(catalogue: Path) -> None:
    """Merge the log files of the old catalogue into it, so that none is left for the new one."""
    engine = open_database(catalogue)
    try:
        if has_content(catalogue):
            with explain_database_errors(engine), closing(connect_file(catalogue, "rw")) as old:
                old.execute("PRAGMA journal_mode=DELETE").fetchall()
    except (WriteError, BusyError):
        raise
    except InputError:  # the old catalogue is damaged, and all its files are backed up
        pass
    for path in (*list_log_files(catalogue), catalogue.with_name(f"{CATALOGUE}-shm")):
        path.unlink(missing_ok=True)
