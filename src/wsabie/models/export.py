"""A model for other programs: one table of formats, and what they share."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.validation import whole_number
from wsabie.models.annotator import Annotator
from wsabie.models.base import LabelModel
from wsabie.storage.atomic import UnwritableError, new_folder
from wsabie.storage.folder import Parts, save_folder


class Format(NamedTuple):
    """One way to write a model.

    Attributes
    ----------
    holds : str
        What comes of it, in a few words.
    writer : str
        module:function(annotator, out, **options) -> list of Path; imported when it is asked for.
    takes : frozenset of str
        Which of `OPTIONS` it has.
    whole : bool
        Whether what describes pictures, sounds or documents goes along.
    """

    holds: str
    writer: str
    takes: frozenset[str] = frozenset()
    whole: bool = False


FORMATS = {
    "onnx": Format("one graph for ONNX Runtime", "wsabie.models.export_onnx:write", frozenset({"k", "int8"})),
    "numpy": Format("plain arrays with an example that reads them", "wsabie.models.export_numpy:write"),
    "huggingface": Format(
        "the model folder with a model card", "wsabie.models.export_huggingface:write", frozenset({"license"}), True
    ),
    "half": Format("the model folder with labels in float16", "wsabie.models.export_half:write", whole=True),
}
"""Every format by its name: an entry here, and a module with its writer, are all that another one needs."""

OPTIONS = {"k": "how many labels a graph gives", "int8": "tables of bytes", "license": "what a model card says"}


def export(model: LabelModel | Annotator, out: str | Path, form: str = "onnx", **options: Any) -> list[Path]:
    """Write a model for other programs.

    Parameters
    ----------
    model : LabelModel or Annotator
        Of an annotator what describes pictures, sounds or documents goes into model folders ("huggingface", "half").
    out : path
        A file ("onnx") or a folder (the others) that is not there yet.
    form : {"onnx", "numpy", "huggingface", "half"}
    **options
        "onnx": k (10), labels that a row gets, and int8 (False), tables of bytes. "huggingface": license (None, which
        the card calls unknown).

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    InputError
        An unknown format or option, something is at `out` already, a kind of model that the format cannot hold, or a
        package that is missing.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from wsabie.models.wsabie import Wsabie
    >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in export(model, Path(folder) / "plain", "numpy")]
    ['V.npy', 'weight.npy', 'shift.npy', 'W.npy', 'labels.txt', 'predict.py', 'README.md']
    """
    out = Path(out)
    write = _writer(form, options)
    annotator = model if isinstance(model, Annotator) else Annotator(model)
    if not isinstance(annotator.model, LabelModel):
        raise InputError(f"{type(annotator.model).__name__} has no labels to rank; export a model of labels")
    refuse_taken(out)
    written: list[Path] = write(annotator, out, **options)
    return written


def refuse_taken(*places: Path) -> None:
    """InputError where there is something already."""
    for place in places:
        if place.exists() or place.is_symlink():
            raise InputError(f"there is something at {place} already; give a new name, or move it away")


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


def _writer(form: str, options: dict[str, Any]) -> Any:
    if form not in FORMATS:
        raise InputError(f"there is no format {form!r}; choose one of {', '.join(FORMATS)}")
    for name in options.keys() - FORMATS[form].takes:
        fit = [other for other, known in FORMATS.items() if name in known.takes]
        told = f"says {OPTIONS[name]}, of {' and '.join(fit)}" if fit else "is no option"
        raise InputError(f"{name} {told}; the format {form} has none, so leave it out")
    if "k" in options:
        whole_number(options["k"], "k")
    module, name = FORMATS[form].writer.split(":")
    return getattr(import_module(module), name)
