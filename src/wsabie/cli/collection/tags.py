"""Commands of a collection: tag, annotations, export, import."""

from pathlib import Path
from typing import Literal

from wsabie.cli import output
from wsabie.cli.collection import CollectionOptions, PersonOptions
from wsabie.cli.framework import Report, Scope, Settings, argument, command, option, refuse_options
from wsabie.cli.output import format_count, print_note, quote_path, show_table
from wsabie.cli.shared_options import ListedRejectOptions, RejectOptions
from wsabie.collection.interchange.tag_record import ExportFormat, PlacementMode, StateFilter
from wsabie.core.errors import InputError, require


class TagOptions(CollectionOptions, PersonOptions):
    """Options of `wsabie collection tag`."""

    items: list[str] = argument("Items, by path or id.", metavar="ITEM...")
    accept: list[str] | None = option("A label that fits; may be new.", metavar="LABEL")
    reject: list[str] | None = option("A label that does not fit.", metavar="LABEL")
    clear: list[str] | None = option("A label that is to be undecided.", metavar="LABEL")


@command("collection tag photos 1 2 --accept bird", "collection tag photos photos/cat.jpg --accept cat --reject dog")
def tag(options: TagOptions) -> Report:
    """Say which labels fit items and which do not; each option may be given several times."""
    accept, reject, clear = options.accept or (), options.reject or (), options.clear or ()
    require(bool(accept or reject or clear), "say what to change: --accept LABEL, --reject LABEL, --clear LABEL")
    with options.open() as collection:
        from wsabie.collection.annotations.decisions import find_items, tag_items

        item_ids = list(dict.fromkeys(find_items(collection, options.items, Path.cwd())))
        result = tag_items(collection, item_ids, accept=accept, reject=reject, clear=clear, by=options.resolve_author())
    yield {"items": item_ids, **result.counts._asdict(), "new_labels": result.new_labels}
    new_labels = f"; new: {', '.join(result.new_labels)}" if result.new_labels else ""
    added, changed, removed, _ = result.counts
    changes = f"{added:,} added, {changed:,} changed, {removed:,} removed"
    print_note(f"{format_count(len(item_ids), 'item')}: {changes}{new_labels}")


class AnnotationsOptions(CollectionOptions):
    """Options of `wsabie collection annotations`."""

    label: str | None = option("Only this label, or a synonym of it.", metavar="LABEL")
    item: str | None = option("Only this item, by path or id as `tag` takes it.", metavar="ITEM")
    state: Literal["accepted", "rejected"] | None = option("Only accepted or only rejected labels.")
    origin: Literal["person", "import", "model"] | None = option("Only decisions by people, by imports or by models.")
    by: str | None = option("Only decisions of this person.", metavar="NAME")
    model: int | None = option("Only suggestions of this model.", metavar="N")
    since: str | None = option("Changed then or later, such as 2026-05 or 2026-05-01T12:00 (UTC).", metavar="TIME")
    until: str | None = option("Changed before this day or time ended.", metavar="TIME")
    k: int = option("Annotations, newest first.", 20, flag="-k", min=1, max=1000)
    cursor: str | None = option("Continue after a page: its `next_cursor` in --json.", metavar="TEXT")


@command("collection annotations photos --label bird", "collection annotations photos --by eve --since 2026-05")
def annotations(options: AnnotationsOptions) -> Report:
    """List the decisions about items, with their authors and times, newest first."""
    with options.open(read_only=True) as collection:
        from wsabie.collection.annotations.annotation_pages import AnnotationFilter, read_annotation_page
        from wsabie.collection.annotations.decisions import find_items

        item_id = None if options.item is None else find_items(collection, [options.item], Path.cwd())[0]
        conditions = options.pick("label", "state", "origin", "by", "model", "since", "until")
        criteria = AnnotationFilter(item_id, **conditions)
        page = read_annotation_page(collection, criteria, cursor=options.cursor, limit=options.k)
        yield {"annotations": page.annotations, "next_cursor": page.next_cursor}
        if not page.annotations:
            print_note("no annotation matches")
            return
        rows = []
        for a in page.annotations:
            label, probability = a.label + " (a region)" * bool(a.region), output.format_figure(a.probability, ".2f")
            rows.append([a.path, label, a.state, output.format_time(a.at), a.by, probability])
        more = "" if page.next_cursor is None else "; -k shows more"
        columns = ["item", "label", "", "when (UTC)", "who", "suggested at"]
        show_table(f"{options.folder}: {format_count(len(rows), 'annotation')}, newest first{more}", columns, rows)


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
    """Write tags to CSV, JSON lines, COCO, a folder of pictures, or XMP; your files stay unchanged."""
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


class ImportOptions(RejectOptions, CollectionOptions, PersonOptions):
    """Options of `wsabie collection import`."""

    file: Path = argument("CSV or JSON lines with a column of files and one of labels; or COCO.", metavar="FILE")
    kind: Literal["csv", "jsonl", "coco"] | None = option("Format (default: by the ending of FILE).", flag="--as")
    state: Literal["accepted", "rejected"] = option("State of tags whose state FILE does not say.", "accepted")


@command("collection import photos tags.csv", "collection import photos annotations.json --as coco", name="import")
def import_(options: ImportOptions) -> Report:
    """Take tags from a file; what persons decided stays, and the whole import can be undone."""
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
