"""Command about pictures of objects and their parts: parts."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.cli.inputs.options import Json, Model, Threads, find_stated_options, refuse_options
from wsabie.core.errors import InputError


def parts(
    model: Model,
    picture: Annotated[Path, typer.Argument(metavar="PICTURE", help="A picture of an object.")],
    region: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y,W,H",
            help="Where a part is, in pixels or as 10%,20%,30%,40%; or a polygon X1,Y1,X2,Y2 ...; several are allowed.",
        ),
    ] = None,
    part: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Another picture, of a part; several are allowed.")
    ] = None,
    object_label: Annotated[
        str | None, typer.Option("--object", metavar="LABEL", help="What the picture shows, where that is known.")
    ] = None,
    among: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only these pairs: object TAB part a line.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many parts, or pairs of labels for each place.")] = 10,
    out: Annotated[Path | None, typer.Option(help="PNG of the picture with the parts marked.")] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Label an object and its parts in a picture, where they are shown or wherever they are seen best."""
    from wsabie.cli.models.parts import run_detected_parts, run_marked_parts

    if out is not None and out.suffix.lower() != ".png":
        raise InputError(f"--out writes PNG, and {out} does not end so; give a name that ends in .png")
    if region or part:
        run_marked_parts(model, picture, [*(region or ()), *(part or ())], object_label, among, k, out, threads, json)
        return
    refuse_options(find_stated_options(among=among), "which pairs there are of places shown with --region or --part")
    run_detected_parts(model, picture, object_label, k, out, threads, json)
