"""The folders of a collection, each with its modality and its source of tags."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, update

from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import JournalWriter, begin_entry
from wsabie.collection.db.tables import roots, tag_sources
from wsabie.collection.folder.collection import COLLECTION_ROOT, WEB_ROOT, Collection
from wsabie.collection.folder.collection_file import PLACE
from wsabie.core.errors import InputError
from wsabie.io.parsers.text_files import format_path

TAG_SOURCES = ("auto", "xmp", "tags", "folders", "metadata", "none")
"""Sources of tags; "tags" are those inside sounds."""


class Root(NamedTuple):
    """A folder that is scanned.

    Attributes
    ----------
    id : int
    folder : Path
    options : dict
        "modality": its modality; "tags": source of its tags; "metadata": hash of the table that was read last;
        "tables": number of tables in sub-folders that were reported as unread.
    """

    id: int
    folder: Path
    options: dict[str, Any]


def list_roots(collection: Collection) -> list[Root]:
    """Return the folders of a collection, its own folder first."""
    with begin_read(collection.engine) as connection:
        query = (
            select(roots, tag_sources.c.source)
            .outerjoin(tag_sources)
            .where(roots.c.path != WEB_ROOT)
            .order_by(roots.c.id)
        )
        rows = connection.execute(query).all()
    return [
        Root(
            number,
            collection.folder if path == COLLECTION_ROOT else Path(path),
            (options or {}) | ({"tags": tags} if tags else {}),
        )
        for number, path, options, tags in rows
    ]


def read_modality(collection: Collection) -> str | None:
    """Return "pictures", "sounds" or "documents"; None before any file was found."""
    return next((root.options["modality"] for root in list_roots(collection) if "modality" in root.options), None)


def save_root_options(connection: Connection, number: int, options: dict[str, Any]) -> None:
    """Save the scan options of a root; an existing source of tags stays (see `change_tag_source`)."""
    stored = {name: value for name, value in options.items() if name != "tags"}
    connection.execute(update(roots).where(roots.c.id == number).values(options=stored))
    choice = connection.execute(select(tag_sources.c.id).where(tag_sources.c.root_id == number)).first()
    if choice is None and "tags" in options:
        connection.execute(insert(tag_sources).values(root_id=number, source=options["tags"]))


def change_tag_source(change: JournalWriter, number: int, tags: str) -> None:
    """Change the source of tags of a root; an undo restores it."""
    choice_ids = change.connection.execute(select(tag_sources.c.id).where(tag_sources.c.root_id == number)).scalars()
    change.update(tag_sources, {choice_id: {"source": tags} for choice_id in choice_ids})


def check_folders(collection: Collection, paths: Iterable[Path]) -> list[Path]:
    """Return the new folders among `paths`; files must lie in folders of the collection.

    Raises
    ------
    InputError
        A path does not exist, lies in a folder of the collection or contains one, or a file lies outside.
    """
    scanned, new_folders = [root.folder for root in list_roots(collection)], list[Path]()
    for path in paths:
        folder = _check_folder(collection, path, [*scanned, *new_folders])
        new_folders += [] if folder is None else [folder]
    return new_folders


def _check_folder(collection: Collection, path: Path, scanned: Sequence[Path]) -> Path | None:
    try:
        folder = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"there is no file or folder {format_path(path)}; check the name") from error
    if str(folder) != format_path(folder):
        raise InputError(f"the name of {format_path(folder)} is not UTF-8; rename the folder")
    enclosing = next((root for root in scanned if folder.is_relative_to(root)), None)
    if not folder.is_dir():
        _check_file(folder, enclosing)
        return None
    if enclosing is not None:
        raise InputError(
            f"{folder} {'is' if enclosing == folder else 'lies in ' + str(enclosing) + ', which is'} scanned already; "
            f"run: wsabie collection scan {quote(str(collection.folder))}"
        )
    nested = next((root for root in scanned if root.is_relative_to(folder)), None)
    if nested is not None:
        raise InputError(f"{folder} holds {nested}, which is scanned already; give folders that lie beside it")
    return folder


def add_root(collection: Collection, folder: Path, *, by: str) -> int:
    """Add a folder that `check_folders` returned to the collection; return its id."""
    with begin_entry(collection.engine, by, "add", f"added the folder {folder}", always=True) as change:
        if change.connection.execute(select(roots.c.id).where(roots.c.path == str(folder))).first() is not None:
            command = f"wsabie collection scan {quote(str(collection.folder))}"
            raise InputError(f"{folder} is scanned already; run: {command}")
        number = change.connection.execute(insert(roots).values(path=str(folder))).inserted_primary_key
    return int(number[0])  # type: ignore[index]  # it has one


def _check_file(file: Path, root: Path | None) -> None:
    if root is None:
        raise InputError(f"{file} is in no folder of the collection; add the folder that it lies in")
    if any(part.startswith(".") for part in file.relative_to(root).parts):
        raise InputError(f"{file} is hidden (as {PLACE} is), and what is hidden is not scanned; move it")


def check_tag_source(collection: Collection, tags: str | None) -> None:
    """Refuse an unknown or unsuitable source of tags.

    Raises
    ------
    InputError
        It is not in `TAG_SOURCES`, or does not fit the modality of the collection.
    """
    if tags is None:
        return
    if tags not in TAG_SOURCES:
        raise InputError(f"tags cannot come from {tags!r}; choose one of {', '.join(TAG_SOURCES)}")
    modality = read_modality(collection)
    required_modality = {"xmp": "pictures", "tags": "sounds"}.get(tags)
    if required_modality is not None and modality is not None and modality != required_modality:
        raise InputError(
            f"this is a collection of {modality}, and only {required_modality} have {tags!r}; leave --tags out"
        )
