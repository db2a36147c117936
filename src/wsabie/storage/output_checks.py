"""Checks of output paths before the work: they can be written and destroy nothing."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from wsabie.core.errors import InputError, require
from wsabie.storage.atomic_files import check_writable, explain_read_errors, explain_write_errors

OutputKind = Literal[
    "annotations", "backup", "coco", "html", "is-a", "labels", "log", "pairs", "parquet", "picture", "places",
    "rejects", "tags", "vectors",
]  # fmt: skip
_KINDS: dict[OutputKind, tuple[str, tuple[bytes, ...] | re.Pattern[bytes]]] = {
    "annotations": ("a file of labels of rows", (b'{"id":', b"id\tlabel\tscore", b"par1")),
    "backup": ("a backup of a collection", (b"sqlite format 3",)),
    "coco": ("a file of annotations that was exported", (b'{"info":',)),
    "html": ("an HTML page", (b"<!doctype html", b"<html")),
    "is-a": ("an is-a list", (b"child\tparent",)),
    "labels": ("a table of labels", (b"label\tid",)),
    "log": ("a log of epochs", (b'{"epoch":',)),
    "pairs": ("a pair list", (b"id\tname",)),
    "parquet": ("a Parquet file", (b"par1",)),
    "picture": ("a PNG picture", (b"\x89png",)),
    "places": ("a list of places on a map", (b"kind,id,name,x,y",)),
    "rejects": ("a list of what was skipped", (b'{"where":', b'{"not_listed":')),
    "tags": ("a list of tags", (b"path,root,", b'{"path":')),
    "vectors": ("a file of word vectors", re.compile(rb"\d+ \d+\n\S")),
}
"""Name of each kind of result with its article, and beginning of a file that it may replace, in lower case."""
_HEAD_BYTES = 1024
_DRAFT = re.compile(r"\..*\.tmp")


def check_output_paths(
    *results: tuple[OutputKind, Path | None], inputs: Iterable[Path | None] = (), folder: Path | None = None
) -> None:
    """Refuse results that could not be written or would destroy something, before the work that they take.

    Parameters
    ----------
    *results : (kind, Path or None)
        "annotations" (of rows), "backup", "coco", "html", "is-a" (list), "labels" (what they mean), "log" (of epochs),
        "pairs", "parquet", "picture", "places" (on a map), "rejects", "tags" (of a collection) or "vectors", and the
        file; None is skipped.
    inputs : iterable of Path or None
        What the command reads, and folders that it fills itself: no result may be one of these, nor lie in one.
    folder : Path or None
        A folder for a model, to be made if it is not there.

    Raises
    ------
    InputError
        A result is an input or lies in one, is another result too, would replace a file of another kind, is no
        ordinary file, or cannot be written, as far as that can be known now.

    Examples
    --------
    >>> check_output_paths(("html", Path("rows.txt")), inputs=[Path("rows.txt")])
    Traceback (most recent call last):
    wsabie.core.errors.InputError: cannot write rows.txt: it is read by this command and would be lost; give another
    name
    """
    files = [(kind, file) for kind, file in results if file is not None]
    input_paths = [path for path in inputs if path is not None]
    for number, (kind, file) in enumerate(files):
        with explain_write_errors(file):
            _refuse_input(file, input_paths)
            if any(_is_same_file(file, earlier) for _, earlier in files[:number]):
                raise InputError(f"cannot write {file}: it is named for two results; give each a name of its own")
            if file.exists():
                _refuse_other_kind(file, kind)
    for _, file in files:
        check_writable(file)
    if folder is None:
        return
    check_writable(folder)
    for inner in (folder, folder / "tensors"):
        if inner.is_dir():
            check_writable(inner, within=True)


def _refuse_input(file: Path, inputs: Iterable[Path]) -> None:
    for path in inputs:
        if _is_same_file(file, path):
            raise InputError(f"cannot write {file}: it is read by this command and would be lost; give another name")
        if _resolve_path(path) in _resolve_path(file).parents:
            raise InputError(
                f"cannot write {file}: it would lie in {path}, which this command reads or fills; choose another folder"
            )


def _is_same_file(a: Path, b: Path) -> bool:
    return _resolve_path(a) == _resolve_path(b) or (a.exists() and b.exists() and a.samefile(b))


def _resolve_path(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as error:
        raise InputError(f"{path} is a link that leads back to itself; name an ordinary file") from error


def _refuse_other_kind(file: Path, kind: OutputKind) -> None:
    """Refuse an existing file unless its beginning shows that it is empty or of the same kind."""
    require(not file.is_dir(), f"cannot write {file}: it is a folder; give the name of a file")
    require(file.is_file(), f"cannot write {file}: it is not a regular file; give the name of a file")
    with file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    kind_name, beginnings = _KINDS[kind]
    start = head.lstrip().lower()
    is_same_kind = beginnings.match(start) if isinstance(beginnings, re.Pattern) else start.startswith(beginnings)
    if head and not is_same_kind:
        problem = f"cannot write {file}: the file that is there is not {kind_name} and would be lost"
        raise InputError(f"{problem}; give another name, or move it away")


def refuse_unknown_files(folder: Path, ours: str) -> None:
    """Refuse a folder that holds anything but names that match the pattern `ours` and drafts of them.

    To be called before work in the folder begins: it will be emptied.

    Raises
    ------
    InputError
        There are other files, perhaps the user's data, or it cannot be seen what there is.
    """
    with explain_read_errors(folder):
        if not folder.exists():
            return
        require(folder.is_dir(), f"{folder} is a file where unfinished work is kept; move it away")
        names = sorted(path.name for path in folder.iterdir())
    foreign_names = [name for name in names if not (re.fullmatch(ours, name) or _DRAFT.fullmatch(name))]
    if foreign_names:
        problem = f"{folder} holds {foreign_names[0]!r}, which is not of this command's making and would be lost"
        raise InputError(f"{problem}; give the result another name, or move that away")
