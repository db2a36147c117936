"""`wsabie export`."""

from pathlib import Path
from typing import Any

from wsabie.cli.inputs.command_inputs import load_annotator
from wsabie.cli.models.spaces import load_space
from wsabie.cli.terminal.output import escape_line, format_count, out, print_note, show_json
from wsabie.core.errors import InputError


def run_export(model: Path, target: Path, format_name: str, options: dict[str, Any], *, json: bool) -> None:
    """Write a model for other programs, and report the written files."""
    from wsabie.models.exporters.export_formats import FORMATS, export

    if model.resolve() in target.resolve().parents:
        raise InputError(f"{target} would lie in the model folder {model}; choose another place")
    if load_space(model) is not None:
        raise InputError(f"{model} is a space of several kinds of things; export a model that gives rows labels")
    annotator = load_annotator(model)
    files = export(annotator, target, format_name, **options)
    sizes = {str(file): file.stat().st_size for file in files}
    has_extractor = annotator.terms is not None and not FORMATS[format_name].whole
    if has_extractor:
        print_note(
            f"what describes {annotator.terms.things} is not exported: rows are those that it makes "
            f"(Annotator.rows, or wsabie features), {annotator.model.n_features_in_:,} features each"
        )
    n_replayed = annotator.model.facts().get("rows_replayed")
    if n_replayed and format_name == "huggingface":
        print_note(f"{format_count(n_replayed, 'training row')} that the model keeps against forgetting stayed behind")
    labels, features = annotator.model.facts()["labels"], annotator.model.n_features_in_
    if json:
        counts = {"labels": labels, "features": features, "description_left_out": has_extractor}
        show_json({"schema": 1, "model": str(model), "out": str(target), "as": format_name, **counts, "files": sizes})
        return
    total = sum(sizes.values()) / 1e6
    contents = (format_count(labels, "label"), format_count(features, "feature"))
    summary = f"{', '.join(contents)}, {total:,.2f} MB in {format_count(len(files), 'file')}"
    out.print(escape_line(f"{target}: {FORMATS[format_name].holds}, {summary}"))
