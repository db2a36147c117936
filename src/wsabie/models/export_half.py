"""The model folder with the points of its labels in float16: half the bytes, opened as any other."""

from dataclasses import replace
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.models.annotator import Annotator
from wsabie.models.export import write_folder
from wsabie.models.wsabie import Wsabie


def write(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder; what is in it.

    Raises
    ------
    InputError
        The model is of another kind than `Wsabie`, a point lies beyond float16, or the folder cannot be written.
    """
    model = annotator.model
    if type(model) is not Wsabie:
        raise InputError(f"models of kind {model.kind} are not kept in float16; export one of kind wsabie")
    return write_folder(out, replace(annotator, model=model.halved()).to_parts(), {})
