"""Commands of a collection: init, add, scan, status, history, undo."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.backups import BACKUP_COLUMNS, backup_rows
from wsabie.faces.cli.collection.group import By, Folder, opened, person, require_database
from wsabie.faces.cli.options import Json, Rejects, Threads
from wsabie.faces.cli.terminal import TerminalProgress, note, plural, show_json, show_table
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.finding import Found
    from wsabie.catalogue.scanning import Scanned
    from wsabie.storage.rejects import Rejects as Skipped

Tags = Annotated[
    Literal["auto", "xmp", "tags", "folders", "metadata", "none"] | None,
    typer.Option(
        help="Where tags are found: metadata.csv, sub-folders, inside pictures (xmp) or sounds (tags), or the first of "
        "these that says something (auto); kept for later scans (default: as before, at first auto)."
    ),
]


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder with your pictures, or an empty one; it must be there.")
    ],
    database: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="PostgreSQL for a team, such as postgresql://user@host/name (default: SQLite in the folder).",
        ),
    ] = None,
    no_scan: Annotated[bool, typer.Option("--no-scan", help="Look for no files yet.")] = False,
    tags: Tags = None,
    threads: Threads = None,
    rejects: Rejects = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Make a collection of a folder: a catalogue in DIR/.wsabie of the files in it, which are left as they are."""
    require_database()
    _refuse_absent(folder)
    from wsabie.catalogue.collection import create
    from wsabie.catalogue.database_errors import shown
    from wsabie.catalogue.scanning import as_json
    from wsabie.faces.cli.common import listing

    who = person(by)
    refuse_unwritable(("rejects", rejects))
    with listing(rejects, strict=False) as skipped:
        files = _prepare(folder, tags, skipped, no_scan)
        with create(folder, database) as collection:
            if not json:
                note(f"{collection.folder} is a collection; its catalogue is {shown(collection.engine)}")
            scanned = None if no_scan else _scanned(collection, who, threads, skipped, tags=tags, files=files)
            if json:
                made = {"schema": 1, "collection": str(collection.folder), "database": shown(collection.engine)}
                show_json(made if scanned is None else made | {"scanned": as_json(scanned)})
            elif scanned is not None:
                _tell(collection, scanned, folder)


def add(
    folder: Folder,
    paths: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders elsewhere; or new files in those of before.")
    ],
    tags: Tags = None,
    threads: Threads = None,
    rejects: Rejects = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Let further folders belong to the collection, and scan; nothing is written into them."""
    from wsabie.faces.cli.common import listing

    refuse_unwritable(("rejects", rejects))
    with opened(folder) as collection:
        from wsabie.catalogue.finding import find_with
        from wsabie.catalogue.roots import add_root, check_folders

        who, new = person(by), check_folders(collection, paths)
        with listing(rejects, strict=False) as skipped:
            files = find_with(collection, new, tags, skipped, TerminalProgress())
            for one in new:
                add_root(collection, one, by=who)
            scanned = _scanned(collection, who, threads, skipped, tags=tags, files=files)
        _show(collection, scanned, folder, json)


def scan(
    folder: Folder,
    tags: Tags = None,
    rehash: Annotated[
        bool, typer.Option("--rehash", help="Read every file, also those whose size and time are as they were.")
    ] = False,
    threads: Threads = None,
    rejects: Rejects = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Look for new, moved, changed and missing files, and for tags in them."""
    from wsabie.faces.cli.common import listing

    refuse_unwritable(("rejects", rejects))
    with opened(folder) as collection:
        with listing(rejects, strict=False) as skipped:
            scanned = _scanned(collection, person(by), threads, skipped, tags=tags, rehash=rehash, always=True)
        _show(collection, scanned, folder, json)


