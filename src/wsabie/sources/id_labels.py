"""Labels of things that are known by their ids: what pair lists and the published tag lists are made of.

When ids name pictures that are there, they are a collection of pictures. Otherwise every id has one free vector:
X is the identity, with the ids as feature names, so that other lists about the same ids can be aligned.
"""

import os
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from wsabie.base.arrays import Int64, Matrix
from wsabie.sources.build import BadRow, LabelIndex, require_rows, row_starts, signed_label_matrix, sparse_features
from wsabie.sources.folders import is_inside, relative_name
from wsabie.sources.media import PICTURES
from wsabie.sources.records import Item, ItemList, Rows
from wsabie.sources.text import shown
from wsabie.storage.rejects import Rejects

_LOOKED_AT = 50
_LABEL = (1 << 31) - 1
CLASHING = "label both stated and denied"


class IdLabels:
    """Collects pairs of an id and a label, in any order; 8 bytes a pair, and as many again with line numbers.

    Parameters
    ----------
    path : Path
        What is read, for the list of rejects.
    numbered : bool
        Keep the line of each pair, so that a pair which contradicts another is listed by it and not by its id.

    Examples
    --------
    >>> got = IdLabels(Path("tags.tsv"))
    >>> got.add("a", "sea"), got.add("b", "sea"), got.add("a", "sky", stated=False)
    (None, None, None)
    >>> got.as_rows(Rejects()).Y.toarray().tolist()
    [[1, -1], [1, 0]]
    """

    def __init__(self, path: Path, *, numbered: bool = False) -> None:
        self.path, self.numbered = path, numbered
        self.ids: dict[str, int] = {}
        self.labels = LabelIndex()
        self._keys = array("q")  # row, label, whether denied: in an order that brings equal pairs together
        self._lines = array("q")

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, name: str) -> int:
        """The number of an id, new or known."""
        return self.ids.setdefault(name, len(self.ids))

    def add(self, name: str, label: str, *, stated: bool = True, line: int = 0) -> None:
        """Add a pair.

        Raises
        ------
        BadRow
            The label is empty or not valid text.
        """
        number = self.labels.number(label)
        self._keys.append(self.row(name) << 32 | number << 1 | (not stated))
        if self.numbered:
            self._lines.append(line)

    def add_all(self, name: str, labels: Iterable[str]) -> None:
        """Add an id with all its labels; blank ones are left out.

        Raises
        ------
        BadRow
            A label is not valid text, or none is left; nothing is added.
        """
        numbers = self.labels.numbers(labels)
        if not numbers:
            raise BadRow(PICTURES.unlabelled, name)
        row = self.row(name) << 32
        self._keys.extend(row | number << 1 for number in numbers)

    def as_rows(self, rejects: Rejects, what: str = "pairs") -> Rows:
        """One row for each id, with a feature of its own.

        Raises
        ------
        InputError
            There is none.
        """
        require_rows(len(self), self.path, rejects, what)
        Y, names = self._label_matrix(rejects)
        return identity_rows(list(self.ids), Y, names)

    def as_pictures_or_rows(
        self, folder: Path, rejects: Rejects, files: dict[str, str] | None = None
    ) -> Rows | ItemList:
        """The pictures, when one of the first 50 ids has a file in the folder, otherwise as `as_rows`.

        Parameters
        ----------
        folder : Path
        rejects : Rejects
            Lists labels without a picture, and denied labels, which a picture cannot keep.
        files : dict of str to str or None
            The file of each id, relative to the folder; None when the ids are their names.

        Returns
        -------
        Rows or ItemList
        """
        rows = self.as_rows(rejects)
        places = {name: files.get(name, "") for name in rows.ids} if files is not None else {n: n for n in rows.ids}
        if not any(_names_picture(folder, places[name]) for name in rows.ids[:_LOOKED_AT]):
            return rows
        return _pictures(self.path, folder, rows, places, rejects)

    def _label_matrix(self, rejects: Rejects) -> tuple[Matrix, list[str]]:
        """(Y, label names): every pair once; a pair that is stated and denied is left out and listed."""
        names, final = self.labels.finish()
        keys: Int64 = np.frombuffer(self._keys, np.int64)
        order = np.argsort(keys >> 1, kind="stable") if self.numbered else None
        if order is None:
            keys.sort()
        else:
            keys = keys[order]
        change = keys[1:] ^ keys[:-1]  # 0: the same again, 1: the same denied, more: another pair
        turns = np.flatnonzero(change == 1) + 1
        clashing, first = np.unique(keys[turns] >> 1, return_index=True)
        ids = list(self.ids) if len(clashing) else []
        for pair, place in zip(clashing.tolist(), turns[first].tolist(), strict=True):
            line = "" if order is None else f":{self._lines[order[place]]}"
            rejects.add(f"{shown(self.path)}{line or f' id {ids[pair >> 31]}'}", CLASHING, names[final[pair & _LABEL]])
        fresh = np.append(True, change > 1)[: len(keys)]
        if len(clashing):
            fresh &= ~np.isin(keys >> 1, clashing)
        keys = keys[fresh]
        counts = np.bincount(keys >> 32, minlength=len(self))
        signs = 1 - 2 * (keys & 1).astype(np.int8)
        return signed_label_matrix(row_starts(counts), final[keys >> 1 & _LABEL], signs, len(names)), names


def identity_rows(ids: list[str], Y: Matrix, label_names: list[str]) -> Rows:
    """Rows of things without features: each has one of its own, of which its id is the name."""
    n = len(ids)
    X = sparse_features(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
    return Rows(X, Y, label_names, ids, feature_names=ids)


def _names_picture(folder: Path, name: str) -> bool:
    return name.lower().endswith(PICTURES.endings) and _picture_at(folder, name) is not None


def _picture_at(folder: Path, name: str) -> Path | None:
    """The picture in the folder that a text names, None when there is none (or a path leads elsewhere)."""
    try:
        file = folder / relative_name(name)
        inside = is_inside(file, os.path.realpath(folder))
        return file if inside and file.is_file() else None
    except (BadRow, OSError, ValueError):
        return None


def _pictures(path: Path, folder: Path, rows: Rows, places: dict[str, str], rejects: Rejects) -> ItemList:
    pictures: dict[str, Item] = {}
    Y = rows.Y
    for row, name in enumerate(rows.ids):
        where = f"{shown(path)} id {name}"
        entries = slice(Y.indptr[row], Y.indptr[row + 1])
        signed = list(zip(Y.indices[entries], Y.data[entries], strict=True))
        for label in [rows.label_names[i] for i, sign in signed if sign < 0]:
            rejects.add(where, "denied label, which a picture cannot keep", label)
        labels = tuple(rows.label_names[i] for i, sign in signed if sign > 0)
        file = _picture_at(folder, places[name])
        if file is None:
            rejects.add(where, "labels without a picture", places[name])
        elif not labels:
            rejects.add(where, PICTURES.unlabelled, name)
        else:
            pictures[name] = Item(name, file, labels)
    require_rows(len(pictures), path, rejects, "labelled pictures")
    return ItemList(path, list(pictures.values()))
