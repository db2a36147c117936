"""Commands of a collection: init, history, undo."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from wsabie.faces.cli.collection.group import By, Folder, opened, person, require_database
from wsabie.faces.cli.options import Json
from wsabie.faces.cli.terminal import note, show_json, show_table


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder with your pictures, or an empty one.")],
    database: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="PostgreSQL for a team, such as postgresql://user@host/name (default: SQLite in the folder).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a collection of a folder: a catalogue in DIR/.wsabie; your files are left as they are."""
    require_database()
    from wsabie.catalogue.collection import create
    from wsabie.catalogue.database import shown

    with create(folder, database) as collection:
        if json:
            show_json({"schema": 1, "collection": str(collection.folder), "database": shown(collection.engine)})
            return
        note(f"{collection.folder} is a collection; its catalogue is {shown(collection.engine)}")


def history(
    folder: Folder,
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="Entries, last first.")] = 20,
    json: Json = False,
) -> None:
    """What was done to the collection, by whom, last first."""
    with opened(folder) as collection:
        from wsabie.catalogue.journal import history as entries

        found = entries(collection.engine, k)
    if json:
        show_json({"schema": 1, "entries": [entry._asdict() for entry in found]})
        return
    rows = [[e.told or e.action, str(e.id), e.at[:19].replace("T", " "), e.by, _fate(e)] for e in found]
    show_table(f"{folder}: {len(rows):,} entries, last first", ["what", "entry", "when (UTC)", "who", ""], rows)


def undo(
    folder: Folder,
    entry: Annotated[
        int | None, typer.Argument(metavar="ENTRY", help="Its number in the history (default: the last of yours).")
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Put back what an entry of the history changed; undoing can be undone too."""
    with opened(folder) as collection:
        from wsabie.catalogue.journal import undo as put_back

        undone = put_back(collection.engine, entry, by=person(by))
    if json:
        show_json({"schema": 1, "undone": undone._asdict()})
        return
    note(f"undone: entry {undone.id}, {undone.told or undone.action} ({undone.changes:,} changes)")


def _fate(entry: Any) -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""


COMMANDS: tuple[Callable[..., Any], ...] = (init, history, undo)