def status(
    folder: Folder,
    check: Annotated[bool, typer.Option("--check", help="Look through the whole database for damage.")] = False,
    json: Json = False,
) -> None:
    """What the collection holds, what is decided and what waits."""
    with opened(folder, read_only=True) as collection:
        from wsabie.catalogue.backups import list_backups
        from wsabie.catalogue.collection import damage_error
        from wsabie.catalogue.standing import as_json, standing

        found, backups = standing(collection, check=check), list_backups(collection.place)
        if json:
            kept = [backup.as_json() for backup in backups]
            show_json({"schema": 1, "collection": str(collection.folder), **as_json(found), "backups": kept})
        else:
            show_table(str(collection.folder), ["", ""], _standing_rows(found))
            lines = [[e.told or e.action, e.at[:19].replace("T", " "), e.by] for e in found.last]
            if lines:
                show_table("what was done last", ["what", "when (UTC)", "who"], lines)
            if found.drafts:
                drafts = plural(len(found.drafts), "draft")
                note(f"the next export to your pictures removes {drafts} of one that was stopped")
            if backups:
                show_table("backups of the catalogue", BACKUP_COLUMNS, backup_rows(backups))
        if found.damage:
            raise damage_error(collection, found.damage[0])


def history(
    folder: Folder,
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="Entries, last first.")] = 20,
    json: Json = False,
) -> None:
    """What was done to the collection, by whom, last first."""
    with opened(folder, read_only=True) as collection:
        from wsabie.catalogue.journal import history as entries

        found = entries(collection.engine, k)
        if json:
            show_json({"schema": 1, "entries": [entry._asdict() for entry in found]})
            return
        rows = [[e.told or e.action, str(e.id), e.at[:19].replace("T", " "), e.by, _fate(e)] for e in found]
        title = f"{folder}: {plural(len(rows), 'entry', 'entries')}, last first"
        show_table(title, ["what", "entry", "when (UTC)", "who", ""], rows)


