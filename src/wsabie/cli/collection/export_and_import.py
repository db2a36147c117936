"""Commands of a collection: export, import."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.collection.shared_options import ByOption, FolderArgument, open_collection_folder, resolve_person
from wsabie.cli.inputs.options import Json, Rejects, Strict, find_stated_options, refuse_options
from wsabie.cli.terminal.output import TerminalProgress, format_count, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.storage.output_checks import check_output_paths


def export(
    folder: FolderArgument,
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="File or folder to write; its ending tells: .csv, .jsonl, .json (COCO)."),
    ] = None,
    as_: Annotated[
        Literal["csv", "jsonl", "coco", "imagefolder", "xmp"] | None,
        typer.Option("--as", help="Format (default: by the ending of OUT)."),
    ] = None,
    state: Annotated[
        Literal["accepted", "rejected", "suggested", "all"] | None,
        typer.Option(help="Which tags (default: what is decided; accepted where a format knows no more)."),
    ] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="LABEL", help="Only this label; several times.")] = None,
    in_folder: Annotated[
        str | None, typer.Option("--folder", metavar="F", help="Only items in this folder and below it.")
    ] = None,
    min_probability: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out suggestions that are less probable.")
    ] = 0.0,
    pictures: Annotated[
        Literal["copy", "hardlink", "symlink"] | None,
        typer.Option(help="Pictures beside imagefolder and coco (default: copies, and none beside coco)."),
    ] = None,
    beside_originals: Annotated[
        bool, typer.Option("--beside-originals", help="With xmp: sidecars beside your pictures, in place of OUT.")
    ] = False,
    into_originals: Annotated[
        bool, typer.Option("--into-originals", help="With xmp: into your JPEG, PNG and WebP files themselves.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file OUT where it is an earlier export; no folder is.")
    ] = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Write tags to CSV, JSON lines, COCO, a folder of pictures, or XMP; your files stay unchanged."""
    from wsabie.cli.inputs.command_inputs import collect_rejects

    check_output_paths(("rejects", rejects), inputs=[out])
    with (
        open_collection_folder(folder, read_only=True) as collection,
        collect_rejects(rejects, strict=False) as skipped,
    ):
        from wsabie.collection.interchange.tag_export import export_tags, write_to_pictures
        from wsabie.collection.interchange.tag_selection import TagSelection

        choice = TagSelection(state, label or (), in_folder, min_probability)
        if beside_originals or into_originals:
            refuse_options(
                find_stated_options(overwrite=overwrite or None), "what becomes of the file OUT, and there is none"
            )
            _refuse_out(out, as_, pictures, beside_originals and into_originals)
            result = write_to_pictures(
                collection, choice=choice, into=into_originals, rejects=skipped, progress=TerminalProgress()
            )
        else:
            if out is None:
                raise InputError("OUT is missing: say where to write, such as tags.csv")
            result = export_tags(
                collection,
                out,
                kind=as_,
                choice=choice,
                pictures=pictures,
                overwrite=overwrite,
                rejects=skipped,
                progress=TerminalProgress(),
            )
    if json:
        show_json({"schema": 1, **result._asdict()})
        return
    print_note(f"{format_count(result.tags, 'tag')} written to {result.out or format_count(result.files, 'file')}")


def _refuse_out(out: Path | None, as_: str | None, pictures: str | None, has_both_targets: bool) -> None:
    if as_ not in (None, "xmp"):
        raise InputError(f"--beside-originals and --into-originals write XMP; leave --as {as_} out")
    if out is not None or pictures is not None:
        raise InputError("tags are written to your own pictures; leave OUT and --pictures out")
    if has_both_targets:
        raise InputError("give one of --beside-originals and --into-originals")


def import_(
    folder: FolderArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV or JSON lines with a column of files and one of labels; or COCO."),
    ],
    as_: Annotated[
        Literal["csv", "jsonl", "coco"] | None, typer.Option("--as", help="Format (default: by the ending of FILE).")
    ] = None,
    state: Annotated[
        Literal["accepted", "rejected"], typer.Option(help="Of tags of which FILE does not say.")
    ] = "accepted",
    by: ByOption = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Take tags from a file; what persons decided stays, and the whole import can be undone."""
    from wsabie.cli.inputs.command_inputs import collect_rejects

    check_output_paths(("rejects", rejects), inputs=[file])
    with open_collection_folder(folder) as collection, collect_rejects(rejects, strict=strict) as skipped:
        from wsabie.collection.interchange.tag_import import import_tags

        result = import_tags(
            collection,
            file,
            kind=as_,
            state=state,
            by=resolve_person(by),
            rejects=skipped,
            progress=TerminalProgress(),
        )
    if json:
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
        undo_command = f"wsabie collection undo {quote(str(folder))} {result.entry}"
        print_note(f"entry {result.entry} of the history; to take it back: {undo_command}")


COMMANDS: tuple[Callable[..., Any], ...] = (export, import_)
