"""`wsabie collection import`."""

from pathlib import Path
from typing import Literal

from wsabie.cli import output
from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import format_count, print_note, quote_path
from wsabie.cli.shared_options import RejectOptions
from wsabie.core.errors import require


class ImportOptions(RejectOptions, CollectionOptions, PersonOptions):
    """Options of `wsabie collection import`."""

    file: Path = argument("CSV or JSON lines with a column of files and one of labels; or COCO.", metavar="FILE")
    kind: Literal["csv", "jsonl", "coco"] | None = option("Format (default: by the ending of FILE).", flag="--as")
    state: Literal["accepted", "rejected"] = option("State of tags whose state FILE does not say.", "accepted")


@command("collection import photos tags.csv", "collection import photos annotations.json --as coco", name="import")
def import_(options: ImportOptions) -> Report:
    """Take tags from a file.

    What persons decided stays, and the whole import can be undone.
    """
    options.check_outputs(inputs=[options.file])
    require(not options.file.is_dir(), f"{options.file} is a folder; give the file in it that lists tags")
    with options.open() as collection, options.collect_rejects() as skipped:
        from wsabie.collection.interchange.tag_import import import_tags

        settings = options.pick("kind", "state") | {"rejects": skipped, "progress": output.TerminalProgress()}
        result = import_tags(collection, options.file, by=options.resolve_author(), **settings)
    yield result._asdict()
    unchanged_note = f", {result.kept_by_person:,} left as people decided" if result.kept_by_person else ""
    new_labels = f"; {format_count(result.labels, 'new label')}" if result.labels else ""
    tags = f"{format_count(result.tags, 'tag')} of {format_count(result.items, 'item')}"
    print_note(f"{tags}: {result.added:,} added, {result.changed:,} changed{unchanged_note}{new_labels}")
    if result.entry is not None:
        undo_command = f"wsabie collection undo {quote_path(options.folder)} {result.entry}"
        print_note(f"entry {result.entry} of the history; to take it back: {undo_command}")
