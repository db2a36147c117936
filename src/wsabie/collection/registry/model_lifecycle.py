"""Register models and remove old ones: folders, rows, and the remains of unfinished trainings."""

import re
import secrets
import shutil

from sqlalchemy import delete, func, insert, select, update

from wsabie.collection.annotations.decisions import find_model_in_use
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import Row, begin_entry, format_current_time
from wsabie.collection.db.tables import changes, models, suggestions, views
from wsabie.collection.folder.collection import Collection
from wsabie.collection.folder.model_lock import lock_models
from wsabie.collection.registry.model_registry import list_models
from wsabie.storage.atomic_files import remove_drafts

_FOLDER_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_CHUNK = 500  # items whose suggestions are deleted in one transaction


def make_folder_name() -> str:
    """Return a name for the folder of a new model."""
    time = format_current_time()
    return f"{time[:10].replace('-', '')}-{time[11:19].replace(':', '')}-{secrets.token_hex(3)}"


def register_model(collection: Collection, row: Row) -> int:
    """Insert the row of a model that is not in use yet; return its id, which is never reused."""
    last_change = select(func.max(changes.c.row)).where(changes.c.table == models.name)
    with begin_write(collection.engine) as connection:
        number = 1 + max(
            connection.execute(query).scalar() or 0 for query in (last_change, select(func.max(models.c.id)))
        )
        connection.execute(
            insert(models), [{"made": format_current_time(), "in_use": False, "removed": False} | row | {"id": number}]
        )
    return number


def remove_old_models(collection: Collection, n: int, *, by: str) -> list[int]:
    """Remove folders and suggestions of all but the last `n` models and the one in use.

    Return their ids. This cannot be undone; the journal records it.
    """
    with lock_models(collection):
        remove_unfinished_models(collection)
        removed = [record.number for record in list_models(collection)[n:] if not record.in_use]
        for number in removed:
            with begin_write(collection.engine) as connection:
                if find_model_in_use(connection) == number:
                    continue
                connection.execute(update(models).where(models.c.id == number).values(removed=True))
            _delete_data(collection, number)
        if removed:
            with begin_entry(collection.engine, by, "models", f"{len(removed)} old models removed", always=True):
                pass
    return removed


def remove_unfinished_models(collection: Collection) -> None:
    """Remove the remains of unfinished trainings; the caller holds the lock."""
    with begin_read(collection.engine) as connection:
        is_unfinished = models.c.in_use.is_(False) & (models.c.figures == {}) & models.c.removed.is_(False)
        unfinished_ids = connection.execute(select(models.c.id).where(is_unfinished)).scalars().all()
        removed_ids = connection.execute(select(models.c.id).where(models.c.removed.is_(True))).scalars().all()
    for number in (*unfinished_ids, *removed_ids):
        _delete_data(collection, number)
    if unfinished_ids:
        with begin_write(collection.engine) as connection:
            connection.execute(delete(models).where(models.c.id.in_(unfinished_ids)))
    with begin_read(collection.engine) as connection:
        folders = set(connection.execute(select(models.c.folder).where(models.c.removed.is_(False))).scalars())
    for path in collection.models.glob("*"):
        if path.name not in folders and _FOLDER_NAME.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    remove_drafts(collection.place)


def _delete_data(collection: Collection, number: int) -> None:
    """Remove the folder, the suggestions and the scores of a model, a few items at a time."""
    with begin_read(collection.engine) as connection:
        folder = connection.execute(select(models.c.folder).where(models.c.id == number)).scalar()
    if folder and _FOLDER_NAME.fullmatch(folder):
        shutil.rmtree(collection.models / folder, ignore_errors=True)
    for table in (suggestions, views):
        while True:
            with begin_write(collection.engine) as connection:
                query = select(table.c.item_id).where(table.c.model_id == number).distinct().limit(_CHUNK)
                item_ids = connection.execute(query).scalars().all()
                if not item_ids:
                    break
                connection.execute(delete(table).where(table.c.model_id == number, table.c.item_id.in_(item_ids)))
