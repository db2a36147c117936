"""`wsabie collection init`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wsabie.cli.collection import ScanningOptions, TagsOption, require_database
from wsabie.cli.collection.reports import report_scan
from wsabie.cli.framework import argument, command, option
from wsabie.cli.inputs import read_label_file
from wsabie.cli.output import TerminalProgress, is_at_terminal, print_note
from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import explain_read_errors

if TYPE_CHECKING:
    from wsabie.collection.scan.roots import RootContents
    from wsabie.storage.rejects import Rejects

_SHOWN_NAMES = 30


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
    """Make a collection of a folder, whose files stay unchanged.

    Its database is in DIR/.wsabie.
    """
    require_database()
    _refuse_missing_folder(options.folder)
    from wsabie.collection.db.errors import format_address
    from wsabie.collection.folder.collection import create_collection
    from wsabie.collection.labels.label_edits import add_labels

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
                report_scan(collection, result, options.folder)


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
    examples = ", ".join(f"{name} ({n:,})" for name, n in counts.most_common(_SHOWN_NAMES))
    more = f" and {len(counts) - _SHOWN_NAMES:,} more" if len(counts) > _SHOWN_NAMES else ""
    print_note(f"labels by the names of sub-folders: {examples}{more} (--not-labels NAME,NAME leaves some out)")
    if not is_at_terminal():
        return files
    question = "names that are not labels, separated by commas (Enter: none)"
    answer = typer.prompt(question, "", show_default=False, err=True)
    return [add_excluded_names(contents, filter(str.strip, answer.split(","))) for contents in files]
