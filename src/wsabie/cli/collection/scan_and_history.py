"""Commands of a collection: init, add, scan, status, history, undo."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.collection.backups import BACKUP_COLUMNS, make_backup_rows
from wsabie.cli.collection.shared_options import (
    ByOption,
    FolderArgument,
    open_collection_folder,
    require_database,
    resolve_person,
)
from wsabie.cli.inputs.options import Json, Rejects, Threads
from wsabie.cli.terminal.output import TerminalProgress, format_count, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.scan.file_discovery import RootContents
    from wsabie.collection.scan.scanner import ScanResult
    from wsabie.storage.rejects import Rejects as Skipped

TagsOption = Annotated[
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
    tags: TagsOption = None,
    threads: Threads = None,
    rejects: Rejects = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Make a collection of a folder: a catalogue in DIR/.wsabie of its files, which stay unchanged."""
    require_database()
    _refuse_missing_folder(folder)
    from wsabie.cli.inputs.command_inputs import collect_rejects
    from wsabie.collection.db.errors import format_address
    from wsabie.collection.folder.collection import create_collection
    from wsabie.collection.scan.scanner import serialize_scan

    person = resolve_person(by)
    check_output_paths(("rejects", rejects))
    with collect_rejects(rejects, strict=False) as skipped:
        files = _discover_files(folder, tags, skipped, no_scan)
        with create_collection(folder, database) as collection:
            if not json:
                print_note(f"{collection.folder} is a collection; its catalogue is {format_address(collection.engine)}")
            result = None if no_scan else _scan_files(collection, person, threads, skipped, tags=tags, files=files)
            if json:
                document = {
                    "schema": 1,
                    "collection": str(collection.folder),
                    "database": format_address(collection.engine),
                }
                show_json(document if result is None else document | {"scanned": serialize_scan(result)})
            elif result is not None:
                _report_scan(collection, result, folder)


def add(
    folder: FolderArgument,
    paths: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders elsewhere; or new files in those of before.")
    ],
    tags: TagsOption = None,
    threads: Threads = None,
    rejects: Rejects = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Let further folders belong to the collection, and scan; nothing is written into them."""
    from wsabie.cli.inputs.command_inputs import collect_rejects

    check_output_paths(("rejects", rejects))
    with open_collection_folder(folder) as collection:
        from wsabie.collection.scan.file_discovery import discover_with_folders
        from wsabie.collection.scan.roots import add_root, check_folders

        person, folders = resolve_person(by), check_folders(collection, paths)
        with collect_rejects(rejects, strict=False) as skipped:
            files = discover_with_folders(collection, folders, tags, skipped, TerminalProgress())
            for root in folders:
                add_root(collection, root, by=person)
            result = _scan_files(collection, person, threads, skipped, tags=tags, files=files)
        _show_scan(collection, result, folder, json)


def scan(
    folder: FolderArgument,
    tags: TagsOption = None,
    rehash: Annotated[
        bool, typer.Option("--rehash", help="Read every file, also those whose size and time are as they were.")
    ] = False,
    threads: Threads = None,
    rejects: Rejects = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Look for new, moved, changed and missing files, and for tags in them."""
    from wsabie.cli.inputs.command_inputs import collect_rejects

    check_output_paths(("rejects", rejects))
    with open_collection_folder(folder) as collection:
        with collect_rejects(rejects, strict=False) as skipped:
            result = _scan_files(
                collection, resolve_person(by), threads, skipped, tags=tags, rehash=rehash, always=True
            )
        _show_scan(collection, result, folder, json)


def status(
    folder: FolderArgument,
    check: Annotated[bool, typer.Option("--check", help="Look through the whole database for damage.")] = False,
    json: Json = False,
) -> None:
    """Show the contents of a collection: items, labels, decisions and waiting suggestions."""
    with open_collection_folder(folder, read_only=True) as collection:
        from wsabie.collection.folder.backups import list_backups
        from wsabie.collection.folder.collection import make_damage_error
        from wsabie.collection.overview.status import read_status, serialize_status

        summary, backups = read_status(collection, check=check), list_backups(collection.place)
        if json:
            serialized = [backup.as_json() for backup in backups]
            show_json(
                {"schema": 1, "collection": str(collection.folder), **serialize_status(summary), "backups": serialized}
            )
        else:
            show_table(str(collection.folder), ["", ""], _format_status(summary))
            recent = [[entry.told or entry.action, entry.at[:19].replace("T", " "), entry.by] for entry in summary.last]
            if recent:
                show_table("what was done last", ["what", "when (UTC)", "who"], recent)
            if summary.drafts:
                drafts = format_count(len(summary.drafts), "draft")
                print_note(f"the next export to your pictures removes {drafts} of one that was stopped")
            if backups:
                show_table("backups of the catalogue", BACKUP_COLUMNS, make_backup_rows(backups))
        if summary.damage:
            raise make_damage_error(collection, summary.damage[0])


