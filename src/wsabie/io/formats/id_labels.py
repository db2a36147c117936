"""Labels of items known by their ids, as in pair lists, published tag lists and tables of 0 and 1.

When ids name pictures that exist, they are a collection of pictures. Otherwise every id has one free vector:
X is the identity, with the ids as feature names, so that other lists about the same ids can be aligned.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from wsabie.core.arrays import Int64, Matrix
from wsabie.core.errors import InputError
from wsabie.io.file_matching import find_local_file
from wsabie.io.modalities import PICTURES
from wsabie.io.parsers.array_builders import (
    LabelIndex,
    RowError,
    build_feature_matrix,
    build_signed_label_matrix,
    compute_row_offsets,
    require_rows,
)
from wsabie.io.parsers.text_files import decode_text, format_path, iterate_numbered_lines
from wsabie.io.records import FeatureTable, Item, ItemList
from wsabie.storage.rejects import Rejects

_LOOKED_AT = 50
_LABEL = (1 << 31) - 1
CLASHING = "label both stated and denied"


class IdLabelCollector:
    """Collector of pairs of an id and a label, in any order; 8 bytes a pair, twice that with line numbers.

    Parameters
    ----------
    path : Path
        What is read, for the list of rejects.
    numbered : bool
        Keep the line of each pair, so that a pair which contradicts another is listed by it and not by its id.

    Examples
    --------
    >>> got = IdLabelCollector(Path("tags.tsv"))
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
        """Return the number of an id, new or known."""
        return self.ids.setdefault(name, len(self.ids))

    def add(self, name: str, label: str, *, stated: bool = True, line: int = 0) -> None:
        """Add a pair.

        Raises
        ------
        RowError
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
        RowError
            A label is not valid text, or none is left; nothing is added.
        """
        numbers = self.labels.numbers(labels)
        if not numbers:
            raise RowError(PICTURES.unlabelled, name)
        row = self.row(name) << 32
        self._keys.extend(row | number << 1 for number in numbers)

    def add_rows(
        self,
        rows: Iterable[tuple[int, "Int64 | RowError"]],
        names: Sequence[str],
        ids: Sequence[str] | None,
        rejects: Rejects,
        *,
        unique: bool = False,
    ) -> int:
        """Add the rows of a table of 0 and 1, by their numbers from 1 or their ids, and return how many there are.

        With `unique` a row whose id came before is rejected.
        """
        n = 0
        for n, labels in rows:
            name = str(n) if ids is None or n > len(ids) else ids[n - 1]
            try:
                if isinstance(labels, RowError):
                    raise labels
                if unique and name in self.ids:
                    raise RowError("duplicate id", name)
                self.add_all(name, [names[i] for i in labels])
            except RowError as error:
                rejects.add(f"{format_path(self.path)}:{n}", error.reason, error.detail)
        return n

    def as_rows(self, rejects: Rejects, unit: str = "pairs") -> FeatureTable:
        """Return one row for each id, with a feature of its own.

        Raises
        ------
        InputError
            There is none.
        """
        require_rows(len(self), self.path, rejects, unit)
        Y, names = self._label_matrix(rejects)
        return build_identity_table(list(self.ids), Y, names)

    def as_pictures_or_rows(
        self, folder: Path, rejects: Rejects, files: dict[str, str] | None = None
    ) -> FeatureTable | ItemList:
        """Return the pictures if one of the first 50 ids is a file in the folder, else `as_rows`.

        Parameters
        ----------
        folder : Path
        rejects : Rejects
            Lists labels without a picture, and denied labels, which a picture cannot keep.
        files : dict of str to str or None
            The file of each id, relative to the folder; None when the ids are their names.

        Returns
        -------
        FeatureTable or ItemList
        """
        rows = self.as_rows(rejects)
        places = {name: files.get(name, "") for name in rows.ids} if files is not None else {n: n for n in rows.ids}
        if not any(_names_picture(folder, places[name]) for name in rows.ids[:_LOOKED_AT]):
            return rows
        return _build_picture_list(self.path, folder, rows, places, rejects)

    def _label_matrix(self, rejects: Rejects) -> tuple[Matrix, list[str]]:
        """Return (Y, label names); a pair that is both stated and denied is left out and listed."""
        names, final = self.labels.finish()
        keys: Int64 = np.frombuffer(self._keys, np.int64)
        order = np.argsort(keys >> 1, kind="stable") if self.numbered else None
        if order is None:
            keys.sort()
        else:
            keys = keys[order]
        change = keys[1:] ^ keys[:-1]  # 0: the same again, 1: the same denied, more: another pair
        contradictions = np.flatnonzero(change == 1) + 1
        clashing, first = np.unique(keys[contradictions] >> 1, return_index=True)
        ids = list(self.ids) if len(clashing) else []
        for pair, place in zip(clashing.tolist(), contradictions[first].tolist(), strict=True):
            line = "" if order is None else f":{self._lines[order[place]]}"
            rejects.add(
                f"{format_path(self.path)}{line or f' id {ids[pair >> 31]}'}", CLASHING, names[final[pair & _LABEL]]
            )
        is_new = np.append(True, change > 1)[: len(keys)]
        if len(clashing):
            is_new &= ~np.isin(keys >> 1, clashing)
        keys = keys[is_new]
        counts = np.bincount(keys >> 32, minlength=len(self))
        signs = 1 - 2 * (keys & 1).astype(np.int8)
        return build_signed_label_matrix(
            compute_row_offsets(counts), final[keys >> 1 & _LABEL], signs, len(names)
        ), names


