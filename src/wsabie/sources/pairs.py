"""Pair lists: `id TAB label` lines, with an optional third column.

An id may come on many lines, once for each of its labels. The third column is a weight: a positive number
states the label, a negative one denies it (an explicit negative, -1 in Y), 0 says nothing. Sizes of
weights are not used. A first line like `id TAB label` is taken for a header.

When the ids are names of pictures beside the list, the list is a collection of pictures. Otherwise every
id has one free vector: X is the identity, with the ids as feature names, so that other lists about the
same ids can be aligned.
"""

import logging
import math
import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.sources.build import (
    BadRow,
    LabelIndex,
    require_rows,
    row_starts,
    signed_label_matrix,
    sparse_features,
)
from wsabie.sources.images import ENDINGS, is_inside, relative_name
from wsabie.sources.records import Picture, PictureList, Rows
from wsabie.sources.text import numbered_lines, shown
from wsabie.storage.rejects import Rejects

log = logging.getLogger("wsabie")
_ID_HEADS = {"id", "item", "file_name", "path", "image", "picture", "file"}
_LABEL_HEADS = {"label", "labels", "tag", "tags", "name"}
_LOOKED_AT = 50


def read_pairs(path: Path, *, rejects: Rejects | None = None) -> Rows | PictureList:
    """Read a pair list.

    Parameters
    ----------
    path : Path
        UTF-8 text with tabs, plain or gzip.
    rejects : Rejects or None
        Lists malformed lines, pairs both stated and denied, and missing pictures.

    Returns
    -------
    Rows or PictureList
        Pictures when one of the first 50 ids is the name of a picture beside the list.

    Raises
    ------
    InputError
        Missing, or without a single usable line.
    """
    rejects = Rejects() if rejects is None else rejects
    got = _collect(path, rejects)
    require_rows(len(got.ids), path, rejects, "pairs")
    Y, label_names = _label_matrix(path, got, rejects)
    ids = list(got.ids)
    if any(_names_picture(path, name) for name in ids[:_LOOKED_AT]):
        return _pictures(path, ids, Y, label_names, rejects)
    n = len(ids)
    X = sparse_features(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
    return Rows(X, Y, label_names, ids, feature_names=ids)


@dataclass
class _Collected:
    ids: dict[str, int] = field(default_factory=dict)
    labels: LabelIndex = field(default_factory=LabelIndex)
    rows: "array[int]" = field(default_factory=lambda: array("i"))
    numbers: "array[int]" = field(default_factory=lambda: array("i"))
    signs: "array[int]" = field(default_factory=lambda: array("b"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))


def _collect(path: Path, rejects: Rejects) -> _Collected:
    got, weighted = _Collected(), 0
    for line_number, line in numbered_lines(path):
        try:
            cells = _cells(line)
            if not cells or (line_number == 1 and _is_header(cells)):
                continue
            weight = _weight(cells)
            number = got.labels.number(cells[1])
        except BadRow as bad:
            rejects.add(f"{shown(path)}:{line_number}", bad.reason, bad.detail)
            continue
        weighted += weight not in (1, 0, -1)
        row = got.ids.setdefault(cells[0], len(got.ids))
        if weight:
            got.rows.append(row)
            got.numbers.append(number)
            got.signs.append(1 if weight > 0 else -1)
            got.lines.append(line_number)
    if weighted:
        log.warning("%s: %d weights are neither 1 nor -1, only their signs are used", shown(path), weighted)
    return got


def _cells(line: bytes) -> list[str]:
    if not line.strip():
        return []
    try:
        cells = [cell.strip() for cell in line.decode("utf-8").split("\t")]
    except UnicodeDecodeError as error:
        raise BadRow("text that is not UTF-8", repr(line[:60])) from error
    if len(cells) not in (2, 3):
        raise BadRow("line without two or three columns", f"{len(cells)} separated by tabs")
    if not cells[0]:
        raise BadRow("pair without an id")
    return cells


def _is_header(cells: list[str]) -> bool:
    return cells[0].lower() in _ID_HEADS and cells[1].lower() in _LABEL_HEADS


def _weight(cells: list[str]) -> float:
    if len(cells) == 2:
        return 1.0
    try:
        weight = float(cells[2])
    except ValueError as error:
        raise BadRow("malformed weight", cells[2]) from error
    if not math.isfinite(weight):
        raise BadRow("weight that is not finite", cells[2])
    return weight


def _label_matrix(path: Path, got: _Collected, rejects: Rejects) -> tuple[Matrix, list[str]]:
    """(Y, label names): every pair once; a pair that is stated and denied is left out and listed."""
    names, final = got.labels.finish()
    rows, labels = np.array(got.rows), final[np.array(got.numbers, np.int32)]
    signs, lines = np.array(got.signs, np.int8), np.array(got.lines)
    order = np.lexsort((lines, labels, rows))
    rows, labels, signs, lines = rows[order], labels[order], signs[order], lines[order]
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
    starts = np.flatnonzero(fresh)
    ends = np.append(starts[1:], len(rows))
    clashing = np.zeros(len(starts), bool)
    if len(starts):
        clashing = np.minimum.reduceat(signs, starts) < np.maximum.reduceat(signs, starts)
    for start, end in zip(starts[clashing].tolist(), ends[clashing].tolist(), strict=True):
        line = lines[start:end][np.flatnonzero(signs[start:end] != signs[start])[0]]
        rejects.add(f"{shown(path)}:{line}", "label both stated and denied", names[labels[start]])
    kept = starts[~clashing]
    counts = np.bincount(rows[kept], minlength=len(got.ids))
    return signed_label_matrix(row_starts(counts), labels[kept], signs[kept], len(names)), names


def _names_picture(path: Path, name: str) -> bool:
    return name.lower().endswith(ENDINGS) and _picture_at(path, name) is not None


def _picture_at(path: Path, name: str) -> Path | None:
    """The picture beside the list that an id names, None when there is none (or a path leads elsewhere)."""
    try:
        file = path.parent / relative_name(name)
        inside = is_inside(file, os.path.realpath(path.parent))
        return file if inside and file.is_file() else None
    except (BadRow, OSError, ValueError):
        return None


def _pictures(path: Path, ids: list[str], Y: Matrix, label_names: list[str], rejects: Rejects) -> PictureList:
    pictures: dict[str, Picture] = {}
    for row, name in enumerate(ids):
        where = f"{shown(path)} id {name}"
        entries = slice(Y.indptr[row], Y.indptr[row + 1])
        signed = list(zip(Y.indices[entries], Y.data[entries], strict=True))
        for label in [label_names[i] for i, sign in signed if sign < 0]:
            rejects.add(where, "denied label, which a picture cannot keep", label)
        labels = tuple(label_names[i] for i, sign in signed if sign > 0)
        file = _picture_at(path, name)
        if file is None:
            rejects.add(where, "labels without a picture", name)
        elif not labels:
            rejects.add(where, "picture without labels", name)
        else:
            pictures[name] = Picture(name, file, labels)
    require_rows(len(pictures), path, rejects, "labelled pictures")
    return PictureList(path, list(pictures.values()))
