"""`wsabie export`."""

from pathlib import Path

from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.inputs import find_modality, load_annotator, load_space
from wsabie.cli.output import escape_line, format_bytes, format_count, out, print_note
from wsabie.cli.shared_options import Model, OutputOptions
from wsabie.core.errors import InputError


class ExportOptions(OutputOptions):
    """Options of `wsabie export`."""

    model: Model
    out: Path = argument("What to write: a file (onnx) or a folder (the others).", metavar="OUT")
    form: str = option(
        "onnx: one graph for ONNX Runtime; numpy: plain arrays with an example that reads them; huggingface: the model "
        "folder with a model card; half: the model folder with labels in float16.",
        flag="--as",
        metavar="FORMAT",
    )
    k: int | None = option("Of onnx: how many labels a row gets (default: 10).", flag="-k", min=1)
    int8: bool = option("Of onnx: tables of bytes, a quarter of the size.")
    with_encoder: bool = option("Of onnx: the image encoder too, so that the file takes pictures.")
    license: str | None = option(
        "Of onnx and huggingface: license in the file, such as apache-2.0 (default: unknown, or the encoder's).",
        metavar="ID",
    )


@command("export birds birds.onnx --as onnx", "export birds birds-card --as huggingface --license apache-2.0")
def export(options: ExportOptions) -> Report:
    """Write a model for other programs.

    It becomes ONNX, NumPy arrays, a Hugging Face folder, or a model of half the bytes.
    """
    from wsabie.models.exporters import export_formats

    model, target, format_name = options.model, options.out, options.form
    stated = {name: value for name, value in options.pick("k", "int8", "with_encoder", "license").items() if value}
    if model.resolve() in target.resolve().parents:
        raise InputError(f"{target} would lie in the model folder {model}; choose another path")
    if load_space(model) is not None:
        raise InputError(f"{model} is a space of several kinds of entities; export a model that gives rows labels")
    annotator = load_annotator(model)
    files = export_formats.export(annotator, target, format_name, **stated)
    sizes = {str(file): file.stat().st_size for file in files}
    includes_extractor = options.with_encoder or export_formats.FORMATS[format_name].includes_extractor
    modality = find_modality(annotator)
    is_left_out = modality is not None and not includes_extractor
    if is_left_out:
        rows = f"(Annotator.rows, or wsabie features), {annotator.model.n_features_in_:,} features each"
        print_note(f"the feature extractor of {modality} is not exported: rows are those that it makes {rows}")
    n_buffer_rows = annotator.model.facts().get("buffer_rows")
    if n_buffer_rows and format_name == "huggingface":
        print_note(f"{format_count(n_buffer_rows, 'training row')} of the replay buffer left out")
    labels, features = annotator.model.facts()["labels"], annotator.model.n_features_in_
    counts = {"labels": labels, "features": features, "extractor_left_out": is_left_out}
    yield {"model": model, "out": target, "as": format_name, **counts, "files": sizes}
    inputs = "pictures as input" if options.with_encoder else format_count(features, "feature")
    size = f"{format_bytes(sum(sizes.values()))} in {format_count(len(files), 'file')}"
    contents = f"{export_formats.FORMATS[format_name].summary}, {format_count(labels, 'label')}, {inputs}, {size}"
    out.print(escape_line(f"{target}: {contents}"))
