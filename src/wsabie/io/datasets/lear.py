"""Corel5k, ESP Game and IAPR TC-12 as INRIA's LEAR team published their labels.

`NAME_dictionary.txt` lists the words, `NAME_train_list.txt` the pictures, and `NAME_train_annot.hvecs` says which
words each picture has: for each the number of words, then a 0 or 1 for each word, all as little-endian 16-bit
integers. A table of 0 and 1 as text (`.txt` or `.csv`) does as well. One of the lists, or of the annotations, is
given: the sides of the split are read one by one. Pictures are known by their ids (see `id_labels`).
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Array
from wsabie.core.errors import InputError, require
from wsabie.io.formats.id_labels import IdLabelCollector, iterate_flag_lines, parse_flags, read_names
from wsabie.io.parsers.text_files import explain_input_errors, open_decompressed
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects

_FILE = re.compile(r"(.+)_(train|test)_(?:list\.txt|annot\.(?:hvecs|txt|csv))")
_ANNOTATIONS = ("hvecs", "txt", "csv")


def is_lear(path: Path) -> bool:
    """Return True if a file is one of the lists or annotations, with its dictionary beside it."""
    match = _FILE.fullmatch(path.name)
    return match is not None and path.with_name(f"{match[1]}_dictionary.txt").is_file()


def find_split_lists(folder: Path) -> list[Path]:
    """Return the lists of pictures in a folder."""
    return sorted(file for file in folder.glob("*_list.txt") if is_lear(file))


def read_lear(path: Path, *, rejects: Rejects) -> FeatureTable:
    """Read one side of the split.

    Parameters
    ----------
    path : Path
        `NAME_train_list.txt`, `NAME_test_list.txt`, or the annotations beside it.
    rejects : Rejects
        Lists pictures without labels, and lines of a text that are not flags.

    Returns
    -------
    FeatureTable
        X is the identity.

    Raises
    ------
    InputError
        A file is missing or damaged, or lists and annotations differ in length.
    """
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise InputError(f"{path} is not a list of this layout; give one such as corel5k_train_list.txt")
    stem = f"{match[1]}_{match[2]}"
    words = read_names(path.with_name(f"{match[1]}_dictionary.txt"))
    ids = read_names(path.with_name(f"{stem}_list.txt"))
    annotations = _find_annotations(path, stem)
    collector = IdLabelCollector(annotations, rejects)
    if annotations.suffix == ".hvecs":
        n = collector.add_flags(_iterate_vectors(annotations, len(words)), np.flatnonzero, words, ids, unique=True)
    else:
        lines, parse = iterate_flag_lines(annotations, len(words)), partial(parse_flags, n_labels=len(words))
        n = collector.add_flags(lines, parse, words, ids, unique=True)
    require(n == len(ids), f"{annotations} annotates {n:,} pictures but {stem}_list.txt names {len(ids):,}")
    return collector.build_table("labelled pictures")


def _find_annotations(path: Path, stem: str) -> Path:
    if "_annot." in path.name:
        return path
    files = [path.with_name(f"{stem}_annot.{ending}") for ending in _ANNOTATIONS]
    annotations = next((file for file in files if file.is_file()), None)
    if annotations is None:
        raise InputError(f"there is no {files[0].name} beside {path}; put the annotations there")
    return annotations


def _iterate_vectors(path: Path, n_words: int) -> Iterator[tuple[int, Array]]:
    """Yield (number from 1, flags) of each vector."""
    size, number = 2 * (n_words + 1), 0
    with explain_input_errors(path), open_decompressed(path) as stream:
        while block := stream.read(size):
            number += 1
            values = np.frombuffer(block[: len(block) // 2 * 2], "<i2")
            if len(block) < size or values[0] != n_words or np.any((values[1:] != 0) & (values[1:] != 1)):
                problem = f"vector {number} of {path} is not a list of {n_words:,} flags"
                raise InputError(f"{problem}; give the dictionary that belongs to it, or fetch the file again")
            yield number, values[1:]
