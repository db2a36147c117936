"""The work of `wsabie export`."""

from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import loaded
from wsabie.faces.cli.spaces import space_in
from wsabie.faces.cli.terminal import note, one_line, out, plural, show_json


def export_command(model: Path, to: Path, form: str, options: dict[str, Any], *, json: bool) -> None:
    """Write a model for other programs, and say what was written."""
    from wsabie.models.export import FORMATS, export

    if model.resolve() in to.resolve().parents:
        raise InputError(f"{to} would lie in the model folder {model}; choose another place")
    if space_in(model) is not None:
        raise InputError(f"{model} is a space of several kinds of things; export a model that gives rows labels")
    annotator = loaded(model)
    files = export(annotator, to, form, **options)
    sizes = {str(file): file.stat().st_size for file in files}
    described = annotator.terms is not None and not FORMATS[form].whole
    if described:
        note(
            f"what describes {annotator.terms.things} is not exported: rows are those that it makes "
            f"(Annotator.rows, or wsabie features), {annotator.model.n_features_in_:,} features each"
        )
    kept = annotator.model.facts().get("rows_replayed")
    if kept and form == "huggingface":
        note(f"{plural(kept, 'training row')} that the model keeps against forgetting stayed behind")
    labels, features = annotator.model.facts()["labels"], annotator.model.n_features_in_
    if json:
        counts = {"labels": labels, "features": features, "description_left_out": described}
        show_json({"schema": 1, "model": str(model), "out": str(to), "as": form, **counts, "files": sizes})
        return
    total = sum(sizes.values()) / 1e6
    told = f"{plural(labels, 'label')}, {plural(features, 'feature')}, {total:,.2f} MB in {plural(len(files), 'file')}"
    out.print(one_line(f"{to}: {FORMATS[form].holds}, {told}"))
