"""Commands of a collection: export, import."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.collection.group import By, Folder, opened, person
from wsabie.faces.cli.options import Json, Rejects, Strict, refuse_options, stated
from wsabie.faces.cli.terminal import TerminalProgress, note, plural, show_json
from wsabie.storage.outputs import refuse_unwritable


def export(
    folder: Folder,
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
    """Write tags to CSV, JSON lines, COCO, a folder of pictures, or XMP; your files stay as they are unless you ask."""
    from wsabie.faces.cli.common import listing

    refuse_unwritable(("rejects", rejects), inputs=[out])
    with opened(folder, read_only=True) as collection, listing(rejects, strict=False) as skipped:
        from wsabie.catalogue.choosing import Choice
        from wsabie.catalogue.exporting import export_tags, write_to_pictures

        choice = Choice(state, label or (), in_folder, min_probability)
        if beside_originals or into_originals:
            refuse_options(stated(overwrite=overwrite or None), "what becomes of the file OUT, and there is none")
            _refuse_out(out, as_, pictures, beside_originals and into_originals)
            done = write_to_pictures(
                collection, choice=choice, into=into_originals, rejects=skipped, progress=TerminalProgress()
            )
        else:
            if out is None:
                raise InputError("OUT is missing: say where to write, such as tags.csv")
            done = export_tags(
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
        show_json({"schema": 1, **done._asdict()})
        return
    note(f"{plural(done.tags, 'tag')} written to {done.out or plural(done.files, 'file')}")


def _refuse_out(out: Path | None, as_: str | None, pictures: str | None, both: bool) -> None:
    if as_ not in (None, "xmp"):
        raise InputError(f"--beside-originals and --into-originals write XMP; leave --as {as_} out")
    if out is not None or pictures is not None:
        raise InputError("tags are written to your own pictures; leave OUT and --pictures out")
    if both:
        raise InputError("give one of --beside-originals and --into-originals")


def import_(
    folder: Folder,
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
    by: By = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Take tags from a file; what persons decided stays, and the whole import can be undone."""
    from wsabie.faces.cli.common import listing

    refuse_unwritable(("rejects", rejects), inputs=[file])
    with opened(folder) as collection, listing(rejects, strict=strict) as skipped:
        from wsabie.catalogue.importing import import_tags

        done = import_tags(
            collection,
            file,
            kind=as_,
            state=state,
            by=person(by),
            rejects=skipped,
            progress=TerminalProgress(),
        )
    if json:
        show_json({"schema": 1, **done._asdict()})
        return
    kept = f", {done.kept:,} left as people decided" if done.kept else ""
    new = f"; {plural(done.labels, 'new label')}" if done.labels else ""
    note(
        f"{plural(done.tags, 'tag')} of {plural(done.items, 'item')}: {done.added:,} added, {done.changed:,} changed"
        f"{kept}{new}"
    )
    if done.entry is not None:
        back = f"wsabie collection undo {quote(str(folder))} {done.entry}"
        note(f"entry {done.entry} of the history; to take it back: {back}")


COMMANDS: tuple[Callable[..., Any], ...] = (export, import_)
