"""The command about pictures of objects and their parts: parts."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.options import Json, Model, Threads, refuse_options, stated


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
    given: Annotated[
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
    from wsabie.faces.cli.parts import found_command, labelled_command

    if out is not None and out.suffix.lower() != ".png":
        raise InputError(f"--out writes PNG, and {out} does not end so; give a name that ends in .png")
    if region or part:
        labelled_command(model, picture, [*(region or ()), *(part or ())], given, among, k, out, threads, json)
        return
    refuse_options(stated(among=among), "which pairs there are of places shown with --region or --part")
    found_command(model, picture, given, k, out, threads, json)
