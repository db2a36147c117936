"""`wsabie collection export`."""

from pathlib import Path

from wsabie.cli import output
from wsabie.cli.collection import CollectionOptions
from wsabie.cli.framework import Report, Scope, Settings, argument, command, option, refuse_options
from wsabie.cli.output import format_count, print_note
from wsabie.cli.shared_options import ListedRejectOptions
from wsabie.collection.interchange.tag_record import ExportFormat, PlacementMode, StateFilter
from wsabie.core.errors import InputError


class TagExportOptions(ListedRejectOptions, CollectionOptions):
    """Options of `wsabie collection export`."""

    out: Path | None = argument("File or folder to write; .csv, .jsonl or .json (COCO) sets the format.", metavar="OUT")
    kind: ExportFormat | None = option("Format (default: by the ending of OUT).", flag="--as")
    state: StateFilter | None = option(
        "Which tags (default: accepted and rejected; accepted alone in coco, imagefolder and xmp)."
    )
    label: list[str] | None = option("Only this label; several times.", metavar="LABEL")
    in_folder: str | None = option("Only items in this folder and below it.", flag="--folder", metavar="F")
    min_probability: float = option("Leave out suggestions that are less probable.", 0.0, min=0.0, max=1.0)
    pictures: PlacementMode | None = option(
        "Pictures beside imagefolder and coco (default: copies, and none beside coco)."
    )
    beside_originals: bool = option("With xmp: sidecars beside your pictures, in place of OUT.")
    into_originals: bool = option("With xmp: into your JPEG, PNG and WebP files themselves.")
    overwrite: bool = option("Replace an earlier export; never a folder.", scope=Scope(originals="it is for OUT"))


@command("collection export photos tags.csv", "collection export photos --as xmp --beside-originals")
def export(options: TagExportOptions) -> Report:
    """Write tags to a file, a folder of pictures, or XMP files.

    A file is CSV, JSON lines or COCO; your own files stay unchanged.
    """
    out, to_originals = options.out, options.beside_originals or options.into_originals
    options.check_outputs(inputs=[out])
    with options.open(read_only=True) as collection, options.collect_rejects() as skipped:
        from wsabie.collection.interchange.tag_export import TagSelection, export_tags, write_to_pictures

        choice = TagSelection(options.state, options.label or (), options.in_folder, options.min_probability)
        settings: Settings = {"choice": choice, "rejects": skipped, "progress": output.TerminalProgress()}
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