def undo(
    folder: Folder,
    entry: Annotated[
        int | None,
        typer.Argument(
            metavar="ENTRY", help="Its number in the history (default: the last of yours, here or in the pages)."
        ),
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Put back what an entry of the history changed; undoing can be undone too."""
    with opened(folder) as collection:
        from wsabie.catalogue.journal import LOCAL
        from wsabie.catalogue.journal import undo as put_back

        before = _tags_from(collection)
        undone = put_back(collection.engine, entry, by=person(by), alias=None if by else LOCAL)
        kinds = _tags_from(collection)
        if json:
            show_json({"schema": 1, "undone": undone._asdict()})
            return
        changes = plural(undone.changes, "change")
        note(f"undone: entry {undone.id} of {undone.by}, {undone.told or undone.action} ({changes})")
        if kinds != before:
            note(f"scans take tags from {' and '.join(kinds) or 'nowhere'} again")
        elif kinds and undone.action == "scan":
            stop = f"wsabie collection scan {quote(str(folder))} --tags none"
            note(f"later scans still take tags from {' and '.join(kinds)}; to stop it: {stop}")


def _tags_from(collection: "Collection") -> list[str]:
    """Where scans take tags from: what was chosen first is no entry of the history, and stays."""
    from wsabie.catalogue.roots import all_roots

    chosen = (root.options.get("tags", "none") for root in all_roots(collection))
    return sorted({kind for kind in chosen if kind != "none"})


def _refuse_absent(folder: Path) -> None:
    """A folder that is not there was mistyped, or is to be made by whoever wants it."""
    from wsabie.labels.names import closest
    from wsabie.storage.atomic import readable

    with readable(folder):
        if folder.exists():
            return
        beside = folder.absolute().parent
        names = [one.name for one in beside.iterdir() if one.is_dir()] if beside.is_dir() else []
    near = closest(folder.name, names, n=1)
    meant = f"did you mean '{folder.parent / near[0]}'? If not, make" if near else "check the name, or make"
    raise InputError(f"there is no folder '{folder}'; {meant} it first: mkdir {folder}")


def _prepare(folder: Path, tags: str | None, rejects: "Skipped", no_scan: bool) -> "list[Found]":
    """Check a folder that is to become a collection, and walk through it, before anything is written."""
    from wsabie.catalogue.collection import collection_above, is_collection, refuse_no_room
    from wsabie.catalogue.finding import find_first

    if is_collection(folder):
        return []
    if (above := collection_above(folder)) is not None:
        note(f"{folder} lies in the collection {above}; from now on both have tags of their own of what is in it")
    refuse_no_room(folder)
    return [] if no_scan else find_first(folder, tags, rejects, TerminalProgress())


def _scanned(collection: "Collection", by: str, threads: int | None, rejects: "Skipped", **options: Any) -> "Scanned":
    from wsabie.catalogue.scanning import scan as look
    from wsabie.faces.cli.common import executor

    run, progress = executor(threads), TerminalProgress()
    return look(collection, by=by, executor=run, progress=progress, rejects=rejects, **options)


def _show(collection: "Collection", scanned: "Scanned", folder: Path, json: bool) -> None:
    from wsabie.catalogue.scanning import as_json

    if json:
        show_json({"schema": 1, "scanned": as_json(scanned)})
    else:
        _tell(collection, scanned, folder)


def _tell(collection: "Collection", scanned: "Scanned", folder: Path) -> None:
    """What was found, and what to do next."""
    for away in scanned.away:
        note(f"{away.folder} is left as it was ({plural(away.items, 'item')}): {away.reason}")
    for said in scanned.notes:
        note(said)
    if scanned.held:
        why = "its sidecar is new, gone or unreadable, the picture still has them, or lost all keywords"
        note(f"{plural(scanned.held, 'tag')} kept that a file no longer says ({why}); clear those that are wrong")
    if scanned.changed:
        note(f"{plural(scanned.changed, 'file')} with other content: what was decided of them stays")
    if not (scanned.told or scanned.unchanged):
        note(
            f"nothing was found; put files into {folder}, or name other folders: "
            f"wsabie collection add {quote(str(folder))} FOLDER"
        )
        return
    still = f" ({scanned.still_unreadable:,} of them unreadable)" * bool(scanned.still_unreadable)
    before = f"{scanned.unchanged:,} as before{still}" * bool(scanned.unchanged)
    told = ", ".join(part for part in (scanned.told, before) if part)
    note(f"{scanned.medium or 'files'}: {told}")
    from wsabie.catalogue.standing import beginning

    begun = beginning(collection)
    if begun.tagged or scanned.medium != "pictures":
        note(f"next: wsabie collection {'train' if scanned.tagged else 'status'} {quote(str(folder))}")
    else:
        _tell_beginning(folder, begun.folders)


def _tell_beginning(folder: Path, has_folders: bool) -> None:
    """How pictures of which nothing is known come to tags and a model."""
    from wsabie.catalogue.examples import FEWEST_ITEMS

    note(f"nothing is tagged yet; a model needs {FEWEST_ITEMS} tagged pictures and 2 labels, better 20 of each label")
    note(f"next: tag some in the gallery: wsabie serve {quote(str(folder))}")
    note(f"or from a list: wsabie collection import {quote(str(folder))} tags.csv")
    if has_folders:
        note(
            "or by folders that are named after what is in them: "
            f"wsabie collection scan {quote(str(folder))} --tags folders"
        )
    note(f"then: wsabie collection train {quote(str(folder))}")


def _standing_rows(found: Any) -> list[list[str]]:
    rows = [[found.medium or "items", f"{found.items['present']:,}"]]
    rows += [[f"  {state}", f"{found.items[state]:,}"] for state in ("missing", "unreadable") if found.items[state]]
    for root in found.roots:
        kind = f", tags: {root.tags}" if root.tags else ""
        away = "" if root.reachable else ", cannot be reached"
        rows.append([f"  in {root.folder}{kind}{away}", f"{sum(root.items.values()):,}"])
    rows.append(["labels", f"{found.labels:,}"])
    rows += [[f"{one.state} by {_WHO[one.origin]}", f"{one.annotations:,}"] for one in found.annotations]
    if found.model is not None:
        rows.append([f"model {found.model.id}, made {found.model.made[:10]}", ""])
        rows.append(["suggestions that wait", f"{found.suggestions:,}"])
    if found.damage is not None:
        rows.append(["catalogue", "damaged" if found.damage else "whole"])
    rows += [[f"draft that a stopped export left: {draft}", ""] for draft in found.drafts]
    return rows


_WHO = {"person": "people", "import": "import", "model": "a model"}


def _fate(entry: Any) -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""


COMMANDS: tuple[Callable[..., Any], ...] = (init, add, scan, status, history, undo)
