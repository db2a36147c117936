"""Folders that an earlier export filled, told from those that hold anything of the user's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular
from wsabie.sources.json_lists import elements
from wsabie.sources.text import numbered_lines

_LIST = "metadata.jsonl"
_MARK = b'x:xmptk="wsabie"'
_HEAD = 200  # bytes of a sidecar in which the mark stands


def is_picture_folder(folder: Path, coco: Path | None = None) -> bool:
    """Return whether each file of a folder is named by its `metadata.jsonl`, or by the COCO file beside it."""
    try:
        names = set(_names_of_lines(folder / _LIST) if coco is None else _names_of_coco(coco))
    except (InputError, ValueError, TypeError, KeyError, RecursionError):
        return False
    return all(str(path.relative_to(folder)) in names for path in _files(folder))


def is_sidecar_folder(folder: Path) -> bool:
    """Return whether a folder holds nothing but sidecars that an export made."""
    try:
        return all(path.suffix == ".xmp" and is_regular(path) and _has_mark(path) for path in _files(folder))
    except OSError:
        return False


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def _names_of_lines(path: Path) -> Iterator[str]:
    yield _LIST
    for _, line in numbered_lines(path):
        yield json.loads(line)["file_name"]


def _names_of_coco(path: Path) -> Iterator[Any]:
    return (image["file_name"] for _, image in elements(path, ("images",)))


def _has_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return _MARK in file.read(_HEAD)
