"""`wsabie export`."""

from pathlib import Path
from typing import Annotated

import typer

from wsabie.cli.command import command, list_stated, options
from wsabie.cli.inputs import load_annotator
from wsabie.cli.options import Model, OutputOptions
from wsabie.cli.output import escape_line, format_count, out, print_note, show_json
from wsabie.cli.target import load_space
from wsabie.core.errors import InputError


@options
class ExportOptions:
    """Options of `wsabie export`."""

    model: Model
    out: Annotated[Path, typer.Argument(metavar="OUT", help="What to write: a file (onnx) or a folder (the others).")]
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="onnx: one graph for ONNX Runtime; numpy: plain arrays with an example that reads them; huggingface: "
            "the model folder with a model card; half: the model folder with labels in float16.",
        ),
    ]
    k: Annotated[int | None, typer.Option("-k", min=1, help="Of onnx: how many labels a row gets (default: 10).")] = (
        None
    )
    int8: Annotated[bool, typer.Option(help="Of onnx: tables of bytes, a quarter of the size.")] = False
    license: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Of huggingface: license in the card, such as apache-2.0 (default: unknown)."),
    ] = None
    output: OutputOptions = OutputOptions()


@command("export birds birds.onnx --as onnx", "export birds birds-card --as huggingface --license apache-2.0")
def export(options: ExportOptions) -> None:
    """Write a model for other programs: ONNX, NumPy arrays, a Hugging Face folder, or half the bytes."""
    from wsabie.models.exporters import export_formats

    model, target, format_name = options.model, options.out, options.form
    stated = {name: value for name, value in list_stated(options).items() if name in ("k", "int8", "license")}
    if model.resolve() in target.resolve().parents:
        raise InputError(f"{target} would lie in the model folder {model}; choose another place")
    if load_space(model) is not None:
        raise InputError(f"{model} is a space of several kinds of things; export a model that gives rows labels")
    annotator = load_annotator(model)
    files = export_formats.export(annotator, target, format_name, **stated)
    sizes = {str(file): file.stat().st_size for file in files}
    has_extractor = annotator.terms is not None and not export_formats.FORMATS[format_name].includes_extractor
    if has_extractor:
        print_note(
            f"what describes {annotator.terms.modality} is not exported: rows are those that it makes "
            f"(Annotator.rows, or wsabie features), {annotator.model.n_features_in_:,} features each"
        )
    n_replayed = annotator.model.facts().get("rows_replayed")
    if n_replayed and format_name == "huggingface":
        print_note(f"{format_count(n_replayed, 'training row')} that the model keeps against forgetting stayed behind")
    labels, features = annotator.model.facts()["labels"], annotator.model.n_features_in_
    if options.output.json:
        counts = {"labels": labels, "features": features, "extractor_left_out": has_extractor}
        show_json({"schema": 1, "model": str(model), "out": str(target), "as": format_name, **counts, "files": sizes})
        return
    total = sum(sizes.values()) / 1e6
    contents = (format_count(labels, "label"), format_count(features, "feature"))
    summary = f"{', '.join(contents)}, {total:,.2f} MB in {format_count(len(files), 'file')}"
    out.print(escape_line(f"{target}: {export_formats.FORMATS[format_name].summary}, {summary}"))
