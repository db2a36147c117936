"""Corel5k, ESP Game and IAPR TC-12 as INRIA's LEAR team published their labels.

`NAME_dictionary.txt` lists the words, `NAME_train_list.txt` the pictures, and `NAME_train_annot.hvecs` says which
words each picture has: for each the number of words, then a 0 or 1 for each word, all as little-endian 16-bit
integers. A table of 0 and 1 as text (`.txt` or `.csv`) does as well. One of the lists, or of the annotations, is
given: the sides of the split are read one by one. Pictures are known by their ids (see `id_labels`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError
from wsabie.sources.build import BadRow
from wsabie.sources.flags import read_flags, read_names
from wsabie.sources.id_labels import IdLabels
from wsabie.sources.records import Rows
from wsabie.sources.text import open_bytes, reading, shown
from wsabie.storage.rejects import Rejects

_FILE = re.compile(r"(.+)_(train|test)_(?:list\.txt|annot\.(?:hvecs|txt|csv))")
_ANNOTATIONS = ("hvecs", "txt", "csv")


def is_lear(path: Path) -> bool:
    """Whether a file is one of the lists or annotations, with its dictionary beside it."""
    found = _FILE.fullmatch(path.name)
    return found is not None and path.with_name(f"{found[1]}_dictionary.txt").is_file()


def sides_of(folder: Path) -> list[Path]:
    """The lists of pictures in a folder."""
    return sorted(file for file in folder.glob("*_list.txt") if is_lear(file))


def read_lear(path: Path, *, rejects: Rejects | None = None) -> Rows:
    """Read one side of the split.

    Parameters
    ----------
    path : Path
        `NAME_train_list.txt`, `NAME_test_list.txt`, or the annotations beside it.
    rejects : Rejects or None
        Lists pictures without labels, and lines of a text that are no flags.

    Returns
    -------
    Rows
        X is the identity.

    Raises
    ------
    InputError
        A file is missing or damaged, or lists and annotations differ in length.
    """
    rejects = Rejects() if rejects is None else rejects
    found = _FILE.fullmatch(path.name)
    if found is None:
        raise InputError(f"{shown(path)} is no list of this layout; give one such as corel5k_train_list.txt")
    stem = f"{found[1]}_{found[2]}"
    words = read_names(path.with_name(f"{found[1]}_dictionary.txt"))
    ids = read_names(path.with_name(f"{stem}_list.txt"))
    annotations = _annotations(path, stem)
    got, n = IdLabels(annotations), 0
    for n, labels in _rows(annotations, len(words)):
        try:
            if isinstance(labels, BadRow):
                raise labels
            if n <= len(ids):
                _add(got, ids[n - 1], [words[i] for i in labels])
        except BadRow as bad:
            rejects.add(f"{shown(annotations)}:{n}", bad.reason, bad.detail)
    if n != len(ids):
        raise InputError(f"{shown(annotations)} annotates {n:,} pictures but {stem}_list.txt names {len(ids):,}")
    return got.as_rows(rejects, "labelled pictures")


def _add(got: IdLabels, name: str, labels: list[str]) -> None:
    if name in got.ids:
        raise BadRow("duplicate id", name)
    got.add_all(name, labels)


def _annotations(path: Path, stem: str) -> Path:
    if "_annot." in path.name:
        return path
    files = [path.with_name(f"{stem}_annot.{ending}") for ending in _ANNOTATIONS]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise InputError(f"there is no {files[0].name} beside {shown(path)}; put the annotations there")
    return found


def _rows(path: Path, n_words: int) -> Iterator[tuple[int, Int64 | BadRow]]:
    return _vectors(path, n_words) if path.suffix == ".hvecs" else read_flags(path, n_words)


def _vectors(path: Path, n_words: int) -> Iterator[tuple[int, Int64]]:
    """(number from 1, words) of each vector."""
    size, number = 2 * (n_words + 1), 0
    with reading(path), open_bytes(path) as stream:
        while block := stream.read(size):
            number += 1
            values = np.frombuffer(block[: len(block) // 2 * 2], "<i2")
            if len(block) < size or values[0] != n_words or np.any((values[1:] != 0) & (values[1:] != 1)):
                raise InputError(
                    f"vector {number} of {shown(path)} is no list of {n_words:,} flags; give the dictionary that "
                    "belongs to it, or fetch the file again"
                )
            yield number, np.flatnonzero(values[1:])
