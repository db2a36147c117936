"""The file of an item, which never lies outside of the folders that belong to the collection."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select

from wsabie.base.errors import InputError, MissingError
from wsabie.catalogue.collection import Collection
from wsabie.catalogue.database import reading
from wsabie.catalogue.tables import items


class FoundFile(NamedTuple):
    """A file, its content as it was scanned, and the size and time that it had."""

    path: Path
    hash: str
    stat: tuple[int, int]


def found_file(collection: Collection, item: int) -> FoundFile:
    """The file of an item.

    Raises
    ------
    MissingError
        There is no such item, or it is an address.
    InputError
        It could not be read, or a link leads out of its folder.
    """
    c = items.c
    with reading(collection.engine) as connection:
        query = select(c.root_id, c.path, c.hash, c.size, c.modified).where(c.id == item)
        row = connection.execute(query).first() if abs(item) < 2**63 else None
    folder = None if row is None else collection.roots().get(row.root_id)
    if row is None or folder is None:
        raise MissingError(f"there is no item number {item} with a file; `wsabie collection status` says what there is")
    if row.hash is None:
        raise InputError(f"{row.path} cannot be read; mend it, and run: wsabie collection scan {collection.folder}")
    path = folder / row.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{row.path} is a link that leads out of {folder}; it is not followed")
    return FoundFile(path, row.hash, (row.size, row.modified))


def item_at(collection: Collection, path: str) -> int:
    """The number of the item with a path in its folder; of several the first.

    Raises
    ------
    MissingError
        There is none.
    """
    query = select(items.c.id).where(items.c.path == path).order_by(items.c.root_id, items.c.id).limit(1)
    with reading(collection.engine) as connection:
        number = connection.execute(query).scalar()
    if number is None:
        raise MissingError(f"there is no item {path!r}; give its path in the collection's folder, such as 2024/cat.jpg")
    return int(number)
