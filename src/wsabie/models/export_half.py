"""The model folder with the points of its labels in float16: half the bytes, opened as any other."""

from dataclasses import replace
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.models.annotator import Annotator
from wsabie.models.wsabie import Wsabie
from wsabie.storage.atomic import UnwritableError, new_folder
from wsabie.storage.folder import Parts, save_folder


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


def write_folder(out: Path, parts: Parts, texts: dict[str, str]) -> list[Path]:
    """Write a new model folder with some texts in it; what is in it.

    Raises
    ------
    UnwritableError
        The folder cannot be written; there is nothing then.
    """
    with new_folder(out) as draft:
        try:
            save_folder(draft, parts)
        except UnwritableError as error:
            raise error.__cause__ or error from None  # said anew of `out`, and not of a file of the draft
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
        files = sorted(file.relative_to(draft) for file in draft.rglob("*") if file.is_file())
    return [out / file for file in files]