def history(
    folder: FolderArgument,
    k: Annotated[int, typer.Option("-k", min=1, max=100_000, help="Entries, last first.")] = 20,
    json: Json = False,
) -> None:
    """List the changes of a collection and their authors, newest first."""
    with open_collection_folder(folder, read_only=True) as collection:
        from wsabie.collection.db.journal import read_history

        records = read_history(collection.engine, k)
        if json:
            show_json({"schema": 1, "entries": [entry._asdict() for entry in records]})
            return
        rows = [
            [
                record.told or record.action,
                str(record.id),
                record.at[:19].replace("T", " "),
                record.by,
                _format_undo(record),
            ]
            for record in records
        ]
        title = f"{folder}: {format_count(len(rows), 'entry', 'entries')}, last first"
        show_table(title, ["what", "entry", "when (UTC)", "who", ""], rows)


def undo(
    folder: FolderArgument,
    entry: Annotated[
        int | None,
        typer.Argument(
            metavar="ENTRY", help="Its number in the history (default: the last of yours, here or in the pages)."
        ),
    ] = None,
    by: ByOption = None,
    json: Json = False,
) -> None:
    """Put back what an entry of the history changed; undoing can be undone too."""
    with open_collection_folder(folder) as collection:
        from wsabie.collection.db.journal import LOCAL, undo_entry

        old_sources = _list_tag_sources(collection)
        undone = undo_entry(collection.engine, entry, by=resolve_person(by), alias=None if by else LOCAL)
        sources = _list_tag_sources(collection)
        if json:
            show_json({"schema": 1, "undone": undone._asdict()})
            return
        changes = format_count(undone.changes, "change")
        print_note(f"undone: entry {undone.id} of {undone.by}, {undone.told or undone.action} ({changes})")
        if sources != old_sources:
            print_note(f"scans take tags from {' and '.join(sources) or 'nowhere'} again")
        elif sources and undone.action == "scan":
            stop = f"wsabie collection scan {quote(str(folder))} --tags none"
            print_note(f"later scans still take tags from {' and '.join(sources)}; to stop it: {stop}")


def _list_tag_sources(collection: "Collection") -> list[str]:
    """List the sources of tags for scans; the first choice is no entry of the history, and stays."""
    from wsabie.collection.scan.roots import list_roots

    sources = (root.options.get("tags", "none") for root in list_roots(collection))
    return sorted({kind for kind in sources if kind != "none"})


def _refuse_missing_folder(folder: Path) -> None:
    """Refuse a missing folder, and suggest one with a similar name."""
    from wsabie.storage.atomic_files import explain_read_errors
    from wsabie.vocabulary.label_names import find_closest_names

    with explain_read_errors(folder):
        if folder.exists():
            return
        parent = folder.absolute().parent
        names = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    similar = find_closest_names(folder.name, names, n=1)
    remedy = f"did you mean '{folder.parent / similar[0]}'? If not, make" if similar else "check the name, or make"
    raise InputError(f"there is no folder '{folder}'; {remedy} it first: mkdir {folder}")


def _discover_files(folder: Path, tags: str | None, rejects: "Skipped", no_scan: bool) -> "list[RootContents]":
    """Check the folder of a new collection and find its files, before anything is written."""
    from wsabie.collection.folder.collection import find_enclosing_collection, is_collection, refuse_no_room
    from wsabie.collection.scan.file_discovery import discover_new_collection

    if is_collection(folder):
        return []
    if (enclosing := find_enclosing_collection(folder)) is not None:
        print_note(
            f"{folder} lies in the collection {enclosing}; from now on both have tags of their own of what is in it"
        )
    refuse_no_room(folder)
    return [] if no_scan else discover_new_collection(folder, tags, rejects, TerminalProgress())


