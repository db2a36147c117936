"""Export of models for other programs: the table of formats, and functions that formats share."""

import json
import re
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from wsabie.core.errors import InputError, require
from wsabie.core.validation import check_positive_integer
from wsabie.models.annotators import Annotator
from wsabie.models.base.label_model import LabelModel
from wsabie.storage.atomic_files import WriteError, create_folder
from wsabie.storage.model_folder import ModelState, save_model_folder

OPTIONS = {
    "k": "how many labels a graph gives",
    "int8": "tables of bytes",
    "with_encoder": "that a graph takes pictures",
    "license": "which license the output has",
}

_LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,63}")


class ModelExportFormat(NamedTuple):
    """Entry of the table of export formats.

    Attributes
    ----------
    summary : str
        Short description of the output.
    writer : str
        module:function(annotator, out, **options) -> list of Path; imported when it is used.
    options : frozenset of str
        Keys of `OPTIONS` that it accepts.
    includes_extractor : bool
        The output includes the feature extractor.
    """

    summary: str
    writer: str
    options: frozenset[str] = frozenset()
    includes_extractor: bool = False


FORMATS = {
    "onnx": ModelExportFormat(
        "one graph for ONNX Runtime", "wsabie.models.exporters.onnx_model:write_onnx_model", frozenset(OPTIONS)
    ),
    "numpy": ModelExportFormat(
        "plain arrays with an example that reads them", "wsabie.models.exporters.portable_model:write_numpy_arrays"
    ),
    "huggingface": ModelExportFormat(
        "the model folder with a model card",
        "wsabie.models.exporters.huggingface_folder:write_huggingface_folder",
        frozenset({"license"}),
        True,
    ),
    "half": ModelExportFormat(
        "the model folder with labels in float16",
        "wsabie.models.exporters.huggingface_folder:write_half_precision",
        includes_extractor=True,
    ),
}
"""All formats by name; a new one needs an entry here and a module with its writer."""


def export(model: LabelModel | Annotator, out: str | Path, form: str = "onnx", **options: Any) -> list[Path]:
    """Write a model for other programs.

    Parameters
    ----------
    model : LabelModel or Annotator
        Model folders ("huggingface", "half") include the feature extractor of an annotator.
    out : path
        A new file ("onnx") or a new folder (other formats).
    form : {"onnx", "numpy", "huggingface", "half"}
    **options
        "onnx": k (10), labels of a row; int8 (False), tables of bytes; with_encoder (False), the image encoder too, so
        that pictures take the place of rows. "onnx" and "huggingface": license (None: unknown, or the encoder's).

    Returns
    -------
    list of Path
        The new files.

    Raises
    ------
    InputError
        The format or an option is unknown, `out` exists, the format cannot hold this kind of model, or a package is
        missing.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from wsabie import Wsabie
    >>> model = Wsabie(dim=4, threads=1).fit(np.eye(3), ["red", "green", "blue"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in export(model, Path(folder) / "plain", "numpy")]
    ['V.npy', 'weight.npy', 'shift.npy', 'W.npy', 'labels.txt', 'predict.py', 'README.md']
    """
    out = Path(out)
    write = _load_writer(form, options)
    annotator = model if isinstance(model, Annotator) else Annotator(model)
    if not isinstance(annotator.model, LabelModel):
        raise InputError(f"{type(annotator.model).__name__} has no labels to rank; export a model of labels")
    require_free_path(out)
    written: list[Path] = write(annotator, out, **options)
    return written


def require_free_path(*paths: Path) -> None:
    """Raise InputError if a path exists."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise InputError(f"there is something at {path} already; give a new name, or move it away")


def write_model_folder(out: Path, state: ModelState, texts: dict[str, str]) -> list[Path]:
    """Write a new model folder with additional text files; return its files.

    Raises
    ------
    WriteError
        The folder cannot be written; nothing is left of it.
    """
    with create_folder(out) as draft:
        try:
            save_model_folder(draft, state)
        except WriteError as error:
            raise error.__cause__ or error from None  # the caller names `out`, not a file of the draft
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
        files = sorted(file.relative_to(draft) for file in draft.rglob("*") if file.is_file())
    return [out / file for file in files]


def render_template(name: str, **values: object) -> str:
    """Return the text of a template of this package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 no template is HTML
        loader=PackageLoader("wsabie.models.exporters"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["json"] = partial(json.dumps, ensure_ascii=False)
    return environment.get_template(f"{name}.jinja").render(values)


def _load_writer(form: str, options: dict[str, Any]) -> Any:
    require(form in FORMATS, f"there is no format {form!r}; choose one of {', '.join(FORMATS)}")
    for name in options.keys() - FORMATS[form].options:
        supporting = [form_name for form_name, entry in FORMATS.items() if name in entry.options]
        reason = f"says {OPTIONS[name]}, of {' and '.join(supporting)}" if supporting else "is not an option"
        raise InputError(f"{name} {reason}; the format {form} has none, so leave it out")
    if "k" in options:
        check_positive_integer(options["k"], "k")
    license = options.get("license") or "unknown"
    is_identifier = _LICENSE.fullmatch(license) is not None
    require(is_identifier, f"the license {license!r} is not an identifier; give one such as apache-2.0 or cc-by-4.0")
    return resolve_name(FORMATS[form].writer)
