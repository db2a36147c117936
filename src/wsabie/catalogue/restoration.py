"""Replace a catalogue by a backup, or accept one that is older than the one that was there.

The new catalogue is made ready beside the old one and takes its name in one step: whenever the process ends, one of
both is there as a whole. Its journal gets a line whose number is above all that were given before, so that nothing that
was kept by such a number is taken for something else.
"""

import logging
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, insert, text

from wsabie.base.errors import BusyError, InputError, WsabieError
from wsabie.catalogue import tables
from wsabie.catalogue.backups import FOLDER, back_up, best_backup, check_backup, list_backups, new_path
from wsabie.catalogue.collection import is_collection, require_collection
from wsabie.catalogue.collection_file import (
    CATALOGUE,
    PLACE,
    CatalogueState,
    CollectionFile,
    own_catalogue,
    read_collection_file,
    record_state,
    state_of,
    write_collection_file,
)
from wsabie.catalogue.connection import refuse_read_only, upgrade_tables
from wsabie.catalogue.database import check_tables, open_database, upgrade, version, writing
from wsabie.catalogue.database_errors import explain_database_errors, restore_command
from wsabie.catalogue.journal import now
from wsabie.catalogue.sqlite_file import connect_file, copy_file, has_content, journal_of, logs_of
from wsabie.storage.atomic import UnwritableError, explained, replacing

_log = logging.getLogger("wsabie")


@dataclass(frozen=True)
class Restored:
    """Outcome of a restore.

    Attributes
    ----------
    source : str
        The backup; the catalogue itself where it was accepted as it is.
    journal : int
        The last entry that the backup holds.
    lost : int
        Entries after it, which only `replaced` holds.
    replaced : str or None
        The backup of what was there; None where nothing was.
    """

    source: str
    journal: int
    lost: int
    replaced: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return asdict(self)


def restore(folder: Path, source: Path | None = None, *, by: str, accept: bool = False) -> Restored:
    """Replace the catalogue of a collection by a backup; what was there is kept as a backup too.

    Parameters
    ----------
    folder : Path
    source : Path or None
        A backup, by its path or its name in the collection; None: the newest that is whole.
    by : str
        Who does it, for the journal.
    accept : bool
        Take a backup of another catalogue.

    Raises
    ------
    InputError
        There is no such backup, it is damaged, of another collection, or somebody has the collection open.
    """
    place, record = folder.resolve() / PLACE, read_record(folder)
    refuse_read_only(folder)
    path, state = _choose(place, source)
    if state.catalogue and record.catalogue not in (None, state.catalogue) and not accept:
        raise InputError(f"{path} is a backup of another collection; choose another, or take it all the same: --accept")
    with own_catalogue(place):
        catalogue = place / CATALOGUE
        replaced, end = _keep_replaced(place, catalogue)
        last = max(record.journal, state.journal, end)
        with replacing(catalogue) as draft:
            message = f"restored the backup {path.name}, which ends at entry {state.journal}"
            new = _prepare(path, draft, last, by, message)
            if new.catalogue != record.catalogue:  # until the new one is there, both are accepted
                write_collection_file(place, replace(record, catalogue=None))
            _close_logs(catalogue)
        record_state(place, new)
        _keep_restored(place, catalogue)
    return Restored(str(path), state.journal, last - state.journal, replaced)


def accept_catalogue(folder: Path, *, by: str) -> Restored:
    """Take the catalogue that is there, though it is older than the one that was, or another one.

    Raises
    ------
    InputError
        It is damaged, or somebody has the collection open.
    """
    folder = require_collection(folder)
    refuse_read_only(folder)
    place, record = folder / PLACE, read_collection_file(folder / PLACE)
    with own_catalogue(place):
        engine = open_database(record.database or place / CATALOGUE)
        try:
            if (record.database is None and not has_content(place / CATALOGUE)) or version(engine) is None:
                raise InputError(f"there is no catalogue to accept; restore a backup: {restore_command(folder)}")
            upgrade_tables(engine, place)
            check_tables(engine)
            old = state_of(engine)
            last = max(record.journal, old.journal)
            new = _add_line(engine, last, by, f"accepted the catalogue, which ended at entry {old.journal}")
        finally:
            engine.dispose()
        write_collection_file(place, replace(record, catalogue=new.catalogue, journal=new.journal))
    return Restored(record.database or str(place / CATALOGUE), old.journal, last - old.journal, None)