def build_identity_table(ids: list[str], Y: Matrix, label_names: list[str]) -> FeatureTable:
    """Build rows for items without features: each has one of its own, named by its id."""
    n = len(ids)
    X = build_feature_matrix(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n, np.float32), n)
    return FeatureTable(X, Y, label_names, ids, feature_names=ids)


def _names_picture(folder: Path, name: str) -> bool:
    return name.lower().endswith(PICTURES.endings) and find_local_file(folder, name) is not None


def _build_picture_list(
    path: Path, folder: Path, rows: FeatureTable, places: dict[str, str], rejects: Rejects
) -> ItemList:
    pictures: dict[str, Item] = {}
    Y = rows.Y
    for row, name in enumerate(rows.ids):
        where = f"{format_path(path)} id {name}"
        entries = slice(Y.indptr[row], Y.indptr[row + 1])
        signed = list(zip(Y.indices[entries], Y.data[entries], strict=True))
        for label in [rows.label_names[i] for i, sign in signed if sign < 0]:
            rejects.add(where, "denied label, which a picture cannot keep", label)
        labels = tuple(rows.label_names[i] for i, sign in signed if sign > 0)
        file = find_local_file(folder, places[name])
        if file is None:
            rejects.add(where, "labels without a picture", places[name])
        elif not labels:
            rejects.add(where, PICTURES.unlabelled, name)
        else:
            pictures[name] = Item(name, file, labels)
    require_rows(len(pictures), path, rejects, "labelled pictures")
    return ItemList(path, list(pictures.values()))


_BETWEEN = b" \t,;\r"


def read_indicator_table(path: Path, n_labels: int) -> Iterator[tuple[int, Int64 | RowError]]:
    """Yield (line number, labels that are 1) of each line; separators between flags are ignored.

    A line of anything else is a `RowError`, so that the lines after it keep their places.

    Raises
    ------
    InputError
        The first line has another number of flags than there are labels.
    """
    for number, line in iterate_numbered_lines(path):
        flags = line.translate(None, _BETWEEN)
        if number == 1 and not flags.strip(b"01") and len(flags) != n_labels:
            raise InputError(
                f"{format_path(path)}:1 has {len(flags):,} flags for {n_labels:,} labels; put the list of names beside "
                "it that belongs to it"
            )
        if flags.strip(b"01"):
            yield number, RowError("flag that is neither 0 nor 1", repr(line[:60]))
        elif len(flags) != n_labels:
            yield number, RowError("wrong number of flags", f"{len(flags)} of {n_labels}")
        else:
            yield number, np.flatnonzero(np.frombuffer(flags, np.uint8) == ord("1"))


def read_names(path: Path) -> list[str]:
    """Read a list of names or ids, one a line; blank lines are left out.

    Raises
    ------
    InputError
        Missing, empty, or not UTF-8.
    """
    lines = (decode_text(line, path, number).strip() for number, line in iterate_numbered_lines(path))
    names = [name for name in lines if name]
    if not names:
        raise InputError(f"{format_path(path)} is empty; it should list one name a line")
    return names
