"""The command that writes a model for other programs: export."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.faces.cli.options import Json, Model, stated


def export(
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="What to write: a file (onnx) or a folder (the others).")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="onnx: one graph for ONNX Runtime; numpy: plain arrays with an example that reads them; huggingface: "
            "the model folder with a model card; half: the model folder with labels in float16.",
        ),
    ],
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Of onnx: how many labels a row gets (default: 10).")
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Of onnx: tables of bytes, a quarter of the size.")] = False,
    license: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Of huggingface: license in the card, such as apache-2.0 (default: unknown)."),
    ] = None,
    json: Json = False,
) -> None:
    """Write a model for other programs: ONNX, NumPy arrays, a folder for the Hugging Face Hub, or half the bytes."""
    from wsabie.faces.cli.exporting import export_command

    export_command(model, out, form, stated(k=k, int8=int8 or None, license=license), json=json)
