"""Commands of a collection: init, add, scan."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder, require_database
from wsabie.cli.command import command, options
from wsabie.cli.options import ListedRejectOptions, ThreadOptions
from wsabie.cli.output import TerminalProgress, format_count, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.scan.file_discovery import RootContents
    from wsabie.collection.scan.scanner import ScanResult
    from wsabie.storage.rejects import Rejects

TagsOption = Annotated[
    Literal["auto", "xmp", "tags", "folders", "metadata", "none"] | None,
    typer.Option(
        help="Where tags are found: metadata.csv, sub-folders, inside pictures (xmp) or sounds (tags), or the first of "
        "these that says something (auto); kept for later scans (default: as before, at first auto)."
    ),
]


@options
class InitOptions:
    """Options of `wsabie collection init`."""

    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder with your pictures, or an empty one; it must be there.")
    ]
    tags: TagsOption = None
    database: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="PostgreSQL for a team, such as postgresql://user@host/name (default: SQLite in the folder).",
        ),
    ] = None
    no_scan: Annotated[bool, typer.Option(help="Look for no files yet.")] = False
    machine: ThreadOptions = ThreadOptions()
    person: PersonOptions = PersonOptions()
    output: ListedRejectOptions = ListedRejectOptions()


@command("collection init photos", "collection init photos --tags folders")
def init(options: InitOptions) -> None:
    """Make a collection of a folder: a catalogue in DIR/.wsabie of its files, which stay unchanged."""
    folder, tags, no_scan = options.folder, options.tags, options.no_scan
    require_database()
    _refuse_missing_folder(folder)
    from wsabie.collection.db.errors import format_address
    from wsabie.collection.folder.collection import create_collection
    from wsabie.collection.scan.scanner import serialize_scan

    person = options.person.resolve()
    check_output_paths(("rejects", options.output.rejects))
    with options.output.collect() as skipped:
        files = _discover_files(folder, tags, skipped, no_scan)
        with create_collection(folder, options.database) as collection:
            if not options.output.json:
                print_note(f"{collection.folder} is a collection; its catalogue is {format_address(collection.engine)}")
            result = None if no_scan else _scan_files(options, collection, person, skipped, files=files)
            if options.output.json:
                document = {
                    "schema": 1,
                    "collection": str(collection.folder),
                    "database": format_address(collection.engine),
                }
                show_json(document if result is None else document | {"scanned": serialize_scan(result)})
            elif result is not None:
                _report_scan(collection, result, folder)


@options
class AddOptions:
    """Options of `wsabie collection add`."""

    folder: Folder
    paths: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders elsewhere; or new files in those of before.")
    ]
    tags: TagsOption = None
    machine: ThreadOptions = ThreadOptions()
    person: PersonOptions = PersonOptions()
    output: ListedRejectOptions = ListedRejectOptions()


@command("collection add photos /mnt/camera", "collection add photos /mnt/camera --tags xmp")
def add(options: AddOptions) -> None:
    """Let further folders belong to the collection, and scan; nothing is written into them."""
    check_output_paths(("rejects", options.output.rejects))
    with open_collection_folder(options.folder) as collection:
        from wsabie.collection.scan.file_discovery import discover_with_folders
        from wsabie.collection.scan.roots import add_root, check_folders

        person, folders = options.person.resolve(), check_folders(collection, options.paths)
        with options.output.collect() as skipped:
            files = discover_with_folders(collection, folders, options.tags, skipped, TerminalProgress())
            for root in folders:
                add_root(collection, root, by=person)
            result = _scan_files(options, collection, person, skipped, files=files)
        _show_scan(collection, result, options.folder, options.output.json)


@options
class ScanOptions:
    """Options of `wsabie collection scan`."""

    folder: Folder
    tags: TagsOption = None
    rehash: Annotated[bool, typer.Option(help="Read every file, also those whose size and time are as they were.")] = (
        False
    )
    machine: ThreadOptions = ThreadOptions()
    person: PersonOptions = PersonOptions()
    output: ListedRejectOptions = ListedRejectOptions()


@command("collection scan photos", "collection scan photos --tags folders")
def scan(options: ScanOptions) -> None:
    """Look for new, moved, changed and missing files, and for tags in them."""
    check_output_paths(("rejects", options.output.rejects))
    with open_collection_folder(options.folder) as collection:
        with options.output.collect() as skipped:
            result = _scan_files(
                options, collection, options.person.resolve(), skipped, rehash=options.rehash, always=True
            )
        _show_scan(collection, result, options.folder, options.output.json)


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


def _discover_files(folder: Path, tags: str | None, rejects: "Rejects", no_scan: bool) -> "list[RootContents]":
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
    options: "InitOptions | AddOptions | ScanOptions",
    collection: "Collection",
    by: str,
    rejects: "Rejects",
    **scan_options: Any,
) -> "ScanResult":
    from wsabie.collection.scan.scanner import scan_collection

    return scan_collection(
        collection,
        by=by,
        tags=options.tags,
        executor=options.machine.make_executor(),
        progress=TerminalProgress(),
        rejects=rejects,
        **scan_options,
    )


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
    if not (result.summary or result.unchanged):
        print_note(
            f"nothing was found; put files into {folder}, or name other folders: "
            f"wsabie collection add {quote(str(folder))} FOLDER"
        )
        return
    unreadable = f" ({result.still_unreadable:,} of them unreadable)" * bool(result.still_unreadable)
    unchanged = f"{result.unchanged:,} as before{unreadable}" * bool(result.unchanged)
    summary = ", ".join(part for part in (result.summary, unchanged) if part)
    print_note(f"{result.modality or 'files'}: {summary}")
    from wsabie.collection.overview.status import check_readiness

    readiness = check_readiness(collection)
    if readiness.tagged or result.modality != "pictures":
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