def read_record(folder: Path) -> CollectionFile:
    """Return what collection.json of a folder holds; where it is gone and backups are left, what it holds by default.

    Raises
    ------
    InputError
        The folder never was a collection, or the file cannot be read.
    """
    place = folder.resolve() / PLACE
    if not is_collection(folder) and best_backup(place) is not None:
        return CollectionFile(1, None)
    return read_collection_file(require_collection(folder) / PLACE)


def _choose(place: Path, source: Path | None) -> tuple[Path, CatalogueState]:
    """Return a backup that is whole: the one that is asked for, or the one that goes furthest."""
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
    """Keep what is replaced: as a backup, or, where it is damaged, byte for byte; and the last entry that it holds."""
    files = [file for file in (catalogue, *logs_of(catalogue)) if has_content(file)]
    if catalogue not in files or journal_of(catalogue) in files:  # to open it would change or remove the others
        return (_copy_files(place, *files) if files else None), 0
    engine = open_database(catalogue, "ro")
    try:
        backup = back_up(engine, place, "replaced")
        return str(backup.path), backup.journal or 0
    except (UnwritableError, BusyError):
        raise
    except InputError:
        return _copy_files(place, *files), 0
    finally:
        engine.dispose()


def _copy_files(place: Path, *files: Path) -> str:
    """Copy files of a catalogue byte for byte among the backups, and return the path of the first copy."""
    name = new_path(place, "replaced").name
    copies = [place / FOLDER / file.name.replace(CATALOGUE, name) for file in files]
    for file, copy in zip(files, copies, strict=True):
        with explained(copy), replacing(copy) as draft:
            shutil.copyfile(file, draft)
    return str(copies[0])


def _keep_restored(place: Path, catalogue: Path) -> None:
    """Back up what was restored: it goes further than what it replaced, and is the one that a later restore takes."""
    engine = open_database(catalogue, "ro")
    try:
        back_up(engine, place, "restored")
    except (WsabieError, OSError) as error:
        _log.warning("no backup of what was restored: %s", error)
    finally:
        engine.dispose()


def _prepare(source: Path, draft: Path, last: int, by: str, message: str) -> CatalogueState:
    """Make the new catalogue: a copy of a backup, with tables of this version and a line in its journal."""
    engine = open_database(draft, "draft")
    try:
        with explain_database_errors(engine):
            copy_file(source, draft)
        upgrade(engine)
        return _add_line(engine, last, by, message)
    finally:
        engine.dispose()


def _add_line(engine: Engine, last: int, by: str, message: str) -> CatalogueState:
    """Add a line to the journal whose number is above `last`, as are all that follow."""
    line = {"id": last + 1, "at": now(), "by": by, "action": "restore", "told": message}
    with writing(engine) as connection:
        connection.execute(insert(tables.journal).values(line))
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT setval(pg_get_serial_sequence('journal', 'id'), {last + 1})"))
    return state_of(engine)


def _close_logs(catalogue: Path) -> None:
    """Put what SQLite keeps beside the old catalogue into it, so that nothing is left for the new one."""
    engine = open_database(catalogue)
    try:
        if has_content(catalogue):
            with explain_database_errors(engine), closing(connect_file(catalogue, "rw")) as old:
                old.execute("PRAGMA journal_mode=DELETE").fetchall()
    except (UnwritableError, BusyError):
        raise
    except InputError:  # it is damaged, and all of its files are kept
        pass
    for path in (*logs_of(catalogue), catalogue.with_name(f"{CATALOGUE}-shm")):
        path.unlink(missing_ok=True)
