"""Commands of a collection: init, add, scan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wsabie.cli.collection import CollectionOptions, PersonOptions, require_database
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import read_label_file
from wsabie.cli.output import TerminalProgress, format_count, is_at_terminal, print_note, quote_path
from wsabie.cli.shared_options import ListedRejectOptions, ThreadOptions
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import explain_read_errors

if TYPE_CHECKING:
    from wsabie.collection.folder.collection import Collection
    from wsabie.collection.scan.roots import RootContents
    from wsabie.collection.scan.scanner import ScanResult
    from wsabie.storage.rejects import Rejects

TagsOption = Annotated[
    Literal["auto", "xmp", "tags", "folders", "metadata", "none"] | None,
    typer.Option(
        help="Where tags are found: metadata.csv, sub-folders, inside pictures (xmp) or sounds (tags), or the first of "
        "these with tags (auto); kept for later scans (default: as before, at first auto)."
    ),
]


_SHOWN_NAMES = 30


class ScanningOptions(ListedRejectOptions, PersonOptions, ThreadOptions):
    """Options of commands that scan a collection."""

    not_labels: str | None = option(
        "Names of sub-folders that are not labels, separated by commas; kept for later scans. Tags that they gave go.",
        metavar="NAMES",
    )

    def scan(self, collection: "Collection", rejects: "Rejects", **settings: Any) -> "ScanResult":
        """Scan the folders of a collection."""
        from wsabie.collection.scan.scanner import scan_collection

        names = [name for name in (self.not_labels or "").split(",") if name.strip()]
        settings |= {"by": self.resolve_author(), "not_labels": names, **self.resources(rejects=rejects)}
        return scan_collection(collection, **settings)


class InitOptions(ScanningOptions):
    """Options of `wsabie collection init`."""

    folder: Path = argument("Existing folder, with your pictures or empty.", metavar="DIR")
    tags: TagsOption = None
    database: str | None = option(
        "PostgreSQL for a team, such as postgresql://user@host/name (default: SQLite in the folder).", metavar="ADDRESS"
    )
    labels: Path | None = option("Names of labels to begin with: a file, one a line.", metavar="FILE")
    no_scan: bool = option("Do not look for files yet.")


@command("collection init photos", "collection init photos --labels names.txt")
def init(options: InitOptions) -> None:
    """Make a collection of a folder: a database in DIR/.wsabie of its files, which stay unchanged."""
    require_database()
    _refuse_missing_folder(options.folder)
    from wsabie.collection.db.errors import format_address
    from wsabie.collection.folder.collection import create_collection
    from wsabie.collection.labels.label_list import add_labels

    options.resolve_author()  # refuses a bad name before any work
    options.check_outputs()
    label_names = [] if options.labels is None else read_label_file(options.labels)
    with options.collect_rejects() as skipped:
        files = _discover_files(options, skipped)
        with create_collection(options.folder, options.database) as collection:
            if label_names:
                add_labels(collection, label_names, by=options.resolve_author())
            address = format_address(collection.engine)
            if not options.json:
                print_note(f"{collection.folder} is a collection; its database is {address}")
            if files and not options.json:
                files = _review_folder_labels(files, options)
            result = None if options.no_scan else options.scan(collection, skipped, tags=options.tags, files=files)
            scanned = {} if result is None else {"scanned": result}
            if not options.show_json({"collection": collection.folder, "database": address, **scanned}) and result:
                _report_scan(collection, result, options.folder)


class AddOptions(ScanningOptions, CollectionOptions):
    """Options of `wsabie collection add`."""

    paths: list[Path] = argument("Folders to add, or new files in folders of the collection.", metavar="FOLDER...")
    tags: TagsOption = None


@command("collection add photos /mnt/camera", "collection add photos /mnt/camera --tags xmp")
def add(options: AddOptions) -> Report:
    """Let further folders belong to the collection, and scan; nothing is written into them."""
    options.check_outputs()
    with options.open() as collection:
        from wsabie.collection.scan.roots import add_root, check_folders, discover_roots

        person, folders = options.resolve_author(), check_folders(collection, options.paths)
        with options.collect_rejects() as skipped:
            files = discover_roots(collection, folders, options.tags, skipped, TerminalProgress())
            for root in folders:
                add_root(collection, root, by=person)
            result = options.scan(collection, skipped, tags=options.tags, files=files)
        yield {"scanned": result}
        _report_scan(collection, result, options.folder)


class ScanOptions(ScanningOptions, CollectionOptions):
    """Options of `wsabie collection scan`."""

    tags: TagsOption = None
    rehash: bool = option("Read every file, even if its size and time are unchanged.")


@command("collection scan photos", "collection scan photos --tags folders")
def scan(options: ScanOptions) -> Report:
    """Look for new, moved, changed and missing files, and for tags in them."""
    options.check_outputs()
    with options.open() as collection:
        with options.collect_rejects() as skipped:
            result = options.scan(collection, skipped, tags=options.tags, rehash=options.rehash, always=True)
        yield {"scanned": result}
        _report_scan(collection, result, options.folder)


def _refuse_missing_folder(folder: Path) -> None:
    """Refuse a missing folder, and suggest one with a similar name."""
    from wsabie.vocabulary.name_suggestions import find_closest_names

    with explain_read_errors(folder):
        if folder.exists():
            return
        parent = folder.absolute().parent
        names = [path.name for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
    similar = find_closest_names(folder.name, names, n=1)
    remedy = f"did you mean '{folder.parent / similar[0]}'? If not, make" if similar else "check the name, or make"
    raise InputError(f"there is no folder '{folder}'; {remedy} it first: mkdir {folder}")


def _discover_files(options: InitOptions, rejects: "Rejects") -> "list[RootContents]":
    """Check the folder of a new collection and find its files, before anything is written."""
    from wsabie.collection.folder.collection import refuse_no_room
    from wsabie.collection.folder.collection_file import find_enclosing_collection, is_collection
    from wsabie.collection.scan.roots import discover_roots

    if is_collection(options.folder):
        return []
    if (enclosing := find_enclosing_collection(options.folder)) is not None:
        effect = "from now on, each of the two keeps its own tags of these files"
        print_note(f"{options.folder} lies in the collection {enclosing}; {effect}")
    refuse_no_room(options.folder)
    return [] if options.no_scan else discover_roots(None, [options.folder], options.tags, rejects, TerminalProgress())


def _review_folder_labels(files: "list[RootContents]", options: InitOptions) -> "list[RootContents]":
    """List the names of sub-folders that become labels; at a terminal ask which of them are none."""
    from wsabie.collection.scan.roots import add_excluded_names, count_folder_labels

    if options.not_labels is not None or not (counts := count_folder_labels(files[0])):
        return files
    shown = ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(_SHOWN_NAMES))
    more = f" and {len(counts) - _SHOWN_NAMES:,} more" if len(counts) > _SHOWN_NAMES else ""
    print_note(f"labels by the names of sub-folders: {shown}{more} (--not-labels NAME,NAME leaves some out)")
    if not is_at_terminal():
        return files
    question = "names that are not labels, separated by commas (Enter: none)"
    answer = typer.prompt(question, "", show_default=False, err=True)
    return [add_excluded_names(contents, filter(str.strip, answer.split(","))) for contents in files]


def _report_scan(collection: "Collection", result: "ScanResult", folder: Path) -> None:
    """Report the result of a scan, and suggest the next command."""
    for root in result.unreachable_roots:
        print_note(f"{root.folder} is left as it was ({format_count(root.items, 'item')}): {root.reason}")
    for note in result.notes:
        print_note(note)
    if result.held_tags:
        reasons = "its sidecar is new, gone or unreadable, the picture still has them, or lost all keywords"
        tags = format_count(result.held_tags, "tag")
        print_note(f"{tags} kept that files no longer have ({reasons}); clear those that are wrong")
    if result.changed:
        print_note(f"{format_count(result.changed, 'file')} with other content; decisions about them stay")
    if not (result.summary or result.unchanged):
        command = f"wsabie collection add {quote_path(folder)} FOLDER"
        print_note(f"found no files; put some into {folder}, or add other folders: {command}")
        return
    unreadable = f" ({result.still_unreadable:,} of them unreadable)" * bool(result.still_unreadable)
    unchanged = f"{result.unchanged:,} as before{unreadable}" * bool(result.unchanged)
    summary = ", ".join(part for part in (result.summary, unchanged) if part)
    print_note(f"{result.modality or 'files'}: {summary}")
    from wsabie.collection.annotations.training_examples import MIN_ITEMS
    from wsabie.collection.learning.zero_shot import find_name_encoder
    from wsabie.collection.overview import check_readiness

    readiness, path = check_readiness(collection), quote_path(folder)
    if result.modality != "pictures":
        limit = "a collection learns from pictures only"
        print_note(f"{result.modality} can be listed, tagged and exported here; {limit}")
        print_note(f"next: learn from these files and the labels that they have: wsabie train {path} --model MODEL")
        return
    if readiness.tagged:
        print_note(f"next: wsabie collection {'train' if result.added_tags else 'status'} {path}")
        return
    needs = f"{MIN_ITEMS} tagged pictures and 2 labels, better with 20 pictures of each label"
    print_note(f"nothing is tagged yet; a model needs {needs}")
    if readiness.labels:
        remedy = "" if find_name_encoder() else ", after: pip install 'wsabie[words]'"
        print_note(f"next: suggestions by the names of the labels alone: wsabie collection apply {path}{remedy}")
    print_note(f"next: tag some in the gallery: wsabie serve {path}")
    print_note(f"or from a list: wsabie collection import {path} tags.csv")
    if readiness.folders:
        command = f"wsabie collection scan {path} --tags folders"
        print_note(f"or read tags from the names of sub-folders: {command}")
    print_note(f"then: wsabie collection train {path}")
