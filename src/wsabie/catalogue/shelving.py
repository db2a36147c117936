"""Models come to the shelf, and old ones go: their folders, their rows, and what unfinished trainings left."""

import re
import secrets
import shutil

from sqlalchemy import delete, func, insert, select, update

from wsabie.catalogue.alone import alone
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.deciding import model_in_use
from wsabie.catalogue.journal import Row, entry, now
from wsabie.catalogue.shelf import on_shelf
from wsabie.catalogue.tables import changes, models, suggestions, views
from wsabie.storage.atomic import remove_drafts

_OURS = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_ROWS_AT_ONCE = 500  # items whose suggestions go in one transaction


def new_folder() -> str:
    """A name for the folder of a new model."""
    made = now()
    return f"{made[:10].replace('-', '')}-{made[11:19].replace(':', '')}-{secrets.token_hex(3)}"


def put(collection: Collection, row: Row) -> int:
    """Write the row of a model that is not in use yet; its number, which no other had."""
    known = select(func.max(changes.c.row)).where(changes.c.table == models.name)
    with writing(collection.engine) as connection:
        number = 1 + max(connection.execute(q).scalar() or 0 for q in (known, select(func.max(models.c.id))))
        connection.execute(insert(models), [{"made": now(), "in_use": False, "removed": False} | row | {"id": number}])
    return number


def keep(collection: Collection, n: int, *, by: str) -> list[int]:
    """Remove the folders and suggestions of all but the last `n` models and the one in use; the numbers of those.

    This cannot be undone; the line in the journal says so much.
    """
    with alone(collection):
        sweep(collection)
        old = [shelved.number for shelved in on_shelf(collection)[n:] if not shelved.in_use]
        for number in old:
            with writing(collection.engine) as connection:
                if model_in_use(connection) == number:
                    continue
                connection.execute(update(models).where(models.c.id == number).values(removed=True))
            _forget(collection, number)
        if old:
            with entry(collection.engine, by, "models", f"{len(old)} old models removed", always=True):
                pass
    return old


def sweep(collection: Collection) -> None:
    """Remove what trainings left that did not come to an end. Whoever calls holds the lock."""
    with reading(collection.engine) as connection:
        unfinished = models.c.in_use.is_(False) & (models.c.figures == {}) & models.c.removed.is_(False)
        left = connection.execute(select(models.c.id).where(unfinished)).scalars().all()
        gone = connection.execute(select(models.c.id).where(models.c.removed.is_(True))).scalars().all()
    for number in (*left, *gone):
        _forget(collection, number)
    if left:
        with writing(collection.engine) as connection:
            connection.execute(delete(models).where(models.c.id.in_(left)))
    with reading(collection.engine) as connection:
        known = set(connection.execute(select(models.c.folder).where(models.c.removed.is_(False))).scalars())
    for path in collection.models.glob("*"):
        if path.name not in known and _OURS.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    remove_drafts(collection.place)


def _forget(collection: Collection, number: int) -> None:
    """Remove the folder, the suggestions and the views of a model, a few items at a time."""
    with reading(collection.engine) as connection:
        folder = connection.execute(select(models.c.folder).where(models.c.id == number)).scalar()
    if folder and _OURS.fullmatch(folder):
        shutil.rmtree(collection.models / folder, ignore_errors=True)
    for table in (suggestions, views):
        while True:
            with writing(collection.engine) as connection:
                query = select(table.c.item_id).where(table.c.model_id == number).distinct().limit(_ROWS_AT_ONCE)
                some = connection.execute(query).scalars().all()
                if not some:
                    break
                connection.execute(delete(table).where(table.c.model_id == number, table.c.item_id.in_(some)))