def _scan_files(
    collection: "Collection", by: str, threads: int | None, rejects: "Skipped", **options: Any
) -> "ScanResult":
    from wsabie.cli.inputs.command_inputs import make_executor
    from wsabie.collection.scan.scanner import scan_collection

    executor, progress = make_executor(threads), TerminalProgress()
    return scan_collection(collection, by=by, executor=executor, progress=progress, rejects=rejects, **options)


def _show_scan(collection: "Collection", result: "ScanResult", folder: Path, json: bool) -> None:
    from wsabie.collection.scan.scanner import serialize_scan

    if json:
        show_json({"schema": 1, "scanned": serialize_scan(result)})
    else:
        _report_scan(collection, result, folder)


def _report_scan(collection: "Collection", result: "ScanResult", folder: Path) -> None:
    """Report the result of a scan, and suggest the next command."""
    for root in result.away:
        print_note(f"{root.folder} is left as it was ({format_count(root.items, 'item')}): {root.reason}")
    for note in result.notes:
        print_note(note)
    if result.held:
        reasons = "its sidecar is new, gone or unreadable, the picture still has them, or lost all keywords"
        print_note(
            f"{format_count(result.held, 'tag')} kept that a file no longer says ({reasons}); clear those that are "
            "wrong"
        )
    if result.changed:
        print_note(f"{format_count(result.changed, 'file')} with other content: what was decided of them stays")
    if not (result.told or result.unchanged):
        print_note(
            f"nothing was found; put files into {folder}, or name other folders: "
            f"wsabie collection add {quote(str(folder))} FOLDER"
        )
        return
    unreadable = f" ({result.still_unreadable:,} of them unreadable)" * bool(result.still_unreadable)
    unchanged = f"{result.unchanged:,} as before{unreadable}" * bool(result.unchanged)
    summary = ", ".join(part for part in (result.told, unchanged) if part)
    print_note(f"{result.medium or 'files'}: {summary}")
    from wsabie.collection.overview.status import check_readiness

    readiness = check_readiness(collection)
    if readiness.tagged or result.medium != "pictures":
        print_note(f"next: wsabie collection {'train' if result.tagged else 'status'} {quote(str(folder))}")
    else:
        _suggest_first_steps(folder, readiness.folders)


def _suggest_first_steps(folder: Path, has_folders: bool) -> None:
    """Suggest ways to tag pictures and to train a first model."""
    from wsabie.collection.annotations.training_examples import FEWEST_ITEMS

    print_note(
        f"nothing is tagged yet; a model needs {FEWEST_ITEMS} tagged pictures and 2 labels, better 20 of each label"
    )
    print_note(f"next: tag some in the gallery: wsabie serve {quote(str(folder))}")
    print_note(f"or from a list: wsabie collection import {quote(str(folder))} tags.csv")
    if has_folders:
        print_note(
            "or by folders that are named after what is in them: "
            f"wsabie collection scan {quote(str(folder))} --tags folders"
        )
    print_note(f"then: wsabie collection train {quote(str(folder))}")


def _format_status(summary: Any) -> list[list[str]]:
    rows = [[summary.medium or "items", f"{summary.items['present']:,}"]]
    rows += [[f"  {state}", f"{summary.items[state]:,}"] for state in ("missing", "unreadable") if summary.items[state]]
    for root in summary.roots:
        kind = f", tags: {root.tags}" if root.tags else ""
        availability = "" if root.reachable else ", cannot be reached"
        rows.append([f"  in {root.folder}{kind}{availability}", f"{sum(root.items.values()):,}"])
    rows.append(["labels", f"{summary.labels:,}"])
    rows += [
        [f"{count.state} by {_ORIGIN_NAMES[count.origin]}", f"{count.annotations:,}"] for count in summary.annotations
    ]
    if summary.model is not None:
        rows.append([f"model {summary.model.id}, made {summary.model.made[:10]}", ""])
        rows.append(["suggestions that wait", f"{summary.suggestions:,}"])
    if summary.damage is not None:
        rows.append(["catalogue", "damaged" if summary.damage else "whole"])
    rows += [[f"draft that a stopped export left: {draft}", ""] for draft in summary.drafts]
    return rows


_ORIGIN_NAMES = {"person": "people", "import": "import", "model": "a model"}


def _format_undo(entry: Any) -> str:
    if entry.undone_by is not None:
        return f"undone by {entry.undone_by}"
    return f"undoes {entry.undoes}" if entry.undoes is not None else ""


COMMANDS: tuple[Callable[..., Any], ...] = (init, add, scan, status, history, undo)
