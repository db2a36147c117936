"""Commands of a collection: export, import."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from wsabie.cli.collection import Folder, PersonOptions, open_collection_folder
from wsabie.cli.command import NotFor, command, options, refuse_options_for
from wsabie.cli.options import ListedRejectOptions, RejectOptions
from wsabie.cli.output import TerminalProgress, format_count, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths


@options
class TagExportOptions:
    """Options of `wsabie collection export`."""

    folder: Folder
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="File or folder to write; its ending tells: .csv, .jsonl, .json (COCO)."),
    ] = None
    form: Annotated[
        Literal["csv", "jsonl", "coco", "imagefolder", "xmp"] | None,
        typer.Option("--as", help="Format (default: by the ending of OUT)."),
    ] = None
    state: Annotated[
        Literal["accepted", "rejected", "suggested", "all"] | None,
        typer.Option(help="Which tags (default: what is decided; accepted where a format knows no more)."),
    ] = None
    label: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="Only this label; several times.")] = None
    in_folder: Annotated[
        str | None, typer.Option("--folder", metavar="F", help="Only items in this folder and below it.")
    ] = None
    min_probability: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out suggestions that are less probable.")
    ] = 0.0
    pictures: Annotated[
        Literal["copy", "hardlink", "symlink"] | None,
        typer.Option(help="Pictures beside imagefolder and coco (default: copies, and none beside coco)."),
    ] = None
    beside_originals: Annotated[
        bool, typer.Option(help="With xmp: sidecars beside your pictures, in place of OUT.")
    ] = False
    into_originals: Annotated[bool, typer.Option(help="With xmp: into your JPEG, PNG and WebP files themselves.")] = (
        False
    )
    overwrite: Annotated[
        bool,
        typer.Option(help="Replace the file OUT where it is an earlier export; no folder is."),
        NotFor(originals="what becomes of the file OUT, and there is none"),
    ] = False
    output: ListedRejectOptions = ListedRejectOptions()


@command("collection export photos tags.csv", "collection export photos --as xmp --beside-originals")
def export(options: TagExportOptions) -> None:
    """Write tags to CSV, JSON lines, COCO, a folder of pictures, or XMP; your files stay unchanged."""
    out, to_originals = options.out, options.beside_originals or options.into_originals
    check_output_paths(("rejects", options.output.rejects), inputs=[out])
    with open_collection_folder(options.folder, read_only=True) as collection, options.output.collect() as skipped:
        from wsabie.collection.interchange.tag_export import TagSelection, export_tags, write_to_pictures

        choice = TagSelection(options.state, options.label or (), options.in_folder, options.min_probability)
        if to_originals:
            refuse_options_for("originals", options)
            _refuse_out(options)
            result = write_to_pictures(
                collection, choice=choice, into=options.into_originals, rejects=skipped, progress=TerminalProgress()
            )
        else:
            if out is None:
                raise InputError("OUT is missing: say where to write, such as tags.csv")
            result = export_tags(
                collection,
                out,
                kind=options.form,
                choice=choice,
                pictures=options.pictures,
                overwrite=options.overwrite,
                rejects=skipped,
                progress=TerminalProgress(),
            )
    if options.output.json:
        show_json({"schema": 1, **result._asdict()})
        return
    print_note(f"{format_count(result.tags, 'tag')} written to {result.out or format_count(result.files, 'file')}")


def _refuse_out(options: TagExportOptions) -> None:
    """Refuse options of other targets where tags go to the user's own pictures."""
    if options.form not in (None, "xmp"):
        raise InputError(f"--beside-originals and --into-originals write XMP; leave --as {options.form} out")
    if options.out is not None or options.pictures is not None:
        raise InputError("tags are written to your own pictures; leave OUT and --pictures out")
    if options.beside_originals and options.into_originals:
        raise InputError("give one of --beside-originals and --into-originals")


@options
class ImportOptions:
    """Options of `wsabie collection import`."""

    folder: Folder
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV or JSON lines with a column of files and one of labels; or COCO."),
    ]
    form: Annotated[
        Literal["csv", "jsonl", "coco"] | None, typer.Option("--as", help="Format (default: by the ending of FILE).")
    ] = None
    state: Annotated[Literal["accepted", "rejected"], typer.Option(help="Of tags of which FILE does not say.")] = (
        "accepted"
    )
    person: PersonOptions = PersonOptions()
    output: RejectOptions = RejectOptions()


@command("collection import photos tags.csv", "collection import photos annotations.json --as coco", name="import")
def import_(options: ImportOptions) -> None:
    """Take tags from a file; what persons decided stays, and the whole import can be undone."""
    check_output_paths(("rejects", options.output.rejects), inputs=[options.file])
    with open_collection_folder(options.folder) as collection, options.output.collect() as skipped:
        from wsabie.collection.interchange.tag_import import import_tags

        result = import_tags(
            collection,
            options.file,
            kind=options.form,
            state=options.state,
            by=options.person.resolve(),
            rejects=skipped,
            progress=TerminalProgress(),
        )
    if options.output.json:
        show_json({"schema": 1, **result._asdict()})
        return
    kept_note = f", {result.kept:,} left as people decided" if result.kept else ""
    new_labels = f"; {format_count(result.labels, 'new label')}" if result.labels else ""
    print_note(
        f"{format_count(result.tags, 'tag')} of {format_count(result.items, 'item')}: {result.added:,} added, "
        f"{result.changed:,} changed"
        f"{kept_note}{new_labels}"
    )
    if result.entry is not None:
        undo_command = f"wsabie collection undo {quote(str(options.folder))} {result.entry}"
        print_note(f"entry {result.entry} of the history; to take it back: {undo_command}")
