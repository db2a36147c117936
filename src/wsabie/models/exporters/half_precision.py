"""Export as a model folder with label vectors in float16: half the bytes, opened like any other."""

from dataclasses import replace
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.models.annotators.annotator import Annotator
from wsabie.models.exporters.export_formats import write_model_folder
from wsabie.models.wsabie.estimator import Wsabie


def write_half_precision(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is no `Wsabie`, a value is too large for float16, or the folder cannot be written.
    """
    model = annotator.model
    if type(model) is not Wsabie:
        raise InputError(f"models of kind {model.kind} are not kept in float16; export one of kind wsabie")
    return write_model_folder(out, replace(annotator, model=model.halved()).to_parts(), {})
