"""The folders of a collection, and how each of them is scanned: what for, and where its tags come from."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, update

from wsabie.base.errors import InputError
from wsabie.catalogue.collection import HERE, WEB, Collection
from wsabie.catalogue.collection_file import PLACE
from wsabie.catalogue.database import reading
from wsabie.catalogue.journal import Change, entry
from wsabie.catalogue.tables import choices, roots
from wsabie.sources.text import shown

TAGS = ("auto", "xmp", "tags", "folders", "metadata", "none")
"""Where tags may come from; "tags" are those inside sounds."""


class Root(NamedTuple):
    """A folder that is scanned.

    Attributes
    ----------
    id : int
    folder : Path
    options : dict
        "medium": of what it is; "tags": where its tags come from; "metadata": a hash of the table that was read last;
        "tables": how many tables of tags in sub-folders were left out and told.
    """

    id: int
    folder: Path
    options: dict[str, Any]


def all_roots(collection: Collection) -> list[Root]:
    """The folders of a collection, first its own."""
    with reading(collection.engine) as connection:
        query = select(roots, choices.c.tags).outerjoin(choices).where(roots.c.path != WEB).order_by(roots.c.id)
        rows = connection.execute(query).all()
    return [
        Root(n, collection.folder if path == HERE else Path(path), (options or {}) | ({"tags": tags} if tags else {}))
        for n, path, options, tags in rows
    ]


def medium_of_collection(collection: Collection) -> str | None:
    """ "pictures", "sounds" or "documents"; None before the first scan that found any."""
    return next((root.options["medium"] for root in all_roots(collection) if "medium" in root.options), None)


def keep_options(connection: Connection, number: int, options: dict[str, Any]) -> None:
    """Write down how a root is scanned from now on, but for a choice of tags that is there: see `choose_again`."""
    known = {name: value for name, value in options.items() if name != "tags"}
    connection.execute(update(roots).where(roots.c.id == number).values(options=known))
    there = connection.execute(select(choices.c.id).where(choices.c.root_id == number)).first()
    if there is None and "tags" in options:
        connection.execute(insert(choices).values(root_id=number, tags=options["tags"]))


def choose_again(change: Change, number: int, tags: str) -> None:
    """Take tags of a root from elsewhere than before, from now on or until it is undone."""
    there = change.connection.execute(select(choices.c.id).where(choices.c.root_id == number)).scalars()
    change.set(choices, {row: {"tags": tags} for row in there})


def check_folders(collection: Collection, paths: Iterable[Path]) -> list[Path]:
    """Return the folders among `paths`, which are to be scanned too; files must be in folders that are.

    Raises
    ------
    InputError
        One does not exist, lies in a folder of the collection or holds one, or a file lies in none.
    """
    there, new = [root.folder for root in all_roots(collection)], list[Path]()
    for path in paths:
        folder = _new_folder(collection, path, [*there, *new])
        new += [] if folder is None else [folder]
    return new


def _new_folder(collection: Collection, path: Path, there: Sequence[Path]) -> Path | None:
    try:
        folder = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"there is no file or folder {shown(path)}; check the name") from error
    if str(folder) != shown(folder):
        raise InputError(f"the name of {shown(folder)} is not UTF-8; rename the folder")
    inside = next((root for root in there if folder.is_relative_to(root)), None)
    if not folder.is_dir():
        _refuse_outside(folder, inside)
        return None
    if inside is not None:
        raise InputError(
            f"{folder} {'is' if inside == folder else 'lies in ' + str(inside) + ', which is'} scanned already; "
            f"run: wsabie collection scan {quote(str(collection.folder))}"
        )
    below = next((root for root in there if root.is_relative_to(folder)), None)
    if below is not None:
        raise InputError(f"{folder} holds {below}, which is scanned already; give folders that lie beside it")
    return folder


def add_root(collection: Collection, folder: Path, *, by: str) -> int:
    """Let a folder be scanned too, one of those that `check_folders` gave; return its number."""
    with entry(collection.engine, by, "add", f"added the folder {folder}", always=True) as change:
        if change.connection.execute(select(roots.c.id).where(roots.c.path == str(folder))).first() is not None:
            again = f"wsabie collection scan {quote(str(collection.folder))}"
            raise InputError(f"{folder} is scanned already; run: {again}")
        number = change.connection.execute(insert(roots).values(path=str(folder))).inserted_primary_key
    return int(number[0])  # type: ignore[index]  # it has one


def _refuse_outside(file: Path, root: Path | None) -> None:
    if root is None:
        raise InputError(f"{file} is in no folder of the collection; add the folder that it lies in")
    if any(part.startswith(".") for part in file.relative_to(root).parts):
        raise InputError(f"{file} is hidden (as {PLACE} is), and what is hidden is not scanned; move it")


def choose(collection: Collection, tags: str | None) -> None:
    """Refuse a choice that there is not.

    Raises
    ------
    InputError
        It is not one of `TAGS`, or not of this medium.
    """
    if tags is None:
        return
    if tags not in TAGS:
        raise InputError(f"tags cannot come from {tags!r}; choose one of {', '.join(TAGS)}")
    medium = medium_of_collection(collection)
    wrong = {"xmp": "pictures", "tags": "sounds"}.get(tags)
    if wrong is not None and medium is not None and medium != wrong:
        raise InputError(f"this is a collection of {medium}, and only {wrong} have {tags!r}; leave --tags out")
