"""Command for other programs: export."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.cli.inputs.options import Json, Model, find_stated_options


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
    """Write a model for other programs: ONNX, NumPy arrays, a Hugging Face folder, or half the bytes."""
    from wsabie.cli.models.export import run_export

    run_export(model, out, form, find_stated_options(k=k, int8=int8 or None, license=license), json=json)
