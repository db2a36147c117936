"""Commands of a collection: export, import."""

from pathlib import Path
from typing import Literal

from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, Scope, Settings, argument, command, option, refuse_options
from wsabie.cli.output import TerminalProgress, format_count, print_note, quote_path
from wsabie.cli.shared_options import ListedRejectOptions, RejectOptions
from wsabie.core.errors import InputError


class TagExportOptions(ListedRejectOptions, CollectionOptions):
    """Options of `wsabie collection export`."""

    out: Path | None = argument("File or folder to write; its ending tells: .csv, .jsonl, .json (COCO).", metavar="OUT")
    kind: Literal["csv", "jsonl", "coco", "imagefolder", "xmp"] | None = option(
        "Format (default: by the ending of OUT).", flag="--as"
    )
    state: Literal["accepted", "rejected", "suggested", "all"] | None = option(
        "Which tags (default: what is decided; accepted where a format knows no more)."
    )
    label: list[str] | None = option("Only this label; several times.", metavar="LABEL")
    in_folder: str | None = option("Only items in this folder and below it.", flag="--folder", metavar="F")
    min_probability: float = option("Leave out suggestions that are less probable.", 0.0, min=0.0, max=1.0)
    pictures: Literal["copy", "hardlink", "symlink"] | None = option(
        "Pictures beside imagefolder and coco (default: copies, and none beside coco)."
    )
    beside_originals: bool = option("With xmp: sidecars beside your pictures, in place of OUT.")
    into_originals: bool = option("With xmp: into your JPEG, PNG and WebP files themselves.")
    overwrite: bool = option("Replace an earlier export; never a folder.", scope=Scope(originals="it is for OUT"))


@command("collection export photos tags.csv", "collection export photos --as xmp --beside-originals")
def export(options: TagExportOptions) -> Report:
    """Write tags to CSV, JSON lines, COCO, a folder of pictures, or XMP; your files stay unchanged."""
    out, to_originals = options.out, options.beside_originals or options.into_originals
    options.check_outputs(inputs=[out])
    with options.open(read_only=True) as collection, options.collect_rejects() as skipped:
        from wsabie.collection.interchange.tag_export import TagSelection, export_tags, write_to_pictures

        choice = TagSelection(options.state, options.label or (), options.in_folder, options.min_probability)
        settings: Settings = {"choice": choice, "rejects": skipped, "progress": TerminalProgress()}
        if to_originals:
            refuse_options("originals", options)
            _refuse_out(options)
            result = write_to_pictures(collection, embed=options.into_originals, **settings)
        else:
            if out is None:
                raise InputError("OUT is missing: say where to write, such as tags.csv")
            result = export_tags(collection, out, **options.pick("kind", "pictures", "overwrite"), **settings)
    yield result._asdict()
    print_note(f"{format_count(result.tags, 'tag')} written to {result.out or format_count(result.files, 'file')}")


def _refuse_out(options: TagExportOptions) -> None:
    """Refuse options of other targets where tags go to the user's own pictures."""
    if options.kind not in (None, "xmp"):
        raise InputError(f"--beside-originals and --into-originals write XMP; leave --as {options.kind} out")
    if options.out is not None or options.pictures is not None:
        raise InputError("tags are written to your own pictures; leave OUT and --pictures out")
    if options.beside_originals and options.into_originals:
        raise InputError("give one of --beside-originals and --into-originals")


class ImportOptions(RejectOptions, CollectionOptions, PersonOptions):
    """Options of `wsabie collection import`."""

    file: Path = argument("CSV or JSON lines with a column of files and one of labels; or COCO.", metavar="FILE")
    kind: Literal["csv", "jsonl", "coco"] | None = option("Format (default: by the ending of FILE).", flag="--as")
    state: Literal["accepted", "rejected"] = option("Of tags of which FILE does not say.", "accepted")


@command("collection import photos tags.csv", "collection import photos annotations.json --as coco", name="import")
def import_(options: ImportOptions) -> Report:
    """Take tags from a file; what persons decided stays, and the whole import can be undone."""
    options.check_outputs(inputs=[options.file])
    if options.file.is_dir():
        raise InputError(f"{options.file} is a folder; give the file in it that lists tags")
    with options.open() as collection, options.collect_rejects() as skipped:
        from wsabie.collection.interchange.tag_import import import_tags

        settings = options.pick("kind", "state") | {"rejects": skipped, "progress": TerminalProgress()}
        result = import_tags(collection, options.file, by=options.resolve_author(), **settings)
    yield result._asdict()
    unchanged_note = f", {result.kept_by_person:,} left as people decided" if result.kept_by_person else ""
    new_labels = f"; {format_count(result.labels, 'new label')}" if result.labels else ""
    tags = f"{format_count(result.tags, 'tag')} of {format_count(result.items, 'item')}"
    print_note(f"{tags}: {result.added:,} added, {result.changed:,} changed{unchanged_note}{new_labels}")
    if result.entry is not None:
        undo_command = f"wsabie collection undo {quote_path(options.folder)} {result.entry}"
        print_note(f"entry {result.entry} of the history; to take it back: {undo_command}")
